/* SPDX-License-Identifier: Apache-2.0 */

/* StoreWorker: data plane. */

#include <stdlib.h>

#include <ucm/clock.h>

#include "client/python/binding/binding.h"

enum {
    RESULT_BATCH = 64,
    SLICE_MS = 200, /* a wait looks for signals (Ctrl-C) this often */
};

static struct uc_worker *
enter(PyObject *object)
{
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker = NULL;
    enum uc_status status;

    if (uc_py_assembler_check(owner) != 0) {
        return NULL;
    }
    if (owner->data_busy) {
        (void)uc_py_raise_invalid("StoreWorker: another thread is inside a call; one at a time");
        return NULL;
    }
    status = uc_assembler_worker(owner->assembler, &worker);
    if (status != UC_OK) {
        (void)uc_py_raise(status);
        return NULL;
    }

    owner->data_busy = true;
    return worker;
}

static void
leave(PyObject *object)
{
    ((struct uc_py_handle *)object)->owner->data_busy = false;
}

static PyObject *
none_or_raise(enum uc_status status)
{
    if (status != UC_OK) {
        return uc_py_raise(status);
    }
    Py_RETURN_NONE;
}

/* Jobs in flight keep what their memory hangs on. */

static int
hold_job(struct uc_py_assembler *owner, uint64_t job_id, PyObject *memory)
{
    PyObject *key =
            PyLong_FromUnsignedLongLong(job_id); /* not the caller's, which may be a subclass */
    int result = key == NULL ? -1 : PyDict_SetItem(owner->in_flight, key, memory);

    Py_XDECREF(key);
    return result;
}

/* An event was collected: note it at the end of the list. The job's memory is let go. */
static int
take_result(struct uc_py_assembler *owner, const struct uc_io_result *result, PyObject *list)
{
    PyObject *event = uc_py_io_result_new(result);
    int status = -1;

    if (event == NULL) {
        return -1;
    }
    status = PyList_Append(list, event);
    if (status == 0 && PyDict_DelItem(owner->in_flight, PyStructSequence_GET_ITEM(event, 0)) != 0) {
        PyErr_Clear(); /* collected for a submit whose bookkeeping failed */
    }
    Py_DECREF(event);
    return status;
}

static int
take_results(
        struct uc_py_assembler *owner, struct uc_io_result *results, size_t count, PyObject *list)
{
    int status = 0;

    for (size_t idx = 0; idx < count && status == 0; idx++) {
        status = take_result(owner, &results[idx], list);
    }
    uc_io_results_release(results, count);
    return status;
}

/* Submits */

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
    worker = token == NULL ? NULL : enter(object);
    if (worker == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_worker_submit_prefetch(worker, job_id, token);
    Py_END_ALLOW_THREADS;
    leave(object);
    if (status != UC_OK || hold_job(owner, job_id, Py_None) != 0) {
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
    worker = enter(object);
    if (worker == NULL) {
        Py_DECREF(submit.held);
        uc_py_payloads_release(&submit.payloads);
        return NULL;
    }

    Py_BEGIN_ALLOW_THREADS;
    status = call(worker, submit.job_id, submit.payloads.items, submit.payloads.count, submit.token,
            &submit.io);
    Py_END_ALLOW_THREADS;
    leave(object);
    uc_py_payloads_release(&submit.payloads);
    if (status == UC_OK && hold_job(owner, submit.job_id, submit.held) != 0) {
        Py_DECREF(submit.held);
        return NULL;
    }
    Py_DECREF(submit.held);
    return none_or_raise(status);
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

/* Events */

/* Move everything that was kept to a new list. */
static PyObject *
take_kept(struct uc_py_assembler *owner)
{
    PyObject *list = PyList_GetSlice(owner->kept, 0, PyList_GET_SIZE(owner->kept));

    if (list != NULL && PyList_SetSlice(owner->kept, 0, PyList_GET_SIZE(owner->kept), NULL) != 0) {
        Py_CLEAR(list);
    }
    return list;
}

/* Put back what could not be handed out: events are delivered exactly once, but they are delivered. */
static void
keep(struct uc_py_assembler *owner, PyObject *list)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    Py_ssize_t end = PyList_GET_SIZE(owner->kept);

    PyErr_Fetch(&type, &value, &traceback);
    if (PyList_SetSlice(owner->kept, end, end, list) != 0) {
        PyErr_WriteUnraisable(list);
    }
    PyErr_Restore(type, value, traceback);
    Py_DECREF(list);
}

static PyObject *
get_finished(PyObject *object, PyObject *unused)
{
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker = enter(object);
    struct uc_io_result results[RESULT_BATCH];
    PyObject *list;
    enum uc_status status = UC_OK;
    size_t count;

    (void)unused;
    list = worker == NULL ? NULL : take_kept(owner);
    if (list == NULL) {
        if (worker != NULL) {
            leave(object);
        }
        return NULL;
    }
    do {
        count = 0;
        Py_BEGIN_ALLOW_THREADS;
        status = uc_worker_get_finished(worker, results, RESULT_BATCH, &count);
        Py_END_ALLOW_THREADS;
        if (status != UC_OK) {
            (void)uc_py_raise(status);
        }
    } while (status == UC_OK && take_results(owner, results, count, list) == 0 &&
             count == RESULT_BATCH);
    leave(object);
    if (PyErr_Occurred() != NULL) {
        keep(owner, list);
        return NULL;
    }
    return list;
}

/* The ids of a wait and room for as many results, in one allocation each. */
struct wait {
    uint64_t *ids;
    struct uc_io_result *results;
    size_t count;
};

static void
wait_release(struct wait *wait)
{
    free(wait->ids);
    free(wait->results);
}

static int
wait_open(PyObject *job_ids, struct wait *wait)
{
    PyObject *ids = PySequence_Tuple(job_ids); /* a list may change in an element's __index__ */
    size_t count = ids == NULL ? 0 : (size_t)PyTuple_GET_SIZE(ids);

    *wait = (struct wait){0};
    if (ids == NULL) {
        return -1;
    }
    wait->ids = calloc(count + 1, sizeof(wait->ids[0]));
    wait->results = calloc(count + 1, sizeof(wait->results[0]));
    if (wait->ids == NULL || wait->results == NULL) {
        (void)PyErr_NoMemory();
        goto err_release;
    }
    for (size_t idx = 0; idx < count; idx++) {
        if (uc_py_to_uint64(PyTuple_GET_ITEM(ids, (Py_ssize_t)idx), "job_ids",
                    &wait->ids[wait->count++]) != 0) {
            goto err_release;
        }
    }
    Py_DECREF(ids);
    return 0;

err_release:
    wait_release(wait);
    Py_DECREF(ids);
    return -1;
}

/* No longer wait for what has come. */
static void
wait_forget(struct wait *wait, uint64_t job_id)
{
    size_t kept = 0;

    for (size_t idx = 0; idx < wait->count; idx++) {
        if (wait->ids[idx] != job_id) {
            wait->ids[kept++] = wait->ids[idx];
        }
    }
    wait->count = kept;
}

/* Events that an interrupted call had collected come first. */
static int
wait_take_kept(struct uc_py_assembler *owner, struct wait *wait, PyObject *list)
{
    for (Py_ssize_t idx = 0; idx < PyList_GET_SIZE(owner->kept);) {
        PyObject *event = PyList_GET_ITEM(owner->kept, idx);
        uint64_t job_id = uc_py_io_result_job_id(event);
        size_t before = wait->count;

        wait_forget(wait, job_id);
        if (wait->count == before) {
            idx++;
        } else if (PyList_Append(list, event) != 0 ||
                   PyList_SetSlice(owner->kept, idx, idx + 1, NULL) != 0) {
            return -1;
        }
    }
    return 0;
}

static int64_t
slice_of(int64_t left_ms)
{
    return left_ms < 0 || left_ms > SLICE_MS ? SLICE_MS : left_ms;
}

/* In slices, so that a signal's handler runs. @return 0, or −1 with an exception */
static int
wait_loop(struct uc_py_assembler *owner, struct uc_worker *worker, struct wait *wait,
        int64_t timeout_ms, PyObject *list)
{
    uint64_t start_ms = uc_clock_now_ns() / 1000000;
    int64_t left_ms = timeout_ms;
    enum uc_status status;

    do {
        size_t count = 0;

        Py_BEGIN_ALLOW_THREADS;
        status = uc_worker_wait(worker, wait->ids, wait->count, slice_of(left_ms), wait->results,
                wait->count, &count);
        Py_END_ALLOW_THREADS;
        if (status != UC_OK && status != UC_ERR_TIMEOUT) {
            (void)uc_py_raise(status);
            return -1;
        }
        for (size_t idx = 0; idx < count; idx++) {
            wait_forget(wait, wait->results[idx].job_id);
        }
        if (take_results(owner, wait->results, count, list) != 0 || PyErr_CheckSignals() != 0) {
            return -1;
        }
        if (timeout_ms >= 0) {
            uint64_t passed_ms = uc_clock_now_ns() / 1000000 - start_ms;

            left_ms = passed_ms >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int64_t)passed_ms;
        }
    } while (status == UC_ERR_TIMEOUT && left_ms != 0);
    return 0;
}

static PyObject *
wait_call(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"job_ids", "timeout_ms", NULL};
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker;
    long long timeout_ms = -1;
    struct wait wait;
    PyObject *job_ids;
    PyObject *list;
    int result = -1;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|L", names, &job_ids, &timeout_ms) ||
            wait_open(job_ids, &wait) != 0) {
        return NULL;
    }
    list = PyList_New(0);
    worker = list == NULL ? NULL : enter(object);
    if (worker != NULL) {
        result = wait_take_kept(owner, &wait, list);
        if (result == 0 && wait.count > 0) {
            result = wait_loop(owner, worker, &wait, timeout_ms < 0 ? -1 : timeout_ms, list);
        }
        leave(object);
    }
    wait_release(&wait);
    if (result != 0 && list != NULL) {
        keep(owner, list);
        return NULL;
    }
    return list;
}

/* Collect everything in flight without making objects of it. */
void
uc_py_worker_drain(struct uc_py_assembler *owner)
{
    Py_ssize_t count = PyDict_GET_SIZE(owner->in_flight);
    struct uc_worker *worker = NULL;
    Py_ssize_t position = 0;
    struct wait wait = {0};
    PyObject *job;
    PyObject *memory;

    if (count == 0 || uc_assembler_worker(owner->assembler, &worker) != UC_OK) {
        return;
    }
    wait.ids = calloc((size_t)count, sizeof(wait.ids[0]));
    wait.results = calloc((size_t)count, sizeof(wait.results[0]));
    if (wait.ids != NULL && wait.results != NULL) {
        size_t got = 0;

        while (PyDict_Next(owner->in_flight, &position, &job, &memory)) {
            wait.ids[wait.count++] = PyLong_AsUnsignedLongLong(job);
        }
        Py_BEGIN_ALLOW_THREADS;
        (void)!uc_worker_wait(worker, wait.ids, wait.count, -1, wait.results, wait.count, &got);
        uc_io_results_release(wait.results, got);
        Py_END_ALLOW_THREADS;
    }
    wait_release(&wait);
}

/* Memory */

/*
 * An address as int, or an object whose writable buffer it is. That is kept open, so that its owner cannot
 * resize or release it. @return a reference to what is to be kept, or NULL with an exception
 */
static PyObject *
parse_memory(PyObject *object, PyObject *size, uint64_t *address_out, uint64_t *length_out)
{
    uint64_t wanted;
    PyObject *kept;
    Py_buffer view;

    if (PyLong_Check(object)) {
        if (size == NULL) {
            PyErr_SetString(PyExc_TypeError, "size is needed when the memory is given by address");
            return NULL;
        }
        return uc_py_to_uint64(object, "address", address_out) != 0 ||
                               uc_py_to_uint64(size, "size", length_out) != 0
                       ? NULL
                       : Py_NewRef(object);
    }

    kept = PyMemoryView_FromObject(object);
    if (kept == NULL || PyObject_GetBuffer(kept, &view, PyBUF_WRITABLE) != 0) {
        Py_XDECREF(kept);
        return NULL;
    }
    *address_out = (uintptr_t)view.buf;
    *length_out = wanted = (uint64_t)view.len;
    PyBuffer_Release(&view);
    if (size != NULL && uc_py_to_uint64(size, "size", &wanted) != 0) {
        Py_CLEAR(kept);
    } else if (wanted > *length_out) {
        (void)uc_py_raise_invalid("size: more than the buffer, which has %llu bytes",
                (unsigned long long)*length_out);
        Py_CLEAR(kept);
    }
    *length_out = wanted;
    return kept;
}

static PyObject *
register_memory(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"address", "size", "kind", NULL};
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker;
    uint64_t address = 0;
    uint64_t length_bytes = 0;
    uint32_t region_idx = 0;
    PyObject *memory;
    PyObject *kept;
    PyObject *size = NULL;
    PyObject *index;
    enum uc_status status;
    int kind = UC_MEMORY_HOST;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|Oi", names, &memory, &size, &kind)) {
        return NULL;
    }
    kept = parse_memory(memory, size, &address, &length_bytes);
    worker = kept == NULL ? NULL : enter(object);
    if (worker == NULL) {
        Py_XDECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    /* The address is a number of the caller's, like any pointer that C would pass. */
    status = uc_worker_register_memory(worker, (void *)(uintptr_t)address, length_bytes,
            (enum uc_memory_kind)kind, &region_idx);
    Py_END_ALLOW_THREADS;
    leave(object);
    if (status != UC_OK) {
        Py_DECREF(kept);
        return uc_py_raise(status);
    }
    index = PyLong_FromUnsignedLong(region_idx);
    if (index != NULL && PyDict_SetItem(owner->regions, index, kept) != 0) {
        Py_CLEAR(index);
    }
    Py_DECREF(kept);
    return index;
}

static PyObject *
deregister_memory(PyObject *object, PyObject *index)
{
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker;
    enum uc_status status;
    uint64_t region_idx = 0;
    PyObject *key;

    if (uc_py_to_uint64(index, "index", &region_idx) != 0) {
        return NULL;
    }
    if (region_idx > UINT32_MAX) {
        return uc_py_raise_invalid("index: no region has this number");
    }
    key = PyLong_FromUnsignedLongLong(region_idx); /* the caller's may hash otherwise */
    worker = key == NULL ? NULL : enter(object);
    if (worker == NULL) {
        Py_XDECREF(key);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_worker_deregister_memory(worker, (uint32_t)region_idx);
    Py_END_ALLOW_THREADS;
    leave(object);
    if (status == UC_OK && PyDict_DelItem(owner->regions, key) != 0) {
        PyErr_Clear();
    }
    Py_DECREF(key);
    return none_or_raise(status);
}

static PyObject *
event_fd(PyObject *object, PyObject *unused)
{
    struct uc_worker *worker = enter(object);
    int fd;

    (void)unused;
    if (worker == NULL) {
        return NULL;
    }
    fd = uc_worker_event_fd(worker);
    leave(object);
    return PyLong_FromLong(fd);
}

static PyObject *
health(PyObject *object, PyObject *unused)
{
    struct uc_worker *worker = enter(object);
    enum uc_status status;

    (void)unused;
    if (worker == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_worker_health(worker);
    Py_END_ALLOW_THREADS;
    leave(object);
    return none_or_raise(status);
}

static PyObject *
describe(PyObject *object, PyObject *unused)
{
    struct uc_worker *worker = enter(object);
    struct uc_dict *description = NULL;
    PyObject *result;
    enum uc_status status;

    (void)unused;
    if (worker == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_dict_create(&description);
    if (status == UC_OK) {
        status = uc_worker_describe(worker, description);
    }
    Py_END_ALLOW_THREADS;
    leave(object);
    result = status == UC_OK ? uc_py_from_dict(description) : uc_py_raise(status);
    uc_dict_destroy(description);
    return result;
}

#define WITH_KEYWORDS_(function) \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
static PyMethodDef worker_methods[] = {
        {"submit_prefetch", WITH_KEYWORDS_(submit_prefetch),
                "submit_prefetch(job_id, token)\n--\n\nSubmit a prefetch plan."},
        {"submit_get", WITH_KEYWORDS_(submit_get),
                "submit_get(job_id, payloads, token, io_context=None)\n--\n\n"
                "Load the token's blocks into payloads, one per key."},
        {"submit_put", WITH_KEYWORDS_(submit_put),
                "submit_put(job_id, payloads, token, io_context=None)\n--\n\n"
                "Dump payloads into the token's blocks, one per key."},
        {"get_finished", get_finished, METH_NOARGS, "All events that are ready; never blocks."},
        {"wait", WITH_KEYWORDS_(wait_call),
                "wait(job_ids, timeout_ms=-1)\n--\n\n"
                "Events of the listed jobs; a shorter list when the time runs out."},
        {"register_memory", WITH_KEYWORDS_(register_memory),
                "register_memory(address, size=None, kind=0)\n--\n\n"
                "Make memory usable for transfers; an address with its size, or a writable buffer, "
                "which is kept alive. Returns the region's index."},
        {"deregister_memory", deregister_memory, METH_O,
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
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .tp_doc = "Data plane; one thread at a time. From StoreAssembler.get_worker().",
        .tp_dealloc = uc_py_handle_dealloc,
        .tp_methods = worker_methods,
};
