/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "client/proxy/entry_event.h"
#include "client/proxy/entry_internal.h"
#include "client/proxy/entry_wait.h"
#include "client/proxy/validate.h"

enum {
    STORE_JOB = 0 /* value in the job table; serials of synthetic events count from 1 */
};

static struct uc_entry *
entry_of(struct uc_worker *worker)
{
    return (struct uc_entry *)(void *)((char *)worker - offsetof(struct uc_entry, worker));
}

void
uc_entry_data_init(struct uc_entry_data *data)
{
    *data = (struct uc_entry_data){.epoll_fd = -1, .finished_fd = -1};
}

void
uc_entry_data_fini(struct uc_entry_data *data)
{
    uc_entry_event_fini(data);
    uc_wait_scratch_fini(&data->scratch);
    uc_region_set_fini(&data->regions);
    uc_finished_queue_fini(&data->finished);
    uc_job_table_fini(&data->jobs);
}

static enum uc_status
submit_prefetch(struct uc_worker *worker, uint64_t job_id, const struct uc_token *token)
{
    struct uc_entry *entry = entry_of(worker);
    struct uc_entry_data *data = &entry->data;
    enum uc_status status;

    if (entry->prefetchable == NULL) {
        /* Nothing below to prefetch from: done at once, but the event comes all the same. */
        status = uc_finished_queue_add(&data->finished, &data->jobs, job_id);
        uc_entry_event_update(data);
        return status;
    }

    status = uc_job_table_add(&data->jobs, job_id, STORE_JOB);
    if (status != UC_OK) {
        return status;
    }
    status = entry->prefetchable->prefetch(entry->store, job_id, token);
    if (status != UC_OK) {
        (void)uc_job_table_remove(&data->jobs, job_id);
    }
    return status;
}

typedef enum uc_status (*base_transfer_fn)(
        struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job);
typedef enum uc_status (*token_transfer_fn)(struct uc_store *store, uint64_t job_id,
        const struct uc_job_descriptor *job, const struct uc_token *token, size_t first_key);

/* @p by_token is NULL on a plain store. */
static enum uc_status
submit(struct uc_entry *entry, uint64_t job_id, const struct uc_transfer *transfer,
        const char *description, base_transfer_fn by_id, token_transfer_fn by_token)
{
    struct uc_job_descriptor job;
    size_t first_key = 0;
    enum uc_status status;

    /* Registered first: its event may be ready before the store's call returns. */
    status = uc_job_table_add(&entry->data.jobs, job_id, STORE_JOB);
    if (status != UC_OK) {
        return status;
    }
    status = uc_transfer_validate(transfer, &entry->data.regions, by_token == NULL, &first_key);
    if (status != UC_OK) {
        goto err_remove_job;
    }

    job = (struct uc_job_descriptor){
            .block_ids = transfer->token->keys + first_key,
            .payloads = transfer->payloads,
            .count = transfer->payload_count,
            .description = description,
            .prerequisite_handle = transfer->io->prerequisite_handle,
            .timeout_ms = transfer->io->timeout_ms,
    };
    status = by_token == NULL ? by_id(entry->store, job_id, &job)
                              : by_token(entry->store, job_id, &job, transfer->token, first_key);
    if (status != UC_OK) {
        goto err_remove_job;
    }

    return UC_OK;

err_remove_job:
    (void)uc_job_table_remove(&entry->data.jobs, job_id);
    return status;
}

static enum uc_status
submit_get(struct uc_worker *worker, uint64_t job_id, const struct uc_block_payload *payloads,
        size_t count, const struct uc_token *token, const struct uc_io_context *io)
{
    struct uc_entry *entry = entry_of(worker);
    struct uc_transfer transfer = {
            .token = token, .payloads = payloads, .payload_count = count, .io = io};

    return submit(entry, job_id, &transfer, "get", uc_store_load,
            entry->tokened == NULL ? NULL : entry->tokened->load);
}

static enum uc_status
submit_put(struct uc_worker *worker, uint64_t job_id, const struct uc_block_payload *payloads,
        size_t count, const struct uc_token *token, const struct uc_io_context *io)
{
    struct uc_entry *entry = entry_of(worker);
    struct uc_transfer transfer = {
            .token = token, .payloads = payloads, .payload_count = count, .io = io};

    return submit(entry, job_id, &transfer, "put", uc_store_dump,
            entry->tokened == NULL ? NULL : entry->tokened->dump);
}

static enum uc_status
get_finished(
        struct uc_worker *worker, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    return uc_entry_get_finished(entry_of(worker), results, capacity, count_out);
}

static enum uc_status
wait_jobs(struct uc_worker *worker, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    return uc_entry_wait(
            entry_of(worker), job_ids, job_count, timeout_ms, results, capacity, count_out);
}

static enum uc_status
register_memory(struct uc_worker *worker, uint32_t region_idx, void *address, uint64_t length_bytes,
        enum uc_memory_kind kind)
{
    struct uc_entry *entry = entry_of(worker);
    struct uc_region region = {.region_idx = region_idx,
            .address = (uintptr_t)address,
            .length_bytes = length_bytes,
            .kind = kind};
    enum uc_status status = uc_region_set_add(&entry->data.regions, &region);

    if (status != UC_OK) {
        return status;
    }
    status = uc_entry_register(entry, &region);
    if (status != UC_OK) {
        (void)uc_region_set_remove(&entry->data.regions, region_idx);
    }
    return status;
}

static enum uc_status
deregister_memory(struct uc_worker *worker, uint32_t region_idx)
{
    struct uc_entry *entry = entry_of(worker);
    enum uc_status status;

    if (uc_region_set_find(&entry->data.regions, region_idx) == NULL) {
        return uc_error(UC_ERR_NOT_FOUND, "memory region %u is not registered", region_idx);
    }
    status = uc_entry_deregister(entry, region_idx);
    if (status == UC_OK) {
        (void)uc_region_set_remove(&entry->data.regions, region_idx);
    }
    return status;
}

static int
event_fd(struct uc_worker *worker)
{
    return uc_entry_event_fd(entry_of(worker));
}

static enum uc_status
health(struct uc_worker *worker)
{
    return uc_entry_health(entry_of(worker));
}

static enum uc_status
describe(struct uc_worker *worker, struct uc_dict *description)
{
    return uc_entry_describe(entry_of(worker), description);
}

const struct uc_worker_ops uc_entry_worker_ops = {
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
