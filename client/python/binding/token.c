/* SPDX-License-Identifier: Apache-2.0 */

#include "client/python/binding/binding.h"

struct token {
    PyObject ob_base;
    struct uc_token *token; /* owned, immutable */
};

PyObject *
uc_py_token_new(struct uc_token *token)
{
    struct token *self = PyObject_New(struct token, &uc_py_token_type);

    if (self == NULL) {
        uc_token_destroy(token);
        return NULL;
    }
    self->token = token;
    return (PyObject *)self;
}

const struct uc_token *
uc_py_token_get(PyObject *object)
{
    if (!PyObject_TypeCheck(object, &uc_py_token_type)) {
        PyErr_Format(
                PyExc_TypeError, "token must be AddressedToken, not %s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    return ((struct token *)object)->token;
}

static void
token_dealloc(PyObject *object)
{
    uc_token_destroy(((struct token *)object)->token);
    Py_TYPE(object)->tp_free(object);
}

static Py_ssize_t
token_length(PyObject *object)
{
    return (Py_ssize_t)((struct token *)object)->token->key_count;
}

static PyObject *
token_keys(PyObject *object, void *unused)
{
    const struct uc_token *token = ((struct token *)object)->token;
    PyObject *list = PyList_New((Py_ssize_t)token->key_count);

    (void)unused;
    for (size_t idx = 0; list != NULL && idx < token->key_count; idx++) {
        PyObject *id = uc_py_block_id_new(&token->keys[idx]);

        if (id == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)idx, id);
        }
    }
    return list;
}

static PyObject *
token_payload(PyObject *object, void *unused)
{
    const struct uc_token *token = ((struct token *)object)->token;

    (void)unused;
    return PyBytes_FromStringAndSize(
            (const char *)token->payload, (Py_ssize_t)token->payload_bytes);
}

static PyObject *
token_to_bytes(PyObject *object, PyObject *unused)
{
    const struct uc_token *token = ((struct token *)object)->token;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)uc_token_serialized_bytes(token));

    (void)unused;
    if (bytes != NULL) {
        uc_token_serialize(token, (uint8_t *)PyBytes_AS_STRING(bytes));
    }
    return bytes;
}

static PyObject *
token_from_bytes(PyObject *unused, PyObject *data)
{
    struct uc_token *token = NULL;
    enum uc_status status;
    Py_buffer view;

    (void)unused;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) != 0) {
        return NULL;
    }
    status = uc_token_deserialize(view.buf, (size_t)view.len, &token);
    PyBuffer_Release(&view);
    return status == UC_OK ? uc_py_token_new(token) : uc_py_raise(status);
}

static PyObject *
token_reduce(PyObject *object, PyObject *unused)
{
    PyObject *from_bytes = PyObject_GetAttrString((PyObject *)&uc_py_token_type, "from_bytes");
    PyObject *bytes = token_to_bytes(object, unused);

    if (from_bytes == NULL || bytes == NULL) {
        Py_XDECREF(from_bytes);
        Py_XDECREF(bytes);
        return NULL;
    }
    return Py_BuildValue("N(N)", from_bytes, bytes);
}

static PyMethodDef token_methods[] = {
        {"to_bytes", token_to_bytes, METH_NOARGS, "Form in which another process can read it."},
        {"from_bytes", token_from_bytes, METH_O | METH_STATIC,
                "from_bytes(data)\n--\n\nInverse of to_bytes()."},
        {"__reduce__", token_reduce, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL},
};

static PyGetSetDef token_getset[] = {
        {"keys", token_keys, NULL, "list of BlockId: blocks that the window covers", NULL},
        {"payload", token_payload, NULL, "bytes: opaque, of the store that made it", NULL},
        {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods token_sequence = {.sq_length = token_length};

PyTypeObject uc_py_token_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.AddressedToken",
        .tp_basicsize = sizeof(struct token),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .tp_doc = "What a window covers and how workers find it; its length is the number of keys.",
        .tp_dealloc = token_dealloc,
        .tp_as_sequence = &token_sequence,
        .tp_methods = token_methods,
        .tp_getset = token_getset,
};
