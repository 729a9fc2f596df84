/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file replay_group.h
 * The nodes of a replay as seen by the parent: starts their processes, hands them requests, and notices when
 * one has died. One thread.
 */

#ifndef UC_BENCH_REPLAY_GROUP_H
#define UC_BENCH_REPLAY_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

#include "tools/bench/channel.h"
#include "tools/bench/latency.h"
#include "tools/bench/replay_node.h"
#include "tools/bench/replay_tiers.h"

/** One node: two processes and the channel to its scheduler. */
struct uc_replay_process_pair {
    pid_t scheduler_pid;
    pid_t worker_pid;
    int fd;
    bool alive;
};

struct uc_replay_group {
    struct uc_replay_process_pair *nodes;
    size_t node_count;
    size_t dead_count;
    size_t next; /* whose turn it is */
    struct uc_message in;
    struct uc_message out;
};

/** What all nodes are given. Borrowed. */
struct uc_replay_group_setup {
    struct uc_dict *const *topologies; /* of each node */
    const char *where;                 /* file of the topologies; NULL = none */
    uint64_t block_bytes;
    size_t node_count;
};

/** One request. Borrowed. */
struct uc_replay_request {
    uint64_t sequence;
    uint64_t ttl_ms; /* 0 = none */
    const uint64_t *hash_ids;
    size_t count;
};

/**
 * Fork the processes; each assembles its topology for its role. Call before this process has threads.
 *
 * @retval UC_ERR_… of the first node that could not be set up; it has said why in its log
 */
UC_MUST_CHECK enum uc_status uc_replay_group_start(
        struct uc_replay_group *group, const struct uc_replay_group_setup *setup);

/** Write {"nodes": [{"scheduler": PID, "worker": PID}, …]} by rename, for whoever wants to kill them. */
UC_MUST_CHECK enum uc_status uc_replay_group_write_pids(
        const struct uc_replay_group *group, const char *path);

/**
 * Let the next living node serve one request.
 *
 * @param[out] node_out     who served it
 * @param[out] present_out  one flag per key, borrowed until the next call
 * @retval UC_ERR_UNHEALTHY  that node died; others may be left (dead_count)
 */
UC_MUST_CHECK enum uc_status uc_replay_group_serve(struct uc_replay_group *group,
        const struct uc_replay_request *request, size_t *node_out,
        struct uc_replay_outcome *outcome_out, const uint8_t **present_out);

/** Add up what the tiers of all living nodes have transferred so far. */
void uc_replay_group_tiers(struct uc_replay_group *group, struct uc_replay_tiers *tiers_out);

/** Collect latencies of the living and end all processes. */
void uc_replay_group_finish(
        struct uc_replay_group *group, struct uc_latency latencies[UC_REPLAY_OP_COUNT]);

#endif /* UC_BENCH_REPLAY_GROUP_H */
