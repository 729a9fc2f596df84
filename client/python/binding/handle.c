/* SPDX-License-Identifier: Apache-2.0 */

/* What StoreScheduler and StoreWorker have in common: each is one half of an assembler. */

#include <string.h>

#include "client/python/binding/binding.h"

PyObject *
uc_py_handle_new(PyTypeObject *type, struct uc_py_assembler *owner, void *native, bool *busy)
{
    struct uc_py_handle *self = PyObject_GC_New(struct uc_py_handle, type);

    if (self == NULL) {
        return NULL;
    }
    self->owner = (struct uc_py_assembler *)Py_NewRef((PyObject *)owner);
    self->native = native;
    self->busy = busy;
    PyObject_GC_Track((PyObject *)self);
    return (PyObject *)self;
}

/* There is no tp_clear: the reference never changes, and cycles through it are broken in the assembler. */
int
uc_py_handle_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)((struct uc_py_handle *)object)->owner);
    return 0;
}

void
uc_py_handle_dealloc(PyObject *object)
{
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;

    PyObject_GC_UnTrack(object);
    Py_TYPE(object)->tp_free(object);
    Py_DECREF((PyObject *)owner);
}

void *
uc_py_enter(PyObject *object)
{
    struct uc_py_handle *self = (struct uc_py_handle *)object;

    if (uc_py_assembler_check(self->owner) != 0) {
        return NULL;
    }
    if (*self->busy) {
        (void)uc_py_raise_invalid("%s: another thread is inside a call; one at a time",
                strrchr(Py_TYPE(object)->tp_name, '.') + 1);
        return NULL;
    }

    *self->busy = true;
    return self->native;
}

void
uc_py_leave(PyObject *object)
{
    *((struct uc_py_handle *)object)->busy = false;
}

PyObject *
uc_py_health(PyObject *object, uc_py_health_fn *health)
{
    void *native = uc_py_enter(object);
    enum uc_status status;

    if (native == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = health(native);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    return uc_py_none_or_raise(status);
}

PyObject *
uc_py_describe(PyObject *object, uc_py_describe_fn *describe)
{
    void *native = uc_py_enter(object);
    struct uc_dict *description = NULL;
    enum uc_status status;
    PyObject *result;

    if (native == NULL) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_dict_create(&description);
    if (status == UC_OK) {
        status = describe(native, description);
    }
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    result = status == UC_OK ? uc_py_from_dict(description) : uc_py_raise(status);
    uc_dict_destroy(description);
    return result;
}
