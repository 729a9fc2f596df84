/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "client/proxy/id_set.h"

/* What every caller's context has at least: everything up to the request id. */
#define CONTEXT_MIN_BYTES (offsetof(struct uc_request_context, request_id) + sizeof(const char *))

static enum uc_status
check_request_id(const char *request_id)
{
    if (request_id == NULL || request_id[0] == '\0') {
        return uc_error(UC_ERR_INVALID_PARAM, "request id is empty: it has 1 to %d bytes",
                UC_REQUEST_ID_MAX);
    }
    if (strnlen(request_id, UC_REQUEST_ID_MAX + 1) > UC_REQUEST_ID_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "request id %.32s… is longer than %d bytes",
                request_id, UC_REQUEST_ID_MAX);
    }

    return UC_OK;
}

static enum uc_status
check_call(const struct uc_scheduler *scheduler, const char *request_id)
{
    if (scheduler == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "scheduler is null");
    }

    return check_request_id(request_id);
}

static enum uc_status
check_ids(const struct uc_block_id *ids, size_t count)
{
    if (ids == NULL && count != 0) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "%zu block ids announced, but the list is null", count);
    }
    if (count > UINT32_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "%zu block ids: a list has at most %u", count,
                (unsigned)UINT32_MAX);
    }

    return UC_OK;
}

static enum uc_status
check_lookup(const struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, bool has_output, const bool *signal)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }
    if (!has_output) {
        return uc_error(UC_ERR_INVALID_PARAM, "lookup: the output is null");
    }
    if (signal == NULL) {
        /* Mandatory, or a prefetch signal would look like an answer. */
        return uc_error(UC_ERR_INVALID_PARAM, "lookup: prefetch_needed_out is null");
    }

    return check_ids(ids, count);
}

static enum uc_status
check_prepare(const struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, struct uc_token *const *token_out)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }
    if (token_out == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "prepare: token_out is null");
    }
    if (count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "prepare: the list of block ids is empty");
    }

    return check_ids(ids, count);
}

enum uc_status
uc_scheduler_on_new_request(
        struct uc_scheduler *scheduler, const struct uc_request_context *context)
{
    enum uc_status status;

    if (scheduler == NULL || context == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "on_new_request: %s is null",
                scheduler == NULL ? "scheduler" : "context");
    }
    if (context->struct_size < CONTEXT_MIN_BYTES ||
            context->struct_size > UC_REQUEST_CONTEXT_MAX_BYTES) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "on_new_request: struct_size %u is not between %zu and %d: start from "
                "uc_request_context_init()",
                context->struct_size, CONTEXT_MIN_BYTES, UC_REQUEST_CONTEXT_MAX_BYTES);
    }
    status = check_request_id(context->request_id);
    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->on_new_request(scheduler, context);
}

enum uc_status
uc_scheduler_on_request_finished(struct uc_scheduler *scheduler, const char *request_id)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->on_request_finished(scheduler, request_id);
}

enum uc_status
uc_scheduler_lookup(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, uint8_t *hits_out, bool *prefetch_needed_out)
{
    enum uc_status status = check_lookup(
            scheduler, request_id, ids, count, hits_out != NULL || count == 0, prefetch_needed_out);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->lookup(scheduler, request_id, ids, count, hits_out, prefetch_needed_out);
}

enum uc_status
uc_scheduler_lookup_on_prefix(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    enum uc_status status =
            check_lookup(scheduler, request_id, ids, count, index_out != NULL, prefetch_needed_out);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->lookup_on_prefix(
            scheduler, request_id, ids, count, index_out, prefetch_needed_out);
}

enum uc_status
uc_scheduler_lookup_on_reverse(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    enum uc_status status =
            check_lookup(scheduler, request_id, ids, count, index_out != NULL, prefetch_needed_out);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->lookup_on_reverse(
            scheduler, request_id, ids, count, index_out, prefetch_needed_out);
}

enum uc_status
uc_scheduler_touch(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }
    status = check_ids(ids, count);
    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->touch(scheduler, request_id, ids, count);
}

enum uc_status
uc_scheduler_prepare_prefetch(
        struct uc_scheduler *scheduler, const char *request_id, struct uc_token **token_out)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }
    if (token_out == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "prepare_prefetch: token_out is null");
    }

    return scheduler->ops->prepare_prefetch(scheduler, request_id, token_out);
}

enum uc_status
uc_scheduler_complete_prefetch(struct uc_scheduler *scheduler, const char *request_id, bool success)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->complete_prefetch(scheduler, request_id, success);
}

enum uc_status
uc_scheduler_prepare_get(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, struct uc_token **token_out)
{
    enum uc_status status = check_prepare(scheduler, request_id, ids, count, token_out);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->prepare_get(scheduler, request_id, ids, count, token_out);
}

enum uc_status
uc_scheduler_complete_get(struct uc_scheduler *scheduler, const char *request_id)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->complete_get(scheduler, request_id);
}

enum uc_status
uc_scheduler_prepare_put(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, struct uc_token **token_out)
{
    enum uc_status status = check_prepare(scheduler, request_id, ids, count, token_out);

    if (status != UC_OK) {
        return status;
    }
    status = uc_id_set_check_distinct(ids, count);
    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->prepare_put(scheduler, request_id, ids, count, token_out);
}

enum uc_status
uc_scheduler_complete_put(struct uc_scheduler *scheduler, const char *request_id, bool success)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }

    return scheduler->ops->complete_put(scheduler, request_id, NULL, 0, success);
}

enum uc_status
uc_scheduler_complete_put_mask(
        struct uc_scheduler *scheduler, const char *request_id, const uint8_t *mask, size_t count)
{
    enum uc_status status = check_call(scheduler, request_id);

    if (status != UC_OK) {
        return status;
    }
    if (mask == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "complete_put_mask: the mask is null");
    }

    return scheduler->ops->complete_put(scheduler, request_id, mask, count, false);
}

enum uc_status
uc_scheduler_health(struct uc_scheduler *scheduler)
{
    if (scheduler == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "scheduler is null");
    }

    return scheduler->ops->health(scheduler);
}

enum uc_status
uc_scheduler_describe(struct uc_scheduler *scheduler, struct uc_dict *description)
{
    if (scheduler == NULL || description == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "describe: %s is null",
                scheduler == NULL ? "scheduler" : "description");
    }

    return scheduler->ops->describe(scheduler, description);
}
