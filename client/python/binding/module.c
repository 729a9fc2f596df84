/* SPDX-License-Identifier: Apache-2.0 */

/* The extension module ucm_proxy._native. */

#include <ucm/log.h>

#include "client/python/binding/binding.h"

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

static PyMethodDef functions[] = {
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
