/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file cache_internal.h
 * What the files of CacheBuffer share. One entry per slot: the slot is the identity, the block map finds
 * it by id. All of it belongs to the control thread; data threads see the policy only.
 */

#ifndef UC_CACHE_CACHE_INTERNAL_H
#define UC_CACHE_CACHE_INTERNAL_H

#include <assert.h>

#include "core/base/block_map.h"
#include "core/cache/cache_buffer.h"
#include "core/cache/ghost.h"

enum cache_entry_state {
    CACHE_ENTRY_NONE, /* no block in this slot: FREE or DRAINING */
    CACHE_ENTRY_PENDING,
    CACHE_ENTRY_COMMITTED,
};

enum {
    CACHE_POSITION_MAX = (1 << 22) - 1, /* deeper positions are all alike */
    CACHE_STALE_MIN = 64,               /* */
    CACHE_CHUNK = 256                   /* ids that are resolved at once */
};

/* All that lookups, admission and eviction need: half a cache line, and never in two. */
struct cache_entry {
    struct uc_block_id id;
    union {
        uint64_t deadline_ms; /* committed; UC_TIME_NEVER_MS = none */
        uint64_t ttl_ms;      /* pending: of the last admitter; UC_TIME_NEVER_MS = none */
    };
    uint32_t position : 22; /* policy hints */
    uint32_t seen : 2;
    uint32_t partial : 1;
    uint32_t state : 2;    /* enum cache_entry_state */
    uint32_t damaged : 1;  /* revoked */
    uint32_t success : 1;  /* some commit of the running references was one */
    uint32_t queued : 1;   /* the heap has an item with the present deadline */
    uint32_t deferred : 1; /* of the slot: it is in the deferred list */
    uint32_t pinned : 1;   /* by readers, see cache_hold */
    uint32_t refs;         /* pending: references; committed: readmission references */
};

static_assert(sizeof(struct cache_entry) == 32, "the metadata budget counts on it");

/* The rest of a committed block, needed while somebody holds it. */
struct cache_hold {
    uint64_t ttl_ms; /* of the last readmission; UC_TIME_NEVER_MS = none */
    uint32_t reader_pins;
    uint32_t mark; /* of the slot: the last pin call that refreshed it */
};

static_assert(sizeof(struct cache_hold) == 16, "the metadata budget counts on it");

/* Two per block, so in halves: 12 bytes instead of 16. */
struct cache_deadline {
    uint32_t deadline_high;
    uint32_t deadline_low;
    uint32_t slot;
};

static inline uint64_t
cache_deadline_ms(const struct cache_deadline *item)
{
    return (uint64_t)item->deadline_high << 32 | item->deadline_low;
}

enum cache_record_kind {
    CACHE_RECORD_UNPLACED, /* newcomer without a slot */
    CACHE_RECORD_DAMAGED,  /* newcomer whose revoked copy still has to go */
    CACHE_RECORD_JOINED,
    CACHE_RECORD_READMITTED,
    CACHE_RECORD_ON_FREE,   /* newcomer on a free slot */
    CACHE_RECORD_ON_VICTIM, /* newcomer on a victim's slot */
};

/* Journal of the running Reserve: one record per id. */
struct cache_record {
    enum cache_record_kind kind;
    uint32_t slot;
    uint64_t old_ttl_ms;       /* JOINED, READMITTED */
    struct cache_entry victim; /* ON_VICTIM */
};

/* Grows with the largest batch, never on the way of an ordinary one. */
struct cache_scratch {
    struct cache_record *records;
    uint32_t *slots;
    uint32_t *seen; /* 1 + index of an id of the batch, by hash; power of two, at most half full */
    size_t capacity;
};

struct uc_cache_buffer {
    struct uc_policy *policy;
    struct uc_block_map *map;
    struct cache_entry *entries; /* per slot */
    struct cache_hold *holds;    /* per slot */
    void *entries_memory;        /* what to free: entries are aligned in it */
    struct uc_ghost *ghost;      /* NULL unless the discipline asks for one */
    size_t capacity;
    struct uc_clock clock;
    bool leaf_first;
    uint32_t epoch; /* of the last pin call */

    struct cache_deadline *heap; /* min-heap with lazy deletion */
    size_t heap_count;
    size_t heap_live; /* items that are not stale */
    uint32_t *deferred;
    size_t deferred_count;

    struct cache_scratch scratch;

    size_t reserved;
    size_t blocks;
    size_t pinned;
    uint64_t evicted_total;
    uint64_t expired_total;
    uint64_t committed_total;
};

static inline bool
cache_entry_is_held(const struct cache_entry *entry)
{
    return entry->refs > 0 || entry->pinned;
}

static inline bool
cache_entry_is_visible(const struct cache_entry *entry, uint64_t now_ms)
{
    return entry->state == CACHE_ENTRY_COMMITTED && now_ms < entry->deadline_ms;
}

static inline struct uc_policy_hints
cache_entry_hints(const struct cache_entry *entry)
{
    struct uc_policy_hints hints = {
            .position = entry->position,
            .partial = entry->partial != 0,
            .seen = (uint8_t)entry->seen,
    };

    return hints;
}

static inline void
cache_entry_set_seen(struct cache_entry *entry, unsigned seen)
{
    entry->seen = seen < 2 ? seen & 1u : 2u;
}

/* A block leaves the cache: it was seen once more than before its admission or last touch. */
static inline void
cache_entry_remember(struct uc_cache_buffer *buffer, const struct cache_entry *entry)
{
    if (buffer->ghost != NULL) {
        uc_ghost_add(buffer->ghost, &entry->id, entry->seen + 1u);
    }
}

static inline void
cache_ghost_prefetch(const struct uc_cache_buffer *buffer, const struct uc_block_id *id)
{
    if (buffer->ghost != NULL) {
        uc_ghost_prefetch(buffer->ghost, id);
    }
}

/* Index of the step-th block in the order that the discipline is fed. */
static inline size_t
cache_feed_index(const struct uc_cache_buffer *buffer, size_t step, size_t count)
{
    return buffer->leaf_first ? count - 1 - step : step;
}

/*
 * Lists are resolved in chunks that fit on the stack, in the order that the discipline is fed. @return the first
 * index of the chunk that follows @p done ids.
 */
static inline size_t
cache_next_chunk(const struct uc_cache_buffer *buffer, size_t done, size_t count, size_t *chunk_out)
{
    size_t left = count - done;

    *chunk_out = left < CACHE_CHUNK ? left : CACHE_CHUNK;
    return buffer->leaf_first ? left - *chunk_out : done;
}

/* cache_buffer.c */

/* The entry that now stands in the slot enters the map and the counts. */
void uc_cache_entry_enter(struct uc_cache_buffer *buffer, uint32_t slot);
/* The reverse; the slot itself is the caller's business. */
void uc_cache_entry_leave(struct uc_cache_buffer *buffer, uint32_t slot);
/* One policy pin more for a committed block; count the holder's own reference after it. */
UC_MUST_CHECK enum uc_status uc_cache_hold(struct uc_cache_buffer *buffer, uint32_t slot);
/* One less, after the holder's own reference was dropped. */
void uc_cache_unhold(struct uc_cache_buffer *buffer, uint32_t slot);
/* @return whether the block is visible; an expired one that nobody holds is removed. */
bool uc_cache_probe(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t now_ms);

/* cache_expiry.c */

/* Change the deadline of a committed block. */
void uc_cache_set_deadline(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t deadline_ms);
/* Remove an expired or damaged block that nobody holds. */
void uc_cache_expire(struct uc_cache_buffer *buffer, uint32_t slot);
/* */
void uc_cache_sweep(struct uc_cache_buffer *buffer, uint64_t now_ms);

/* cache_journal.c */

/* Make room for a batch. @retval UC_ERR_OUT_OF_MEMORY  the old scratch is still in place */
UC_MUST_CHECK enum uc_status uc_cache_scratch_grow(struct cache_scratch *scratch, size_t count);
void uc_cache_scratch_fini(struct cache_scratch *scratch);
size_t uc_cache_scratch_memory_bytes(const struct cache_scratch *scratch);
/* Undo what the records of the batch say was done. */
void uc_cache_rollback(struct uc_cache_buffer *buffer, size_t count);

#endif /* UC_CACHE_CACHE_INTERNAL_H */
