/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file partition.h
 * The keys of one call, by the server that holds them. The arrays are reused from call to call.
 *
 * Threads: one (the store's control thread).
 */

#ifndef UC_REMOTE_PARTITION_H
#define UC_REMOTE_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/cluster/placement.h"

/** The keys of one server, in the order of the call. A plain value that borrows its arrays. */
struct uc_share {
    const struct uc_block_id *ids;
    const uint32_t *positions; /* of these keys in the call; NULL = all of them, in order */
    size_t count;
};

/** Zeroed = empty. */
struct uc_partition {
    struct uc_share *shares; /* per server of the view; some may be empty */
    size_t share_capacity;
    struct uc_block_id *ids;
    uint32_t *positions;
    uint32_t *places;
    size_t key_capacity;
};

/**
 * Fill the shares.
 *
 * @param[in] ids    borrowed while the shares are used
 * @param[in] count  at most UC_KEYS_PER_CALL
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_partition_make(struct uc_partition *partition,
        const struct uc_placement_view *view, const struct uc_block_id *ids, size_t count);

void uc_partition_fini(struct uc_partition *partition);

/** @return where key @p idx of a share stands in the call. */
static inline size_t
uc_share_position(const struct uc_share *share, size_t idx)
{
    return share->positions == NULL ? idx : share->positions[idx];
}

#endif /* UC_REMOTE_PARTITION_H */
