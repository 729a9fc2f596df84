/* SPDX-License-Identifier: Apache-2.0 */

/* The progress thread: from submitted jobs to events. */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/posix/plane_internal.h"

enum {
    PREREQUISITE_POLL_MS = 1,
    SLEEP_MAX_MS = 60000,
    ASSEMBLY_IDLE_MS = 600000, /* parts that nobody adds to are dropped after it */
    ASSEMBLY_LOOK_MS = 10000,
};

static void
finish_job(struct uc_posix_plane *plane, struct uc_posix_job *job)
{
    uint64_t job_id = job->job_id;
    enum uc_status code = uc_posix_job_code(job);

    if (code == UC_ERR_TIMEOUT) {
        uc_posix_count(plane->env->health, UC_POSIX_COUNT_timeouts, 1);
    }
    if (job->uses_device) {
        (void)atomic_fetch_sub_explicit(&plane->device_jobs, 1, memory_order_release);
    }
    uc_completion_queue_finish(plane->queue, job_id, code, job->blocks);
    uc_list_remove(&job->link);
    uc_mutex_lock(&plane->lock);
    uc_list_add(&plane->free_jobs, &job->link);
    uc_mutex_unlock(&plane->lock);
}

static void
end_block(struct uc_posix_plane *plane, struct uc_posix_op *op)
{
    op->is_ended = true;
    if (uc_posix_job_end_block(op->job, op)) {
        finish_job(plane, op->job);
    }
}

/* The op is in no list and no engine. */
static void
fail_block(struct uc_posix_plane *plane, struct uc_posix_op *op, enum uc_status status)
{
    op->status = status;
    end_block(plane, op);
}

static void
fail_job(struct uc_posix_plane *plane, struct uc_posix_job *job, enum uc_status status)
{
    size_t count = job->count;

    if (count == 0) {
        job->code = status;
        finish_job(plane, job);
    }
    for (size_t idx = 0; idx < count; idx++) {
        fail_block(plane, &job->ops[idx], status); /* the last one takes the job with it */
    }
}

static bool
is_part(const struct uc_posix_op *op)
{
    uint64_t block_bytes = op->env->config->block_bytes;

    return op->is_dump && block_bytes != 0 && op->bytes != block_bytes;
}

static void
dispatch_block(struct uc_posix_plane *plane, struct uc_posix_op *op, uint64_t now_ms)
{
    bool entered = true;

    if (is_part(op) && uc_posix_assembly_enter(&plane->assemblies, op, now_ms, &entered) != UC_OK) {
        fail_block(plane, op, UC_ERR_OUT_OF_MEMORY);
        return;
    }
    if (entered) {
        uc_list_add(&plane->ready, &op->link);
    }
}

static void
dispatch(struct uc_posix_plane *plane, struct uc_posix_job *job, uint64_t now_ms)
{
    size_t count = job->count;

    uc_list_remove(&job->link);
    uc_list_add(&plane->running, &job->link);
    if (count == 0) {
        finish_job(plane, job);
    }
    for (size_t idx = 0; idx < count; idx++) {
        dispatch_block(plane, &job->ops[idx], now_ms);
    }
}

/* Ask the host whether the event behind a job has fired. */
static void
ask_prerequisite(struct uc_posix_plane *plane, struct uc_posix_job *job, uint64_t now_ms)
{
    const struct uc_prerequisite *hook = plane->env->config->prerequisite;
    enum uc_status status = hook->poll(hook->context, job->prerequisite_handle);

    if (status == UC_OK) {
        dispatch(plane, job, now_ms);
    } else if (status != UC_ERR_RETRY) {
        uc_posix_health_warn(plane->env->health,
                "posix store: job %llu: its prerequisite failed: %s",
                (unsigned long long)job->job_id, uc_status_name(status));
        fail_job(plane, job, status);
    }
}

static void
take_submitted(struct uc_posix_plane *plane, uint64_t now_ms)
{
    struct uc_list jobs;
    struct uc_list *node;

    uc_list_init(&jobs);
    uc_mutex_lock(&plane->lock);
    while ((node = uc_list_take(&plane->submitted)) != NULL) {
        uc_list_add(&jobs, node);
    }
    uc_mutex_unlock(&plane->lock);
    while ((node = uc_list_take(&jobs)) != NULL) {
        struct uc_posix_job *job = uc_list_entry(node, struct uc_posix_job, link);

        if (job->deadline_ms < plane->next_deadline_ms) {
            plane->next_deadline_ms = job->deadline_ms;
        }
        if (job->prerequisite_handle == 0) {
            dispatch(plane, job, now_ms);
        } else {
            uc_list_add(&plane->prerequisites, &job->link);
        }
    }
}

/* An op came back from the engine, or from the helper. */
static void
settle(struct uc_posix_plane *plane, struct uc_posix_op *op, uint64_t now_ms)
{
    if (op->is_new && !op->is_collected) {
        op->is_collected = true;
        uc_posix_helper_give(plane->helper, op, plane->wake_fd);
        return;
    }
    if (op->assembly != NULL) {
        struct uc_posix_op *next = uc_posix_assembly_leave(&plane->assemblies, op, now_ms);

        if (next != NULL) {
            uc_list_add(&plane->ready, &next->link);
        }
    }
    end_block(plane, op);
}

/* @return whether there was any */
static bool
settle_ended(struct uc_posix_plane *plane, uint64_t now_ms)
{
    struct uc_list *node;
    bool any = false;

    plane->engine_ops->poll(plane->engine, &plane->ended);
    uc_posix_helper_take(plane->helper, &plane->ended);
    while ((node = uc_list_take(&plane->ended)) != NULL) {
        settle(plane, uc_list_entry(node, struct uc_posix_op, link), now_ms);
        any = true;
    }
    return any;
}

/* @return whether an op of the list was found and taken out of it */
static bool
withdraw(struct uc_list *list, const struct uc_posix_op *op)
{
    uc_list_for_each (node, list) {
        if (node == &op->link) {
            uc_list_remove(node);
            return true;
        }
    }

    return false;
}

/*
 * The deadline has passed. What has not started ends now; what runs is told to end, and ends when its call is
 * over: until then the kernel may still touch the buffers.
 */
static void
expire_running(struct uc_posix_plane *plane, struct uc_posix_job *job, uint64_t now_ms)
{
    size_t count = job->count;
    size_t stuck_count = 0;

    job->is_timed_out = true;
    job->left += 1; /* so that the job outlives this loop */
    for (size_t idx = 0; idx < count; idx++) {
        struct uc_posix_op *op = &job->ops[idx];

        if (op->is_ended || op->is_collected) {
            continue; /* over, or published: the real outcome counts */
        }
        atomic_store_explicit(&op->cancelled, true, memory_order_relaxed);
        if (withdraw(&plane->ready, op)) {
            op->status = UC_ERR_TIMEOUT;
            settle(plane, op, now_ms);
        } else if (op->assembly != NULL && withdraw(&op->assembly->waiting, op)) {
            op->assembly = NULL;
            fail_block(plane, op, UC_ERR_TIMEOUT);
        } else {
            stuck_count += atomic_load_explicit(&op->is_copied, memory_order_relaxed) ? 0 : 1;
            plane->engine_ops->cancel(plane->engine, op);
        }
    }
    if (stuck_count > 0) {
        char reason[UC_POSIX_REASON_BYTES];

        (void)snprintf(reason, sizeof(reason), "%zu transfers of %s did not end in time",
                stuck_count, plane->env->roots->items[0].path);
        if (uc_posix_health_set_bad(plane->env->health, reason)) {
            uc_posix_helper_probe(plane->helper);
        }
    }
    if (--job->left == 0) {
        finish_job(plane, job);
    }
}

static void
expire_jobs(struct uc_posix_plane *plane, uint64_t now_ms)
{
    uint64_t next_ms = UC_TIME_NEVER_MS;

    if (now_ms < plane->next_deadline_ms) {
        return;
    }

    uc_list_for_each_safe (node, following, &plane->prerequisites) {
        struct uc_posix_job *job = uc_list_entry(node, struct uc_posix_job, link);

        if (now_ms >= job->deadline_ms) {
            job->is_timed_out = true;
            fail_job(plane, job, UC_ERR_TIMEOUT);
        } else if (job->deadline_ms < next_ms) {
            next_ms = job->deadline_ms;
        }
    }
    uc_list_for_each_safe (node, following, &plane->running) {
        struct uc_posix_job *job = uc_list_entry(node, struct uc_posix_job, link);

        if (now_ms >= job->deadline_ms) {
            if (!job->is_timed_out) {
                expire_running(plane, job, now_ms);
            }
        } else if (job->deadline_ms < next_ms) {
            next_ms = job->deadline_ms;
        }
    }
    plane->next_deadline_ms = next_ms;
}

static void
expire_assemblies(struct uc_posix_plane *plane, uint64_t now_ms)
{
    if (plane->assemblies.count == 0 || now_ms < plane->next_expiry_ms) {
        return;
    }

    plane->next_expiry_ms = now_ms + ASSEMBLY_LOOK_MS;
    if (now_ms > ASSEMBLY_IDLE_MS) {
        uc_posix_assemblies_expire(&plane->assemblies, now_ms - ASSEMBLY_IDLE_MS);
    }
}

static void
sleep_until(struct uc_posix_plane *plane, uint64_t now_ms)
{
    struct pollfd entry = {.fd = plane->wake_fd, .events = POLLIN};
    uint64_t left_ms = plane->next_deadline_ms > now_ms ? plane->next_deadline_ms - now_ms : 0;
    uint64_t value;

    if (!uc_list_is_empty(&plane->prerequisites) && left_ms > PREREQUISITE_POLL_MS) {
        left_ms = PREREQUISITE_POLL_MS;
    }
    if (plane->assemblies.count > 0 && left_ms > ASSEMBLY_LOOK_MS) {
        left_ms = ASSEMBLY_LOOK_MS;
    }
    (void)poll(&entry, 1, left_ms > SLEEP_MAX_MS ? SLEEP_MAX_MS : (int)left_ms);
    (void)!read(plane->wake_fd, &value, sizeof(value));
}

static void
poll_prerequisites(struct uc_posix_plane *plane, uint64_t now_ms)
{
    uc_list_for_each_safe (node, following, &plane->prerequisites) {
        ask_prerequisite(plane, uc_list_entry(node, struct uc_posix_job, link), now_ms);
    }
}

void *
uc_posix_progress_main(void *argument)
{
    struct uc_posix_plane *plane = argument;
    bool is_stopping = false;

    while (!is_stopping || !uc_list_is_empty(&plane->running) ||
            !uc_list_is_empty(&plane->prerequisites)) {
        uint64_t now_ms = uc_clock_now_ms(&plane->clock);

        is_stopping = atomic_load_explicit(&plane->is_stopping, memory_order_acquire);
        take_submitted(plane, now_ms);
        poll_prerequisites(plane, now_ms);
        (void)settle_ended(plane, now_ms);
        if (is_stopping) {
            /* Nothing may touch the engine's memory after the thread is gone: all deadlines are now. */
            now_ms = UC_TIME_NEVER_MS;
            plane->next_deadline_ms = 0;
        }
        expire_jobs(plane, now_ms);
        expire_assemblies(plane, now_ms);
        plane->engine_ops->start(plane->engine, &plane->ready);
        /* Some end without any call, and make room for others. */
        if (!settle_ended(plane, now_ms)) {
            sleep_until(plane, now_ms);
        }
    }
    return NULL;
}
