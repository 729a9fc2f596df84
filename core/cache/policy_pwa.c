/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prefix-aware weighted age (R-15.25; reasons and figures in README.md). Four rings, each in order of last
 * touch: how often a block was seen before tells more about its next use than its age alone.
 */

#include <stdlib.h>

#include "core/cache/policy_parameters.h"
#include "core/cache/slot_ring.h"

enum pwa_class {
    PWA_PARTIAL, /* last block of its request, not full, never seen before */
    PWA_NEW,     /* any other never seen before */
    PWA_ONCE,    /* seen once before */
    PWA_MORE,    /* seen twice or more before */
};

enum {
    PWA_CLASSES = PWA_MORE + 1
};

/* Values of the dictionary; documented in README.md. */
struct pwa_parameters {
    double ghost;
    double floor;
    double stale;
    double median_start_ms;
    double median_step;
    double weights[PWA_CLASSES];
};

struct pwa_stamp {
    uint64_t touched_ms : 62;
    uint64_t class : 2; /* enum pwa_class */
};

struct pwa {
    const struct uc_policy *policy;
    struct slot_link *links;  /* one per slot, and a head per class */
    struct pwa_stamp *stamps; /* per slot */
    const struct uc_clock *clock;
    size_t capacity;
    struct pwa_parameters parameters;
    double median_ms; /* of the ages at which hits happen; runs */
};

extern const struct uc_policy_ops uc_policy_pwa;

static const struct pwa_parameters defaults = {
        .ghost = 4,
        .floor = 1.5,
        .stale = 8,
        .median_start_ms = 60000,
        .median_step = 1.0005,
        .weights = {[PWA_PARTIAL] = 4, [PWA_NEW] = 1.5, [PWA_ONCE] = 1, [PWA_MORE] = 0.7},
};

#define MEMBER(member) offsetof(struct pwa_parameters, member)

static const struct uc_policy_parameter parameter_table[] = {
        {"ghost", 0, 64, MEMBER(ghost)},
        {"floor", 0, 1000, MEMBER(floor)},
        {"stale", 1, 1e6, MEMBER(stale)},
        {"median_start_ms", 1, 1e9, MEMBER(median_start_ms)},
        {"median_step", 1, 2, MEMBER(median_step)},
        {"weight_partial", 0, 1000, MEMBER(weights[PWA_PARTIAL])},
        {"weight_new", 0, 1000, MEMBER(weights[PWA_NEW])},
        {"weight_once", 0, 1000, MEMBER(weights[PWA_ONCE])},
        {"weight_more", 0, 1000, MEMBER(weights[PWA_MORE])},
};

static uint32_t
head_of(const struct pwa *pwa, unsigned class)
{
    return (uint32_t)(pwa->capacity + class);
}

static enum uc_status
read_parameters(const struct uc_dict *dict, struct pwa_parameters *parameters)
{
    enum uc_status status;

    *parameters = defaults;
    status = uc_policy_read_parameters("pwa", parameter_table,
            sizeof(parameter_table) / sizeof(parameter_table[0]), dict, parameters);
    if (status == UC_OK && parameters->ghost == 0 &&
            (dict == NULL || !uc_dict_has(dict, "floor"))) {
        parameters->floor =
                0; /* it would keep everything that returns for the first time too short */
    }
    return status;
}

static enum uc_status
pwa_setup(struct uc_policy *policy, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, void **state_out)
{
    struct pwa *pwa;
    enum uc_status status;

    if (clock == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "policy pwa: orders by age and needs a clock");
    }
    pwa = uc_policy_allocate(policy, 1, sizeof(*pwa));
    if (pwa == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "policy pwa: no memory");
    }

    status = read_parameters(parameters, &pwa->parameters);
    if (status != UC_OK) {
        goto err_free;
    }
    pwa->links = uc_policy_allocate(policy, capacity + PWA_CLASSES, sizeof(pwa->links[0]));
    pwa->stamps = uc_policy_allocate(policy, capacity, sizeof(pwa->stamps[0]));
    if (pwa->links == NULL || pwa->stamps == NULL) {
        status = uc_error(UC_ERR_OUT_OF_MEMORY, "policy pwa: no memory for %zu slots", capacity);
        goto err_free;
    }

    pwa->policy = policy;
    pwa->clock = clock;
    pwa->capacity = capacity;
    pwa->median_ms = pwa->parameters.median_start_ms;
    for (unsigned class = 0; class < PWA_CLASSES; class ++) {
        slot_ring_init(pwa->links, head_of(pwa, class));
    }
    *state_out = pwa;
    return UC_OK;

err_free:
    free(pwa->stamps);
    free(pwa->links);
    free(pwa);
    return status;
}

static void
pwa_destroy(void *state)
{
    struct pwa *pwa = state;

    free(pwa->stamps);
    free(pwa->links);
    free(pwa);
}

static size_t
pwa_ghost_ids(const void *state)
{
    const struct pwa *pwa = state;

    return (size_t)(pwa->parameters.ghost * (double)pwa->capacity);
}

static void
insert(const struct pwa *pwa, uint32_t slot, enum pwa_class class, uint64_t now_ms)
{
    pwa->stamps[slot].touched_ms = now_ms & (UINT64_MAX >> 2);
    pwa->stamps[slot].class = class;
    slot_ring_add(pwa->links, head_of(pwa, class), slot);
}

static void
pwa_admitted(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    const struct pwa *pwa = state;
    enum pwa_class class = hints->partial ? PWA_PARTIAL : PWA_NEW;

    if (hints->seen > 0) {
        class = hints->seen == 1 ? PWA_ONCE : PWA_MORE;
    }
    insert(pwa, slot, class, uc_clock_now_ms(pwa->clock));
}

/* Multiplicative steps of equal size end where half of the ages lie on either side. */
static void
follow_median(struct pwa *pwa, double age_ms)
{
    if (age_ms > pwa->median_ms) {
        pwa->median_ms *= pwa->parameters.median_step;
    } else if (pwa->median_ms > 1) {
        pwa->median_ms /= pwa->parameters.median_step;
    }
}

static double
age_ms_of(const struct pwa *pwa, uint32_t slot, uint64_t now_ms)
{
    uint64_t touched_ms = pwa->stamps[slot].touched_ms;

    return now_ms > touched_ms ? (double)(now_ms - touched_ms) : 0;
}

static void
pwa_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    struct pwa *pwa = state;
    uint64_t now_ms = uc_clock_now_ms(pwa->clock);
    bool once = pwa->stamps[slot].class <= PWA_NEW && hints->seen < 2;

    /* The first block of a chain is everybody's: its hits say nothing of the others. */
    if (hints->position != 1) {
        follow_median(pwa, age_ms_of(pwa, slot, now_ms));
    }
    slot_ring_remove(pwa->links, slot);
    insert(pwa, slot, once ? PWA_ONCE : PWA_MORE, now_ms);
}

static void
pwa_released(void *state, uint32_t slot)
{
    const struct pwa *pwa = state;

    slot_ring_remove(pwa->links, slot);
}

/* The one behind the victim is a likely one for the next call. */
static void
load_next(const struct pwa *pwa, uint32_t slot)
{
    uint32_t next = pwa->links[slot].newer;

    UC_PREFETCH(&pwa->links[next]);
    if (next < pwa->capacity) {
        UC_PREFETCH(&pwa->stamps[next]);
        uc_policy_prefetch(pwa->policy, next);
    }
}

static uint32_t
pwa_select_victim(void *state)
{
    const struct pwa *pwa = state;
    uint64_t now_ms = uc_clock_now_ms(pwa->clock);
    double floor_ms = pwa->parameters.floor * pwa->median_ms;
    double stale_ms = pwa->parameters.stale * pwa->median_ms;
    uint32_t victim = UC_SLOT_NONE;
    uint32_t stalest = UC_SLOT_NONE;
    double highest = -1;

    for (unsigned class = 0; class < PWA_CLASSES; class ++) {
        uint32_t slot = slot_ring_oldest_evictable(pwa->links, head_of(pwa, class), pwa->policy);
        double age_ms;
        double score;

        if (slot == UC_SLOT_NONE) {
            continue;
        }

        age_ms = age_ms_of(pwa, slot, now_ms);
        score = (age_ms > floor_ms ? age_ms : floor_ms) * pwa->parameters.weights[class];
        if (score > highest) {
            highest = score;
            victim = slot;
        }
        if (age_ms > stale_ms) {
            stale_ms = age_ms;
            stalest = slot;
        }
    }

    victim = stalest == UC_SLOT_NONE ? victim : stalest;
    if (victim != UC_SLOT_NONE) {
        load_next(pwa, victim);
    }
    return victim;
}

const struct uc_policy_ops uc_policy_pwa = {
        .name = "pwa",
        .on_setup = pwa_setup,
        .destroy = pwa_destroy,
        .on_slot_admitted = pwa_admitted,
        .on_slot_touched = pwa_touched,
        .on_slot_released = pwa_released,
        .select_victim_slot = pwa_select_victim,
        .ghost_ids = pwa_ghost_ids,
        .leaf_first = true,
};
