/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file binding.h
 * What the files of the Python module share: types, conversions, errors. The module adds type mapping
 * and nothing else (section 17 of core/CONTRACT.md).
 *
 * Threads: everything here is called with the GIL held; native calls release it. An assembler
 * has one control and one data thread at a time: a second one that enters meanwhile gets an
 * error and not a race.
 */

#ifndef UC_PYTHON_BINDING_H
#define UC_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h> /* after Python.h */

#include <ucm/assembler.h>
#include <ucm/block.h>
#include <ucm/dict.h>
#include <ucm/request.h>
#include <ucm/status.h>
#include <ucm/token.h>

/* errors.c */

/** Make Error and a subclass per status; add them to the module. @return 0, or −1 with an exception */
int uc_py_errors_init(PyObject *module);
/** Raise @p status with the thread's error text. @return NULL, for `return uc_py_raise(…)` */
PyObject *uc_py_raise(enum uc_status status);
/** @return None, or NULL with the status raised */
PyObject *uc_py_none_or_raise(enum uc_status status);
/** Raise InvalidParam with a text of the binding's own. @return NULL */
PyObject *uc_py_raise_invalid(const char *format, ...) UC_PRINTF(1, 2);

/* convert.c */

/** @return a new dictionary, or NULL with an exception that names the key */
struct uc_dict *uc_py_to_dict(PyObject *object);
PyObject *uc_py_from_dict(const struct uc_dict *dict);
/** Borrow a text without NUL. @return NULL with TypeError or InvalidParam */
const char *uc_py_text(PyObject *object, const char *what);
/** @return 0, or −1 with TypeError or InvalidParam */
int uc_py_to_uint64(PyObject *object, const char *what, uint64_t *value_out);

/** Getter and setter of an unsigned long long member; the closure is its offset. What fails changes nothing. */
PyObject *uc_py_number_get(PyObject *object, void *offset);
int uc_py_number_set(PyObject *object, PyObject *value, void *offset);

/** A borrowed list of block ids; release with PyBuffer_Release(&view). */
struct uc_py_keys {
    Py_buffer view;
    const struct uc_block_id *ids;
    size_t count;
};
/** Bytes-like object of 16·n bytes. @return 0, or −1 with an exception */
int uc_py_keys_get(PyObject *object, struct uc_py_keys *keys_out);

/* values.c: BlockId, RequestContext, IoContext, IoResult */

extern PyTypeObject uc_py_block_id_type;
extern PyTypeObject uc_py_request_context_type;
extern PyTypeObject uc_py_io_context_type;

int uc_py_values_init(PyObject *module);
PyObject *uc_py_block_id_new(const struct uc_block_id *id);
/**
 * Fill a context whose texts live as long as what is returned: the object itself may get others meanwhile.
 * @return a reference for the caller to release, or NULL with an exception
 */
PyObject *uc_py_request_context_get(PyObject *object, struct uc_request_context *context_out);
/** None stands for the defaults. @return 0, or −1 with an exception */
int uc_py_io_context_get(PyObject *object, struct uc_io_context *io_out);
PyObject *uc_py_io_result_new(const struct uc_io_result *result);
/** @return job id of an IoResult */
uint64_t uc_py_io_result_job_id(PyObject *result);

/* token.c */

extern PyTypeObject uc_py_token_type;

/** Takes the token, also on failure. */
PyObject *uc_py_token_new(struct uc_token *token);
/** @return the borrowed token, or NULL with TypeError */
const struct uc_token *uc_py_token_get(PyObject *object);

/* payload.c */

extern PyTypeObject uc_py_payload_type;

/** Payload descriptions as C sees them, in one allocation. */
struct uc_py_payloads {
    struct uc_block_payload *items;
    size_t count;
};
/** From a tuple of BlockPayload. Release with uc_py_payloads_release(). @return 0, or −1 */
int uc_py_payloads_get(PyObject *tuple, struct uc_py_payloads *payloads_out);
void uc_py_payloads_release(struct uc_py_payloads *payloads);

/* memory.c */

extern PyTypeObject uc_py_memory_type;

/* assembler.c */

extern PyTypeObject uc_py_assembler_type;

struct uc_py_assembler {
    PyObject ob_base;
    PyObject *weak_references;
    struct uc_assembler *assembler; /* NULL = closed */
    unsigned long fork_epoch;       /* of the process that made it */
    bool control_busy;              /* a native call is under way, without the GIL */
    bool data_busy;
    PyObject *
            in_flight; /* dict: job id → what its memory hangs on, until the event was handed out */
    PyObject *kept;    /* list: IoResults that were collected and not handed out yet */
    PyObject *regions;                /* dict: region index → object that was registered */
    struct uc_py_assembler *previous; /* live ones, for the end of the interpreter */
    struct uc_py_assembler *next;
};

int uc_py_assembler_init(PyObject *module);
/** @return 0 if the assembler can be used by this process, else −1 with an exception */
int uc_py_assembler_check(struct uc_py_assembler *self);

/* handle.c: what StoreScheduler and StoreWorker have in common */

/** Object of either: it only keeps its assembler. */
struct uc_py_handle {
    PyObject ob_base;
    struct uc_py_assembler *owner;
    void *native; /* uc_scheduler or uc_worker, for as long as the assembler is open */
    bool *busy;   /* the owner's flag for this half */
};

PyObject *uc_py_handle_new(
        PyTypeObject *type, struct uc_py_assembler *owner, void *native, bool *busy);
int uc_py_handle_traverse(PyObject *object, visitproc visit, void *arg);
void uc_py_handle_dealloc(PyObject *object);

/** @return the native half for one call, which ends with uc_py_leave(); NULL with an exception */
void *uc_py_enter(PyObject *handle);
void uc_py_leave(PyObject *handle);

typedef enum uc_status uc_py_health_fn(void *native);
typedef enum uc_status uc_py_describe_fn(void *native, struct uc_dict *description);
PyObject *uc_py_health(PyObject *handle, uc_py_health_fn *health);
PyObject *uc_py_describe(PyObject *handle, uc_py_describe_fn *describe);

/** Entry of a table of methods. */
#define UC_PY_KEYWORDS(function) \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

/* scheduler.c, worker.c */

extern PyTypeObject uc_py_scheduler_type;
extern PyTypeObject uc_py_worker_type;

/* events.c */

/** Keep what a job's memory hangs on until its event was handed out. @return 0, or −1 */
int uc_py_events_hold(struct uc_py_assembler *owner, uint64_t job_id, PyObject *memory);
/** Collect, drop and wait until no job is in flight; deadlines bound it. */
void uc_py_events_drain(struct uc_py_assembler *owner);
/** Methods of StoreWorker. */
PyObject *uc_py_get_finished(PyObject *handle, PyObject *unused);
PyObject *uc_py_wait(PyObject *handle, PyObject *arguments, PyObject *keywords);

/* regions.c: methods of StoreWorker */

PyObject *uc_py_register_memory(PyObject *handle, PyObject *arguments, PyObject *keywords);
PyObject *uc_py_deregister_memory(PyObject *handle, PyObject *index);

#endif /* UC_PYTHON_BINDING_H */
