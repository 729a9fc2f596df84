/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file replay_servers.h
 * The servers of a replay: those it was told of, or its own, and what they have counted. One thread.
 */

#ifndef UC_BENCH_REPLAY_SERVERS_H
#define UC_BENCH_REPLAY_SERVERS_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

#include "client/cluster/server_list.h"
#include "net/rpc/messages.h"
#include "tools/bench/replay_options.h"
#include "tools/bench/spawn_server.h"

/** Zeroed = closed. */
struct uc_replay_servers {
    const struct uc_replay_options *options;
    struct uc_dict *config; /* {servers: […]}, as the store reads it */
    struct uc_server_list list;
    struct uc_stat_reply *before; /* of each, when the replay began */
    struct uc_spawned_server *spawned;
    size_t spawned_count;
};

/**
 * Start the servers or read their addresses, and ask for their counters. There may be none.
 *
 * @param[in] options  borrowed until close
 */
UC_MUST_CHECK enum uc_status uc_replay_servers_open(
        struct uc_replay_servers *servers, const struct uc_replay_options *options);

/** As uc_target_topology(), with all servers. */
UC_MUST_CHECK enum uc_status uc_replay_servers_topology(const struct uc_replay_servers *servers,
        struct uc_dict *config, struct uc_dict **topology_out);

/**
 * What the servers have counted since open, added up: counters as differences, gauges as they are now; sizes,
 * time and incarnation of the first.
 */
UC_MUST_CHECK enum uc_status uc_replay_servers_count(
        const struct uc_replay_servers *servers, struct uc_stat_reply *sum_out);

/** End those that were started at once, whatever they do: what waits for an answer gets an error. */
void uc_replay_servers_kill(struct uc_replay_servers *servers);

/** Stop those that were started. @retval UC_ERR_GENERAL  one did not exit with 0 */
UC_MUST_CHECK enum uc_status uc_replay_servers_close(struct uc_replay_servers *servers);

#endif /* UC_BENCH_REPLAY_SERVERS_H */
