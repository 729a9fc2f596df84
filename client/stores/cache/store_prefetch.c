/* SPDX-License-Identifier: Apache-2.0 */

/* The prefetchable facet: a cache store above another tier. */

#include <stdlib.h>
#include <string.h>

#include "client/stores/cache/store_internal.h"

static enum uc_status
ask(struct uc_store *store, enum uc_prefetch_lookup kind, const char *request_id,
        const struct uc_block_id *ids, size_t count, uint8_t *hits, bool *prefetch_needed_out)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_index(self);

    return status != UC_OK ? status
                           : uc_cache_below_lookup(self->below, kind, request_id, ids, count, hits,
                                     prefetch_needed_out);
}

static enum uc_status
prefetch_lookup(struct uc_store *store, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out, bool *prefetch_needed_out)
{
    uint8_t *hits = calloc(count + 1, 1);
    bool needed = false;
    enum uc_status status;

    if (hits == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "cache store: no memory to look up %zu blocks", count);
    }
    status = ask(store, UC_PREFETCH_LOOKUP, request_id, ids, count, hits, &needed);
    if (status == UC_OK) {
        *prefetch_needed_out = needed;
    }
    if (status == UC_OK && !needed && count > 0) {
        memcpy(hits_out, hits, count);
    }
    free(hits);
    return status;
}

static enum uc_status
prefetch_index(struct uc_store *store, enum uc_prefetch_lookup kind, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    uint8_t *hits = calloc(count + 1, 1);
    bool needed = false;
    enum uc_status status;

    if (hits == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "cache store: no memory to look up %zu blocks", count);
    }
    status = ask(store, kind, request_id, ids, count, hits, &needed);
    if (status == UC_OK) {
        *prefetch_needed_out = needed;
    }
    if (status == UC_OK && !needed) {
        *index_out = kind == UC_PREFETCH_ON_PREFIX ? uc_prefetch_last_of_prefix(hits, count)
                                                   : uc_prefetch_last_of_any(hits, count);
    }
    free(hits);
    return status;
}

static enum uc_status
prefetch_lookup_on_prefix(struct uc_store *store, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    return prefetch_index(
            store, UC_PREFETCH_ON_PREFIX, request_id, ids, count, index_out, prefetch_needed_out);
}

static enum uc_status
prefetch_lookup_on_reverse(struct uc_store *store, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    return prefetch_index(
            store, UC_PREFETCH_ON_REVERSE, request_id, ids, count, index_out, prefetch_needed_out);
}

static enum uc_status
prefetch_prepare(struct uc_store *store, const char *request_id,
        const struct uc_request_context *context, struct uc_token **plan_out)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_index(self);

    return status != UC_OK ? status
                           : uc_cache_below_prepare(self->below, request_id, context, plan_out);
}

static enum uc_status
prefetch_submit(struct uc_store *store, uint64_t job_id, const struct uc_token *plan)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_plane(self);

    uc_cache_lift_resume(self->lift);
    return status != UC_OK ? status : uc_cache_lift_submit(self->lift, job_id, plan);
}

static enum uc_status
prefetch_complete(struct uc_store *store, const struct uc_token *plan, bool success)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_index(self);

    return status != UC_OK ? status : uc_cache_below_complete(self->below, plan, success);
}

static void
prefetch_forget(struct uc_store *store, const char *request_id)
{
    struct cache_store *self = self_of(store);

    if (self->below != NULL) {
        uc_cache_below_forget(self->below, request_id);
    }
}

const struct uc_prefetchable_ops uc_cache_store_prefetch_ops = {
        .struct_size = sizeof(uc_cache_store_prefetch_ops),
        .lookup = prefetch_lookup,
        .lookup_on_prefix = prefetch_lookup_on_prefix,
        .lookup_on_reverse = prefetch_lookup_on_reverse,
        .prepare_prefetch = prefetch_prepare,
        .prefetch = prefetch_submit,
        .complete_prefetch = prefetch_complete,
        .forget = prefetch_forget,
};
