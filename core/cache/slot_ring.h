/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file slot_ring.h
 * Intrusive ring over slots, in order of age, for the disciplines. One array of links serves several rings:
 * a head is an element of its own behind the slots. Every operation is O(1) and allocates nothing.
 *
 * Threads: the control thread.
 */

#ifndef UC_CACHE_SLOT_RING_H
#define UC_CACHE_SLOT_RING_H

#include "core/cache/policy.h"

struct slot_link {
    uint32_t older;
    uint32_t newer; /* of a head: the oldest of its ring */
};

static inline void
slot_ring_init(struct slot_link *links, uint32_t head)
{
    links[head] = (struct slot_link){.older = head, .newer = head};
}

/* The slot becomes the newest. */
static inline void
slot_ring_add(struct slot_link *links, uint32_t head, uint32_t slot)
{
    uint32_t newest = links[head].older;

    links[slot] = (struct slot_link){.older = newest, .newer = head};
    links[newest].newer = slot;
    links[head].older = slot;
}

static inline void
slot_ring_remove(struct slot_link *links, uint32_t slot)
{
    struct slot_link link = links[slot];

    links[link.older].newer = link.newer;
    links[link.newer].older = link.older;
}

/* The oldest evictable slot of the ring, or UC_SLOT_NONE. */
static inline uint32_t
slot_ring_oldest_evictable(
        const struct slot_link *links, uint32_t head, const struct uc_policy *policy)
{
    uint32_t slot = links[head].newer;

    while (slot != head && !uc_policy_is_evictable(policy, slot)) {
        slot = links[slot].newer;
    }

    return slot == head ? UC_SLOT_NONE : slot;
}

#endif /* UC_CACHE_SLOT_RING_H */
