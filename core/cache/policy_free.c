/* SPDX-License-Identifier: Apache-2.0 */

/* Free slots: the list of the control thread, and the stack over which data threads return theirs. */

#include "core/cache/policy_internal.h"

void
uc_policy_push_free(struct uc_policy *policy, uint32_t slot)
{
    policy->slots[slot].next_free = policy->free_head == UC_SLOT_NONE ? slot : policy->free_head;
    policy->free_head = slot;
}

void
uc_policy_push_returned(struct uc_policy *policy, uint32_t slot)
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

    /* Taking the whole stack leaves no room for ABA; acquire pairs with uc_policy_push_returned(). */
    head = atomic_exchange_explicit(&policy->returned, UC_SLOT_NONE, memory_order_acquire);
    for (tail = head; policy->slots[tail].next_free != tail;) {
        tail = policy->slots[tail].next_free;
    }
    if (policy->free_head != UC_SLOT_NONE) {
        policy->slots[tail].next_free = policy->free_head;
    }
    policy->free_head = head;
}

uint32_t
uc_policy_pop_free(struct uc_policy *policy)
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
