/* SPDX-License-Identifier: Apache-2.0 */

/** @file policy_internal.h The slot pool as the files of the base see it. Threads: as in policy.h. */

#ifndef UC_CACHE_POLICY_INTERNAL_H
#define UC_CACHE_POLICY_INTERNAL_H

#include <stdatomic.h>

#include "core/cache/policy.h"

/*
 * One atomic word per slot: generation (40 bits), open, loose, transfers in flight (22 bits).
 *
 *   open   the slot is RESERVED or COMMITTED: transfers of its generation may begin
 *   loose  the slot is COMMITTED and not pinned: a victim as soon as no transfer is in flight
 *
 *   FREE       neither, transfers = 0          RESERVED   open, pins = 0
 *   DRAINING   neither, transfers > 0          COMMITTED  open, and loose or pins > 0
 *
 * Everything that data threads read or change is in the word, so every transition is one exchange, and
 * whoever makes it keeps the counters: a slot's evictability can flip on either side of the house.
 */
#define WORD_GENERATION_SHIFT 24
#define WORD_OPEN             (1ull << 23)
#define WORD_LOOSE            (1ull << 22)
#define WORD_TRANSFERS        (WORD_LOOSE - 1)

struct slot {
    _Atomic uint64_t word;
    uint32_t next_free; /* of whoever holds the slot outside RESERVED and COMMITTED */
    uint32_t pins;      /* control thread */
};

struct uc_policy {
    const struct uc_policy_ops *ops;
    void *discipline;
    struct slot *slots;
    size_t capacity;
    size_t occupied; /* RESERVED and COMMITTED; control thread */
    size_t memory_bytes;
    uint32_t free_head; /* control thread */
    int64_t evictable;  /* by transitions of the control thread; its own, so no exchange */
    _Atomic int64_t evictable_data; /* by those of data threads; the sum is the count */
    _Atomic uint32_t returned;      /* stack of slots that data threads drained */
    _Atomic int64_t draining;
};

static inline uint64_t
word_load(const struct uc_policy *policy, uint32_t slot)
{
    /* Pairs with the release in word_swap(): who sees no transfer sees what transfers wrote. */
    return atomic_load_explicit(&policy->slots[slot].word, memory_order_acquire);
}

static inline bool
word_is_evictable(uint64_t word)
{
    return (word & (WORD_LOOSE | WORD_TRANSFERS)) == WORD_LOOSE;
}

static inline bool
word_exchange(struct uc_policy *policy, uint32_t slot, uint64_t *seen, uint64_t want)
{
    return atomic_compare_exchange_weak_explicit(
            &policy->slots[slot].word, seen, want, memory_order_acq_rel, memory_order_acquire);
}

/* How much the evictable count changes from one word to the next. */
static inline int64_t
word_gain(uint64_t was, uint64_t is)
{
    return (int64_t)word_is_evictable(is) - (int64_t)word_is_evictable(was);
}

/* Control thread: exchange and keep the evictable count; on failure *seen is what is there instead. */
static inline bool
word_swap(struct uc_policy *policy, uint32_t slot, uint64_t *seen, uint64_t want)
{
    int64_t gain = word_gain(*seen, want);

    if (!word_exchange(policy, slot, seen, want)) {
        return false;
    }

    policy->evictable += gain;
    return true;
}

/* The same for any thread. */
static inline bool
word_swap_data(struct uc_policy *policy, uint32_t slot, uint64_t *seen, uint64_t want)
{
    int64_t gain = word_gain(*seen, want);

    if (!word_exchange(policy, slot, seen, want)) {
        return false;
    }

    if (gain != 0) {
        (void)atomic_fetch_add_explicit(&policy->evictable_data, gain, memory_order_release);
    }
    return true;
}

static inline uint64_t
word_next_generation(uint64_t word)
{
    uint64_t generation = word >> WORD_GENERATION_SHIFT;

    generation = generation == UC_GENERATION_MAX ? 1 : generation + 1;
    return generation << WORD_GENERATION_SHIFT | (word & ((1ull << WORD_GENERATION_SHIFT) - 1));
}

/* policy_free.c */

/* Control thread: a slot is FREE. */
void uc_policy_push_free(struct uc_policy *policy, uint32_t slot);
/* Any thread: a DRAINING slot has ended its last transfer. */
void uc_policy_push_returned(struct uc_policy *policy, uint32_t slot);
/* Control thread: the first free slot, or UC_SLOT_NONE. */
uint32_t uc_policy_pop_free(struct uc_policy *policy);

#endif /* UC_CACHE_POLICY_INTERNAL_H */
