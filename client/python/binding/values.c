/* SPDX-License-Identifier: Apache-2.0 */

/* Plain values: BlockId, RequestContext, IoContext, IoResult. */

#include <string.h>

#include "client/python/binding/binding.h"

/* BlockId */

struct block_id {
    PyObject ob_base;
    struct uc_block_id id;
};

static PyObject *
block_id_make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"bytes16", NULL};
    struct block_id *self;
    Py_buffer view;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "y*:BlockId", names, &view)) {
        return NULL;
    }
    if (view.len != UC_BLOCK_ID_BYTES) {
        (void)uc_py_raise_invalid("a block id has %d bytes, not %zd", UC_BLOCK_ID_BYTES, view.len);
        PyBuffer_Release(&view);
        return NULL;
    }
    self = (struct block_id *)type->tp_alloc(type, 0);
    if (self != NULL) {
        memcpy(self->id.bytes, view.buf, UC_BLOCK_ID_BYTES);
    }
    PyBuffer_Release(&view);
    return (PyObject *)self;
}

PyObject *
uc_py_block_id_new(const struct uc_block_id *id)
{
    struct block_id *self = PyObject_New(struct block_id, &uc_py_block_id_type);

    if (self != NULL) {
        self->id = *id;
    }
    return (PyObject *)self;
}

static PyObject *
block_id_to_bytes(PyObject *object, PyObject *unused)
{
    struct block_id *self = (struct block_id *)object;

    (void)unused;
    return PyBytes_FromStringAndSize((const char *)self->id.bytes, UC_BLOCK_ID_BYTES);
}

static PyObject *
block_id_repr(PyObject *object)
{
    PyObject *bytes = block_id_to_bytes(object, NULL);
    PyObject *hex = bytes == NULL ? NULL : PyObject_CallMethod(bytes, "hex", NULL);
    PyObject *text = hex == NULL ? NULL : PyUnicode_FromFormat("BlockId(%U)", hex);

    Py_XDECREF(bytes);
    Py_XDECREF(hex);
    return text;
}

static Py_hash_t
block_id_hash(PyObject *object)
{
    return _Py_HashBytes(((struct block_id *)object)->id.bytes, UC_BLOCK_ID_BYTES);
}

static PyObject *
block_id_compare(PyObject *left, PyObject *right, int operation)
{
    int order;

    if (!PyObject_TypeCheck(left, &uc_py_block_id_type) ||
            !PyObject_TypeCheck(right, &uc_py_block_id_type)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    order = memcmp(((struct block_id *)left)->id.bytes, ((struct block_id *)right)->id.bytes,
            UC_BLOCK_ID_BYTES);
    Py_RETURN_RICHCOMPARE(order, 0, operation);
}

static PyObject *
block_id_reduce(PyObject *object, PyObject *unused)
{
    PyObject *bytes = block_id_to_bytes(object, unused);

    return bytes == NULL ? NULL : Py_BuildValue("O(N)", (PyObject *)Py_TYPE(object), bytes);
}

static PyMethodDef block_id_methods[] = {
        {"to_bytes", block_id_to_bytes, METH_NOARGS, "The 16 bytes."},
        {"__reduce__", block_id_reduce, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
};

PyTypeObject uc_py_block_id_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.BlockId",
        .tp_basicsize = sizeof(struct block_id),
        .tp_flags = Py_TPFLAGS_DEFAULT,
        .tp_doc = "BlockId(bytes16)\n--\n\nName of a block: the hash of its content and prefix.",
        .tp_new = block_id_make,
        .tp_repr = block_id_repr,
        .tp_hash = block_id_hash,
        .tp_richcompare = block_id_compare,
        .tp_methods = block_id_methods,
};

/* RequestContext */

struct request_context {
    PyObject ob_base;
    PyObject *request_id;
    PyObject *ttl_ms;
    PyObject *total_block_count;
};

static PyObject *
request_context_make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"request_id", "ttl_ms", "total_block_count", NULL};
    struct request_context *self;
    PyObject *request_id = NULL;
    PyObject *ttl_ms = Py_None;
    PyObject *total_block_count = Py_None;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|UOO:RequestContext", names, &request_id,
                &ttl_ms, &total_block_count)) {
        return NULL;
    }
    self = (struct request_context *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->request_id = request_id == NULL ? PyUnicode_FromString("") : Py_NewRef(request_id);
    self->ttl_ms = Py_NewRef(ttl_ms);
    self->total_block_count = Py_NewRef(total_block_count);
    if (self->request_id == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
request_context_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct request_context *self = (struct request_context *)object;

    Py_VISIT(self->request_id);
    Py_VISIT(self->ttl_ms);
    Py_VISIT(self->total_block_count);
    return 0;
}

static int
request_context_clear(PyObject *object)
{
    struct request_context *self = (struct request_context *)object;

    Py_CLEAR(self->request_id);
    Py_CLEAR(self->ttl_ms);
    Py_CLEAR(self->total_block_count);
    return 0;
}

static void
request_context_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    (void)request_context_clear(object);
    Py_TYPE(object)->tp_free(object);
}

static PyMemberDef request_context_members[] = {
        {"request_id", T_OBJECT_EX, offsetof(struct request_context, request_id), 0,
                "str: unique among the requests that are open"},
        {"ttl_ms", T_OBJECT, offsetof(struct request_context, ttl_ms), 0,
                "int or None: predicted lifetime in milliseconds"},
        {"total_block_count", T_OBJECT, offsetof(struct request_context, total_block_count), 0,
                "int or None: predicted length in blocks"},
        {NULL, 0, 0, 0, NULL},
};

PyTypeObject uc_py_request_context_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.RequestContext",
        .tp_basicsize = sizeof(struct request_context),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
        .tp_doc = "RequestContext(request_id='', ttl_ms=None, total_block_count=None)\n--\n\n"
                  "Facts about a request.",
        .tp_new = request_context_make,
        .tp_dealloc = request_context_dealloc,
        .tp_traverse = request_context_traverse,
        .tp_clear = request_context_clear,
        .tp_members = request_context_members,
};

/* An optional number: None or NULL is absent. */
static int
optional_fact(PyObject *value, const char *what, uint64_t bit, struct uc_request_context *context,
        uint64_t *value_out)
{
    int result;

    if (value == NULL || value == Py_None) {
        return 0;
    }
    Py_INCREF(value); /* its __index__ may replace it in the object */
    result = uc_py_to_uint64(value, what, value_out);
    Py_DECREF(value);
    if (result == 0) {
        context->present |= bit;
    }
    return result;
}

PyObject *
uc_py_request_context_get(PyObject *object, struct uc_request_context *context_out)
{
    struct request_context *self = (struct request_context *)object;
    PyObject *request_id = self->request_id;

    *context_out = uc_request_context_init(NULL);
    if (request_id == NULL) {
        PyErr_SetString(PyExc_TypeError, "request_id must be str");
        return NULL;
    }
    Py_INCREF(request_id);
    context_out->request_id = uc_py_text(request_id, "request_id");
    if (context_out->request_id == NULL ||
            optional_fact(self->ttl_ms, "ttl_ms", UC_REQUEST_TTL, context_out,
                    &context_out->ttl_ms) != 0 ||
            optional_fact(self->total_block_count, "total_block_count",
                    UC_REQUEST_TOTAL_BLOCK_COUNT, context_out,
                    &context_out->total_block_count) != 0) {
        Py_CLEAR(request_id);
    }
    return request_id;
}

/* IoContext */

struct io_context {
    PyObject ob_base;
    unsigned long long prerequisite_handle;
    unsigned long long timeout_ms;
    unsigned long long first_key;
    unsigned long long key_count;
};

static PyGetSetDef io_context_getset[] = {
        {"prerequisite_handle", uc_py_number_get, uc_py_number_set,
                "int: event that must have fired before a byte moves; 0 = none",
                (void *)offsetof(struct io_context, prerequisite_handle)},
        {"timeout_ms", uc_py_number_get, uc_py_number_set,
                "int: deadline of the job; 0 = the store's default",
                (void *)offsetof(struct io_context, timeout_ms)},
        {"first_key", uc_py_number_get, uc_py_number_set,
                "int: first key of the token that the job covers",
                (void *)offsetof(struct io_context, first_key)},
        {"key_count", uc_py_number_get, uc_py_number_set,
                "int: keys that the job covers; 0 = all from first_key on",
                (void *)offsetof(struct io_context, key_count)},
        {NULL, NULL, NULL, NULL, NULL},
};

static int
io_context_fill(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"prerequisite_handle", "timeout_ms", "first_key", "key_count", NULL};
    struct io_context *self = (struct io_context *)object;
    unsigned long long *fields[] = {
            &self->prerequisite_handle, &self->timeout_ms, &self->first_key, &self->key_count};
    PyObject *values[4] = {NULL, NULL, NULL, NULL};

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OOOO:IoContext", names, &values[0],
                &values[1], &values[2], &values[3])) {
        return -1;
    }
    for (size_t idx = 0; idx < 4; idx++) {
        uint64_t number = 0;

        if (values[idx] != NULL && uc_py_to_uint64(values[idx], names[idx], &number) != 0) {
            return -1;
        }
        *fields[idx] = number;
    }
    return 0;
}

PyTypeObject uc_py_io_context_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.IoContext",
        .tp_basicsize = sizeof(struct io_context),
        .tp_flags = Py_TPFLAGS_DEFAULT,
        .tp_doc = "IoContext(prerequisite_handle=0, timeout_ms=0, first_key=0, key_count=0)\n--\n\n"
                  "How a submit covers its token.",
        .tp_new = PyType_GenericNew,
        .tp_init = io_context_fill,
        .tp_getset = io_context_getset,
};

int
uc_py_io_context_get(PyObject *object, struct uc_io_context *io_out)
{
    struct io_context *self = (struct io_context *)object;

    *io_out = (struct uc_io_context){0};
    if (object == NULL || object == Py_None) {
        return 0;
    }
    if (!PyObject_TypeCheck(object, &uc_py_io_context_type)) {
        PyErr_Format(PyExc_TypeError, "io_context must be IoContext or None, not %s",
                Py_TYPE(object)->tp_name);
        return -1;
    }

    io_out->prerequisite_handle = self->prerequisite_handle;
    io_out->timeout_ms = self->timeout_ms;
    io_out->first_key = self->first_key;
    io_out->key_count = self->key_count;
    return 0;
}

/* IoResult */

static PyStructSequence_Field io_result_fields[] = {
        {"job_id", "int: the job that ended"},
        {"success", "bool: every block was transferred"},
        {"code", "int: status, 0 exactly on success"},
        {"blocks", "bytes or None: per block 1 where it was transferred; None = all alike"},
        {NULL, NULL},
};

static PyStructSequence_Desc io_result_desc = {
        .name = "ucm_proxy.IoResult",
        .doc = "Completion of a job, delivered exactly once.",
        .fields = io_result_fields,
        .n_in_sequence = 4,
};

static PyTypeObject *io_result_type;

PyObject *
uc_py_io_result_new(const struct uc_io_result *result)
{
    PyObject *self = PyStructSequence_New(io_result_type);
    PyObject *blocks = Py_NewRef(Py_None);

    if (result->blocks != NULL) {
        Py_SETREF(blocks, PyBytes_FromStringAndSize(NULL, (Py_ssize_t)result->block_count));
        for (size_t idx = 0; blocks != NULL && idx < result->block_count; idx++) {
            PyBytes_AS_STRING(blocks)[idx] = uc_io_result_block_ok(result, idx) ? 1 : 0;
        }
    }
    if (self == NULL || blocks == NULL) {
        Py_XDECREF(self);
        Py_XDECREF(blocks);
        return NULL;
    }

    PyStructSequence_SET_ITEM(self, 0, PyLong_FromUnsignedLongLong(result->job_id));
    PyStructSequence_SET_ITEM(self, 1, PyBool_FromLong(result->success));
    PyStructSequence_SET_ITEM(self, 2, PyLong_FromLong((long)result->code));
    PyStructSequence_SET_ITEM(self, 3, blocks);
    if (PyErr_Occurred() != NULL) {
        Py_CLEAR(self);
    }
    return self;
}

uint64_t
uc_py_io_result_job_id(PyObject *result)
{
    return PyLong_AsUnsignedLongLong(PyStructSequence_GET_ITEM(result, 0));
}

int
uc_py_values_init(PyObject *module)
{
    io_result_type = PyStructSequence_NewType(&io_result_desc);
    if (io_result_type == NULL ||
            PyModule_AddObjectRef(module, "IoResult", (PyObject *)io_result_type) != 0) {
        return -1;
    }
    if (PyModule_AddType(module, &uc_py_block_id_type) != 0 ||
            PyModule_AddType(module, &uc_py_request_context_type) != 0) {
        return -1;
    }
    return PyModule_AddType(module, &uc_py_io_context_type);
}
