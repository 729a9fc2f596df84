/* SPDX-License-Identifier: Apache-2.0 */

/* The side of the data plane that its callers see. What the progress thread does is in progress.c. */

#include "client/stores/remote/data_plane.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/remote/bounce.h"
#include "client/stores/remote/device_memory.h"
#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"
#include "client/stores/remote/progress.h"
#include "core/store/job_check.h"

enum {
    JOBS_PREPARED = 256,
    JOBS_MAX = 1 << 16, /* accepted and not consumed; beyond it submits answer Retry */
};

static enum uc_status
open_descriptors(struct uc_data_plane *plane)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = plane};

    plane->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (plane->epoll_fd < 0) {
        return uc_log_errno(errno, "remote store: epoll_create1");
    }
    plane->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (plane->wake_fd < 0) {
        return uc_log_errno(errno, "remote store: eventfd");
    }
    if (epoll_ctl(plane->epoll_fd, EPOLL_CTL_ADD, plane->wake_fd, &event) != 0) {
        return uc_log_errno(errno, "remote store: epoll_ctl");
    }

    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        const struct uc_transport *transport = &plane->transports.items[id];

        if (transport->fabric != NULL &&
                epoll_ctl(plane->epoll_fd, EPOLL_CTL_ADD,
                        transport->ops->event_fd(transport->fabric), &event) != 0) {
            return uc_log_errno(
                    errno, "remote store: epoll_ctl of the %s fabric", transport->ops->name);
        }
    }
    return UC_OK;
}

static void
close_descriptors(struct uc_data_plane *plane)
{
    if (plane->wake_fd >= 0) {
        (void)close(plane->wake_fd);
    }
    if (plane->epoll_fd >= 0) {
        (void)close(plane->epoll_fd);
    }
}

static enum uc_status
make_arrays(struct uc_data_plane *plane, size_t count)
{
    plane->plans = calloc(count, sizeof(plane->plans[0]));
    plane->down_counts = calloc(count, sizeof(plane->down_counts[0]));
    plane->sum = aligned_alloc(alignof(struct uc_load_sum), sizeof(*plane->sum));
    if (plane->plans == NULL || plane->down_counts == NULL || plane->sum == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for %zu servers", count);
    }

    plane->sum->job = NULL;
    return UC_OK;
}

/* Buffers are there before the first job may need one. */
static enum uc_status
prepare_bounce(struct uc_data_plane *plane)
{
    bool is_needed = false;

    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        is_needed = is_needed || (plane->transports.items[id].fabric != NULL &&
                                         plane->transports.items[id].caps.needs_registration);
    }
    return is_needed && plane->config->bounce_bytes > 0 ? uc_bounce_prepare(plane) : UC_OK;
}

enum uc_status
uc_data_plane_create(const struct uc_remote_config *config, uint64_t block_bytes,
        struct uc_data_plane **plane_out)
{
    struct uc_data_plane *plane = calloc(1, sizeof(*plane));
    enum uc_status status;

    if (plane == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for the data plane");
    }
    plane->config = config;
    plane->block_bytes = block_bytes;
    plane->clock = uc_clock_monotonic();
    plane->wake_fd = -1;
    plane->epoll_fd = -1;
    plane->caller_fd = -1;
    plane->timer_fd = -1;
    plane->next_deadline_ms = UC_TIME_NEVER_MS;
    uc_list_init(&plane->attachments);
    uc_list_init(&plane->prerequisites);
    uc_list_init(&plane->ready);
    uc_bounce_init(&plane->bounce);

    status = make_arrays(plane, config->servers.count);
    if (status == UC_OK) {
        status = uc_transports_open(config, &plane->transports);
    }
    if (status != UC_OK) {
        goto err_free;
    }
    status = open_descriptors(plane);
    if (status != UC_OK) {
        goto err_close;
    }
    status = prepare_bounce(plane);
    if (status != UC_OK) {
        goto err_close;
    }
    status = uc_token_mac_create(&plane->mac);
    if (status != UC_OK) {
        goto err_close;
    }
    status = uc_completion_queue_create(JOBS_PREPARED, JOBS_MAX, &plane->queue);
    if (status != UC_OK) {
        goto err_destroy_mac;
    }
    if (config->caller_progresses) {
        uc_completion_queue_set_driver(plane->queue, uc_caller_drive, plane);
    } else {
        status = uc_progress_start(plane);
    }
    if (status != UC_OK) {
        goto err_destroy_queue;
    }

    *plane_out = plane;
    return UC_OK;

err_destroy_queue:
    uc_completion_queue_destroy(plane->queue);
err_destroy_mac:
    uc_token_mac_destroy(plane->mac);
err_close:
    uc_bounce_fini(plane);
    close_descriptors(plane);
    uc_transports_close(&plane->transports);
err_free:
    free(plane->plans);
    free(plane->down_counts);
    free(plane->sum);
    free(plane);
    return status;
}

static void
stop_progress(struct uc_data_plane *plane)
{
    uint64_t one = 1;

    if (plane->config->caller_progresses) {
        uc_progress_shut_down(plane);
        uc_caller_close(plane);
        return;
    }

    atomic_store_explicit(&plane->stopping, true, memory_order_release);
    (void)!write(plane->wake_fd, &one, sizeof(one));
    (void)pthread_join(plane->thread, NULL);
}

void
uc_data_plane_destroy(struct uc_data_plane *plane)
{
    if (plane == NULL) {
        return;
    }

    stop_progress(plane);

    while (plane->made_jobs != NULL) {
        struct uc_job *job = plane->made_jobs;

        plane->made_jobs = job->next_made;
        uc_job_destroy(job);
    }
    uc_memory_table_fini(&plane->memory, &plane->transports);
    uc_bounce_fini(plane);
    uc_completion_queue_destroy(plane->queue);
    uc_token_mac_destroy(plane->mac);
    uc_rpc_buffer_fini(&plane->params);
    close_descriptors(plane);
    uc_transports_close(&plane->transports);
    free(plane->plans);
    free(plane->down_counts);
    free(plane->sum);
    free(plane);
}

struct uc_job *
uc_plane_take_job(struct uc_data_plane *plane)
{
    struct uc_job *job;

    if (plane->free_jobs == NULL) {
        /* Pairs with the release in uc_plane_recycle(). */
        plane->free_jobs = atomic_exchange_explicit(&plane->recycled, NULL, memory_order_acquire);
    }
    job = plane->free_jobs;
    if (job != NULL) {
        plane->free_jobs = job->next;
        return job;
    }

    job = uc_job_create(plane);
    if (job != NULL) {
        job->next_made = plane->made_jobs;
        plane->made_jobs = job;
    }
    return job;
}

void
uc_plane_return_job(struct uc_data_plane *plane, struct uc_job *job)
{
    job->next = plane->free_jobs;
    plane->free_jobs = job;
}

static void
push_job(struct uc_data_plane *plane, struct uc_job *job)
{
    uint64_t one = 1;

    job->next = atomic_load_explicit(&plane->submitted, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
            &plane->submitted, &job->next, job, memory_order_seq_cst, memory_order_relaxed)) {
    }
    /* The progress thread raises the flag before it looks at the stack a last time. */
    if (atomic_exchange_explicit(&plane->sleeping, false, memory_order_seq_cst)) {
        (void)!write(plane->wake_fd, &one, sizeof(one));
    }
}

static enum uc_status
check_submit(const struct uc_data_plane *plane, bool is_dump, uint64_t job_id,
        const struct uc_job_descriptor *descriptor, const struct uc_token *token, size_t first_key)
{
    const char *what = is_dump ? "dump" : "load";
    enum uc_status status = uc_job_check(what, job_id, descriptor);

    if (status != UC_OK) {
        return status;
    }
    if (descriptor->count == 0 || token->key_count == 0 || token->payload_bytes == 0 ||
            first_key > token->key_count || descriptor->count > token->key_count - first_key) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: %s %llu: %zu blocks from key %zu of a token of %zu keys and %zu "
                "bytes",
                what, (unsigned long long)job_id, descriptor->count, first_key, token->key_count,
                token->payload_bytes);
    }
    if (descriptor->prerequisite_handle != 0 && plane->config->prerequisite == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "remote store: %s %llu has a prerequisite, but no prerequisite_hook was given when "
                "the store was assembled",
                what, (unsigned long long)job_id);
    }

    return UC_OK;
}

enum uc_status
uc_data_plane_submit(struct uc_data_plane *plane, bool is_dump, uint64_t job_id,
        const struct uc_job_descriptor *descriptor, const struct uc_token *token, size_t first_key)
{
    uint64_t timeout_ms = descriptor->timeout_ms;
    enum uc_status status = check_submit(plane, is_dump, job_id, descriptor, token, first_key);
    uint64_t deadline_ms;
    struct uc_job *job;

    if (status != UC_OK) {
        return status;
    }
    status = uc_completion_queue_begin(plane->queue, job_id, descriptor->count);
    if (status != UC_OK) {
        return status;
    }
    job = uc_plane_take_job(plane);
    if (job == NULL) {
        uc_completion_queue_drop(plane->queue, job_id);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a job");
    }

    status = uc_job_build(job, is_dump, descriptor, token, first_key);
    if (status != UC_OK) {
        uc_plane_return_job(plane, job);
        uc_completion_queue_drop(plane->queue, job_id);
        return status;
    }
    deadline_ms = uc_time_add_ms(
            uc_plane_now_ms(plane), timeout_ms == 0 ? plane->config->timeout_ms : timeout_ms);
    for (struct uc_job *part = job; part != NULL; part = part->next_part) {
        part->job_id = job_id;
        part->prerequisite_handle = descriptor->prerequisite_handle;
        part->deadline_ms = deadline_ms;
    }
    push_job(plane, job);
    if (plane->config->caller_progresses) {
        uc_caller_drive(plane, 0); /* moves while the engine computes */
    }
    return UC_OK;
}

enum uc_status
uc_data_plane_register(struct uc_data_plane *plane, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct uc_fabric_memory memory = uc_fabric_host_memory(address, length_bytes);

    if (kind != UC_MEMORY_HOST) {
        return uc_device_memory_register(plane, region_idx, address, length_bytes, kind);
    }

    return uc_memory_table_add(&plane->memory, &plane->transports, region_idx, &memory, NULL);
}

enum uc_status
uc_data_plane_deregister(struct uc_data_plane *plane, uint32_t region_idx)
{
    return uc_memory_table_remove(&plane->memory, &plane->transports, region_idx);
}

struct uc_completion_queue *
uc_data_plane_queue(struct uc_data_plane *plane)
{
    return plane->queue;
}

int
uc_data_plane_event_fd(struct uc_data_plane *plane)
{
    return plane->config->caller_progresses ? uc_caller_event_fd(plane)
                                            : uc_completion_queue_event_fd(plane->queue);
}

bool
uc_data_plane_is_healthy(const struct uc_data_plane *plane)
{
    return atomic_load_explicit(&plane->down_servers, memory_order_relaxed) <
           plane->config->servers.count;
}

bool
uc_data_plane_is_down(const struct uc_data_plane *plane, size_t server)
{
    return atomic_load_explicit(&plane->down_counts[server], memory_order_relaxed) > 0;
}

void
uc_data_plane_counters(const struct uc_data_plane *plane, struct uc_plane_counters *counters_out)
{
#define UC_PLANE_COUNTER_READ_(field) \
    counters_out->field =             \
            atomic_load_explicit(&plane->counters[UC_COUNT_##field], memory_order_relaxed);
    UC_PLANE_COUNTER_MAP(UC_PLANE_COUNTER_READ_)
#undef UC_PLANE_COUNTER_READ_
}

const char *
uc_data_plane_fabric(const struct uc_data_plane *plane)
{
    const char *name = atomic_load_explicit(&plane->fabric_name, memory_order_relaxed);

    return name == NULL ? "" : name;
}
