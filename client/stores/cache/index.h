/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file index.h
 * Control side of the cache store: which block is where (CacheBuffer), who holds it, and which slots transfers
 * of other processes keep busy. A slot of the segment is open only while somebody holds its block; when the
 * last holder lets go while transfers run, they are mirrored into CacheBuffer, which then keeps the slot
 * from reuse, and struck out again once the segment says that they are over.
 *
 * Threads: any; one lock inside.
 */

#ifndef UC_CACHE_STORE_INDEX_H
#define UC_CACHE_STORE_INDEX_H

#include <ucm/request.h>
#include <ucm/token.h>

#include "client/stores/cache/config.h"
#include "client/stores/cache/segment.h"
#include "core/cache/cache_buffer.h"

struct uc_cache_index;

/** A block that became visible by a put, pinned for whoever takes it. */
struct uc_cache_committed {
    struct uc_block_id id;
    uint64_t generation;
    uint64_t deadline_ms;
    uint32_t slot;
};

/** Under the index's lock. @return whether it takes the block, and unpins it later */
typedef bool (*uc_cache_sink_fn)(void *context, const struct uc_cache_committed *block);

/** Creates and owns the segment. As uc_cache_segment_create() and uc_cache_buffer_create(). */
UC_MUST_CHECK enum uc_status uc_cache_index_create(
        const struct uc_cache_store_config *config, struct uc_cache_index **index_out);
/** NULL is allowed. */
void uc_cache_index_destroy(struct uc_cache_index *index);

struct uc_cache_segment *uc_cache_index_segment(const struct uc_cache_index *index);

void uc_cache_index_lookup(struct uc_cache_index *index, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out);
void uc_cache_index_touch(struct uc_cache_index *index, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context);

/* The facet of section 6. Tokens of another life are told apart. */
UC_MUST_CHECK enum uc_status uc_cache_index_pin(struct uc_cache_index *index,
        const struct uc_block_id *ids, size_t count, struct uc_token **token_out);
void uc_cache_index_unpin(struct uc_cache_index *index, const struct uc_token *token);
UC_MUST_CHECK enum uc_status uc_cache_index_alloc(struct uc_cache_index *index,
        const struct uc_block_id *ids, size_t count, const struct uc_request_context *context,
        struct uc_token **token_out);
enum uc_status uc_cache_index_commit(struct uc_cache_index *index, const struct uc_token *token,
        const uint8_t *mask, bool success);

/** Copy the ids that are absent or being written, so that a reservation of them may be written to. @return how many */
size_t uc_cache_index_writable(struct uc_cache_index *index, const struct uc_block_id *ids,
        size_t count, struct uc_block_id *ids_out);

/** Commit, but blocks whose bytes did not all come are released. @return how many were committed */
size_t uc_cache_index_commit_whole(
        struct uc_cache_index *index, const struct uc_token *token, bool success);

/** Offer every block that a put makes visible; blocks of plans are not offered. NULL = nobody wants them. */
void uc_cache_index_set_sink(struct uc_cache_index *index, uc_cache_sink_fn sink, void *context);
void uc_cache_index_unpin_block(
        struct uc_cache_index *index, const struct uc_cache_committed *block);

struct uc_cache_stats uc_cache_index_stats(struct uc_cache_index *index);

#endif /* UC_CACHE_STORE_INDEX_H */
