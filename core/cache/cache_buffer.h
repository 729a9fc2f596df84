/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file cache_buffer.h
 * CacheBuffer (section 16 of core/CONTRACT.md): block map, visibility, two-phase admission and TTL over
 * a ReplacementPolicy. Moves no bytes. The engine of ucm-server and of the local tier.
 *
 * Threads: one control thread in parallel with any number of data threads that call
 * uc_cache_buffer_transfer_begin() and _end() only.
 */

#ifndef UC_CACHE_CACHE_BUFFER_H
#define UC_CACHE_CACHE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/clock.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/request.h>
#include <ucm/status.h>

#include "core/cache/policy.h"

struct uc_cache_buffer;

struct uc_cache_config {
    size_t capacity;                  /* blocks */
    const char *policy;               /* name; NULL = "lru" */
    const struct uc_policy_ops *ops;  /* instead of a name */
    const struct uc_dict *parameters; /* of the policy; may be NULL */
    struct uc_clock clock;            /* borrowed context */
};

enum uc_cache_state {
    UC_CACHE_ABSENT,
    UC_CACHE_PENDING, /* reserved, invisible */
    UC_CACHE_VISIBLE,
    UC_CACHE_EXPIRED, /* or damaged: committed, but invisible */
};

/** How reserve settled one id. */
enum uc_cache_admission {
    UC_CACHE_NEWCOMER,   /* a slot of its own: to be written */
    UC_CACHE_JOINED,     /* shares a pending reservation */
    UC_CACHE_READMITTED, /* committed already: nothing to write */
};

struct uc_cache_slot {
    uint64_t generation;
    uint32_t slot;
    enum uc_cache_admission admission; /* reserve only */
};

/** What one commit did to one id. */
enum uc_cache_outcome {
    UC_CACHE_OUTCOME_NONE,     /* NotFound: no reference outstanding */
    UC_CACHE_OUTCOME_WAITING,  /* other references remain */
    UC_CACHE_OUTCOME_VISIBLE,  /* visible now, or still */
    UC_CACHE_OUTCOME_RELEASED, /* dropped; FREE, or DRAINING under a transfer */
    UC_CACHE_OUTCOME_EXPIRED,  /* committed, but expired: keeps its slot until probed or swept */
};

struct uc_cache_info {
    uint64_t generation;
    uint64_t deadline_ms; /* UC_TIME_NEVER_MS without TTL */
    uint32_t slot;
    uint32_t pin_count; /* reader pins and readmission references */
    enum uc_cache_state state;
};

struct uc_cache_stats {
    size_t capacity;
    size_t free;
    size_t evictable;
    size_t draining;
    size_t reserved; /* pending entries */
    size_t pinned;   /* committed slots with pins > 0 */
    size_t blocks;   /* committed entries */
    uint64_t evicted_total;
    uint64_t expired_total;
    uint64_t committed_total; /* newcomers that became visible */
    size_t memory_bytes;      /* heap of index and policy */
};

/** InvalidParam (capacity 0, unknown name: known ones listed), OutOfMemory. */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_cache_buffer_create(
        const struct uc_cache_config *config, struct uc_cache_buffer **buffer_out);
UC_PRIVATE_API void uc_cache_buffer_destroy(struct uc_cache_buffer *buffer);

/**
 * Two-phase admission, all or nothing (16.3).
 *
 * @param[in]  context     facts (TTL); may be NULL
 * @param[in]  hints       NULL, or one per id
 * @param[out] slots_out   one per id
 * @param[out] evicted_out room for @p count ids; may be NULL
 * @retval UC_ERR_INVALID_PARAM  count 0, or an id twice
 * @retval UC_ERR_NO_SPACE       nothing was changed
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_cache_buffer_reserve(struct uc_cache_buffer *buffer,
        const struct uc_block_id *ids, size_t count, const struct uc_request_context *context,
        const struct uc_policy_hints *hints, struct uc_cache_slot *slots_out,
        struct uc_block_id *evicted_out, size_t *evicted_count_out);

/**
 * Conclude one reference per id (16.5); the rest is concluded even if one answers an error.
 *
 * @param[out] outcomes_out  NULL, or one per id; written always
 * @retval UC_ERR_NOT_FOUND      some id had no reference outstanding
 * @retval UC_ERR_INVALID_PARAM  success while a transfer runs on the slot; wins over NotFound
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_cache_buffer_commit(struct uc_cache_buffer *buffer,
        const struct uc_block_id *ids, size_t count, bool success,
        enum uc_cache_outcome *outcomes_out);

/** Pin visible blocks, all or nothing; refreshes hotness once per block. */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_cache_buffer_pin(struct uc_cache_buffer *buffer,
        const struct uc_block_id *ids, size_t count, struct uc_cache_slot *slots_out);
UC_PRIVATE_API void uc_cache_buffer_unpin(
        struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count);

/** hits_out[i] = 1 where visible. Data path: no allocation. */
UC_PRIVATE_API void uc_cache_buffer_lookup(struct uc_cache_buffer *buffer,
        const struct uc_block_id *ids, size_t count, uint8_t *hits_out);
UC_PRIVATE_API void uc_cache_buffer_touch(struct uc_cache_buffer *buffer,
        const struct uc_block_id *ids, size_t count, const struct uc_request_context *context);

/** State of one id without side effect. */
UC_PRIVATE_API struct uc_cache_info uc_cache_buffer_peek(
        const struct uc_cache_buffer *buffer, const struct uc_block_id *id);

/** Any thread. @retval UC_ERR_NOT_FOUND stale. */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_cache_buffer_transfer_begin(
        struct uc_cache_buffer *buffer, uint32_t slot, uint64_t generation);
UC_PRIVATE_API void uc_cache_buffer_transfer_end(struct uc_cache_buffer *buffer, uint32_t slot);

/** Withdraw a damaged block. @retval UC_ERR_NOT_FOUND no such block of that generation. */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_cache_buffer_revoke(
        struct uc_cache_buffer *buffer, const struct uc_block_id *id, uint64_t generation);

UC_PRIVATE_API struct uc_cache_stats uc_cache_buffer_stats(const struct uc_cache_buffer *buffer);

#endif /* UC_CACHE_CACHE_BUFFER_H */
