/* SPDX-License-Identifier: Apache-2.0 */

/* Transitions of 4.1 on one slot. */

#include "core/cache/policy_internal.h"

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
        uc_policy_push_free(policy, slot);
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
    } while (!word_swap_data(policy, slot, &word, word + 1));

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
    } while (!word_swap_data(policy, slot, &word, word - 1));

    if ((word & (WORD_OPEN | WORD_TRANSFERS)) == 1) {
        uc_policy_push_returned(policy, slot); /* the last one of a DRAINING slot, R-4.13 */
    }
}
