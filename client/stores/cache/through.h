/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file through.h
 * Write-through, control side: a thread that reserves below what was committed here, queues it in the segment for
 * any worker to dump, and commits it below. Each block is pinned here until then. Bounded and never in anybody's
 * way: what does not fit is not written, and counted.
 *
 * Threads: offer is called under the index's lock; the rest by the thread that sets the store up.
 */

#ifndef UC_CACHE_STORE_THROUGH_H
#define UC_CACHE_STORE_THROUGH_H

#include "client/stores/cache/below.h"
#include "client/stores/cache/config.h"
#include "client/stores/cache/index.h"

struct uc_cache_through;

struct uc_cache_through_stats {
    uint64_t queued; /* pinned here and not yet below */
    uint64_t written_total;
    uint64_t failed_total;  /* refused or lost below */
    uint64_t skipped_total; /* no room in the queue */
};

/** @param[in] index, below  borrowed */
UC_MUST_CHECK enum uc_status uc_cache_through_create(const struct uc_cache_store_config *config,
        struct uc_cache_index *index, struct uc_cache_below *below,
        struct uc_cache_through **through_out);

/** Wait a moment for the queue to empty, while workers of this process still run. NULL is allowed. */
void uc_cache_through_flush(struct uc_cache_through *through);

/** Gives back what is not written yet. NULL is allowed. */
void uc_cache_through_destroy(struct uc_cache_through *through);

struct uc_cache_through_stats uc_cache_through_stats(struct uc_cache_through *through);

#endif /* UC_CACHE_STORE_THROUGH_H */
