/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/worker.h"

#include <stdlib.h>

static const struct uc_io_context default_io = {0};

static enum uc_status
check_submit(const struct uc_worker *worker, const struct uc_token *token)
{
    if (worker == NULL || token == NULL) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "submit: %s is null", worker == NULL ? "worker" : "token");
    }
    if ((token->keys == NULL && token->key_count != 0) ||
            (token->payload == NULL && token->payload_bytes != 0)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: the token announces %zu keys and %zu payload bytes that are not there",
                token->key_count, token->payload_bytes);
    }

    return UC_OK;
}

static enum uc_status
check_payloads(const struct uc_block_payload *payloads, size_t count)
{
    if (payloads == NULL && count != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: %zu payloads announced, but the list is null", count);
    }

    return UC_OK;
}

static enum uc_status
check_results(const struct uc_worker *worker, const struct uc_io_result *results, size_t capacity,
        const size_t *count_out)
{
    if (worker == NULL || count_out == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "results: %s is null",
                worker == NULL ? "worker" : "count_out");
    }
    if (results == NULL && capacity != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "results: room for %zu announced, but the array is null", capacity);
    }

    return UC_OK;
}

enum uc_status
uc_worker_submit_prefetch(struct uc_worker *worker, uint64_t job_id, const struct uc_token *token)
{
    enum uc_status status = check_submit(worker, token);

    if (status != UC_OK) {
        return status;
    }

    return worker->ops->submit_prefetch(worker, job_id, token);
}

enum uc_status
uc_worker_submit_get(struct uc_worker *worker, uint64_t job_id,
        const struct uc_block_payload *payloads, size_t count, const struct uc_token *token,
        const struct uc_io_context *io)
{
    enum uc_status status = check_submit(worker, token);

    if (status != UC_OK) {
        return status;
    }
    status = check_payloads(payloads, count);
    if (status != UC_OK) {
        return status;
    }

    return worker->ops->submit_get(
            worker, job_id, payloads, count, token, io == NULL ? &default_io : io);
}

enum uc_status
uc_worker_submit_put(struct uc_worker *worker, uint64_t job_id,
        const struct uc_block_payload *payloads, size_t count, const struct uc_token *token,
        const struct uc_io_context *io)
{
    enum uc_status status = check_submit(worker, token);

    if (status != UC_OK) {
        return status;
    }
    status = check_payloads(payloads, count);
    if (status != UC_OK) {
        return status;
    }

    return worker->ops->submit_put(
            worker, job_id, payloads, count, token, io == NULL ? &default_io : io);
}

enum uc_status
uc_worker_get_finished(
        struct uc_worker *worker, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    enum uc_status status = check_results(worker, results, capacity, count_out);

    if (status != UC_OK) {
        return status;
    }

    return worker->ops->get_finished(worker, results, capacity, count_out);
}

enum uc_status
uc_worker_wait(struct uc_worker *worker, const uint64_t *job_ids, size_t job_count,
        int64_t timeout_ms, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    enum uc_status status = check_results(worker, results, capacity, count_out);

    if (status != UC_OK) {
        return status;
    }
    if (job_ids == NULL && job_count != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "wait: %zu job ids announced, but the list is null",
                job_count);
    }
    if (timeout_ms < -1) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "wait: timeout %lld ms: -1 waits without limit, 0 polls", (long long)timeout_ms);
    }

    return worker->ops->wait(worker, job_ids, job_count, timeout_ms, results, capacity, count_out);
}

enum uc_status
uc_worker_register_memory(struct uc_worker *worker, void *address, uint64_t length_bytes,
        enum uc_memory_kind kind, uint32_t *region_idx_out)
{
    enum uc_status status;
    uint32_t region_idx;

    if (worker == NULL || region_idx_out == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "register_memory: %s is null",
                worker == NULL ? "worker" : "region_idx_out");
    }
    if (address == NULL || length_bytes == 0 || length_bytes > UINTPTR_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "register_memory: %p with %llu bytes is no range of memory", address,
                (unsigned long long)length_bytes);
    }
    if (worker->next_region_idx == UC_REGION_IDX_END) {
        return uc_error(UC_ERR_NO_SPACE,
                "register_memory: all %u region indices are spent: they are never reused, start a new "
                "assembler",
                UC_REGION_IDX_END);
    }

    /* Spent even if a store refuses, so that no two regions ever share one. */
    region_idx = worker->next_region_idx++;
    status = worker->ops->register_memory(worker, region_idx, address, length_bytes, kind);
    if (status != UC_OK) {
        return status;
    }

    *region_idx_out = region_idx;
    return UC_OK;
}

enum uc_status
uc_worker_deregister_memory(struct uc_worker *worker, uint32_t region_idx)
{
    if (worker == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "deregister_memory: worker is null");
    }

    return worker->ops->deregister_memory(worker, region_idx);
}

int
uc_worker_event_fd(struct uc_worker *worker)
{
    return worker == NULL ? -1 : worker->ops->event_fd(worker);
}

enum uc_status
uc_worker_health(struct uc_worker *worker)
{
    if (worker == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "worker is null");
    }

    return worker->ops->health(worker);
}

enum uc_status
uc_worker_describe(struct uc_worker *worker, struct uc_dict *description)
{
    if (worker == NULL || description == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "describe: %s is null",
                worker == NULL ? "worker" : "description");
    }

    return worker->ops->describe(worker, description);
}
