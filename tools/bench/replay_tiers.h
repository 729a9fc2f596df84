/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file replay_tiers.h
 * What the tiers of a topology have transferred, from what their stores say of themselves. Plain values;
 * one thread.
 */

#ifndef UC_BENCH_REPLAY_TIERS_H
#define UC_BENCH_REPLAY_TIERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

enum {
    UC_REPLAY_TIERS_MAX = 32,
    UC_REPLAY_TIER_NAME_BYTES = 96
};

/** One store of the tree. */
struct uc_replay_tier {
    char path[UC_REPLAY_TIER_NAME_BYTES];
    char store[UC_REPLAY_TIER_NAME_BYTES];
    uint64_t blocks_loaded; /* out of this tier: into a buffer, or into the tier above */
    uint64_t blocks_dumped;
    bool is_counted; /* the store counts what it loads */
    bool is_above;   /* a tier of the same pipe follows, the next one of the list */
};

struct uc_replay_tiers {
    struct uc_replay_tier tiers[UC_REPLAY_TIERS_MAX]; /* branch by branch, from the top down */
    size_t count;
};

/** Read a description of a whole topology; further tiers than fit are left out. */
void uc_replay_tiers_read(const struct uc_dict *description, struct uc_replay_tiers *tiers_out);

/** Add the counts of another process, tier by tier. */
void uc_replay_tiers_add(struct uc_replay_tiers *tiers, const struct uc_replay_tiers *more);

/** What was counted since @p before. @p before may have no tiers. */
void uc_replay_tiers_since(struct uc_replay_tiers *tiers, const struct uc_replay_tiers *before);

/**
 * If one store at the top of its branch does not count, what was read and came from no other branch came
 * through it. @param[in] blocks_read  by all nodes
 */
void uc_replay_tiers_complete(struct uc_replay_tiers *tiers, uint64_t blocks_read);

/** Blocks found in this tier and in none above it: loaded, without those lifted from below before. */
uint64_t uc_replay_tier_hits(const struct uc_replay_tiers *tiers, size_t idx);

#endif /* UC_BENCH_REPLAY_TIERS_H */
