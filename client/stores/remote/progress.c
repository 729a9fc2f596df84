/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/progress.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/remote/attachment.h"
#include "client/stores/remote/bounce.h"
#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"

enum {
    POLL_BUDGET = 256,
    EVENTS_PER_WAIT = 16,
    POLL_MS = 1, /* of what has no descriptor: events and copies of devices */
    NS_PER_US = 1000,
};

bool
uc_plane_may_warn(struct uc_data_plane *plane)
{
    return uc_warn_gate_pass(&plane->job_warnings, uc_plane_now_ms(plane), UC_WARN_PAUSE_MS);
}

void
uc_plane_make_ready(struct uc_data_plane *plane, struct uc_job *job)
{
    if (uc_list_is_empty(&job->ready_link)) {
        uc_list_add(&plane->ready, &job->ready_link);
    }
}

void
uc_plane_recycle(struct uc_data_plane *plane, struct uc_job *job)
{
    job->next = atomic_load_explicit(&plane->recycled, memory_order_relaxed);
    /* Pairs with the acquire in take_job(). */
    while (!atomic_compare_exchange_weak_explicit(
            &plane->recycled, &job->next, job, memory_order_release, memory_order_relaxed)) {
    }
}

static void
fail_part(struct uc_job *job, enum uc_status status)
{
    uc_job_fail_blocks(job, status);
    uc_job_finish(job);
}

/* Fail a job that has not been dispatched. */
static void
fail_job(struct uc_job *lead, enum uc_status status)
{
    struct uc_job *following;

    for (struct uc_job *part = lead; part != NULL; part = following) {
        following = part->next_part;
        part->timed_out = status == UC_ERR_TIMEOUT;
        fail_part(part, status);
    }
}

/* Give a part to its attachment. */
static void
dispatch_part(struct uc_data_plane *plane, struct uc_job *job)
{
    struct uc_attachment_name name = {
            .server = job->server,
            .server_id = job->node.server_id,
            .attach_key = job->node.attach_key,
            .incarnation = job->node.incarnation,
    };
    struct uc_attachment *attachment = uc_attachment_obtain(plane, &name);

    if (attachment == NULL) {
        fail_part(job, UC_ERR_OUT_OF_MEMORY);
    } else {
        uc_attachment_add_job(attachment, job);
    }
}

/* Start a job whose prerequisite has fired. */
static void
dispatch(struct uc_data_plane *plane, struct uc_job *lead)
{
    struct uc_job *following;

    for (struct uc_job *part = lead; part != NULL; part = following) {
        following = part->next_part; /* the part may have ended when dispatch returns */
        dispatch_part(plane, part);
    }
}

/* Ask the host whether the event behind a job has fired. */
static void
ask_prerequisite(struct uc_data_plane *plane, struct uc_job *job)
{
    const struct uc_prerequisite *hook = plane->config->prerequisite;
    enum uc_status status = hook->poll(hook->context, job->prerequisite_handle);

    if (status == UC_ERR_RETRY) {
        if (uc_list_is_empty(&job->link)) {
            uc_list_add(&plane->prerequisites, &job->link);
        }
        return;
    }

    uc_list_remove(&job->link);
    if (status != UC_OK) {
        if (uc_plane_may_warn(plane)) {
            uc_log_warn("remote store: job %llu: its prerequisite failed: %s",
                    (unsigned long long)job->job_id, uc_status_name(status));
        }
        fail_job(job, status);
    } else {
        dispatch(plane, job);
    }
}

static void
accept_job(struct uc_data_plane *plane, struct uc_job *job)
{
    plane->accepted_count++;
    if (job->deadline_ms < plane->next_deadline_ms) {
        plane->next_deadline_ms = job->deadline_ms;
    }
    if (job->prerequisite_handle != 0) {
        ask_prerequisite(plane, job);
    } else {
        dispatch(plane, job);
    }
}

/* @return whether there was any */
static bool
take_submitted(struct uc_data_plane *plane)
{
    struct uc_job *newest_first =
            atomic_exchange_explicit(&plane->submitted, NULL, memory_order_seq_cst);
    struct uc_job *oldest_first = NULL;

    if (newest_first == NULL) {
        return false;
    }

    while (newest_first != NULL) {
        struct uc_job *following = newest_first->next;

        newest_first->next = oldest_first;
        oldest_first = newest_first;
        newest_first = following;
    }
    while (oldest_first != NULL) {
        struct uc_job *following = oldest_first->next;

        accept_job(plane, oldest_first);
        oldest_first = following;
    }
    return true;
}

static size_t
poll_transports(struct uc_data_plane *plane)
{
    size_t handled = 0;

    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        const struct uc_transport *transport = &plane->transports.items[id];

        if (transport->fabric != NULL) {
            handled += transport->ops->poll(transport->fabric, POLL_BUDGET);
        }
    }
    return handled;
}

static bool
advance_ready(struct uc_data_plane *plane)
{
    struct uc_list *node;
    bool any = false;

    while ((node = uc_list_take(&plane->ready)) != NULL) {
        uc_job_advance(uc_list_entry(node, struct uc_job, ready_link));
        any = true;
    }
    return any;
}

/*
 * A deadline has passed for a job that runs. What moves is fenced; an answer that is still awaited is not any
 * more: without its connection the server undoes what it was asked for.
 */
static void
expire_active(struct uc_job *job)
{
    struct uc_attachment *attachment = job->attachment;

    if (job->timed_out) {
        return; /* its write_end is under way, see uc_attachment_call() */
    }

    switch (job->state) {
    case UC_JOB_MOVING:
        job->timed_out = true;
        uc_bounce_leave(job, UC_ERR_TIMEOUT);
        if (job->pending_ops > 0) {
            uc_attachment_fail(attachment, "a job ran out of time");
        }
        break;
    case UC_JOB_BEGINNING:
    case UC_JOB_ENDING:
        job->timed_out = true;
        attachment->rpc_dead = true;
        uc_attachment_fail(attachment, "a call was not answered before its job ran out of time");
        break;
    case UC_JOB_REPORTING: /* its blocks have failed already, and not because of the time */
        attachment->rpc_dead = true;
        uc_attachment_fail(attachment, "a report was not answered before its job ran out of time");
        break;
    case UC_JOB_WAITING:
        break;
    }
}

/* @return the earliest deadline that is left in the list */
static uint64_t
expire_list(struct uc_list *jobs, uint64_t now_ms, bool active)
{
    uint64_t next_ms = UC_TIME_NEVER_MS;

    uc_list_for_each_safe (node, following, jobs) {
        struct uc_job *job = uc_list_entry(node, struct uc_job, link);

        if (now_ms < job->deadline_ms) {
            next_ms = job->deadline_ms < next_ms ? job->deadline_ms : next_ms;
        } else if (active) {
            expire_active(job);
        } else if (job->attachment != NULL) {
            job->timed_out = true;
            fail_part(job, UC_ERR_TIMEOUT);
        } else {
            fail_job(job, UC_ERR_TIMEOUT);
        }
    }
    return next_ms;
}

static void
expire_jobs(struct uc_data_plane *plane, uint64_t now_ms)
{
    uint64_t next_ms;

    if (now_ms < plane->next_deadline_ms) {
        return;
    }

    next_ms = expire_list(&plane->prerequisites, now_ms, false);
    uc_list_for_each (node, &plane->attachments) {
        struct uc_attachment *attachment = uc_list_entry(node, struct uc_attachment, link);
        uint64_t waiting_ms = expire_list(&attachment->waiting, now_ms, false);
        uint64_t active_ms = expire_list(&attachment->active, now_ms, true);

        next_ms = waiting_ms < next_ms ? waiting_ms : next_ms;
        next_ms = active_ms < next_ms ? active_ms : next_ms;
    }
    plane->next_deadline_ms = next_ms;
}

/* @return when the next one has something to do */
static uint64_t
step_attachments(struct uc_data_plane *plane, uint64_t now_ms)
{
    uint64_t next_ms = UC_TIME_NEVER_MS;

    uc_list_for_each_safe (node, following, &plane->attachments) {
        struct uc_attachment *attachment = uc_list_entry(node, struct uc_attachment, link);
        uint64_t step_ms = uc_attachment_step(attachment, now_ms);

        next_ms = step_ms < next_ms ? step_ms : next_ms;
        if (attachment->state == UC_ATTACHMENT_DEAD) {
            uc_attachment_destroy(attachment);
        } else {
            uc_attachment_watch(attachment);
        }
    }
    return next_ms;
}

static void
poll_prerequisites(struct uc_data_plane *plane)
{
    uc_list_for_each_safe (node, following, &plane->prerequisites) {
        ask_prerequisite(plane, uc_list_entry(node, struct uc_job, link));
    }
}

bool
uc_progress_spin(struct uc_data_plane *plane)
{
    const struct uc_transport *verbs = &plane->transports.items[UC_TRANSPORT_VERBS];
    uint64_t spin_ns = plane->config->spin_us * NS_PER_US;
    uint64_t start_ns;

    if (spin_ns == 0 || plane->verbs_op_count == 0 || verbs->fabric == NULL) {
        return false;
    }

    start_ns = uc_clock_now_ns();
    do {
        if (verbs->ops->poll(verbs->fabric, POLL_BUDGET) > 0) {
            return true;
        }
    } while (uc_clock_now_ns() - start_ns < spin_ns);
    return false;
}

bool
uc_progress_arm(struct uc_data_plane *plane, uint64_t *next_ms)
{
    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        const struct uc_transport *transport = &plane->transports.items[id];
        uint64_t transport_ms;

        if (transport->fabric == NULL) {
            continue;
        }
        if (!transport->ops->arm(transport->fabric)) {
            return false;
        }
        transport_ms = transport->ops->next_deadline_ms(transport->fabric);
        *next_ms = transport_ms < *next_ms ? transport_ms : *next_ms;
    }
    return true;
}

static void
note_events(struct uc_data_plane *plane, const struct epoll_event *events, int count)
{
    uint64_t value;

    for (int idx = 0; idx < count; idx++) {
        if (events[idx].data.ptr == plane) {
            (void)!read(plane->wake_fd, &value, sizeof(value));
        } else {
            struct uc_attachment *attachment = events[idx].data.ptr;

            attachment->rpc_ready = true;
        }
    }
}

int
uc_progress_timeout(const struct uc_data_plane *plane, uint64_t next_ms)
{
    uint64_t now_ms = uc_plane_now_ms(plane);
    uint64_t left_ms = next_ms > now_ms ? next_ms - now_ms : 0;

    if (left_ms > POLL_MS && (!uc_list_is_empty(&plane->prerequisites) ||
                                     !uc_list_is_empty(&plane->bounce.copying))) {
        left_ms = POLL_MS;
    }
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

void
uc_progress_sleep(struct uc_data_plane *plane, uint64_t next_ms, bool busy, int64_t limit_ms)
{
    struct epoll_event events[EVENTS_PER_WAIT];
    int timeout_ms = 0;
    int count;

    if (!busy) {
        /* Raised before the last look at the stack: see push_job(). */
        atomic_store_explicit(&plane->sleeping, true, memory_order_seq_cst);
        if (atomic_load_explicit(&plane->submitted, memory_order_seq_cst) == NULL &&
                uc_progress_arm(plane, &next_ms)) {
            timeout_ms = uc_progress_timeout(plane, next_ms);
        }
    }
    if (limit_ms >= 0 && timeout_ms > limit_ms) {
        timeout_ms = (int)limit_ms;
    }
    count = epoll_wait(plane->epoll_fd, events, EVENTS_PER_WAIT, timeout_ms);
    atomic_store_explicit(&plane->sleeping, false, memory_order_seq_cst);
    note_events(plane, events, count);
}

/* End everything: nothing may touch the engine's memory after the thread is gone. */
void
uc_progress_shut_down(struct uc_data_plane *plane)
{
    struct uc_list *node;

    (void)take_submitted(plane);
    while ((node = uc_list_take(&plane->prerequisites)) != NULL) {
        fail_job(uc_list_entry(node, struct uc_job, link), UC_ERR_UNHEALTHY);
    }
    while (!uc_list_is_empty(&plane->attachments)) {
        uc_attachment_destroy(uc_list_entry(plane->attachments.next, struct uc_attachment, link));
    }
}

uint64_t
uc_progress_round(struct uc_data_plane *plane, bool *busy_out)
{
    bool busy = take_submitted(plane);
    uint64_t next_ms;
    uint64_t now_ms;

    busy = poll_transports(plane) > 0 || busy;
    poll_prerequisites(plane);
    now_ms = uc_plane_now_ms(plane);
    expire_jobs(plane, now_ms); /* before the step that fences what ran out of time */
    next_ms = step_attachments(plane, now_ms);
    busy = advance_ready(plane) || busy;
    busy = uc_bounce_round(plane) || busy; /* ready jobs have given buffers back */
    *busy_out = advance_ready(plane) || busy;
    return plane->next_deadline_ms < next_ms ? plane->next_deadline_ms : next_ms;
}

static void *
run(void *argument)
{
    struct uc_data_plane *plane = argument;

    while (!atomic_load_explicit(&plane->stopping, memory_order_acquire)) {
        bool busy = false;
        uint64_t next_ms = uc_progress_round(plane, &busy);

        uc_progress_sleep(plane, next_ms, busy || uc_progress_spin(plane), -1);
    }

    uc_progress_shut_down(plane);
    return NULL;
}

enum uc_status
uc_progress_start(struct uc_data_plane *plane)
{
    int cpu = plane->config->progress_cpu;
    pthread_attr_t attributes;
    cpu_set_t cpus;
    int error;

    (void)pthread_attr_init(&attributes);
    if (cpu != UC_REMOTE_CPU_ANY) {
        CPU_ZERO(&cpus);
        CPU_SET((unsigned)cpu, &cpus);
        (void)pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
    }
    error = pthread_create(&plane->thread, &attributes, run, plane);
    (void)pthread_attr_destroy(&attributes);
    if (error == EINVAL && cpu != UC_REMOTE_CPU_ANY) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: progress_cpu: %d: this process may not run there, or this machine has "
                "no such CPU; see `nproc --all` and the CPUs of its cgroup (cpuset.cpus)",
                cpu);
    }
    if (error != 0) {
        return uc_log_errno(error, "remote store: progress thread");
    }
    return UC_OK;
}
