/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay_tiers.h"

#include <stdio.h>

/* Stores name their counters as they like; the first that is there counts. */
static const char *const loaded_keys[] = {"blocks_loaded", "blocks_read"};
static const char *const dumped_keys[] = {"blocks_dumped", "blocks_written"};

static bool
read_counter(const struct uc_dict *description, const char *const keys[2], uint64_t *value_out)
{
    for (size_t idx = 0; idx < 2; idx++) {
        int64_t value = 0;

        if (uc_dict_get_int(description, keys[idx], &value) == UC_OK && value >= 0) {
            *value_out = (uint64_t)value;
            return true;
        }
    }
    return false;
}

static void
add_store(const struct uc_dict *description, bool is_above, struct uc_replay_tiers *tiers)
{
    struct uc_replay_tier *tier = &tiers->tiers[tiers->count];
    const char *path = "";
    const char *name = "?";

    if (tiers->count == UC_REPLAY_TIERS_MAX) {
        return;
    }

    *tier = (struct uc_replay_tier){.is_above = is_above};
    (void)(uc_dict_get_string(description, "node_path", &path) == UC_OK);
    (void)(uc_dict_get_string(description, "name", &name) == UC_OK);
    (void)snprintf(tier->path, sizeof(tier->path), "%s", path);
    (void)snprintf(tier->store, sizeof(tier->store), "%s", name);
    tier->is_counted = read_counter(description, loaded_keys, &tier->blocks_loaded);
    (void)read_counter(description, dumped_keys, &tier->blocks_dumped);
    tiers->count++;
}

/* A pipe lists its tiers; a single store is its own. */
static void
add_branch(const struct uc_dict *description, struct uc_replay_tiers *tiers)
{
    size_t count = 0;

    if (uc_dict_get_list_count(description, "tiers", &count) != UC_OK || count == 0) {
        add_store(description, false, tiers);
        return;
    }
    for (size_t idx = 0; idx < count; idx++) {
        const struct uc_dict *tier;

        if (uc_dict_get_dict_at(description, "tiers", idx, &tier) == UC_OK) {
            add_store(tier, idx + 1 < count, tiers);
        }
    }
}

void
uc_replay_tiers_read(const struct uc_dict *description, struct uc_replay_tiers *tiers_out)
{
    size_t count = 0;

    tiers_out->count = 0;
    if (uc_dict_get_list_count(description, "branches", &count) != UC_OK || count == 0) {
        add_branch(description, tiers_out);
        return;
    }
    for (size_t idx = 0; idx < count; idx++) {
        const struct uc_dict *branch;

        if (uc_dict_get_dict_at(description, "branches", idx, &branch) == UC_OK) {
            add_branch(branch, tiers_out);
        }
    }
}

void
uc_replay_tiers_add(struct uc_replay_tiers *tiers, const struct uc_replay_tiers *more)
{
    if (tiers->count == 0) {
        *tiers = *more;
        return;
    }
    for (size_t idx = 0; idx < tiers->count && idx < more->count; idx++) {
        tiers->tiers[idx].blocks_loaded += more->tiers[idx].blocks_loaded;
        tiers->tiers[idx].blocks_dumped += more->tiers[idx].blocks_dumped;
        tiers->tiers[idx].is_counted |= more->tiers[idx].is_counted;
    }
}

/* A node that died takes its counts with it. */
static uint64_t
difference(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void
uc_replay_tiers_since(struct uc_replay_tiers *tiers, const struct uc_replay_tiers *before)
{
    for (size_t idx = 0; idx < tiers->count && idx < before->count; idx++) {
        struct uc_replay_tier *tier = &tiers->tiers[idx];

        tier->blocks_loaded = difference(tier->blocks_loaded, before->tiers[idx].blocks_loaded);
        tier->blocks_dumped = difference(tier->blocks_dumped, before->tiers[idx].blocks_dumped);
    }
}

static bool
is_top(const struct uc_replay_tiers *tiers, size_t idx)
{
    return idx == 0 || !tiers->tiers[idx - 1].is_above;
}

void
uc_replay_tiers_complete(struct uc_replay_tiers *tiers, uint64_t blocks_read)
{
    struct uc_replay_tier *silent = NULL;
    size_t silent_count = 0;

    for (size_t idx = 0; idx < tiers->count; idx++) {
        if (!is_top(tiers, idx)) {
            continue;
        }
        if (tiers->tiers[idx].is_counted) {
            blocks_read = difference(blocks_read, tiers->tiers[idx].blocks_loaded);
        } else {
            silent = &tiers->tiers[idx];
            silent_count++;
        }
    }
    if (silent_count == 1) {
        silent->blocks_loaded = blocks_read;
        silent->is_counted = true;
    }
}

uint64_t
uc_replay_tier_hits(const struct uc_replay_tiers *tiers, size_t idx)
{
    const struct uc_replay_tier *tier = &tiers->tiers[idx];

    if (!tier->is_above || idx + 1 >= tiers->count) {
        return tier->blocks_loaded;
    }
    return difference(tier->blocks_loaded, tier[1].blocks_loaded);
}
