/* SPDX-License-Identifier: Apache-2.0 */

/* StoreAssembler: making and closing a topology; the end of the interpreter; fork. */

#include <pthread.h>
#include <string.h>

#include "client/python/binding/binding.h"

/* Live assemblers, so that the interpreter's end finds them. GIL. */
static struct uc_py_assembler *live;

/* Raised in every child: what a parent made is not ours to touch (registered memory, threads). */
static unsigned long fork_epoch;

static void
note_fork(void)
{
    fork_epoch++;
}

int
uc_py_assembler_check(struct uc_py_assembler *self)
{
    if (self->fork_epoch != fork_epoch) {
        (void)uc_py_raise(uc_error(UC_ERR_UNSUPPORTED,
                "this StoreAssembler was made before a fork and belongs to the parent process; "
                "assemble after fork, or start workers with multiprocessing's \"spawn\""));
        return -1;
    }
    if (self->assembler == NULL) {
        (void)uc_py_raise_invalid("this StoreAssembler is closed");
        return -1;
    }
    return 0;
}

static int
parse_role(const char *text, enum uc_role *role_out)
{
    static const char *const names[] = {[UC_ROLE_BOTH] = "both",
            [UC_ROLE_SCHEDULER] = "scheduler",
            [UC_ROLE_WORKER] = "worker"};

    for (size_t idx = 0; idx < sizeof(names) / sizeof(names[0]); idx++) {
        if (strcmp(text, names[idx]) == 0) {
            *role_out = (enum uc_role)idx;
            return 0;
        }
    }
    (void)uc_py_raise_invalid("role \"%.64s\": known are both, scheduler and worker", text);
    return -1;
}

static void
link_live(struct uc_py_assembler *self)
{
    self->previous = NULL;
    self->next = live;
    if (live != NULL) {
        live->previous = self;
    }
    live = self;
}

static void
unlink_live(struct uc_py_assembler *self)
{
    if (self->previous != NULL) {
        self->previous->next = self->next;
    } else if (live == self) {
        live = self->next;
    }
    if (self->next != NULL) {
        self->next->previous = self->previous;
    }
    self->previous = NULL;
    self->next = NULL;
}

static PyObject *
assembler_make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"config", "role", NULL};
    struct uc_assembler_options options = {.struct_size = sizeof(options)};
    struct uc_py_assembler *self;
    struct uc_dict *config;
    const char *role = "both";
    PyObject *object;
    enum uc_status status;

    if (!PyArg_ParseTupleAndKeywords(
                arguments, keywords, "O|s:StoreAssembler", names, &object, &role) ||
            parse_role(role, &options.role) != 0) {
        return NULL;
    }
    self = (struct uc_py_assembler *)type->tp_alloc(type, 0);
    config = self == NULL ? NULL : uc_py_to_dict(object);
    if (config == NULL) {
        goto err_release;
    }
    self->fork_epoch = fork_epoch;
    self->in_flight = PyDict_New();
    self->kept = PyList_New(0);
    self->regions = PyDict_New();
    if (self->in_flight == NULL || self->kept == NULL || self->regions == NULL) {
        uc_dict_destroy(config);
        goto err_release;
    }

    Py_BEGIN_ALLOW_THREADS;
    status = uc_assembler_create(config, &options, &self->assembler);
    uc_dict_destroy(config);
    Py_END_ALLOW_THREADS;
    if (status != UC_OK) {
        (void)uc_py_raise(status);
        goto err_release;
    }
    link_live(self);
    return (PyObject *)self;

err_release:
    Py_XDECREF(self);
    return NULL;
}

/* Wait for what is in flight, then unmake the topology. The caller has checked that nobody uses it. */
static void
shut(struct uc_py_assembler *self)
{
    struct uc_assembler *assembler = self->assembler;

    if (assembler == NULL || self->fork_epoch != fork_epoch) {
        return; /* a child leaves what the parent made where it is */
    }

    self->control_busy = true;
    self->data_busy = true;
    uc_py_events_drain(self);
    self->assembler = NULL;
    unlink_live(self);
    Py_BEGIN_ALLOW_THREADS;
    uc_assembler_destroy(assembler);
    Py_END_ALLOW_THREADS;
    self->control_busy = false;
    self->data_busy = false;
    PyDict_Clear(self->in_flight);
    PyDict_Clear(self->regions);
}

static PyObject *
assembler_close(PyObject *object, PyObject *unused)
{
    struct uc_py_assembler *self = (struct uc_py_assembler *)object;

    (void)unused;
    if (self->control_busy || self->data_busy) {
        return uc_py_raise_invalid("close: another thread is inside a call");
    }
    shut(self);
    Py_RETURN_NONE;
}

static PyObject *
assembler_enter(PyObject *object, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(object);
}

static PyObject *
assembler_exit(PyObject *object, PyObject *unused)
{
    return assembler_close(object, unused);
}

/*
 * Runs once: when the last reference goes, or when the garbage collector finds a cycle. There it comes before anything of
 * the cycle is cleared, so that jobs end while the memory they use is still held; no tp_clear could promise that.
 */
static void
assembler_finalize(PyObject *object)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    shut((struct uc_py_assembler *)object);
    PyErr_Restore(type, value, traceback);
}

static int
assembler_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct uc_py_assembler *self = (struct uc_py_assembler *)object;

    Py_VISIT(self->in_flight);
    Py_VISIT(self->kept);
    Py_VISIT(self->regions);
    return 0;
}

/* Closed by now, or a parent's: no method of its objects gets as far as these. */
static int
assembler_clear(PyObject *object)
{
    struct uc_py_assembler *self = (struct uc_py_assembler *)object;

    Py_CLEAR(self->in_flight);
    Py_CLEAR(self->kept);
    Py_CLEAR(self->regions);
    return 0;
}

static void
assembler_dealloc(PyObject *object)
{
    struct uc_py_assembler *self = (struct uc_py_assembler *)object;

    if (self->weak_references != NULL) {
        PyObject_ClearWeakRefs(object); /* first: nobody may find us while the GIL is released */
    }
    if (PyObject_CallFinalizerFromDealloc(object) != 0) {
        return; /* somebody took a reference meanwhile; there will be another end */
    }
    PyObject_GC_UnTrack(object);
    unlink_live(self);
    (void)assembler_clear(object);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
assembler_scheduler(PyObject *object, PyObject *unused)
{
    struct uc_py_assembler *self = (struct uc_py_assembler *)object;
    struct uc_scheduler *scheduler;
    enum uc_status status;

    (void)unused;
    if (uc_py_assembler_check(self) != 0) {
        return NULL;
    }
    status = uc_assembler_scheduler(self->assembler, &scheduler);
    return status == UC_OK
                   ? uc_py_handle_new(&uc_py_scheduler_type, self, scheduler, &self->control_busy)
                   : uc_py_raise(status);
}

static PyObject *
assembler_worker(PyObject *object, PyObject *unused)
{
    struct uc_py_assembler *self = (struct uc_py_assembler *)object;
    struct uc_worker *worker;
    enum uc_status status;

    (void)unused;
    if (uc_py_assembler_check(self) != 0) {
        return NULL;
    }
    status = uc_assembler_worker(self->assembler, &worker);
    return status == UC_OK ? uc_py_handle_new(&uc_py_worker_type, self, worker, &self->data_busy)
                           : uc_py_raise(status);
}

/* One that can be closed now: not a parent's, and no daemon thread is inside of it. */
static struct uc_py_assembler *
find_idle(void)
{
    struct uc_py_assembler *self = live;

    while (self != NULL &&
            (self->fork_epoch != fork_epoch || self->control_busy || self->data_busy)) {
        self = self->next;
    }
    return self;
}

/* Registered with atexit: threads of ours must be gone before the interpreter is. */
static PyObject *
close_all(PyObject *unused, PyObject *also_unused)
{
    struct uc_py_assembler *self;

    (void)unused;
    (void)also_unused;
    while ((self = find_idle()) != NULL) {
        Py_INCREF(self);
        shut(self); /* takes it out of the list */
        Py_DECREF(self);
    }
    Py_RETURN_NONE;
}

static PyMethodDef close_all_def = {"_close_all", close_all, METH_NOARGS, NULL};

static PyMethodDef assembler_methods[] = {
        {"get_scheduler", assembler_scheduler, METH_NOARGS, "The StoreScheduler of the topology."},
        {"get_worker", assembler_worker, METH_NOARGS, "The StoreWorker of the topology."},
        {"close", assembler_close, METH_NOARGS,
                "Wait for the jobs in flight (their deadlines bound it), drop their events, and unmake "
                "the topology. Happens by itself when nothing refers to it any more."},
        {"__enter__", assembler_enter, METH_NOARGS, NULL},
        {"__exit__", assembler_exit, METH_VARARGS, NULL},
        {NULL, NULL, 0, NULL},
};

PyTypeObject uc_py_assembler_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.StoreAssembler",
        .tp_basicsize = sizeof(struct uc_py_assembler),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
        .tp_doc = "StoreAssembler(config, role='both')\n--\n\n"
                  "Builds a topology from a dictionary; role is 'both', 'scheduler' or 'worker'.",
        .tp_new = assembler_make,
        .tp_finalize = assembler_finalize,
        .tp_dealloc = assembler_dealloc,
        .tp_traverse = assembler_traverse,
        .tp_clear = assembler_clear,
        .tp_weaklistoffset = offsetof(struct uc_py_assembler, weak_references),
        .tp_methods = assembler_methods,
};

int
uc_py_assembler_init(PyObject *module)
{
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *function = PyCFunction_New(&close_all_def, NULL);
    PyObject *result = NULL;

    if (atexit != NULL && function != NULL) {
        result = PyObject_CallMethod(atexit, "register", "O", function);
    }
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    if (result == NULL) {
        return -1;
    }
    Py_DECREF(result);
    if (pthread_atfork(NULL, NULL, note_fork) != 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return PyModule_AddType(module, &uc_py_assembler_type);
}
