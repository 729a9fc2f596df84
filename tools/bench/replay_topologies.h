/* SPDX-License-Identifier: Apache-2.0 */

/** @file replay_topologies.h What each node of a replay assembles: one remote store, or a file. One thread. */

#ifndef UC_BENCH_REPLAY_TOPOLOGIES_H
#define UC_BENCH_REPLAY_TOPOLOGIES_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

#include "tools/bench/replay_options.h"
#include "tools/bench/replay_servers.h"

/** Zeroed = empty. */
struct uc_replay_topologies {
    const struct uc_replay_options *options;
    struct uc_dict *file; /* as it was read; NULL = one remote store */
    struct uc_dict **nodes;
    size_t node_count;
};

/** Read the file, if the options name one: before servers are started. @retval as uc_topology_read() */
UC_MUST_CHECK enum uc_status uc_replay_topologies_read(
        struct uc_replay_topologies *topologies, const struct uc_replay_options *options);

/** One for each node. @retval as uc_topology_expand() */
UC_MUST_CHECK enum uc_status uc_replay_topologies_make(
        struct uc_replay_topologies *topologies, const struct uc_replay_servers *servers);

void uc_replay_topologies_fini(struct uc_replay_topologies *topologies);

#endif /* UC_BENCH_REPLAY_TOPOLOGIES_H */
