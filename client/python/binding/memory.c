/* SPDX-License-Identifier: Apache-2.0 */

/* Memory: pages from uc_memory_alloc() that Python sees as a writable buffer. */

#include "client/python/binding/binding.h"

struct memory {
    PyObject ob_base;
    void *address;
    uint64_t length_bytes;
};

static PyObject *
memory_make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"size", NULL};
    struct memory *self;
    enum uc_status status;
    void *address = NULL;
    PyObject *size;
    uint64_t length_bytes = 0;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:Memory", names, &size) ||
            uc_py_to_uint64(size, "size", &length_bytes) != 0) {
        return NULL;
    }
    if (length_bytes > PY_SSIZE_T_MAX) {
        return uc_py_raise_invalid("size: more than a process can address");
    }

    Py_BEGIN_ALLOW_THREADS;
    status = uc_memory_alloc(length_bytes, &address);
    Py_END_ALLOW_THREADS;
    if (status != UC_OK) {
        return uc_py_raise(status);
    }
    self = (struct memory *)type->tp_alloc(type, 0);
    if (self == NULL) {
        uc_memory_free(address, length_bytes);
        return NULL;
    }
    self->address = address;
    self->length_bytes = length_bytes;
    return (PyObject *)self;
}

static void
memory_dealloc(PyObject *object)
{
    struct memory *self = (struct memory *)object;

    uc_memory_free(self->address, self->length_bytes);
    Py_TYPE(object)->tp_free(object);
}

static int
memory_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct memory *self = (struct memory *)object;

    return PyBuffer_FillInfo(view, object, self->address, (Py_ssize_t)self->length_bytes, 0, flags);
}

static PyObject *
memory_address(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(((struct memory *)object)->address);
}

static PyObject *
memory_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct memory *)object)->length_bytes);
}

static Py_ssize_t
memory_length(PyObject *object)
{
    return (Py_ssize_t)((struct memory *)object)->length_bytes;
}

static PyGetSetDef memory_getset[] = {
        {"address", memory_address, NULL, "int: of the first byte", NULL},
        {"size", memory_size, NULL, "int: bytes", NULL},
        {NULL, NULL, NULL, NULL, NULL},
};

static PyBufferProcs memory_procs = {.bf_getbuffer = memory_buffer};
static PySequenceMethods memory_sequence = {.sq_length = memory_length};

PyTypeObject uc_py_memory_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.Memory",
        .tp_basicsize = sizeof(struct memory),
        .tp_flags = Py_TPFLAGS_DEFAULT,
        .tp_doc =
                "Memory(size)\n--\n\nPages that every transport can use best, as a writable buffer.",
        .tp_new = memory_make,
        .tp_dealloc = memory_dealloc,
        .tp_as_buffer = &memory_procs,
        .tp_as_sequence = &memory_sequence,
        .tp_getset = memory_getset,
};
