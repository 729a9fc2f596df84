/* SPDX-License-Identifier: Apache-2.0 */

#include "client/cluster/placement.h"

#include <string.h>
#include <xxhash.h>

enum {
    COST_FRACTION_BITS = 32,
};

struct uc_placement_member
uc_placement_member_init(const char *name, uint32_t weight)
{
    struct uc_placement_member member = {
            .name = name,
            .seed = XXH3_64bits(name, strlen(name)),
            .weight = weight,
    };

    return member;
}

struct uc_placement_view
uc_placement_view_init(const struct uc_placement_member *members, size_t count)
{
    struct uc_placement_view view = {.members = members, .count = count, .equal_weights = true};

    for (size_t idx = 1; idx < count; idx++) {
        view.equal_weights = view.equal_weights && members[idx].weight == members[0].weight;
    }
    return view;
}

/*
 * -log2(hash / 2^64) as a number with 32 bits behind the point, from integers alone: floating-point
 * logarithms differ between libraries. The bits of the logarithm's fraction come one by one, by squaring
 * the mantissa; every step rounds down, so that a larger hash never costs more.
 */
static uint64_t
cost_of(uint64_t hash)
{
    unsigned zeros = hash == 0 ? 63 : (unsigned)__builtin_clzll(hash);
    uint64_t mantissa = (hash | (hash == 0)) << zeros; /* 1.63 bits */
    uint64_t log = (uint64_t)(63 - zeros);

    for (unsigned bit = 0; bit < COST_FRACTION_BITS; bit++) {
        __extension__ unsigned __int128 square = (unsigned __int128)mantissa * mantissa;
        bool carry = (uint64_t)(square >> 127) != 0;

        mantissa = (uint64_t)(square >> (carry ? 64 : 63));
        log = log << 1 | carry;
    }
    return ((uint64_t)64 << COST_FRACTION_BITS) - log;
}

/* A member's bid for a key. */
struct bid {
    uint64_t hash;
    uint64_t cost; /* 0 where all weights are equal: the hash alone decides then */
    uint32_t weight;
    const char *name;
};

static bool
is_better(const struct bid *one, const struct bid *other)
{
    /* cost / weight, compared crosswise; costs stay below 2^39. */
    uint64_t one_cost = one->cost * other->weight;
    uint64_t other_cost = other->cost * one->weight;

    if (one_cost != other_cost) {
        return one_cost < other_cost;
    }
    if (one->hash != other->hash) {
        return one->hash > other->hash;
    }
    return strcmp(one->name, other->name) < 0;
}

size_t
uc_placement_place(const struct uc_placement_view *view, const struct uc_block_id *key)
{
    struct bid best = {.hash = 0};
    size_t best_idx = 0;

    if (view->count == 1) {
        return 0;
    }

    for (size_t idx = 0; idx < view->count; idx++) {
        const struct uc_placement_member *member = &view->members[idx];
        struct bid bid = {
                .hash = XXH3_64bits_withSeed(key->bytes, sizeof(key->bytes), member->seed),
                .weight = member->weight,
                .name = member->name,
        };

        if (!view->equal_weights) {
            bid.cost = cost_of(bid.hash);
        }
        if (idx == 0 || is_better(&bid, &best)) {
            best = bid;
            best_idx = idx;
        }
    }
    return best_idx;
}
