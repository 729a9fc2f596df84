/* SPDX-License-Identifier: Apache-2.0 */

/* StoreWorker: data plane; its events and regions have files of their own. */

#include "client/python/binding/binding.h"

static PyObject *
submit_prefetch(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"job_id", "token", NULL};
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    const struct uc_token *token;
    struct uc_worker *worker;
    enum uc_status status;
    uint64_t job_id = 0;
    PyObject *job;
    PyObject *token_object;

    if (!PyArg_ParseTupleAndKeywords(
                arguments, keywords, "O!O", names, &PyLong_Type, &job, &token_object) ||
            uc_py_to_uint64(job, "job_id", &job_id) != 0) {
        return NULL;
    }
    token = uc_py_token_get(token_object);
    worker = token == NULL ? NULL : uc_py_enter(object);
    if (worker == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_worker_submit_prefetch(worker, job_id, token);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    if (status != UC_OK || uc_py_events_hold(owner, job_id, Py_None) != 0) {
        return status == UC_OK ? NULL : uc_py_raise(status);
    }
    Py_RETURN_NONE;
}

typedef enum uc_status submit_fn(struct uc_worker *worker, uint64_t job_id,
        const struct uc_block_payload *payloads, size_t count, const struct uc_token *token,
        const struct uc_io_context *io);

/* What a submit's arguments become. */
struct submit {
    PyObject *held; /* tuple of the payload objects, owned: the list may be reused by its owner */
    uint64_t job_id;
    struct uc_py_payloads payloads; /* owned */
    const struct uc_token *token;
    struct uc_io_context io;
};

static int
submit_parse(PyObject *arguments, PyObject *keywords, struct submit *submit)
{
    static char *names[] = {"job_id", "payloads", "token", "io_context", NULL};
    PyObject *payloads;
    PyObject *token;
    PyObject *job;
    PyObject *io = NULL;

    if (!PyArg_ParseTupleAndKeywords(
                arguments, keywords, "O!OO|O", names, &PyLong_Type, &job, &payloads, &token, &io) ||
            uc_py_to_uint64(job, "job_id", &submit->job_id) != 0 ||
            uc_py_io_context_get(io, &submit->io) != 0) {
        return -1;
    }
    submit->token = uc_py_token_get(token);
    if (submit->token == NULL) {
        return -1;
    }
    submit->held = PySequence_Tuple(payloads);
    if (submit->held == NULL) {
        return -1;
    }
    if (uc_py_payloads_get(submit->held, &submit->payloads) != 0) {
        Py_DECREF(submit->held);
        return -1;
    }
    return 0;
}

static PyObject *
submit_call(PyObject *object, PyObject *arguments, PyObject *keywords, submit_fn *call)
{
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker;
    struct submit submit;
    enum uc_status status;

    if (submit_parse(arguments, keywords, &submit) != 0) {
        return NULL;
    }
    worker = uc_py_enter(object);
    if (worker == NULL) {
        Py_DECREF(submit.held);
        uc_py_payloads_release(&submit.payloads);
        return NULL;
    }

    Py_BEGIN_ALLOW_THREADS;
    status = call(worker, submit.job_id, submit.payloads.items, submit.payloads.count, submit.token,
            &submit.io);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    uc_py_payloads_release(&submit.payloads);
    if (status == UC_OK && uc_py_events_hold(owner, submit.job_id, submit.held) != 0) {
        Py_DECREF(submit.held);
        return NULL;
    }
    Py_DECREF(submit.held);
    return uc_py_none_or_raise(status);
}

static PyObject *
submit_get(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    return submit_call(object, arguments, keywords, uc_worker_submit_get);
}

static PyObject *
submit_put(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    return submit_call(object, arguments, keywords, uc_worker_submit_put);
}

static PyObject *
event_fd(PyObject *object, PyObject *unused)
{
    struct uc_worker *worker = uc_py_enter(object);
    int fd;

    (void)unused;
    if (worker == NULL) {
        return NULL;
    }
    fd = uc_worker_event_fd(worker);
    uc_py_leave(object);
    return PyLong_FromLong(fd);
}

static enum uc_status
native_health(void *native)
{
    return uc_worker_health(native);
}

static PyObject *
health(PyObject *object, PyObject *unused)
{
    (void)unused;
    return uc_py_health(object, native_health);
}

static enum uc_status
native_describe(void *native, struct uc_dict *description)
{
    return uc_worker_describe(native, description);
}

static PyObject *
describe(PyObject *object, PyObject *unused)
{
    (void)unused;
    return uc_py_describe(object, native_describe);
}

static PyMethodDef worker_methods[] = {
        {"submit_prefetch", UC_PY_KEYWORDS(submit_prefetch),
                "submit_prefetch(job_id, token)\n--\n\nSubmit a prefetch plan."},
        {"submit_get", UC_PY_KEYWORDS(submit_get),
                "submit_get(job_id, payloads, token, io_context=None)\n--\n\n"
                "Load the token's blocks into payloads, one per key."},
        {"submit_put", UC_PY_KEYWORDS(submit_put),
                "submit_put(job_id, payloads, token, io_context=None)\n--\n\n"
                "Dump payloads into the token's blocks, one per key."},
        {"get_finished", uc_py_get_finished, METH_NOARGS,
                "All events that are ready; never blocks."},
        {"wait", UC_PY_KEYWORDS(uc_py_wait),
                "wait(job_ids, timeout_ms=-1)\n--\n\n"
                "Events of the listed jobs; a shorter list when the time runs out."},
        {"register_memory", UC_PY_KEYWORDS(uc_py_register_memory),
                "register_memory(address, size=None, kind=0)\n--\n\n"
                "Make memory usable for transfers; an address with its size, or a writable buffer, "
                "which is kept alive. kind: MEMORY_HOST or MEMORY_CUDA. Returns the region's index."},
        {"deregister_memory", uc_py_deregister_memory, METH_O,
                "deregister_memory(index)\n--\n\nRetryError while a job uses it."},
        {"event_fd", event_fd, METH_NOARGS,
                "Descriptor that is readable while get_finished() has something; -1 = none."},
        {"health", health, METH_NOARGS, "Raises UnhealthyError with the reason, else None."},
        {"describe", describe, METH_NOARGS, "What the topology says of itself."},
        {NULL, NULL, 0, NULL},
};

PyTypeObject uc_py_worker_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.StoreWorker",
        .tp_basicsize = sizeof(struct uc_py_handle),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .tp_doc = "Data plane; one thread at a time. From StoreAssembler.get_worker().",
        .tp_dealloc = uc_py_handle_dealloc,
        .tp_traverse = uc_py_handle_traverse,
        .tp_methods = worker_methods,
};
