/* SPDX-License-Identifier: Apache-2.0 */

/* Second chance: a reference bit per slot and a hand that goes round (15.3). */

#include <stdlib.h>

#include "core/cache/policy_parameters.h"

struct second_chance {
    const struct uc_policy *policy;
    uint64_t *referenced; /* one bit per slot */
    uint32_t capacity;
    uint32_t hand;
};

extern const struct uc_policy_ops uc_policy_clock;

static enum uc_status
clock_setup(struct uc_policy *policy, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, void **state_out)
{
    enum uc_status status = uc_policy_read_parameters("clock", NULL, 0, parameters, NULL);
    struct second_chance *chance;

    (void)clock;
    if (status != UC_OK) {
        return status;
    }

    chance = uc_policy_allocate(policy, 1, sizeof(*chance));
    if (chance == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy clock: no memory");
    }

    chance->referenced = uc_policy_allocate(policy, capacity / 64 + 1, sizeof(uint64_t));
    if (chance->referenced == NULL) {
        free(chance);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy clock: no memory for %zu slots", capacity);
    }

    chance->policy = policy;
    chance->capacity = (uint32_t)capacity;
    *state_out = chance;
    return UC_OK;
}

static void
clock_destroy(void *state)
{
    struct second_chance *chance = state;

    free(chance->referenced);
    free(chance);
}

static void
clock_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    const struct second_chance *chance = state;

    (void)hints;
    chance->referenced[slot / 64] |= 1ull << slot % 64;
}

static void
clock_released(void *state, uint32_t slot)
{
    const struct second_chance *chance = state;

    chance->referenced[slot / 64] &= ~(1ull << slot % 64);
}

/* Two turns: the first may do nothing but clear bits. */
static uint32_t
clock_select_victim(void *state)
{
    struct second_chance *chance = state;

    for (uint64_t step = 0; step < 2 * (uint64_t)chance->capacity; step++) {
        uint32_t slot = chance->hand;
        uint64_t bit = 1ull << slot % 64;

        chance->hand = slot + 1 == chance->capacity ? 0 : slot + 1;
        if (!uc_policy_is_evictable(chance->policy, slot)) {
            continue;
        }
        if ((chance->referenced[slot / 64] & bit) == 0) {
            return slot;
        }
        chance->referenced[slot / 64] &= ~bit;
    }

    return UC_SLOT_NONE;
}

const struct uc_policy_ops uc_policy_clock = {
        .name = "clock",
        .on_setup = clock_setup,
        .destroy = clock_destroy,
        .on_slot_admitted = clock_touched, /* the bit is set on admission, too */
        .on_slot_touched = clock_touched,
        .on_slot_released = clock_released,
        .select_victim_slot = clock_select_victim,
};
