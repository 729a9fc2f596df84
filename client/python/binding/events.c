/* SPDX-License-Identifier: Apache-2.0 */

/* Events of StoreWorker: collecting and waiting; what jobs in flight keep. */

#include <stdlib.h>

#include <ucm/clock.h>

#include "client/python/binding/binding.h"

enum {
    RESULT_BATCH = 64,
    SLICE_MS = 200, /* a wait looks for signals (Ctrl-C) this often */
};

int
uc_py_events_hold(struct uc_py_assembler *owner, uint64_t job_id, PyObject *memory)
{
    PyObject *key =
            PyLong_FromUnsignedLongLong(job_id); /* not the caller's, which may be a subclass */
    int result = key == NULL ? -1 : PyDict_SetItem(owner->in_flight, key, memory);

    Py_XDECREF(key);
    return result;
}

/* An event was collected: note it at the end of the list. The job's memory is let go. */
static int
take_result(struct uc_py_assembler *owner, const struct uc_io_result *result, PyObject *list)
{
    PyObject *event = uc_py_io_result_new(result);
    int status = -1;

    if (event == NULL) {
        return -1;
    }
    status = PyList_Append(list, event);
    if (status == 0 && PyDict_DelItem(owner->in_flight, PyStructSequence_GET_ITEM(event, 0)) != 0) {
        PyErr_Clear(); /* collected for a submit whose bookkeeping failed */
    }
    Py_DECREF(event);
    return status;
}

static int
take_results(
        struct uc_py_assembler *owner, struct uc_io_result *results, size_t count, PyObject *list)
{
    int status = 0;

    for (size_t idx = 0; idx < count && status == 0; idx++) {
        status = take_result(owner, &results[idx], list);
    }
    uc_io_results_release(results, count);
    return status;
}

/* Move everything that was kept to a new list. */
static PyObject *
take_kept(struct uc_py_assembler *owner)
{
    PyObject *list = PyList_GetSlice(owner->kept, 0, PyList_GET_SIZE(owner->kept));

    if (list != NULL && PyList_SetSlice(owner->kept, 0, PyList_GET_SIZE(owner->kept), NULL) != 0) {
        Py_CLEAR(list);
    }
    return list;
}

/* Put back what could not be handed out: events are delivered exactly once, but they are delivered. */
static void
keep(struct uc_py_assembler *owner, PyObject *list)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    Py_ssize_t end = PyList_GET_SIZE(owner->kept);

    PyErr_Fetch(&type, &value, &traceback);
    if (PyList_SetSlice(owner->kept, end, end, list) != 0) {
        PyErr_WriteUnraisable(list);
    }
    PyErr_Restore(type, value, traceback);
    Py_DECREF(list);
}

PyObject *
uc_py_get_finished(PyObject *object, PyObject *unused)
{
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker = uc_py_enter(object);
    struct uc_io_result results[RESULT_BATCH];
    PyObject *list;
    enum uc_status status = UC_OK;
    size_t count;

    (void)unused;
    list = worker == NULL ? NULL : take_kept(owner);
    if (list == NULL) {
        if (worker != NULL) {
            uc_py_leave(object);
        }
        return NULL;
    }
    do {
        count = 0;
        Py_BEGIN_ALLOW_THREADS;
        status = uc_worker_get_finished(worker, results, RESULT_BATCH, &count);
        Py_END_ALLOW_THREADS;
        if (status != UC_OK) {
            (void)uc_py_raise(status);
        }
    } while (status == UC_OK && take_results(owner, results, count, list) == 0 &&
             count == RESULT_BATCH);
    uc_py_leave(object);
    if (PyErr_Occurred() != NULL) {
        keep(owner, list);
        return NULL;
    }
    return list;
}

/* The ids of a wait and room for as many results, in one allocation each. */
struct wait {
    uint64_t *ids;
    struct uc_io_result *results;
    size_t count;
};

static void
wait_release(struct wait *wait)
{
    free(wait->ids);
    free(wait->results);
}

static int
wait_open(PyObject *job_ids, struct wait *wait)
{
    PyObject *ids = PySequence_Tuple(job_ids); /* a list may change in an element's __index__ */
    size_t count = ids == NULL ? 0 : (size_t)PyTuple_GET_SIZE(ids);

    *wait = (struct wait){0};
    if (ids == NULL) {
        return -1;
    }
    wait->ids = calloc(count + 1, sizeof(wait->ids[0]));
    wait->results = calloc(count + 1, sizeof(wait->results[0]));
    if (wait->ids == NULL || wait->results == NULL) {
        (void)PyErr_NoMemory();
        goto err_release;
    }
    for (size_t idx = 0; idx < count; idx++) {
        if (uc_py_to_uint64(PyTuple_GET_ITEM(ids, (Py_ssize_t)idx), "job_ids",
                    &wait->ids[wait->count++]) != 0) {
            goto err_release;
        }
    }
    Py_DECREF(ids);
    return 0;

err_release:
    wait_release(wait);
    Py_DECREF(ids);
    return -1;
}

/* No longer wait for what has come. */
static void
wait_forget(struct wait *wait, uint64_t job_id)
{
    size_t kept = 0;

    for (size_t idx = 0; idx < wait->count; idx++) {
        if (wait->ids[idx] != job_id) {
            wait->ids[kept++] = wait->ids[idx];
        }
    }
    wait->count = kept;
}

/* Events that an interrupted call had collected come first. */
static int
wait_take_kept(struct uc_py_assembler *owner, struct wait *wait, PyObject *list)
{
    for (Py_ssize_t idx = 0; idx < PyList_GET_SIZE(owner->kept);) {
        PyObject *event = PyList_GET_ITEM(owner->kept, idx);
        uint64_t job_id = uc_py_io_result_job_id(event);
        size_t before = wait->count;

        wait_forget(wait, job_id);
        if (wait->count == before) {
            idx++;
        } else if (PyList_Append(list, event) != 0 ||
                   PyList_SetSlice(owner->kept, idx, idx + 1, NULL) != 0) {
            return -1;
        }
    }
    return 0;
}

static int64_t
slice_of(int64_t left_ms)
{
    return left_ms < 0 || left_ms > SLICE_MS ? SLICE_MS : left_ms;
}

/* In slices, so that a signal's handler runs. @return 0, or −1 with an exception */
static int
wait_loop(struct uc_py_assembler *owner, struct uc_worker *worker, struct wait *wait,
        int64_t timeout_ms, PyObject *list)
{
    uint64_t start_ms = uc_clock_now_ns() / 1000000;
    int64_t left_ms = timeout_ms;
    enum uc_status status;

    do {
        size_t count = 0;

        Py_BEGIN_ALLOW_THREADS;
        status = uc_worker_wait(worker, wait->ids, wait->count, slice_of(left_ms), wait->results,
                wait->count, &count);
        Py_END_ALLOW_THREADS;
        if (status != UC_OK && status != UC_ERR_TIMEOUT) {
            (void)uc_py_raise(status);
            return -1;
        }
        for (size_t idx = 0; idx < count; idx++) {
            wait_forget(wait, wait->results[idx].job_id);
        }
        if (take_results(owner, wait->results, count, list) != 0 || PyErr_CheckSignals() != 0) {
            return -1;
        }
        if (timeout_ms >= 0) {
            uint64_t passed_ms = uc_clock_now_ns() / 1000000 - start_ms;

            left_ms = passed_ms >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int64_t)passed_ms;
        }
    } while (status == UC_ERR_TIMEOUT && left_ms != 0);
    return 0;
}

PyObject *
uc_py_wait(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"job_ids", "timeout_ms", NULL};
    struct uc_py_assembler *owner = ((struct uc_py_handle *)object)->owner;
    struct uc_worker *worker;
    long long timeout_ms = -1;
    struct wait wait;
    PyObject *job_ids;
    PyObject *list;
    int result = -1;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|L", names, &job_ids, &timeout_ms) ||
            wait_open(job_ids, &wait) != 0) {
        return NULL;
    }
    list = PyList_New(0);
    worker = list == NULL ? NULL : uc_py_enter(object);
    if (worker != NULL) {
        result = wait_take_kept(owner, &wait, list);
        if (result == 0 && wait.count > 0) {
            result = wait_loop(owner, worker, &wait, timeout_ms < 0 ? -1 : timeout_ms, list);
        }
        uc_py_leave(object);
    }
    wait_release(&wait);
    if (result != 0 && list != NULL) {
        keep(owner, list);
        return NULL;
    }
    return list;
}

/* Collect everything in flight without making objects of it. */
void
uc_py_events_drain(struct uc_py_assembler *owner)
{
    Py_ssize_t count = PyDict_GET_SIZE(owner->in_flight);
    struct uc_worker *worker = NULL;
    Py_ssize_t position = 0;
    struct wait wait = {0};
    PyObject *job;
    PyObject *memory;

    if (count == 0 || uc_assembler_worker(owner->assembler, &worker) != UC_OK) {
        return;
    }
    wait.ids = calloc((size_t)count, sizeof(wait.ids[0]));
    wait.results = calloc((size_t)count, sizeof(wait.results[0]));
    if (wait.ids != NULL && wait.results != NULL) {
        size_t got = 0;

        while (PyDict_Next(owner->in_flight, &position, &job, &memory)) {
            wait.ids[wait.count++] = PyLong_AsUnsignedLongLong(job);
        }
        Py_BEGIN_ALLOW_THREADS;
        (void)!uc_worker_wait(worker, wait.ids, wait.count, -1, wait.results, wait.count, &got);
        uc_io_results_release(wait.results, got);
        Py_END_ALLOW_THREADS;
    }
    wait_release(&wait);
}
