/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file cache_model.h
 * What sections 4.1, 4.5, 15.3 and 16 of core/CONTRACT.md say, written down as plainly as it goes: arrays that
 * are searched from end to end, a copy of everything for rollback, no heap, no map, no counters. It is held
 * against core/cache by a property test and shares no code with it.
 *
 * Where the contract leaves a choice, the engine's is told to the model, which says whether it was allowed:
 * which free slot a newcomer gets, the first generation of a slot, and victims of a policy that it does not know.
 *
 * One thread. Blocks are small numbers.
 */

#ifndef UC_TEST_MODEL_CACHE_MODEL_H
#define UC_TEST_MODEL_CACHE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/status.h>

#include "core/cache/cache_buffer.h" /* the enumerations that it answers with */

enum {
    MODEL_SLOTS_MAX = 12,
    MODEL_BLOCKS = 32,    /* names are 0 to 31 */
    MODEL_BATCH_MAX = 40, /* with repetitions */
    MODEL_NO_BLOCK = -1
};

enum model_policy {
    MODEL_LRU,
    MODEL_CLOCK,
    MODEL_FIFO,
    MODEL_ANY, /* any evictable block may be the victim */
};

enum model_slot_state {
    MODEL_FREE,
    MODEL_RESERVED,
    MODEL_COMMITTED,
    MODEL_DRAINING,
};

struct model_slot {
    enum model_slot_state state;
    uint64_t generation; /* 0 = never seen yet */
    unsigned transfers;
    bool referenced; /* bit of the clock */
};

struct model_block {
    bool present;
    bool committed; /* else pending */
    bool damaged;
    bool success;         /* of the running references */
    unsigned refs;        /* pending: references; committed: readmission references */
    unsigned reader_pins; /* committed only */
    uint64_t ttl_ms;      /* UINT64_MAX = none */
    uint64_t deadline_ms; /* UINT64_MAX = none */
    uint32_t slot;
};

/* A plain value: a copy of it is the whole memory of the model. */
struct cache_model {
    enum model_policy policy;
    bool leaf_first;
    uint32_t capacity;
    uint64_t now_ms;
    struct model_slot slots[MODEL_SLOTS_MAX];
    struct model_block blocks[MODEL_BLOCKS];
    uint32_t order[MODEL_SLOTS_MAX]; /* COMMITTED slots, next victim of lru and fifo first */
    size_t order_count;
    uint32_t hand;
    uint64_t evicted_total;
    uint64_t expired_total;
    uint64_t committed_total;
};

struct model_answer {
    enum uc_status status;
    struct uc_cache_slot slots[MODEL_BATCH_MAX];     /* reserve, pin */
    enum uc_cache_outcome outcomes[MODEL_BATCH_MAX]; /* commit */
    bool hits[MODEL_BATCH_MAX];                      /* lookup */
    int evicted[MODEL_SLOTS_MAX];                    /* reserve */
    size_t evicted_count;
    const char *forbidden; /* NULL, or why the engine's choice was not allowed */
};

void model_init(
        struct cache_model *model, enum model_policy policy, bool leaf_first, uint32_t capacity);

/*
 * @param ttl_ms   UINT64_MAX: the request has no TTL
 * @param victims  so many victims can be had, then there is no other (R-15.17 and transfers that start)
 * @param told     the slots that the engine gave, one per block; NULL if it answered an error
 */
void model_reserve(struct cache_model *model, const int *blocks, size_t count, uint64_t ttl_ms,
        size_t victims, const struct uc_cache_slot *told, struct model_answer *answer);
void model_commit(struct cache_model *model, const int *blocks, size_t count, bool success,
        struct model_answer *answer);
void model_pin(
        struct cache_model *model, const int *blocks, size_t count, struct model_answer *answer);
void model_unpin(struct cache_model *model, const int *blocks, size_t count);
void model_lookup(
        struct cache_model *model, const int *blocks, size_t count, struct model_answer *answer);
/* @param ttl_ms  UINT64_MAX: the request has no TTL */
void model_touch(struct cache_model *model, const int *blocks, size_t count, uint64_t ttl_ms);
enum uc_status model_revoke(struct cache_model *model, int block, uint64_t generation);
enum uc_status model_transfer_begin(struct cache_model *model, uint32_t slot, uint64_t generation);
void model_transfer_end(struct cache_model *model, uint32_t slot);

struct uc_cache_info model_peek(const struct cache_model *model, int block);
/* All but memory_bytes. */
struct uc_cache_stats model_stats(const struct cache_model *model);

#endif /* UC_TEST_MODEL_CACHE_MODEL_H */
