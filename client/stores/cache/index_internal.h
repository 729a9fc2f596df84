/* SPDX-License-Identifier: Apache-2.0 */

/** @file index_internal.h What the files of the index share. All of it under the lock. */

#ifndef UC_CACHE_STORE_INDEX_INTERNAL_H
#define UC_CACHE_STORE_INDEX_INTERNAL_H

#include "client/stores/cache/index.h"
#include "client/stores/cache/payload.h"
#include "core/base/mutex.h"

/* Of one slot. */
struct holder {
    struct uc_block_id id; /* the last block that was admitted here */
    uint32_t pins;
    uint32_t refs;    /* reservations and readmissions */
    bool is_mirrored; /* CacheBuffer counts a transfer of ours; the slot is in the busy list */
};

struct uc_cache_index {
    struct uc_mutex lock;
    struct uc_cache_segment *segment;
    struct uc_cache_buffer *buffer;
    struct holder *holders; /* per slot */
    uint32_t *busy;         /* slots; room for all */
    size_t busy_count;
    uint32_t damage_seen;
    uc_cache_sink_fn sink;
    void *sink_context;
    char domain[UC_CACHE_DOMAIN_MAX + 1];
};

/* Take the lock, and take in what other processes did. Every operation starts with this. */
void uc_cache_index_enter(struct uc_cache_index *index) UC_ACQUIRES(index->lock);

/* All bytes of that generation came, and nobody found them damaged. */
bool uc_cache_index_is_whole(
        const struct uc_cache_index *index, uint32_t slot, uint64_t generation);
enum uc_status uc_cache_index_commit_key(struct uc_cache_index *index, const struct uc_block_id *id,
        struct uc_cache_place place, bool success);
void uc_cache_index_unpin_key(
        struct uc_cache_index *index, const struct uc_block_id *id, struct uc_cache_place place);

#endif /* UC_CACHE_STORE_INDEX_INTERNAL_H */
