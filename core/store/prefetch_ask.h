/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file prefetch_ask.h
 * The lookups of a prefetchable store that has a lower tier: decides between a concrete answer and a signal
 * and which blocks the next round lifts.
 *
 * Threads: the control thread, which is also the lower tier's only caller.
 */

#ifndef UC_STORE_PREFETCH_ASK_H
#define UC_STORE_PREFETCH_ASK_H

#include <ucm/store.h>

#include "core/store/prefetch_query.h"

enum uc_prefetch_lookup {
    UC_PREFETCH_LOOKUP,
    UC_PREFETCH_ON_PREFIX,
    UC_PREFETCH_ON_REVERSE,
};

/** The tier below; `facet` is NULL where it cannot prefetch itself. */
struct uc_prefetch_lower {
    struct uc_store *store;
    const struct uc_prefetchable_ops *facet;
};

/**
 * One lookup from begin to end: asks the lower tier only where a signal is possible, and keeps @p queries.
 *
 * @param[in]  hits                 count flags: what is present in this tier now
 * @param[out] prefetch_needed_out  true: answer with the signal. false: the answer follows from @p hits, see
 *                                  uc_prefetch_last_of_prefix() and uc_prefetch_last_of_any()
 * @retval UC_ERR_INVALID_PARAM     the request has another list under way
 * @retval other                    the lower tier's error; the query is over
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_prefetch_ask(struct uc_prefetch_queries *queries,
        const struct uc_prefetch_lower *lower, enum uc_prefetch_lookup kind, const char *request_id,
        const struct uc_block_id *ids, size_t count, const uint8_t *hits,
        bool *prefetch_needed_out);

/** Drop the state of a request here and below. */
UC_PRIVATE_API void uc_prefetch_forget(struct uc_prefetch_queries *queries,
        const struct uc_prefetch_lower *lower, const char *request_id);

/** @return the answer of lookup_on_prefix over these flags. */
UC_PRIVATE_API int64_t uc_prefetch_last_of_prefix(const uint8_t *hits, size_t count);

/** @return the answer of lookup_on_reverse over these flags. */
UC_PRIVATE_API int64_t uc_prefetch_last_of_any(const uint8_t *hits, size_t count);

#endif /* UC_STORE_PREFETCH_ASK_H */
