/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/python/binding/binding.h"

enum {
    TEXT_BYTES = 2048,
};

struct error_class {
    enum uc_status status;
    const char *name; /* as in the contract */
    PyObject *type;
};

#define ROW_(name_, number_, text_) {UC_##name_, text_, NULL},
static struct error_class classes[] = {UC_STATUS_MAP(ROW_)};
#undef ROW_

static PyObject *base_error;

/* "NotFound" → NotFoundError; names that end in Error already stay. */
static void
class_name(const char *status_name, char *buffer, size_t buffer_bytes)
{
    size_t length = strlen(status_name);
    bool has_suffix = length > 5 && strcmp(status_name + length - 5, "Error") == 0;

    (void)snprintf(buffer, buffer_bytes, "ucm_proxy.%s%s", status_name, has_suffix ? "" : "Error");
}

/* Give a class its code and name. */
static PyObject *
make_class(const char *name, PyObject *base, const struct error_class *entry)
{
    PyObject *members = Py_BuildValue("{s:i,s:s}", "code", (int)entry->status, "name", entry->name);
    PyObject *type;

    if (members == NULL) {
        return NULL;
    }
    type = PyErr_NewExceptionWithDoc(
            name, "A native call failed; the text says what, where and what to do.", base, members);
    Py_DECREF(members);
    return type;
}

static int
add_class(PyObject *module, const char *name, PyObject *type)
{
    return PyModule_AddObjectRef(module, strchr(name, '.') + 1, type);
}

int
uc_py_errors_init(PyObject *module)
{
    const struct error_class general = {UC_ERR_GENERAL, "General", NULL};

    base_error = make_class("ucm_proxy.Error", PyExc_RuntimeError, &general);
    if (base_error == NULL || add_class(module, "ucm_proxy.Error", base_error) != 0) {
        return -1;
    }

    for (size_t idx = 0; idx < sizeof(classes) / sizeof(classes[0]); idx++) {
        struct error_class *entry = &classes[idx];
        char name[64];

        if (entry->status == UC_OK) {
            continue;
        }
        class_name(entry->name, name, sizeof(name));
        entry->type = make_class(name, base_error, entry);
        if (entry->type == NULL || add_class(module, name, entry->type) != 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *
type_of(enum uc_status status)
{
    for (size_t idx = 0; idx < sizeof(classes) / sizeof(classes[0]); idx++) {
        if (classes[idx].status == status && classes[idx].type != NULL) {
            return classes[idx].type;
        }
    }
    return base_error;
}

PyObject *
uc_py_raise(enum uc_status status)
{
    char text[TEXT_BYTES];
    PyObject *message;

    (void)uc_status_format(status, uc_last_error(), text, sizeof(text));
    /* Texts may quote foreign bytes: what is no UTF-8 must not hide the error. */
    message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    if (message != NULL) {
        PyErr_SetObject(type_of(status), message);
        Py_DECREF(message);
    }
    return NULL;
}

PyObject *
uc_py_none_or_raise(enum uc_status status)
{
    if (status != UC_OK) {
        return uc_py_raise(status);
    }
    Py_RETURN_NONE;
}

PyObject *
uc_py_raise_invalid(const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return uc_py_raise(uc_error(UC_ERR_INVALID_PARAM, "%s", text));
}
