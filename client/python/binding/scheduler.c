/* SPDX-License-Identifier: Apache-2.0 */

/* StoreScheduler: control plane. */

#include "client/python/binding/binding.h"

/* Arguments request_id and keys, as most methods take them, while the native call is made. */
struct keys_call {
    PyObject *object; /* borrowed, as all that the arguments hold */
    struct uc_scheduler *scheduler;
    const char *request_id;
    struct uc_py_keys keys;
};

/* @return 0, then keys_call_end() follows; else −1 with an exception */
static int
keys_call_begin(struct keys_call *call, PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"request_id", "keys", NULL};
    PyObject *request_id;
    PyObject *keys;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO", names, &request_id, &keys)) {
        return -1;
    }
    call->object = object;
    call->request_id = uc_py_text(request_id, "request_id");
    if (call->request_id == NULL || uc_py_keys_get(keys, &call->keys) != 0) {
        return -1;
    }
    call->scheduler = uc_py_enter(object);
    if (call->scheduler == NULL) {
        PyBuffer_Release(&call->keys.view);
        return -1;
    }
    return 0;
}

static void
keys_call_end(struct keys_call *call)
{
    uc_py_leave(call->object);
    PyBuffer_Release(&call->keys.view);
}

static PyObject *
on_new_request(PyObject *object, PyObject *context)
{
    struct uc_request_context request;
    struct uc_scheduler *scheduler;
    enum uc_status status;
    PyObject *texts;

    if (!PyObject_TypeCheck(context, &uc_py_request_context_type)) {
        return PyErr_Format(PyExc_TypeError, "context must be RequestContext, not %s",
                Py_TYPE(context)->tp_name);
    }
    texts = uc_py_request_context_get(context, &request);
    scheduler = texts == NULL ? NULL : uc_py_enter(object);
    if (scheduler == NULL) {
        Py_XDECREF(texts);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_scheduler_on_new_request(scheduler, &request);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    Py_DECREF(texts);
    return uc_py_none_or_raise(status);
}

/* Methods whose only argument is a request. */
static PyObject *
request_call(PyObject *object, PyObject *request_id,
        enum uc_status (*call)(struct uc_scheduler *scheduler, const char *request_id))
{
    const char *id = uc_py_text(request_id, "request_id");
    struct uc_scheduler *scheduler = id == NULL ? NULL : uc_py_enter(object);
    enum uc_status status;

    if (scheduler == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = call(scheduler, id);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    return uc_py_none_or_raise(status);
}

static PyObject *
on_request_finished(PyObject *object, PyObject *request_id)
{
    return request_call(object, request_id, uc_scheduler_on_request_finished);
}

static PyObject *
complete_get(PyObject *object, PyObject *request_id)
{
    return request_call(object, request_id, uc_scheduler_complete_get);
}

static PyObject *
lookup(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    struct keys_call call;
    bool prefetch_needed = false;
    enum uc_status status;
    PyObject *hits;

    if (keys_call_begin(&call, object, arguments, keywords) != 0) {
        return NULL;
    }
    hits = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)call.keys.count);
    if (hits == NULL) {
        keys_call_end(&call);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_scheduler_lookup(call.scheduler, call.request_id, call.keys.ids, call.keys.count,
            (uint8_t *)PyBytes_AS_STRING(hits), &prefetch_needed);
    Py_END_ALLOW_THREADS;
    keys_call_end(&call);
    if (status != UC_OK || prefetch_needed) {
        Py_DECREF(hits);
        return uc_py_none_or_raise(status);
    }
    return hits;
}

static PyObject *
index_call(PyObject *object, PyObject *arguments, PyObject *keywords,
        enum uc_status (*find)(struct uc_scheduler *scheduler, const char *request_id,
                const struct uc_block_id *ids, size_t count, int64_t *index_out,
                bool *prefetch_needed_out))
{
    struct keys_call call;
    bool prefetch_needed = false;
    int64_t index = -1;
    enum uc_status status;

    if (keys_call_begin(&call, object, arguments, keywords) != 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = find(call.scheduler, call.request_id, call.keys.ids, call.keys.count, &index,
            &prefetch_needed);
    Py_END_ALLOW_THREADS;
    keys_call_end(&call);
    if (status != UC_OK || prefetch_needed) {
        return uc_py_none_or_raise(status);
    }
    return PyLong_FromLongLong(index);
}

static PyObject *
lookup_on_prefix(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    return index_call(object, arguments, keywords, uc_scheduler_lookup_on_prefix);
}

static PyObject *
lookup_on_reverse(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    return index_call(object, arguments, keywords, uc_scheduler_lookup_on_reverse);
}

static PyObject *
touch(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    struct keys_call call;
    enum uc_status status;

    if (keys_call_begin(&call, object, arguments, keywords) != 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_scheduler_touch(call.scheduler, call.request_id, call.keys.ids, call.keys.count);
    Py_END_ALLOW_THREADS;
    keys_call_end(&call);
    return uc_py_none_or_raise(status);
}

static PyObject *
prepare_prefetch(PyObject *object, PyObject *request_id)
{
    const char *id = uc_py_text(request_id, "request_id");
    struct uc_scheduler *scheduler = id == NULL ? NULL : uc_py_enter(object);
    struct uc_token *token = NULL;
    enum uc_status status;

    if (scheduler == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_scheduler_prepare_prefetch(scheduler, id, &token);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    return status == UC_OK ? uc_py_token_new(token) : uc_py_raise(status);
}

static PyObject *
prepare_call(PyObject *object, PyObject *arguments, PyObject *keywords,
        enum uc_status (*prepare)(struct uc_scheduler *scheduler, const char *request_id,
                const struct uc_block_id *ids, size_t count, struct uc_token **token_out))
{
    struct uc_token *token = NULL;
    struct keys_call call;
    enum uc_status status;

    if (keys_call_begin(&call, object, arguments, keywords) != 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = prepare(call.scheduler, call.request_id, call.keys.ids, call.keys.count, &token);
    Py_END_ALLOW_THREADS;
    keys_call_end(&call);
    return status == UC_OK ? uc_py_token_new(token) : uc_py_raise(status);
}

static PyObject *
prepare_get(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    return prepare_call(object, arguments, keywords, uc_scheduler_prepare_get);
}

static PyObject *
prepare_put(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    return prepare_call(object, arguments, keywords, uc_scheduler_prepare_put);
}

static int
parse_conclusion(PyObject *arguments, PyObject *keywords, const char **id_out, PyObject **value_out)
{
    static char *names[] = {"request_id", "success", NULL};
    PyObject *request_id;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO", names, &request_id, value_out)) {
        return -1;
    }
    *id_out = uc_py_text(request_id, "request_id");
    return *id_out == NULL ? -1 : 0;
}

static PyObject *
conclude(PyObject *object, const char *id, bool success,
        enum uc_status (*call)(
                struct uc_scheduler *scheduler, const char *request_id, bool success))
{
    struct uc_scheduler *scheduler = uc_py_enter(object);
    enum uc_status status;

    if (scheduler == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = call(scheduler, id, success);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    return uc_py_none_or_raise(status);
}

static PyObject *
conclude_mask(PyObject *object, const char *id, PyObject *mask)
{
    struct uc_scheduler *scheduler;
    enum uc_status status;
    Py_buffer view;

    if (PyObject_GetBuffer(mask, &view, PyBUF_SIMPLE) != 0) {
        return NULL;
    }
    scheduler = uc_py_enter(object);
    if (scheduler == NULL) {
        PyBuffer_Release(&view);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_scheduler_complete_put_mask(scheduler, id, view.buf, (size_t)view.len);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    PyBuffer_Release(&view);
    return uc_py_none_or_raise(status);
}

static PyObject *
refuse_success(PyObject *success)
{
    return PyErr_Format(PyExc_TypeError, "success must be bool, not %s", Py_TYPE(success)->tp_name);
}

static PyObject *
complete_prefetch(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    PyObject *success;
    const char *id;

    if (parse_conclusion(arguments, keywords, &id, &success) != 0) {
        return NULL;
    }
    if (!PyBool_Check(success)) {
        return refuse_success(success);
    }
    return conclude(object, id, success == Py_True, uc_scheduler_complete_prefetch);
}

static PyObject *
complete_put(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    PyObject *success;
    const char *id;

    if (parse_conclusion(arguments, keywords, &id, &success) != 0) {
        return NULL;
    }
    if (PyBool_Check(success)) {
        return conclude(object, id, success == Py_True, uc_scheduler_complete_put);
    }
    if (PyObject_CheckBuffer(success)) {
        return conclude_mask(object, id, success);
    }
    return PyErr_Format(PyExc_TypeError,
            "success must be bool or a bytes-like mask with a byte per key, not %s",
            Py_TYPE(success)->tp_name);
}

static enum uc_status
native_health(void *native)
{
    return uc_scheduler_health(native);
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
    return uc_scheduler_describe(native, description);
}

static PyObject *
describe(PyObject *object, PyObject *unused)
{
    (void)unused;
    return uc_py_describe(object, native_describe);
}

static PyMethodDef scheduler_methods[] = {
        {"on_new_request", on_new_request, METH_O,
                "on_new_request(context)\n--\n\nRegister a request and its facts."},
        {"on_request_finished", on_request_finished, METH_O,
                "on_request_finished(request_id)\n--\n\nConclude open windows, forget the request."},
        {"lookup", UC_PY_KEYWORDS(lookup),
                "lookup(request_id, keys)\n--\n\nA byte per key: 1 = present. None asks for a prefetch."},
        {"lookup_on_prefix", UC_PY_KEYWORDS(lookup_on_prefix),
                "lookup_on_prefix(request_id, keys)\n--\n\n"
                "Last index of the present prefix, -1 = none. None asks for a prefetch."},
        {"lookup_on_reverse", UC_PY_KEYWORDS(lookup_on_reverse),
                "lookup_on_reverse(request_id, keys)\n--\n\n"
                "Largest present index, -1 = none. None asks for a prefetch."},
        {"touch", UC_PY_KEYWORDS(touch),
                "touch(request_id, keys)\n--\n\nRefresh hotness, extend retention."},
        {"prepare_prefetch", prepare_prefetch, METH_O,
                "prepare_prefetch(request_id)\n--\n\nOpen the window that a lookup asked for."},
        {"complete_prefetch", UC_PY_KEYWORDS(complete_prefetch),
                "complete_prefetch(request_id, success)\n--\n\nClose it, after the job's event."},
        {"prepare_get", UC_PY_KEYWORDS(prepare_get),
                "prepare_get(request_id, keys)\n--\n\nPin the blocks for reading."},
        {"complete_get", complete_get, METH_O,
                "complete_get(request_id)\n--\n\nUnpin, after the events of all jobs."},
        {"prepare_put", UC_PY_KEYWORDS(prepare_put),
                "prepare_put(request_id, keys)\n--\n\nReserve room for the blocks."},
        {"complete_put", UC_PY_KEYWORDS(complete_put),
                "complete_put(request_id, success)\n--\n\n"
                "Make the blocks visible, or release them; a mask has a byte per key."},
        {"health", health, METH_NOARGS, "Raises UnhealthyError with the reason, else None."},
        {"describe", describe, METH_NOARGS, "What the topology says of itself."},
        {NULL, NULL, 0, NULL},
};

PyTypeObject uc_py_scheduler_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.StoreScheduler",
        .tp_basicsize = sizeof(struct uc_py_handle),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .tp_doc =
                "Control plane; one thread at a time. From StoreAssembler.get_scheduler(). Keys are "
                "one bytes-like object with 16 bytes per block.",
        .tp_dealloc = uc_py_handle_dealloc,
        .tp_traverse = uc_py_handle_traverse,
        .tp_methods = scheduler_methods,
};
