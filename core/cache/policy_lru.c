/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Least recently used: a doubly linked ring over slots, hot end at the back.
 *
 * Victims lie all over memory, and each one's link must be read before the next one is known: a cache miss per
 * victim that nothing overlaps. So every link also names the slot that was linked LRU_AHEAD later; when a slot is
 * chosen, that one's memory starts on its way. It is a hint and may be out of date.
 */

#include <stdlib.h>

#include "core/cache/policy_parameters.h"

enum {
    LRU_AHEAD = 16 /* victims between a hint and its use; power of two */
};

struct link {
    uint32_t colder;
    uint32_t hotter;
    uint32_t ahead; /* hint */
};

struct lru {
    const struct uc_policy *policy;
    struct link *links; /* one per slot, and the head */
    uint32_t head;      /* colder = hot end, hotter = cold end */
    uint32_t linked;    /* how many so far, for the ring below */
    uint32_t recent[LRU_AHEAD];
};

extern const struct uc_policy_ops uc_policy_lru;

static enum uc_status
lru_setup(struct uc_policy *policy, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, void **state_out)
{
    enum uc_status status = uc_policy_read_parameters("lru", NULL, 0, parameters, NULL);
    struct lru *lru;

    (void)clock;
    if (status != UC_OK) {
        return status;
    }

    lru = uc_policy_allocate(policy, 1, sizeof(*lru));
    if (lru == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy lru: no memory");
    }

    lru->links = uc_policy_allocate(policy, capacity + 1, sizeof(lru->links[0]));
    if (lru->links == NULL) {
        free(lru);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy lru: no memory for %zu slots", capacity);
    }

    lru->policy = policy;
    lru->head = (uint32_t)capacity;
    lru->links[lru->head] = (struct link){.colder = lru->head, .hotter = lru->head};
    for (size_t idx = 0; idx < LRU_AHEAD; idx++) {
        lru->recent[idx] = lru->head;
    }
    *state_out = lru;
    return UC_OK;
}

static void
lru_destroy(void *state)
{
    struct lru *lru = state;

    free(lru->links);
    free(lru);
}

static void
unlink_slot(struct lru *lru, uint32_t slot)
{
    struct link *link = &lru->links[slot];

    lru->links[link->colder].hotter = link->hotter;
    lru->links[link->hotter].colder = link->colder;
}

static void
link_hot(struct lru *lru, uint32_t slot)
{
    uint32_t hottest = lru->links[lru->head].colder;
    uint32_t *recent = &lru->recent[lru->linked++ % LRU_AHEAD];

    lru->links[*recent].ahead = slot;
    *recent = slot;
    lru->links[slot].colder = hottest;
    lru->links[slot].hotter = lru->head;
    lru->links[hottest].hotter = slot;
    lru->links[lru->head].colder = slot;
}

static void
lru_admitted(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    (void)hints;
    link_hot(state, slot);
}

static void
lru_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    (void)hints;
    unlink_slot(state, slot);
    link_hot(state, slot);
}

static void
lru_released(void *state, uint32_t slot)
{
    unlink_slot(state, slot);
}

static uint32_t
lru_select_victim(void *state)
{
    const struct lru *lru = state;
    uint32_t slot = lru->links[lru->head].hotter;

    while (slot != lru->head && !uc_policy_is_evictable(lru->policy, slot)) {
        slot = lru->links[slot].hotter;
    }

    if (slot == lru->head) {
        return UC_SLOT_NONE;
    }

    UC_PREFETCH(&lru->links[lru->links[slot].ahead]);
    uc_policy_prefetch(lru->policy, lru->links[slot].ahead);
    return slot;
}

const struct uc_policy_ops uc_policy_lru = {
        .name = "lru",
        .on_setup = lru_setup,
        .destroy = lru_destroy,
        .on_slot_admitted = lru_admitted,
        .on_slot_touched = lru_touched,
        .on_slot_released = lru_released,
        .select_victim_slot = lru_select_victim,
};
