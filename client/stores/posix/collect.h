/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file collect.h
 * Keeps a store within its capacity: lists every block, removes those with the oldest modification time.
 * One process does so at a time, by a lock in the first root. Temporary files are never looked at.
 *
 * Threads: one, the helper's, but for the estimate.
 */

#ifndef UC_POSIX_COLLECT_H
#define UC_POSIX_COLLECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/op.h"

struct uc_posix_usage {
    uint64_t blocks;
    uint64_t bytes;
};

struct uc_posix_collector {
    const struct uc_posix_env *env;
    struct uc_posix_usage found; /* by the last pass, after it removed what it did */
    struct uc_posix_usage added; /* by this process since */
    bool is_known;               /* there was a pass */
    bool is_elsewhere; /* who has the lock kept it while we waited, and has not let go since */
};

/** Count a block that this process has published. @return whether a pass is due */
bool uc_posix_collector_add(struct uc_posix_collector *collector, uint64_t block_bytes);

/** List and remove. Blocks; logs what goes wrong. */
void uc_posix_collector_pass(struct uc_posix_collector *collector);

#endif /* UC_POSIX_COLLECT_H */
