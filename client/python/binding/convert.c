/* SPDX-License-Identifier: Apache-2.0 */

/* Python's dictionaries, texts and byte strings as the library takes them, and back. */

#include <stdio.h>
#include <string.h>

#include "client/python/binding/binding.h"

enum {
    PATH_BYTES = 256,
    DEPTH_MAX = 64, /* a dictionary may hold itself */
};

enum value_kind {
    KIND_BOOL,
    KIND_INT,
    KIND_DOUBLE,
    KIND_STRING,
    KIND_DICT,
    KIND_OTHER,
};

static int fill_dict(struct uc_dict *dict, PyObject *object, const char *path, unsigned depth);

static enum value_kind
kind_of(PyObject *value)
{
    if (PyBool_Check(value)) {
        return KIND_BOOL; /* before int, of which it is a subclass */
    }
    if (PyLong_Check(value)) {
        return KIND_INT;
    }
    if (PyFloat_Check(value)) {
        return KIND_DOUBLE;
    }
    if (PyUnicode_Check(value)) {
        return KIND_STRING;
    }
    return PyDict_Check(value) ? KIND_DICT : KIND_OTHER;
}

const char *
uc_py_text(PyObject *object, const char *what)
{
    Py_ssize_t length;
    const char *text;

    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %s", what, Py_TYPE(object)->tp_name);
        return NULL;
    }
    text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text != NULL && strlen(text) != (size_t)length) {
        (void)uc_py_raise_invalid("%s holds a NUL character", what);
        return NULL;
    }
    return text;
}

int
uc_py_to_uint64(PyObject *object, const char *what, uint64_t *value_out)
{
    unsigned long long value;
    PyObject *number;

    number = PyNumber_Index(object);
    if (number == NULL) {
        return -1;
    }
    value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (value == (unsigned long long)-1 && PyErr_Occurred() != NULL) {
        PyErr_Clear();
        (void)uc_py_raise_invalid("%s is negative or does not fit 64 bits", what);
        return -1;
    }

    *value_out = value;
    return 0;
}

PyObject *
uc_py_number_get(PyObject *object, void *offset)
{
    unsigned long long number;

    memcpy(&number, (const char *)object + (uintptr_t)offset, sizeof(number));
    return PyLong_FromUnsignedLongLong(number);
}

int
uc_py_number_set(PyObject *object, PyObject *value, void *offset)
{
    unsigned long long number;
    uint64_t parsed = 0;

    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "a number cannot be deleted");
        return -1;
    }
    if (uc_py_to_uint64(value, "the number", &parsed) != 0) {
        return -1;
    }

    number = parsed;
    memcpy((char *)object + (uintptr_t)offset, &number, sizeof(number));
    return 0;
}

static int
to_int64(PyObject *value, const char *path, int64_t *value_out)
{
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);

    if (overflow != 0) {
        (void)uc_py_raise_invalid("%s: the number does not fit 64 bits with sign", path);
        return -1;
    }
    if (number == -1 && PyErr_Occurred() != NULL) {
        return -1;
    }

    *value_out = number;
    return 0;
}

static int
checked(enum uc_status status)
{
    if (status != UC_OK) {
        (void)uc_py_raise(status);
        return -1;
    }
    return 0;
}

/* A dictionary below another one; the caller destroys it. */
static struct uc_dict *
make_child(PyObject *value, const char *path, unsigned depth)
{
    struct uc_dict *child = NULL;

    if (checked(uc_dict_create(&child)) != 0) {
        return NULL;
    }
    if (fill_dict(child, value, path, depth + 1) != 0) {
        uc_dict_destroy(child);
        return NULL;
    }
    return child;
}

/* Where a value goes: under a key, or at the end of the list under that key. */
static int
put_value(struct uc_dict *dict, const char *key, bool append, PyObject *value, const char *path,
        unsigned depth)
{
    struct uc_dict *child;
    const char *text;
    int64_t number = 0;
    int result;

    switch (kind_of(value)) {
    case KIND_BOOL:
        return checked(append ? uc_dict_append_bool(dict, key, value == Py_True)
                              : uc_dict_set_bool(dict, key, value == Py_True));
    case KIND_INT:
        return to_int64(value, path, &number) != 0
                       ? -1
                       : checked(append ? uc_dict_append_int(dict, key, number)
                                        : uc_dict_set_int(dict, key, number));
    case KIND_DOUBLE:
        return checked(append ? uc_dict_append_double(dict, key, PyFloat_AS_DOUBLE(value))
                              : uc_dict_set_double(dict, key, PyFloat_AS_DOUBLE(value)));
    case KIND_STRING:
        text = uc_py_text(value, path);
        return text == NULL ? -1
                            : checked(append ? uc_dict_append_string(dict, key, text)
                                             : uc_dict_set_string(dict, key, text));
    case KIND_DICT:
        child = make_child(value, path, depth);
        if (child == NULL) {
            return -1;
        }
        result = checked(append ? uc_dict_append_dict(dict, key, child)
                                : uc_dict_set_dict(dict, key, child));
        uc_dict_destroy(child);
        return result;
    case KIND_OTHER:
        break;
    }

    (void)uc_py_raise_invalid(
            "%s: a value of type %s cannot be configuration; use bool, int, float, "
            "str, dict, or a list of one of these",
            path, Py_TYPE(value)->tp_name);
    return -1;
}

static int
put_list(struct uc_dict *dict, const char *key, PyObject *list, const char *path, unsigned depth)
{
    if (checked(uc_dict_set_list(dict, key)) != 0) {
        return -1;
    }

    for (Py_ssize_t idx = 0; idx < PyList_GET_SIZE(list); idx++) {
        PyObject *value = Py_NewRef(PyList_GET_ITEM(list, idx));
        char item_path[PATH_BYTES];
        int result;

        (void)snprintf(item_path, sizeof(item_path), "%.200s[%zd]", path, idx);
        if (kind_of(value) != kind_of(PyList_GET_ITEM(list, 0))) {
            (void)uc_py_raise_invalid("%s: lists hold values of one type", item_path);
            result = -1;
        } else {
            result = put_value(dict, key, true, value, item_path, depth);
        }
        Py_DECREF(value);
        if (result != 0) {
            return -1;
        }
    }
    return 0;
}

static int
fill_dict(struct uc_dict *dict, PyObject *object, const char *path, unsigned depth)
{
    Py_ssize_t position = 0;
    PyObject *key;
    PyObject *value;

    if (depth > DEPTH_MAX) {
        (void)uc_py_raise_invalid("%s: dictionaries are nested more than %d deep", path, DEPTH_MAX);
        return -1;
    }

    while (PyDict_Next(object, &position, &key, &value)) {
        const char *name = uc_py_text(key, "a key of the configuration");
        char child_path[PATH_BYTES];
        int result;

        if (name == NULL) {
            return -1;
        }
        (void)snprintf(child_path, sizeof(child_path), "%.180s%s%.64s", path,
                path[0] == '\0' ? "" : ".", name);
        result = PyList_Check(value) ? put_list(dict, name, value, child_path, depth)
                                     : put_value(dict, name, false, value, child_path, depth);
        if (result != 0) {
            return -1;
        }
    }
    return 0;
}

struct uc_dict *
uc_py_to_dict(PyObject *object)
{
    struct uc_dict *dict = NULL;

    if (!PyDict_Check(object)) {
        PyErr_Format(PyExc_TypeError, "the configuration must be a dict, not %s",
                Py_TYPE(object)->tp_name);
        return NULL;
    }
    if (checked(uc_dict_create(&dict)) != 0) {
        return NULL;
    }
    if (fill_dict(dict, object, "", 0) != 0) {
        uc_dict_destroy(dict);
        return NULL;
    }
    return dict;
}

/* The value under a key, or an element of the list there. */
static PyObject *
scalar_at(const struct uc_dict *dict, const char *key, enum uc_dict_type type)
{
    const struct uc_dict *child = NULL;
    const char *text = NULL;
    void *pointer = NULL;
    bool flag = false;
    int64_t number = 0;
    double real = 0.0;

    switch (type) {
    case UC_DICT_BOOL:
        return uc_dict_get_bool(dict, key, &flag) == UC_OK ? PyBool_FromLong(flag) : NULL;
    case UC_DICT_INT:
        return uc_dict_get_int(dict, key, &number) == UC_OK ? PyLong_FromLongLong(number) : NULL;
    case UC_DICT_DOUBLE:
        return uc_dict_get_double(dict, key, &real) == UC_OK ? PyFloat_FromDouble(real) : NULL;
    case UC_DICT_STRING:
        return uc_dict_get_string(dict, key, &text) == UC_OK ? PyUnicode_FromString(text) : NULL;
    case UC_DICT_DICT:
        return uc_dict_get_dict(dict, key, &child) == UC_OK ? uc_py_from_dict(child) : NULL;
    case UC_DICT_POINTER:
        return uc_dict_get_pointer(dict, key, &pointer) == UC_OK ? PyLong_FromVoidPtr(pointer)
                                                                 : NULL;
    case UC_DICT_LIST:
        break;
    }
    return NULL;
}

/* Elements tell their type by which getter takes them; int comes before double, which would take both. */
static PyObject *
element_at(const struct uc_dict *dict, const char *key, size_t idx)
{
    const struct uc_dict *child = NULL;
    const char *text = NULL;
    bool flag = false;
    int64_t number = 0;
    double real = 0.0;

    if (uc_dict_get_dict_at(dict, key, idx, &child) == UC_OK) {
        return uc_py_from_dict(child);
    }
    if (uc_dict_get_string_at(dict, key, idx, &text) == UC_OK) {
        return PyUnicode_FromString(text);
    }
    if (uc_dict_get_bool_at(dict, key, idx, &flag) == UC_OK) {
        return PyBool_FromLong(flag);
    }
    if (uc_dict_get_int_at(dict, key, idx, &number) == UC_OK) {
        return PyLong_FromLongLong(number);
    }
    if (uc_dict_get_double_at(dict, key, idx, &real) == UC_OK) {
        return PyFloat_FromDouble(real);
    }
    return NULL;
}

static PyObject *
list_at(const struct uc_dict *dict, const char *key)
{
    size_t count = 0;
    PyObject *list;

    if (uc_dict_get_list_count(dict, key, &count) != UC_OK) {
        return NULL;
    }
    list = PyList_New((Py_ssize_t)count);
    for (size_t idx = 0; list != NULL && idx < count; idx++) {
        PyObject *element = element_at(dict, key, idx);

        if (element == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)idx, element);
        }
    }
    return list;
}

PyObject *
uc_py_from_dict(const struct uc_dict *dict)
{
    PyObject *result = PyDict_New();

    for (size_t idx = 0; result != NULL && idx < uc_dict_count(dict); idx++) {
        const char *key = uc_dict_key_at(dict, idx);
        enum uc_dict_type type = UC_DICT_BOOL;
        PyObject *value = NULL;

        if (uc_dict_get_type(dict, key, &type) == UC_OK) {
            value = type == UC_DICT_LIST ? list_at(dict, key) : scalar_at(dict, key, type);
        }
        if (value == NULL || PyDict_SetItemString(result, key, value) != 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(value);
    }
    if (result == NULL && PyErr_Occurred() == NULL) {
        (void)uc_py_raise(UC_ERR_GENERAL);
    }
    return result;
}

int
uc_py_keys_get(PyObject *object, struct uc_py_keys *keys_out)
{
    if (PyObject_GetBuffer(object, &keys_out->view, PyBUF_SIMPLE) != 0) {
        return -1;
    }
    if (keys_out->view.len % UC_BLOCK_ID_BYTES != 0) {
        (void)uc_py_raise_invalid(
                "keys of %zd bytes: a block id has %d, so the length is a multiple "
                "of that",
                keys_out->view.len, UC_BLOCK_ID_BYTES);
        PyBuffer_Release(&keys_out->view);
        return -1;
    }

    keys_out->ids = keys_out->view.buf;
    keys_out->count = (size_t)keys_out->view.len / UC_BLOCK_ID_BYTES;
    return 0;
}
