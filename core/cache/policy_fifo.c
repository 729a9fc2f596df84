/* SPDX-License-Identifier: Apache-2.0 */

/* First in, first out: a list over slots in order of admission; touching changes nothing (15.3). */

#include <stdlib.h>

#include "core/cache/policy_parameters.h"
#include "core/cache/slot_ring.h"

struct fifo {
    const struct uc_policy *policy;
    struct slot_link *links; /* one per slot, and the head */
    uint32_t head;
};

extern const struct uc_policy_ops uc_policy_fifo;

static enum uc_status
fifo_setup(struct uc_policy *policy, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, void **state_out)
{
    enum uc_status status = uc_policy_read_parameters("fifo", NULL, 0, parameters, NULL);
    struct fifo *fifo;

    (void)clock;
    if (status != UC_OK) {
        return status;
    }

    fifo = uc_policy_allocate(policy, 1, sizeof(*fifo));
    if (fifo == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy fifo: no memory");
    }

    fifo->links = uc_policy_allocate(policy, capacity + 1, sizeof(fifo->links[0]));
    if (fifo->links == NULL) {
        free(fifo);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy fifo: no memory for %zu slots", capacity);
    }

    fifo->policy = policy;
    fifo->head = (uint32_t)capacity;
    slot_ring_init(fifo->links, fifo->head);
    *state_out = fifo;
    return UC_OK;
}

static void
fifo_destroy(void *state)
{
    struct fifo *fifo = state;

    free(fifo->links);
    free(fifo);
}

static void
fifo_admitted(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    const struct fifo *fifo = state;

    (void)hints;
    slot_ring_add(fifo->links, fifo->head, slot);
}

static void
fifo_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    (void)state;
    (void)slot;
    (void)hints;
}

static void
fifo_released(void *state, uint32_t slot)
{
    const struct fifo *fifo = state;

    slot_ring_remove(fifo->links, slot);
}

static uint32_t
fifo_select_victim(void *state)
{
    const struct fifo *fifo = state;

    return slot_ring_oldest_evictable(fifo->links, fifo->head, fifo->policy);
}

const struct uc_policy_ops uc_policy_fifo = {
        .name = "fifo",
        .on_setup = fifo_setup,
        .destroy = fifo_destroy,
        .on_slot_admitted = fifo_admitted,
        .on_slot_touched = fifo_touched,
        .on_slot_released = fifo_released,
        .select_victim_slot = fifo_select_victim,
};
