/* SPDX-License-Identifier: Apache-2.0 */

#include "core/cache/policy.h"

#include <stdlib.h>

#include "core/base/huge_pages.h"
#include "core/cache/policy_internal.h"

enum {
    VICTIM_TRIES = 16 /* a victim is lost only to a transfer that begins at that very moment */
};

static enum uc_status
check_ops(const struct uc_policy_ops *ops, size_t capacity)
{
    if (ops == NULL || ops->name == NULL || ops->on_setup == NULL || ops->destroy == NULL ||
            ops->on_slot_admitted == NULL || ops->on_slot_touched == NULL ||
            ops->on_slot_released == NULL || ops->select_victim_slot == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "policy: its table lacks a mandatory hook");
    }
    /* Disciplines number the heads of their lists behind the slots. */
    if (capacity == 0 || capacity > INT32_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "policy %s: capacity %zu is not 1 to %d slots",
                ops->name, capacity, INT32_MAX);
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
    atomic_init(&policy->evictable_data, 0);
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
    uint32_t slot = uc_policy_pop_free(policy);
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
    size_t taken = policy->occupied + counter(&policy->draining);

    /* A drained slot may be taken again a moment before its return is counted. */
    return taken < policy->capacity ? policy->capacity - taken : 0;
}

size_t
uc_policy_evictable_count(const struct uc_policy *policy)
{
    /*
     * Signed: a data thread's begin or end is counted a moment after its word has changed. Acquire pairs with
     * word_swap_data(): who counts a slot as evictable finds it so.
     */
    int64_t count =
            policy->evictable + atomic_load_explicit(&policy->evictable_data, memory_order_acquire);

    return count > 0 ? (size_t)count : 0;
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

void
uc_policy_prefetch(const struct uc_policy *policy, uint32_t slot)
{
    UC_PREFETCH(&policy->slots[slot < policy->capacity ? slot : 0]);
}

void *
uc_policy_allocate(struct uc_policy *policy, size_t count, size_t size_bytes)
{
    void *memory = calloc(count, size_bytes);

    if (memory != NULL) {
        uc_huge_pages_advise(memory, count * size_bytes);
        policy->memory_bytes += count * size_bytes;
    }
    return memory;
}

size_t
uc_policy_ghost_ids(const struct uc_policy *policy)
{
    return policy->ops->ghost_ids == NULL ? 0 : policy->ops->ghost_ids(policy->discipline);
}

size_t
uc_policy_memory_bytes(const struct uc_policy *policy)
{
    return policy->memory_bytes;
}
