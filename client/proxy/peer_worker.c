/* SPDX-License-Identifier: Apache-2.0 */

/* The data half of a peer: the frame of a token names the branch. */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/proxy/branch_frame.h"
#include "client/proxy/peer_internal.h"

enum {
    SAVED_TEXT_BYTES = 768
};

static struct uc_peer *
peer_of(struct uc_worker *worker)
{
    return (struct uc_peer *)(void *)((char *)worker - offsetof(struct uc_peer, worker));
}

static struct uc_worker *
branch_at(const struct uc_peer *peer, size_t idx)
{
    return peer->branches[idx]->worker;
}

void
uc_peer_data_init(struct uc_peer_data *data)
{
    *data = (struct uc_peer_data){.epoll_fd = -1};
}

void
uc_peer_data_fini(struct uc_peer_data *data)
{
    if (data->epoll_fd >= 0) {
        (void)close(data->epoll_fd);
    }
    uc_wait_scratch_fini(&data->scratch);
    uc_region_set_fini(&data->regions);
    uc_job_table_fini(&data->jobs);
}

/* Unframe and take the id, before any branch is called. */
static enum uc_status
begin_job(struct uc_peer *peer, uint64_t job_id, const struct uc_token *framed,
        struct uc_worker **branch_out, struct uc_token *inner_out)
{
    size_t idx = 0;
    enum uc_status status = uc_branch_frame_parse(framed, peer->branch_count, &idx, inner_out);

    if (status != UC_OK) {
        return status;
    }
    *branch_out = branch_at(peer, idx);
    return uc_job_table_add(&peer->data.jobs, job_id, idx);
}

static enum uc_status
submit_prefetch(struct uc_worker *worker, uint64_t job_id, const struct uc_token *token)
{
    struct uc_peer *peer = peer_of(worker);
    struct uc_worker *branch = NULL;
    struct uc_token inner;
    enum uc_status status = begin_job(peer, job_id, token, &branch, &inner);

    if (status != UC_OK) {
        return status;
    }
    status = branch->ops->submit_prefetch(branch, job_id, &inner);
    if (status != UC_OK) {
        (void)uc_job_table_remove(&peer->data.jobs, job_id);
    }
    return status;
}

static enum uc_status
submit_get(struct uc_worker *worker, uint64_t job_id, const struct uc_block_payload *payloads,
        size_t count, const struct uc_token *token, const struct uc_io_context *io)
{
    struct uc_peer *peer = peer_of(worker);
    struct uc_worker *branch = NULL;
    struct uc_token inner;
    enum uc_status status = begin_job(peer, job_id, token, &branch, &inner);

    if (status != UC_OK) {
        return status;
    }
    status = branch->ops->submit_get(branch, job_id, payloads, count, &inner, io);
    if (status != UC_OK) {
        (void)uc_job_table_remove(&peer->data.jobs, job_id);
    }
    return status;
}

static enum uc_status
submit_put(struct uc_worker *worker, uint64_t job_id, const struct uc_block_payload *payloads,
        size_t count, const struct uc_token *token, const struct uc_io_context *io)
{
    struct uc_peer *peer = peer_of(worker);
    struct uc_worker *branch = NULL;
    struct uc_token inner;
    enum uc_status status = begin_job(peer, job_id, token, &branch, &inner);

    if (status != UC_OK) {
        return status;
    }
    status = branch->ops->submit_put(branch, job_id, payloads, count, &inner, io);
    if (status != UC_OK) {
        (void)uc_job_table_remove(&peer->data.jobs, job_id);
    }
    return status;
}

static enum uc_status
get_finished(
        struct uc_worker *worker, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_peer *peer = peer_of(worker);
    struct uc_peer_data *data = &peer->data;
    enum uc_status first = UC_OK;
    size_t start = data->next_branch;
    size_t count = 0;

    for (size_t step = 0; step < peer->branch_count && count < capacity; step++) {
        size_t idx = (start + step) % peer->branch_count;
        struct uc_worker *branch = branch_at(peer, idx);
        size_t taken = 0;
        enum uc_status status =
                branch->ops->get_finished(branch, results + count, capacity - count, &taken);

        first = first == UC_OK ? status : first;
        for (size_t at = 0; status == UC_OK && at < taken; at++) {
            (void)uc_job_table_remove(&data->jobs, results[count++].job_id);
        }
        /* Next time another branch comes first, so that one that is always busy starves none. */
        data->next_branch = (idx + 1) % peer->branch_count;
    }
    if (count == 0 && first != UC_OK) {
        return first;
    }

    *count_out = count;
    return UC_OK;
}

static enum uc_status
wait_jobs(struct uc_worker *worker, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    return uc_peer_wait(
            peer_of(worker), job_ids, job_count, timeout_ms, results, capacity, count_out);
}

static enum uc_status
register_with(const struct uc_peer *peer, size_t idx, const struct uc_region *region)
{
    struct uc_worker *branch = branch_at(peer, idx);

    return branch->ops->register_memory(branch, region->region_idx,
            (void *)(uintptr_t)region->address, region->length_bytes, region->kind);
}

/* Take the registration back from the first branches. */
static void
undo_register(const struct uc_peer *peer, uint32_t region_idx, size_t branch_count)
{
    for (size_t idx = branch_count; idx > 0; idx--) {
        struct uc_worker *branch = branch_at(peer, idx - 1);

        if (branch->ops->deregister_memory(branch, region_idx) != UC_OK) {
            uc_log_warn("peer: memory region %u stays registered with branch %zu: %s", region_idx,
                    idx - 1, uc_last_error());
        }
    }
}

static enum uc_status
register_memory(struct uc_worker *worker, uint32_t region_idx, void *address, uint64_t length_bytes,
        enum uc_memory_kind kind)
{
    struct uc_peer *peer = peer_of(worker);
    struct uc_region region = {
            .region_idx = region_idx,
            .address = (uintptr_t)address,
            .length_bytes = length_bytes,
            .kind = kind,
    };
    char text[SAVED_TEXT_BYTES];
    enum uc_status status = uc_region_set_add(&peer->data.regions, &region);

    if (status != UC_OK) {
        return status;
    }
    for (size_t idx = 0; idx < peer->branch_count; idx++) {
        status = register_with(peer, idx, &region);
        if (status != UC_OK) {
            (void)snprintf(text, sizeof(text), "branch %zu: %s", idx, uc_last_error());
            undo_register(peer, region_idx, idx);
            (void)uc_region_set_remove(&peer->data.regions, region_idx);
            return uc_error(status, "%s", text);
        }
    }

    return UC_OK;
}

/* All or nothing: where one branch still uses the region, the others get it back. */
static enum uc_status
deregister_memory(struct uc_worker *worker, uint32_t region_idx)
{
    struct uc_peer *peer = peer_of(worker);
    const struct uc_region *region = uc_region_set_find(&peer->data.regions, region_idx);
    char text[SAVED_TEXT_BYTES];

    if (region == NULL) {
        return uc_error(UC_ERR_NOT_FOUND, "memory region %u is not registered", region_idx);
    }
    for (size_t idx = 0; idx < peer->branch_count; idx++) {
        struct uc_worker *branch = branch_at(peer, idx);
        enum uc_status status = branch->ops->deregister_memory(branch, region_idx);

        if (status == UC_OK || status == UC_ERR_NOT_FOUND) {
            continue;
        }
        (void)snprintf(text, sizeof(text), "branch %zu: %s", idx, uc_last_error());
        for (size_t done = 0; done < idx; done++) {
            if (register_with(peer, done, region) != UC_OK) {
                uc_log_warn("peer: memory region %u is lost to branch %zu: %s", region_idx, done,
                        uc_last_error());
            }
        }
        return uc_error(status, "%s", text);
    }

    (void)uc_region_set_remove(&peer->data.regions, region_idx);
    return UC_OK;
}

static enum uc_status
watch_branches(const struct uc_peer *peer, int epoll_fd)
{
    for (size_t idx = 0; idx < peer->branch_count; idx++) {
        struct uc_worker *branch = branch_at(peer, idx);
        int fd = branch->ops->event_fd(branch);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

        if (fd < 0) {
            /* A descriptor that misses some events would be worse than none. */
            return uc_error(UC_ERR_UNSUPPORTED, "branch %zu has no event descriptor", idx);
        }
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
            return uc_log_errno(errno, "peer: epoll_ctl on %d", fd);
        }
    }

    return UC_OK;
}

static int
event_fd(struct uc_worker *worker)
{
    struct uc_peer *peer = peer_of(worker);
    int epoll_fd;

    if (peer->data.epoll_fd >= 0) {
        return peer->data.epoll_fd;
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) {
        (void)uc_log_errno(errno, "peer: epoll_create1");
        return -1;
    }
    if (watch_branches(peer, epoll_fd) != UC_OK) {
        (void)close(epoll_fd);
        return -1;
    }

    peer->data.epoll_fd = epoll_fd;
    return epoll_fd;
}

static enum uc_status
health(struct uc_worker *worker)
{
    return uc_peer_health(peer_of(worker));
}

static enum uc_status
describe(struct uc_worker *worker, struct uc_dict *description)
{
    return uc_peer_describe(peer_of(worker), description);
}

const struct uc_worker_ops uc_peer_worker_ops = {
        .submit_prefetch = submit_prefetch,
        .submit_get = submit_get,
        .submit_put = submit_put,
        .get_finished = get_finished,
        .wait = wait_jobs,
        .register_memory = register_memory,
        .deregister_memory = deregister_memory,
        .event_fd = event_fd,
        .health = health,
        .describe = describe,
};
