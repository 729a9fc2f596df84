/* SPDX-License-Identifier: Apache-2.0 */

#include "core/cache/policy.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

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

enum {
    VICTIM_TRIES = 16 /* a victim is lost only to a transfer that begins at that very moment */
};

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
    uint32_t free_head;        /* control thread */
    _Atomic uint32_t returned; /* stack of slots that data threads drained */
    _Atomic int64_t evictable; /* signed: an end may be counted before the begin it follows */
    _Atomic int64_t draining;
};

static uint64_t
word_load(const struct uc_policy *policy, uint32_t slot)
{
    /* Pairs with the release in word_swap(): who sees no transfer sees what transfers wrote. */
    return atomic_load_explicit(&policy->slots[slot].word, memory_order_acquire);
}

static bool
word_is_evictable(uint64_t word)
{
    return (word & (WORD_LOOSE | WORD_TRANSFERS)) == WORD_LOOSE;
}

/* Exchange the word and keep the evictable count; on failure *seen is what is there instead. */
static bool
word_swap(struct uc_policy *policy, uint32_t slot, uint64_t *seen, uint64_t want)
{
    bool was = word_is_evictable(*seen);
    bool is = word_is_evictable(want);

    if (!atomic_compare_exchange_weak_explicit(&policy->slots[slot].word, seen, want,
                memory_order_acq_rel, memory_order_acquire)) {
        return false;
    }

    if (was != is) {
        (void)atomic_fetch_add_explicit(&policy->evictable, is ? 1 : -1, memory_order_relaxed);
    }
    return true;
}

static uint64_t
word_next_generation(uint64_t word)
{
    uint64_t generation = word >> WORD_GENERATION_SHIFT;

    generation = generation == UC_GENERATION_MAX ? 1 : generation + 1;
    return generation << WORD_GENERATION_SHIFT | (word & ((1ull << WORD_GENERATION_SHIFT) - 1));
}

static void
push_free(struct uc_policy *policy, uint32_t slot)
{
    policy->slots[slot].next_free = policy->free_head == UC_SLOT_NONE ? slot : policy->free_head;
    policy->free_head = slot;
}

/* Any thread: hand a drained slot to the control thread. */
static void
push_returned(struct uc_policy *policy, uint32_t slot)
{
    uint32_t head = atomic_load_explicit(&policy->returned, memory_order_relaxed);

    do {
        policy->slots[slot].next_free = head == UC_SLOT_NONE ? slot : head;
    } while (!atomic_compare_exchange_weak_explicit(
            &policy->returned, &head, slot, memory_order_release, memory_order_relaxed));
    /* Release, after the push: who counts the slot as free will find it. */
    (void)atomic_fetch_sub_explicit(&policy->draining, 1, memory_order_release);
}

/* Put what data threads returned in front of the free list, last one first. */
static void
absorb_returned(struct uc_policy *policy)
{
    uint32_t head = atomic_load_explicit(&policy->returned, memory_order_relaxed);
    uint32_t tail;

    if (head == UC_SLOT_NONE) {
        return;
    }

    /* Taking the whole stack leaves no room for ABA; acquire pairs with push_returned(). */
    head = atomic_exchange_explicit(&policy->returned, UC_SLOT_NONE, memory_order_acquire);
    for (tail = head; policy->slots[tail].next_free != tail;) {
        tail = policy->slots[tail].next_free;
    }
    if (policy->free_head != UC_SLOT_NONE) {
        policy->slots[tail].next_free = policy->free_head;
    }
    policy->free_head = head;
}

static uint32_t
pop_free(struct uc_policy *policy)
{
    uint32_t slot;
    uint32_t next;

    absorb_returned(policy);
    slot = policy->free_head;
    if (slot == UC_SLOT_NONE) {
        return UC_SLOT_NONE;
    }

    next = policy->slots[slot].next_free;
    policy->free_head = next == slot ? UC_SLOT_NONE : next;
    policy->slots[slot].next_free = UC_SLOT_NONE;
    return slot;
}

/* Conclude an open slot: FREE, or DRAINING until the last transfer has ended. */
static void
conclude(struct uc_policy *policy, uint32_t slot)
{
    uint64_t word = word_load(policy, slot);
    uint64_t want;

    do {
        want = word_next_generation(word) & ~(WORD_OPEN | WORD_LOOSE);
    } while (!word_swap(policy, slot, &word, want));

    policy->occupied--;
    if ((want & WORD_TRANSFERS) == 0) {
        push_free(policy, slot);
    } else {
        (void)atomic_fetch_add_explicit(&policy->draining, 1, memory_order_relaxed);
    }
}

static bool
slot_is_reserved(const struct uc_policy *policy, uint32_t slot)
{
    return slot < policy->capacity && policy->slots[slot].pins == 0 &&
           (word_load(policy, slot) & (WORD_OPEN | WORD_LOOSE)) == WORD_OPEN;
}

static bool
slot_is_committed(const struct uc_policy *policy, uint32_t slot)
{
    return slot < policy->capacity &&
           (policy->slots[slot].pins > 0 || (word_load(policy, slot) & WORD_LOOSE) != 0);
}

/* Transitions of 4.1 name what they refuse. */
static enum uc_status
refuse(const struct uc_policy *policy, uint32_t slot, const char *what)
{
    if (slot >= policy->capacity) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "slot %u: %s: only %zu slots", slot, what, policy->capacity);
    }

    return uc_error(UC_ERR_INVALID_PARAM,
            "slot %u: %s: its state forbids it (%u pins, %u transfers)", slot, what,
            policy->slots[slot].pins, uc_policy_transfer_count(policy, slot));
}

static enum uc_status
check_ops(const struct uc_policy_ops *ops, size_t capacity)
{
    if (ops == NULL || ops->name == NULL || ops->on_setup == NULL || ops->destroy == NULL ||
            ops->on_slot_admitted == NULL || ops->on_slot_touched == NULL ||
            ops->on_slot_released == NULL || ops->select_victim_slot == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "policy: its table lacks a mandatory hook");
    }
    if (capacity == 0 || capacity > UINT32_MAX - 1) {
        return uc_error(UC_ERR_INVALID_PARAM, "policy %s: capacity %zu is not 1 to %u slots",
                ops->name, capacity, UINT32_MAX - 1);
    }

    return UC_OK;
}

static void
init_slots(struct uc_policy *policy)
{
    for (size_t slot = 0; slot < policy->capacity; slot++) {
        bool last = slot + 1 == policy->capacity;

        atomic_init(&policy->slots[slot].word, 1ull << WORD_GENERATION_SHIFT);
        policy->slots[slot].next_free = (uint32_t)(last ? slot : slot + 1);
    }
    policy->free_head = 0;
    atomic_init(&policy->returned, UC_SLOT_NONE);
    atomic_init(&policy->evictable, 0);
    atomic_init(&policy->draining, 0);
}

enum uc_status
uc_policy_create(const struct uc_policy_ops *ops, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, struct uc_policy **policy_out)
{
    struct uc_policy *policy;
    enum uc_status status = check_ops(ops, capacity);

    if (status != UC_OK) {
        return status;
    }

    policy = calloc(1, sizeof(*policy));
    if (policy == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy %s: no memory", ops->name);
    }

    policy->ops = ops;
    policy->capacity = capacity;
    policy->memory_bytes = sizeof(*policy);
    policy->slots = uc_policy_allocate(policy, capacity, sizeof(policy->slots[0]));
    if (policy->slots == NULL) {
        status = uc_error(
                UC_ERR_OUT_OF_MEMORY, "policy %s: no memory for %zu slots", ops->name, capacity);
        goto err_free_policy;
    }

    init_slots(policy);
    status = ops->on_setup(policy, capacity, parameters, clock, &policy->discipline);
    if (status != UC_OK) {
        goto err_free_slots;
    }

    *policy_out = policy;
    return UC_OK;

err_free_slots:
    free(policy->slots);
err_free_policy:
    free(policy);
    return status;
}

void
uc_policy_destroy(struct uc_policy *policy)
{
    if (policy == NULL) {
        return;
    }

    policy->ops->destroy(policy->discipline);
    free(policy->slots);
    free(policy);
}

/* COMMITTED → RESERVED without passing through the free list. */
static enum uc_status
evict(struct uc_policy *policy, uint32_t *slot_out)
{
    for (unsigned try = 0; try < VICTIM_TRIES; try++) {
        uint32_t slot = policy->ops->select_victim_slot(policy->discipline);
        uint64_t word;

        if (slot == UC_SLOT_NONE) {
            return UC_ERR_NO_SPACE;
        }
        if (slot >= policy->capacity) {
            break;
        }

        word = word_load(policy, slot);
        while (word_is_evictable(word)) {
            if (word_swap(policy, slot, &word, word_next_generation(word) & ~WORD_LOOSE)) {
                policy->ops->on_slot_released(policy->discipline, slot);
                *slot_out = slot;
                return UC_OK;
            }
        }
    }

    return uc_error(
            UC_ERR_GENERAL, "policy %s: chose a victim that is not evictable", policy->ops->name);
}

enum uc_status
uc_policy_acquire_slot(
        struct uc_policy *policy, uint32_t *slot_out, uint64_t *generation_out, bool *evicted_out)
{
    uint32_t slot = pop_free(policy);
    bool evicted = slot == UC_SLOT_NONE;

    if (evicted) {
        enum uc_status status = evict(policy, &slot);

        if (status == UC_ERR_NO_SPACE) {
            return uc_error(status, "policy %s: no free slot and no victim among %zu",
                    policy->ops->name, policy->capacity);
        }
        if (status != UC_OK) {
            return status;
        }
    } else {
        uint64_t word = word_load(policy, slot);

        while (!word_swap(policy, slot, &word, word | WORD_OPEN)) {
        }
        policy->occupied++;
    }

    *slot_out = slot;
    *generation_out = uc_policy_generation(policy, slot);
    *evicted_out = evicted;
    return UC_OK;
}

enum uc_status
uc_policy_commit_slot(struct uc_policy *policy, uint32_t slot, const struct uc_policy_hints *hints)
{
    uint64_t word;

    if (!slot_is_reserved(policy, slot)) {
        return refuse(policy, slot, "commit");
    }

    word = word_load(policy, slot);
    do {
        if ((word & WORD_TRANSFERS) != 0) {
            return refuse(policy, slot, "commit");
        }
    } while (!word_swap(policy, slot, &word, word | WORD_LOOSE));

    policy->ops->on_slot_admitted(policy->discipline, slot, hints);
    return UC_OK;
}

enum uc_status
uc_policy_abort_slot(struct uc_policy *policy, uint32_t slot)
{
    if (!slot_is_reserved(policy, slot)) {
        return refuse(policy, slot, "abort");
    }

    conclude(policy, slot);
    return UC_OK;
}

enum uc_status
uc_policy_release_slot(struct uc_policy *policy, uint32_t slot)
{
    if (!slot_is_committed(policy, slot) || policy->slots[slot].pins > 0) {
        return refuse(policy, slot, "release");
    }

    policy->ops->on_slot_released(policy->discipline, slot);
    conclude(policy, slot);
    return UC_OK;
}

enum uc_status
uc_policy_touch_slot(struct uc_policy *policy, uint32_t slot, const struct uc_policy_hints *hints)
{
    if (!slot_is_committed(policy, slot)) {
        return refuse(policy, slot, "touch");
    }

    policy->ops->on_slot_touched(policy->discipline, slot, hints);
    return UC_OK;
}

enum uc_status
uc_policy_pin_slot(struct uc_policy *policy, uint32_t slot)
{
    if (!slot_is_committed(policy, slot) || policy->slots[slot].pins == UINT32_MAX) {
        return refuse(policy, slot, "pin");
    }

    if (policy->slots[slot].pins++ == 0) {
        uint64_t word = word_load(policy, slot);

        while (!word_swap(policy, slot, &word, word & ~WORD_LOOSE)) {
        }
    }
    return UC_OK;
}

enum uc_status
uc_policy_unpin_slot(struct uc_policy *policy, uint32_t slot)
{
    if (slot >= policy->capacity || policy->slots[slot].pins == 0) {
        return refuse(policy, slot, "unpin");
    }

    if (--policy->slots[slot].pins == 0) {
        uint64_t word = word_load(policy, slot);

        while (!word_swap(policy, slot, &word, word | WORD_LOOSE)) {
        }
    }
    return UC_OK;
}

enum uc_status
uc_policy_restore_slot(struct uc_policy *policy, uint32_t slot, uint64_t victim_generation)
{
    static const struct uc_policy_hints unknown = {0};
    uint64_t victim = victim_generation << WORD_GENERATION_SHIFT;
    uint64_t word;

    if (!slot_is_reserved(policy, slot) || victim_generation == 0 ||
            victim_generation > UC_GENERATION_MAX) {
        return refuse(policy, slot, "restore");
    }

    word = word_load(policy, slot);
    do {
        if (word != (word_next_generation(victim) | WORD_OPEN)) {
            return refuse(policy, slot, "restore");
        }
    } while (!word_swap(policy, slot, &word, victim | WORD_OPEN | WORD_LOOSE));

    policy->ops->on_slot_admitted(policy->discipline, slot, &unknown);
    return UC_OK;
}

/* Data path of any thread: no error text, the status says it all. */
enum uc_status
uc_policy_transfer_begin(struct uc_policy *policy, uint32_t slot, uint64_t generation)
{
    uint64_t word;

    if (slot >= policy->capacity) {
        return UC_ERR_NOT_FOUND;
    }

    word = word_load(policy, slot);
    do {
        if (word >> WORD_GENERATION_SHIFT != generation || (word & WORD_OPEN) == 0) {
            return UC_ERR_NOT_FOUND;
        }
        if ((word & WORD_TRANSFERS) == WORD_TRANSFERS) {
            return UC_ERR_INVALID_PARAM;
        }
    } while (!word_swap(policy, slot, &word, word + 1));

    return UC_OK;
}

void
uc_policy_transfer_end(struct uc_policy *policy, uint32_t slot)
{
    uint64_t word;

    if (slot >= policy->capacity) {
        return;
    }

    word = word_load(policy, slot);
    do {
        if ((word & WORD_TRANSFERS) == 0) {
            return;
        }
    } while (!word_swap(policy, slot, &word, word - 1));

    if ((word & (WORD_OPEN | WORD_TRANSFERS)) == 1) {
        push_returned(policy, slot); /* the last one of a DRAINING slot, R-4.13 */
    }
}

size_t
uc_policy_capacity(const struct uc_policy *policy)
{
    return policy->capacity;
}

static size_t
counter(const _Atomic int64_t *count)
{
    /* Acquire pairs with push_returned(). */
    int64_t value = atomic_load_explicit(count, memory_order_acquire);

    return value > 0 ? (size_t)value : 0;
}

size_t
uc_policy_free_count(const struct uc_policy *policy)
{
    return policy->capacity - policy->occupied - counter(&policy->draining);
}

size_t
uc_policy_evictable_count(const struct uc_policy *policy)
{
    return counter(&policy->evictable);
}

size_t
uc_policy_draining_count(const struct uc_policy *policy)
{
    return counter(&policy->draining);
}

uint64_t
uc_policy_generation(const struct uc_policy *policy, uint32_t slot)
{
    return slot < policy->capacity ? word_load(policy, slot) >> WORD_GENERATION_SHIFT : 0;
}

uint32_t
uc_policy_transfer_count(const struct uc_policy *policy, uint32_t slot)
{
    return slot < policy->capacity ? (uint32_t)(word_load(policy, slot) & WORD_TRANSFERS) : 0;
}

bool
uc_policy_is_evictable(const struct uc_policy *policy, uint32_t slot)
{
    return slot < policy->capacity && word_is_evictable(word_load(policy, slot));
}

void *
uc_policy_allocate(struct uc_policy *policy, size_t count, size_t size_bytes)
{
    void *memory = calloc(count, size_bytes);

    if (memory != NULL) {
        policy->memory_bytes += count * size_bytes;
    }
    return memory;
}

size_t
uc_policy_memory_bytes(const struct uc_policy *policy)
{
    return policy->memory_bytes;
}
