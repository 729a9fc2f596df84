/* SPDX-License-Identifier: Apache-2.0 */

/* The side of the plane that its callers see. What the progress thread does is in progress.c. */

#include "client/stores/posix/plane.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/posix/plane_internal.h"

enum {
    JOBS_PREPARED = 256,
    JOBS_MAX = 1 << 16, /* accepted and not consumed; beyond it submits answer Retry */
};

/*
 * auto: threads. What a block costs the processor (a copy or the pinning of its pages, its checksum, the calls that open
 * and rename) they share, while the ring leaves most of it to the progress thread, one block after the other.
 */
static enum uc_status
create_engine(struct uc_posix_plane *plane)
{
    const struct uc_posix_config *config = plane->env->config;

    plane->engine_ops =
            config->engine == UC_POSIX_ENGINE_URING ? &uc_posix_ring_ops : &uc_posix_pool_ops;
    return plane->engine_ops->create(config, plane->wake_fd, &plane->engine);
}

static void
init_lists(struct uc_posix_plane *plane)
{
    uc_mutex_init(&plane->lock);
    uc_list_init(&plane->submitted);
    uc_list_init(&plane->free_jobs);
    uc_list_init(&plane->prerequisites);
    uc_list_init(&plane->running);
    uc_list_init(&plane->ready);
    uc_list_init(&plane->ended);
    uc_posix_assemblies_init(&plane->assemblies, plane->env->roots);
}

enum uc_status
uc_posix_plane_create(const struct uc_posix_env *env, struct uc_posix_helper *helper,
        struct uc_posix_plane **plane_out)
{
    struct uc_posix_plane *plane = calloc(1, sizeof(*plane));
    enum uc_status status;
    int error;

    if (plane == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the data plane");
    }
    plane->env = env;
    plane->helper = helper;
    plane->clock = uc_clock_monotonic();
    plane->next_deadline_ms = UC_TIME_NEVER_MS;
    plane->next_expiry_ms = 0;
    init_lists(plane);

    plane->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (plane->wake_fd < 0) {
        status = uc_log_errno(errno, "posix store: eventfd");
        goto err_free;
    }
    status = uc_completion_queue_create(JOBS_PREPARED, JOBS_MAX, &plane->queue);
    if (status != UC_OK) {
        goto err_close;
    }
    status = create_engine(plane);
    if (status != UC_OK) {
        goto err_destroy_queue;
    }
    error = pthread_create(&plane->thread, NULL, uc_posix_progress_main, plane);
    if (error != 0) {
        status = uc_log_errno(error, "posix store: progress thread");
        goto err_destroy_engine;
    }
    *plane_out = plane;
    return UC_OK;

err_destroy_engine:
    plane->engine_ops->destroy(plane->engine);
err_destroy_queue:
    uc_completion_queue_destroy(plane->queue);
err_close:
    (void)close(plane->wake_fd);
err_free:
    uc_mutex_fini(&plane->lock);
    free(plane);
    return status;
}

void
uc_posix_plane_destroy(struct uc_posix_plane *plane)
{
    struct uc_list *node;
    uint64_t one = 1;

    if (plane == NULL) {
        return;
    }

    assert(uc_completion_queue_unfinished(plane->queue) == 0); /* */
    atomic_store_explicit(&plane->is_stopping, true, memory_order_release);
    (void)!write(plane->wake_fd, &one, sizeof(one));
    (void)pthread_join(plane->thread, NULL);
    plane->engine_ops->destroy(plane->engine);
    while ((node = uc_list_take(&plane->free_jobs)) != NULL) {
        uc_posix_job_destroy(uc_list_entry(node, struct uc_posix_job, link));
    }
    uc_posix_assemblies_fini(&plane->assemblies);
    uc_completion_queue_destroy(plane->queue);
    (void)close(plane->wake_fd);
    uc_mutex_fini(&plane->lock);
    free(plane);
}

/* A job to fill: one that came back, else a new one. */
static struct uc_posix_job *
take_job(struct uc_posix_plane *plane)
{
    struct uc_list *node;

    uc_mutex_lock(&plane->lock);
    node = uc_list_take(&plane->free_jobs);
    uc_mutex_unlock(&plane->lock);
    return node != NULL ? uc_list_entry(node, struct uc_posix_job, link) : uc_posix_job_create();
}

static void
push_job(struct uc_posix_plane *plane, struct uc_posix_job *job)
{
    uint64_t one = 1;
    bool was_empty;

    uc_mutex_lock(&plane->lock);
    was_empty = uc_list_is_empty(&plane->submitted);
    uc_list_add(&plane->submitted, &job->link);
    uc_mutex_unlock(&plane->lock);
    if (was_empty) {
        (void)!write(plane->wake_fd, &one, sizeof(one));
    }
}

enum uc_status
uc_posix_plane_submit(struct uc_posix_plane *plane, bool is_dump, uint64_t job_id,
        const struct uc_job_descriptor *descriptor)
{
    uint64_t timeout_ms = descriptor->timeout_ms;
    enum uc_status status = uc_completion_queue_begin(plane->queue, job_id, descriptor->count);
    struct uc_posix_job *job;

    if (status != UC_OK) {
        return status;
    }
    if (descriptor->count == 0 && descriptor->prerequisite_handle == 0) {
        uc_completion_queue_finish(plane->queue, job_id, UC_OK, NULL);
        return UC_OK;
    }

    job = take_job(plane);
    status = job == NULL ? uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for a job")
                         : uc_posix_job_fill(job, plane->env, is_dump, descriptor);
    if (status != UC_OK) {
        if (job != NULL) {
            uc_posix_job_destroy(job);
        }
        uc_completion_queue_drop(plane->queue, job_id);
        return status;
    }

    job->job_id = job_id;
    job->deadline_ms = uc_time_add_ms(uc_clock_now_ms(&plane->clock),
            timeout_ms == 0 ? plane->env->config->timeout_ms : timeout_ms);
    if (job->uses_device) {
        (void)atomic_fetch_add_explicit(&plane->device_jobs, 1, memory_order_relaxed);
    }
    push_job(plane, job);
    return UC_OK;
}

struct uc_completion_queue *
uc_posix_plane_queue(struct uc_posix_plane *plane)
{
    return plane->queue;
}

bool
uc_posix_plane_uses_device(const struct uc_posix_plane *plane)
{
    /* Pairs with the release of the job that ended. */
    return atomic_load_explicit(&plane->device_jobs, memory_order_acquire) > 0;
}

const char *
uc_posix_plane_engine(const struct uc_posix_plane *plane)
{
    return plane->engine_ops->name;
}
