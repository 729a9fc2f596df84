/* SPDX-License-Identifier: Apache-2.0 */

/* The extension module ucm_proxy._native. */

#include <ucm/log.h>

#include "client/python/binding/binding.h"
#include "core/base/block_name.h"

static PyObject *
set_log_level(PyObject *unused, PyObject *level)
{
    const char *text = uc_py_text(level, "level");
    enum uc_log_level parsed;
    enum uc_status status;

    (void)unused;
    if (text == NULL) {
        return NULL;
    }
    status = uc_log_level_parse(text, &parsed);
    if (status != UC_OK) {
        return uc_py_raise(status);
    }
    uc_log_set_level(parsed);
    Py_RETURN_NONE;
}

static PyObject *
block_id(PyObject *unused, PyObject *name)
{
    struct uc_block_id id;
    const char *text = uc_py_text(name, "name");

    (void)unused;
    if (text == NULL) {
        return NULL;
    }
    id = uc_block_name_parse(text);
    return PyBytes_FromStringAndSize((const char *)id.bytes, UC_BLOCK_ID_BYTES);
}

static PyObject *
address_of(PyObject *unused, PyObject *object)
{
    PyObject *result;
    Py_buffer view;

    (void)unused;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) != 0) {
        return NULL;
    }
    result = Py_BuildValue("(Nn)", PyLong_FromVoidPtr(view.buf), view.len);
    PyBuffer_Release(&view);
    return result;
}

static PyMethodDef functions[] = {
        {"block_id", block_id, METH_O,
                "block_id(name)\n--\n\nThe 16 bytes that name a block: 32 hexadecimal digits are taken "
                "as they are, any other text is hashed (XXH3, 128 bits), as the ucm command does."},
        {"address_of", address_of, METH_O,
                "address_of(buffer)\n--\n\n(address, bytes) of a contiguous buffer, for BlockPayload. The "
                "caller keeps the object alive while a job uses it."},
        {"set_log_level", set_log_level, METH_O,
                "set_log_level(level)\n--\n\n'error', 'warn', 'info', 'debug' or 'trace'."},
        {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "ucm_proxy._native",
        .m_doc = "Binding of the ucm C interfaces; see the package ucm_proxy.",
        .m_size = -1,
        .m_methods = functions,
};

static int
fill(PyObject *module)
{
    PyTypeObject *types[] = {&uc_py_token_type, &uc_py_payload_type, &uc_py_memory_type,
            &uc_py_scheduler_type, &uc_py_worker_type};

    if (uc_py_errors_init(module) != 0 || uc_py_values_init(module) != 0) {
        return -1;
    }
    for (size_t idx = 0; idx < sizeof(types) / sizeof(types[0]); idx++) {
        if (PyModule_AddType(module, types[idx]) != 0) {
            return -1;
        }
    }
    if (PyModule_AddIntConstant(module, "MEMORY_HOST", UC_MEMORY_HOST) != 0 ||
            PyModule_AddIntConstant(module, "MEMORY_CUDA", UC_MEMORY_CUDA) != 0) {
        return -1;
    }
    return uc_py_assembler_init(module);
}

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC
PyInit__native(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module != NULL && fill(module) != 0) {
        Py_CLEAR(module);
    }
    return module;
}
