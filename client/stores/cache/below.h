/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file below.h
 * Control side of a cache store over a lower tier: lookups that may signal, plans (section 7), touches. The only
 * caller of the lower tier's control operations in this process.
 *
 * Threads: any; one lock inside, taken before the index's.
 */

#ifndef UC_CACHE_STORE_BELOW_H
#define UC_CACHE_STORE_BELOW_H

#include <ucm/store.h>

#include "client/stores/cache/config.h"
#include "client/stores/cache/index.h"
#include "core/store/prefetch_ask.h"

struct uc_cache_below;

/** @param[in] index  borrowed */
UC_MUST_CHECK enum uc_status uc_cache_below_create(const struct uc_cache_store_config *config,
        struct uc_cache_index *index, struct uc_cache_below **below_out);
/** Concludes plans that are left. NULL is allowed. */
void uc_cache_below_destroy(struct uc_cache_below *below);

/** @p hits has room for @p count flags; valid where nothing is signalled. */
UC_MUST_CHECK enum uc_status uc_cache_below_lookup(struct uc_cache_below *below,
        enum uc_prefetch_lookup kind, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits, bool *prefetch_needed_out);
UC_MUST_CHECK enum uc_status uc_cache_below_prepare(struct uc_cache_below *below,
        const char *request_id, const struct uc_request_context *context,
        struct uc_token **plan_out);
enum uc_status uc_cache_below_complete(
        struct uc_cache_below *below, const struct uc_token *plan, bool success);
void uc_cache_below_forget(struct uc_cache_below *below, const char *request_id);

/** */
void uc_cache_below_touch(struct uc_cache_below *below, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context);

/* For write-through. A plain tier has no token: *token_out is NULL then. */
void uc_cache_below_sink_lookup(
        struct uc_cache_below *below, const struct uc_block_id *ids, size_t count, uint8_t *hits);
UC_MUST_CHECK enum uc_status uc_cache_below_sink_alloc(struct uc_cache_below *below,
        const struct uc_block_id *ids, size_t count, const struct uc_request_context *context,
        struct uc_token **token_out);
UC_MUST_CHECK enum uc_status uc_cache_below_sink_commit(
        struct uc_cache_below *below, const struct uc_token *token, const uint8_t *mask);

#endif /* UC_CACHE_STORE_BELOW_H */
