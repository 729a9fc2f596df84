/* SPDX-License-Identifier: Apache-2.0 */

/* Memory of StoreWorker: regions, and what they keep open. */

#include "client/python/binding/binding.h"

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

PyObject *
uc_py_register_memory(PyObject *object, PyObject *arguments, PyObject *keywords)
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
    worker = kept == NULL ? NULL : uc_py_enter(object);
    if (worker == NULL) {
        Py_XDECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    /* The address is a number of the caller's, like any pointer that C would pass. */
    status = uc_worker_register_memory(worker, (void *)(uintptr_t)address, length_bytes,
            (enum uc_memory_kind)kind, &region_idx);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
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

PyObject *
uc_py_deregister_memory(PyObject *object, PyObject *index)
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
    worker = key == NULL ? NULL : uc_py_enter(object);
    if (worker == NULL) {
        Py_XDECREF(key);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = uc_worker_deregister_memory(worker, (uint32_t)region_idx);
    Py_END_ALLOW_THREADS;
    uc_py_leave(object);
    if (status == UC_OK && PyDict_DelItem(owner->regions, key) != 0) {
        PyErr_Clear();
    }
    Py_DECREF(key);
    return uc_py_none_or_raise(status);
}
