/* SPDX-License-Identifier: Apache-2.0 */

/* The control half of a peer: one branch per request, a frame around every token. */

#include <stddef.h>

#include "client/proxy/branch_frame.h"
#include "client/proxy/peer_internal.h"

static struct uc_peer *
peer_of(struct uc_scheduler *scheduler)
{
    return (struct uc_peer *)(void *)((char *)scheduler - offsetof(struct uc_peer, scheduler));
}

/* The branch's scheduler, by which everything of this request goes. */
static enum uc_status
route(struct uc_scheduler *scheduler, const char *request_id, struct uc_scheduler **branch_out,
        size_t *branch_idx_out)
{
    struct uc_peer *peer = peer_of(scheduler);
    const struct uc_request *request = uc_request_table_find(peer->requests, request_id);

    if (request == NULL) {
        return uc_error(UC_ERR_NOT_FOUND,
                "request %.64s is not registered: call on_new_request first", request_id);
    }

    *branch_out = peer->branches[request->branch]->scheduler;
    *branch_idx_out = request->branch;
    return UC_OK;
}

static enum uc_status
register_with_branch(struct uc_peer *peer, struct uc_request *request)
{
    size_t branch = peer->routing_ops->select(peer->routing, request->context);
    struct uc_scheduler *scheduler;

    if (branch >= peer->branch_count) {
        return uc_error(UC_ERR_GENERAL,
                "request %.64s: routing strategy '%s' chose branch %zu of %zu", request->id,
                peer->routing_ops->name, branch, peer->branch_count);
    }

    request->branch = branch;
    scheduler = peer->branches[branch]->scheduler;
    return scheduler->ops->on_new_request(scheduler, request->context);
}

static enum uc_status
on_new_request(struct uc_scheduler *scheduler, const struct uc_request_context *context)
{
    struct uc_peer *peer = peer_of(scheduler);
    struct uc_request *request = NULL;
    enum uc_status status = uc_request_table_add(peer->requests, context, &request);

    if (status != UC_OK) {
        return status;
    }
    status = register_with_branch(peer, request);
    if (status != UC_OK) {
        uc_request_table_remove(peer->requests, request); /* nothing is kept */
    }
    return status;
}

static enum uc_status
on_request_finished(struct uc_scheduler *scheduler, const char *request_id)
{
    struct uc_peer *peer = peer_of(scheduler);
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    if (status != UC_OK) {
        return status;
    }
    status = branch->ops->on_request_finished(branch, request_id);
    /* Forgotten even if a conclusion failed, as in the branch. */
    uc_request_table_remove(peer->requests, uc_request_table_find(peer->requests, request_id));
    return status;
}

static enum uc_status
lookup(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out, bool *prefetch_needed_out)
{
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    return status == UC_OK ? branch->ops->lookup(
                                     branch, request_id, ids, count, hits_out, prefetch_needed_out)
                           : status;
}

static enum uc_status
lookup_on_prefix(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    return status == UC_OK ? branch->ops->lookup_on_prefix(
                                     branch, request_id, ids, count, index_out, prefetch_needed_out)
                           : status;
}

static enum uc_status
lookup_on_reverse(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    return status == UC_OK ? branch->ops->lookup_on_reverse(
                                     branch, request_id, ids, count, index_out, prefetch_needed_out)
                           : status;
}

static enum uc_status
touch(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count)
{
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    return status == UC_OK ? branch->ops->touch(branch, request_id, ids, count) : status;
}

/* A window whose token cannot be handed out is closed again. */
static void
close_again(struct uc_scheduler *branch, const char *request_id, enum uc_window window)
{
    switch (window) {
    case UC_WINDOW_PREFETCH:
        (void)branch->ops->complete_prefetch(branch, request_id, false);
        break;
    case UC_WINDOW_GET:
        (void)branch->ops->complete_get(branch, request_id);
        break;
    case UC_WINDOW_PUT:
        (void)branch->ops->complete_put(branch, request_id, NULL, 0, false);
        break;
    case UC_WINDOW_COUNT:
        break;
    }
}

static enum uc_status
prepare(struct uc_scheduler *scheduler, const char *request_id, enum uc_window window,
        const struct uc_block_id *ids, size_t count, struct uc_token **token_out)
{
    struct uc_scheduler *branch = NULL;
    struct uc_token *inner = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    if (status != UC_OK) {
        return status;
    }
    switch (window) {
    case UC_WINDOW_PREFETCH:
        status = branch->ops->prepare_prefetch(branch, request_id, &inner);
        break;
    case UC_WINDOW_GET:
        status = branch->ops->prepare_get(branch, request_id, ids, count, &inner);
        break;
    case UC_WINDOW_PUT:
    case UC_WINDOW_COUNT:
        status = branch->ops->prepare_put(branch, request_id, ids, count, &inner);
        break;
    }
    if (status != UC_OK) {
        return status;
    }

    status = uc_branch_frame_wrap(idx, inner, token_out);
    uc_token_destroy(inner);
    if (status != UC_OK) {
        close_again(branch, request_id, window);
    }
    return status;
}

static enum uc_status
prepare_prefetch(
        struct uc_scheduler *scheduler, const char *request_id, struct uc_token **token_out)
{
    return prepare(scheduler, request_id, UC_WINDOW_PREFETCH, NULL, 0, token_out);
}

static enum uc_status
prepare_get(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count, struct uc_token **token_out)
{
    return prepare(scheduler, request_id, UC_WINDOW_GET, ids, count, token_out);
}

static enum uc_status
prepare_put(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count, struct uc_token **token_out)
{
    return prepare(scheduler, request_id, UC_WINDOW_PUT, ids, count, token_out);
}

static enum uc_status
complete_prefetch(struct uc_scheduler *scheduler, const char *request_id, bool success)
{
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    return status == UC_OK ? branch->ops->complete_prefetch(branch, request_id, success) : status;
}

static enum uc_status
complete_get(struct uc_scheduler *scheduler, const char *request_id)
{
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    return status == UC_OK ? branch->ops->complete_get(branch, request_id) : status;
}

static enum uc_status
complete_put(struct uc_scheduler *scheduler, const char *request_id, const uint8_t *mask,
        size_t mask_count, bool success)
{
    struct uc_scheduler *branch = NULL;
    size_t idx = 0;
    enum uc_status status = route(scheduler, request_id, &branch, &idx);

    return status == UC_OK
                   ? branch->ops->complete_put(branch, request_id, mask, mask_count, success)
                   : status;
}

static enum uc_status
health(struct uc_scheduler *scheduler)
{
    return uc_peer_health(peer_of(scheduler));
}

static enum uc_status
describe(struct uc_scheduler *scheduler, struct uc_dict *description)
{
    return uc_peer_describe(peer_of(scheduler), description);
}

const struct uc_scheduler_ops uc_peer_scheduler_ops = {
        .on_new_request = on_new_request,
        .on_request_finished = on_request_finished,
        .lookup = lookup,
        .lookup_on_prefix = lookup_on_prefix,
        .lookup_on_reverse = lookup_on_reverse,
        .touch = touch,
        .prepare_prefetch = prepare_prefetch,
        .complete_prefetch = complete_prefetch,
        .prepare_get = prepare_get,
        .complete_get = complete_get,
        .prepare_put = prepare_put,
        .complete_put = complete_put,
        .health = health,
        .describe = describe,
};
