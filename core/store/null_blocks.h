/* SPDX-License-Identifier: Apache-2.0 */

/** @file null_blocks.h The blocks of a null store: a hash table of heap memory. No locking. */

#ifndef UC_STORE_NULL_BLOCKS_H
#define UC_STORE_NULL_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/range_set.h"

struct uc_null_block {
    struct uc_null_block *next;
    struct uc_block_id id;
    uint8_t *bytes;
    uint64_t length_bytes;
    struct uc_range_set written; /* empty once complete */
    bool is_complete;            /* only then it can be seen */
};

/** Zeroed = empty. */
struct uc_null_blocks {
    struct uc_null_block **buckets;
    size_t bucket_count; /* 0 or a power of two */
    size_t count;
};

void uc_null_blocks_fini(struct uc_null_blocks *blocks);

/** @return the block, complete or not, or NULL. */
struct uc_null_block *uc_null_blocks_find(
        const struct uc_null_blocks *blocks, const struct uc_block_id *id);

/** Store a payload as the whole content of a block, or leave what was there. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_null_blocks_replace(struct uc_null_blocks *blocks,
        const struct uc_block_id *id, const struct uc_block_payload *payload,
        uint64_t payload_bytes);

/**
 * Store a part of a block of @p block_bytes, which becomes complete with its last byte. A block that is
 * complete already keeps its content: equal ids mean equal bytes. OutOfMemory.
 */
UC_MUST_CHECK enum uc_status uc_null_blocks_write_part(struct uc_null_blocks *blocks,
        const struct uc_block_id *id, const struct uc_block_payload *payload,
        uint64_t payload_bytes, uint64_t block_bytes);

/** Copy a range of a complete block to where the payload points; the range was checked. */
void uc_null_block_read(const struct uc_null_block *block, const struct uc_block_payload *payload);

#endif /* UC_STORE_NULL_BLOCKS_H */
