/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file tier.h
 * A store as a configuration describes it, {type: store, store: name or path, config: {…}}, loaded and
 * set up: all of a single store, one tier of a pipe.
 *
 * Threads: the assembling thread.
 */

#ifndef UC_PROXY_TIER_H
#define UC_PROXY_TIER_H

#include <stddef.h>

#include <ucm/dict.h>
#include <ucm/status.h>
#include <ucm/store.h>

#include "client/proxy/loader.h"
#include "client/proxy/node.h"

/** Where a store stands; borrowed for the call, but for what `build` promises. */
struct uc_tier_place {
    const struct uc_build *build;
    const char *path;
    size_t tiers_below;
    struct uc_store *lower; /* NULL at the bottom */
};

/** Check everything that can be checked without the plugin. */
UC_MUST_CHECK enum uc_status uc_tier_check(const struct uc_dict *config, const char *path);

/**
 * Load the plugin and set it up; @p config was checked. Failures name the path.
 *
 * @param[out] loaded_out  set on success only; the caller closes it
 */
UC_MUST_CHECK enum uc_status uc_tier_load(const struct uc_tier_place *place,
        const struct uc_dict *config, struct uc_loaded_store *loaded_out);

#endif /* UC_PROXY_TIER_H */
