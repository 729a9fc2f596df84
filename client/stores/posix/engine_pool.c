/* SPDX-License-Identifier: Apache-2.0 */

/* The thread engine: each thread takes an op and runs its calls one after the other. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/posix/engine.h"

struct worker {
    struct uc_posix_slot slot;
    struct uc_posix_engine *engine;
    pthread_t thread;
};

struct uc_posix_engine {
    pthread_mutex_t lock;
    pthread_cond_t some_ready;
    struct uc_list ready; /* guarded by lock, as the two below */
    struct uc_list ended;
    bool is_stopping;
    size_t room; /* of the progress thread: ops that can be taken without a queue */
    int wake_fd;
    struct worker *workers;
    size_t slot_count;   /* that were made */
    size_t worker_count; /* threads that run */
};

static void *
worker_main(void *argument)
{
    struct worker *worker = argument;
    struct uc_posix_engine *engine = worker->engine;
    uint64_t one = 1;

    (void)pthread_mutex_lock(&engine->lock);
    for (;;) {
        struct uc_posix_op *op;

        while (uc_list_is_empty(&engine->ready) && !engine->is_stopping) {
            (void)pthread_cond_wait(&engine->some_ready, &engine->lock);
        }
        if (uc_list_is_empty(&engine->ready)) {
            break;
        }
        op = uc_list_entry(uc_list_take(&engine->ready), struct uc_posix_op, link);
        (void)pthread_mutex_unlock(&engine->lock);

        op->slot = &worker->slot;
        uc_posix_op_start(op);
        while (uc_posix_op_next(op)) {
            uc_posix_io_run(&worker->slot.io);
        }
        op->slot = NULL;

        (void)pthread_mutex_lock(&engine->lock);
        uc_list_add(&engine->ended, &op->link);
        (void)!write(engine->wake_fd, &one, sizeof(one));
    }
    (void)pthread_mutex_unlock(&engine->lock);
    return NULL;
}

static void
pool_destroy(struct uc_posix_engine *engine)
{
    (void)pthread_mutex_lock(&engine->lock);
    engine->is_stopping = true;
    (void)pthread_cond_broadcast(&engine->some_ready);
    (void)pthread_mutex_unlock(&engine->lock);
    for (size_t idx = 0; idx < engine->worker_count; idx++) {
        (void)pthread_join(engine->workers[idx].thread, NULL);
    }
    for (size_t idx = 0; idx < engine->slot_count; idx++) {
        uc_posix_slot_fini(&engine->workers[idx].slot);
    }
    (void)pthread_cond_destroy(&engine->some_ready);
    (void)pthread_mutex_destroy(&engine->lock);
    free(engine->workers);
    free(engine);
}

static enum uc_status
start_worker(struct uc_posix_engine *engine, struct worker *worker)
{
    enum uc_status status = uc_posix_slot_init(&worker->slot);
    int error;

    if (status != UC_OK) {
        return status;
    }
    engine->slot_count++;
    worker->engine = engine;
    error = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (error != 0) {
        return uc_log_errno(error, "posix store: thread %zu", engine->worker_count);
    }
    engine->worker_count++;
    return UC_OK;
}

static enum uc_status
pool_create(const struct uc_posix_config *config, int wake_fd, struct uc_posix_engine **engine_out)
{
    struct uc_posix_engine *engine = calloc(1, sizeof(*engine));
    enum uc_status status = UC_OK;

    if (engine == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the threads");
    }
    engine->workers = calloc(config->threads, sizeof(engine->workers[0]));
    if (engine->workers == NULL) {
        free(engine);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the threads");
    }
    (void)pthread_mutex_init(&engine->lock, NULL);
    (void)pthread_cond_init(&engine->some_ready, NULL);
    uc_list_init(&engine->ready);
    uc_list_init(&engine->ended);
    engine->wake_fd = wake_fd;
    engine->room = config->threads;

    for (size_t idx = 0; idx < config->threads && status == UC_OK; idx++) {
        status = start_worker(engine, &engine->workers[idx]);
    }
    if (status != UC_OK) {
        pool_destroy(engine);
        return status;
    }
    *engine_out = engine;
    return UC_OK;
}

/* No more than there are threads: what waits stays with the progress thread, which can expire it. */
static void
pool_start(struct uc_posix_engine *engine, struct uc_list *ready)
{
    if (engine->room == 0 || uc_list_is_empty(ready)) {
        return;
    }

    (void)pthread_mutex_lock(&engine->lock);
    while (engine->room > 0 && !uc_list_is_empty(ready)) {
        uc_list_add(&engine->ready, uc_list_take(ready));
        engine->room--;
        (void)pthread_cond_signal(&engine->some_ready);
    }
    (void)pthread_mutex_unlock(&engine->lock);
}

static void
pool_poll(struct uc_posix_engine *engine, struct uc_list *ended)
{
    struct uc_list *node;

    (void)pthread_mutex_lock(&engine->lock);
    while ((node = uc_list_take(&engine->ended)) != NULL) {
        uc_list_add(ended, node);
        engine->room++;
    }
    (void)pthread_mutex_unlock(&engine->lock);
}

/* A system call cannot be called back: the op ends after the one that runs. */
static void
pool_cancel(struct uc_posix_engine *engine, struct uc_posix_op *op)
{
    (void)engine;
    (void)op;
}

const struct uc_posix_engine_ops uc_posix_pool_ops = {
        .name = "threads",
        .create = pool_create,
        .destroy = pool_destroy,
        .start = pool_start,
        .poll = pool_poll,
        .cancel = pool_cancel,
};
