/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/below.h"

#include <stdlib.h>
#include <string.h>

#include "client/stores/cache/plan.h"
#include "core/base/mutex.h"

struct uc_cache_below {
    struct uc_mutex lock;
    struct uc_cache_index *index;
    struct uc_prefetch_queries *queries;
    struct uc_prefetch_lower lower;
    const struct uc_token_addressed_ops *lower_tokens; /* NULL = plain */
};

/* What a plan holds until it is concluded. */
struct held_plan {
    bool is_delegated;
    struct uc_token *destinations; /* NULL: nothing to lift */
    struct uc_token *lower;        /* read token below, or the lower tier's plan */
};

enum uc_status
uc_cache_below_create(const struct uc_cache_store_config *config, struct uc_cache_index *index,
        struct uc_cache_below **below_out)
{
    struct uc_cache_below *below = calloc(1, sizeof(*below));
    enum uc_status status;

    if (below == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for the tier below");
    }
    status = uc_prefetch_queries_create(config->tiers_below, &below->queries);
    if (status != UC_OK) {
        free(below);
        return status;
    }

    uc_mutex_init(&below->lock);
    below->index = index;
    below->lower.store = config->lower;
    below->lower.facet = uc_store_as_prefetchable(config->lower);
    below->lower_tokens = uc_store_as_token_addressed(config->lower);
    *below_out = below;
    return UC_OK;
}

enum uc_status
uc_cache_below_lookup(struct uc_cache_below *below, enum uc_prefetch_lookup kind,
        const char *request_id, const struct uc_block_id *ids, size_t count, uint8_t *hits,
        bool *prefetch_needed_out)
{
    enum uc_status status;

    uc_mutex_lock(&below->lock);
    uc_cache_index_lookup(below->index, ids, count, hits);
    status = uc_prefetch_ask(
            below->queries, &below->lower, kind, request_id, ids, count, hits, prefetch_needed_out);
    uc_mutex_unlock(&below->lock);
    return status;
}

/* ---- plans ---- */

static void
release_plan(struct held_plan *held)
{
    uc_token_destroy(held->destinations);
    uc_token_destroy(held->lower);
    free(held);
}

/* Sources first: what is gone below needs no room here. */
static enum uc_status
take_blocks(struct uc_cache_below *below, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct held_plan *held)
{
    enum uc_status status = UC_OK;

    if (below->lower_tokens != NULL) {
        status = below->lower_tokens->pin(below->lower.store, ids, count, &held->lower);
    }
    if (status != UC_OK) {
        return status;
    }

    status = uc_cache_index_alloc(below->index, ids, count, context, &held->destinations);
    if (status != UC_OK && held->lower != NULL) {
        below->lower_tokens->unpin(below->lower.store, held->lower);
    }
    return status;
}

/* What came in the meantime is not lifted again, and never written over. */
static enum uc_status
take_needed(struct uc_cache_below *below, const struct uc_prefetch_need *need,
        const struct uc_request_context *context, struct held_plan *held)
{
    struct uc_block_id *ids = calloc(need->count, sizeof(ids[0]));
    enum uc_status status = UC_OK;
    size_t count;

    if (ids == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for a plan");
    }

    count = uc_cache_index_writable(below->index, need->ids, need->count, ids);
    if (count > 0) {
        status = take_blocks(below, ids, count, context, held);
    }
    free(ids);
    return status;
}

static enum uc_status
give_back(struct uc_cache_below *below, struct held_plan *held, bool success, bool *progressed_out)
{
    struct uc_store *lower = below->lower.store;
    enum uc_status status = UC_OK;

    *progressed_out = false;
    if (held->is_delegated) {
        status = below->lower.facet->complete_prefetch(lower, held->lower, success);
        *progressed_out = success && status == UC_OK;
        return status;
    }
    if (held->destinations != NULL) {
        *progressed_out =
                uc_cache_index_commit_whole(below->index, held->destinations, success) > 0;
    }
    if (held->lower != NULL) {
        below->lower_tokens->unpin(lower, held->lower);
    }
    return status;
}

static enum uc_status
fill_plan(struct uc_cache_below *below, const char *request_id,
        const struct uc_request_context *context, struct held_plan *held)
{
    struct uc_prefetch_need need = {0};
    enum uc_status status = uc_prefetch_queries_begin_prepare(below->queries, request_id, &need);

    if (status != UC_OK) {
        return status;
    }
    held->is_delegated = need.is_delegated;
    if (need.is_delegated) {
        return below->lower.facet->prepare_prefetch(
                below->lower.store, request_id, context, &held->lower);
    }
    return need.count == 0 ? UC_OK : take_needed(below, &need, context, held);
}

enum uc_status
uc_cache_below_prepare(struct uc_cache_below *below, const char *request_id,
        const struct uc_request_context *context, struct uc_token **plan_out)
{
    struct held_plan *held = calloc(1, sizeof(*held));
    struct uc_token *plan = NULL;
    bool progressed;
    enum uc_status status;

    if (held == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for a plan");
    }

    uc_mutex_lock(&below->lock);
    status = fill_plan(below, request_id, context, held);
    if (status != UC_OK) {
        goto err_release;
    }
    status = uc_cache_plan_create(held->is_delegated, held->destinations, held->lower, &plan);
    if (status != UC_OK) {
        (void)give_back(below, held, false, &progressed);
        goto err_release;
    }
    uc_cache_plan_set_number(plan, uc_prefetch_queries_prepared(below->queries, request_id, held));
    uc_mutex_unlock(&below->lock);
    *plan_out = plan;
    return UC_OK;

err_release:
    uc_mutex_unlock(&below->lock);
    release_plan(held);
    return status;
}

static enum uc_status
complete_locked(struct uc_cache_below *below, uint64_t number, bool success)
{
    struct held_plan *held = NULL;
    void *found = NULL;
    bool progressed = false;
    enum uc_status status = uc_prefetch_queries_find_plan(below->queries, number, &found);

    if (status != UC_OK) {
        return status;
    }
    held = found;
    status = give_back(below, held, success, &progressed);
    uc_prefetch_queries_conclude(below->queries, number, progressed);
    release_plan(held);
    return status;
}

enum uc_status
uc_cache_below_complete(struct uc_cache_below *below, const struct uc_token *token, bool success)
{
    struct uc_cache_plan plan;
    enum uc_status status = uc_cache_plan_read(token, &plan);

    if (status != UC_OK) {
        return status;
    }

    uc_mutex_lock(&below->lock);
    status = complete_locked(below, plan.number, success);
    uc_mutex_unlock(&below->lock);
    return status;
}

void
uc_cache_below_forget(struct uc_cache_below *below, const char *request_id)
{
    uc_mutex_lock(&below->lock);
    uc_prefetch_forget(below->queries, &below->lower, request_id);
    uc_mutex_unlock(&below->lock);
}

void
uc_cache_below_touch(struct uc_cache_below *below, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    uc_mutex_lock(&below->lock);
    (void)uc_store_touch(below->lower.store, ids, count, context);
    uc_mutex_unlock(&below->lock);
}

void
uc_cache_below_sink_lookup(
        struct uc_cache_below *below, const struct uc_block_id *ids, size_t count, uint8_t *hits)
{
    uc_mutex_lock(&below->lock);
    if (uc_store_lookup(below->lower.store, ids, count, hits) != UC_OK) {
        memset(hits, 0, count);
    }
    uc_mutex_unlock(&below->lock);
}

enum uc_status
uc_cache_below_sink_alloc(struct uc_cache_below *below, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    enum uc_status status = UC_OK;

    *token_out = NULL;
    if (below->lower_tokens != NULL) {
        uc_mutex_lock(&below->lock);
        status = below->lower_tokens->alloc(below->lower.store, ids, count, context, token_out);
        uc_mutex_unlock(&below->lock);
    }
    return status;
}

enum uc_status
uc_cache_below_sink_commit(
        struct uc_cache_below *below, const struct uc_token *token, const uint8_t *mask)
{
    enum uc_status status;

    uc_mutex_lock(&below->lock);
    status = below->lower_tokens->commit(below->lower.store, token, mask, false);
    uc_mutex_unlock(&below->lock);
    return status;
}

void
uc_cache_below_destroy(struct uc_cache_below *below)
{
    uint64_t number;

    if (below == NULL) {
        return;
    }

    while ((number = uc_prefetch_queries_any_plan(below->queries)) != 0) {
        (void)complete_locked(below, number, false);
    }
    uc_prefetch_queries_destroy(below->queries);
    uc_mutex_fini(&below->lock);
    free(below);
}
