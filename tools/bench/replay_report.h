/* SPDX-License-Identifier: Apache-2.0 */

/** @file replay_report.h What a replay counted, simulated or real. Plain values; one thread. */

#ifndef UC_BENCH_REPLAY_REPORT_H
#define UC_BENCH_REPLAY_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "net/rpc/messages.h"
#include "tools/bench/replay_options.h"
#include "tools/bench/replay_tiers.h"

struct json_t;

/* X(name, help): the struct, the table and the JSON come from here. */
#define UC_REPLAY_COUNT_MAP(X)                                        \
    X(requests, "requests replayed")                                  \
    X(block_refs, "blocks they refer to")                             \
    X(prefix_hits, "of these, in the contiguous present prefix")      \
    X(cross_node_hits, "hits on a block that another node wrote")     \
    X(written_blocks, "blocks written")                               \
    X(present_blocks, "blocks found behind a hole: nothing to write") \
    X(evicted_blocks, "blocks evicted")                               \
    X(refused_puts, "requests whose blocks found no space")           \
    X(verified_bytes, "bytes read back and compared")                 \
    X(prefetches, "rounds that lifted blocks from a lower tier")      \
    X(failed_prefetches, "of these, failed")                          \
    X(failed_reads, "blocks that a read reported missing")            \
    X(mismatches, "blocks read back with wrong bytes")                \
    X(errors, "calls that failed and should not have")                \
    X(lost_requests, "requests lost with the node that served them")  \
    X(dead_nodes, "nodes that died on the way")

#define UC_REPLAY_COUNT_MEMBER_(name, help) uint64_t name;
struct uc_replay_counts {
    UC_REPLAY_COUNT_MAP(UC_REPLAY_COUNT_MEMBER_)
    double seconds;
};
#undef UC_REPLAY_COUNT_MEMBER_

/** Percentiles of one operation. */
struct uc_replay_latency {
    const char *operation; /* static storage */
    uint64_t count;
    double p50_us;
    double p99_us;
    double max_us;
};

enum {
    UC_REPLAY_LATENCY_MAX = 8
};

/** One pass over the trace. */
struct uc_replay_round {
    struct uc_replay_counts counts;
    struct uc_replay_tiers tiers;
};

struct uc_replay_report {
    struct uc_replay_counts counts;
    struct uc_replay_tiers tiers; /* of all rounds; none in a simulation */
    struct uc_replay_round rounds[UC_REPLAY_ROUNDS_MAX];
    size_t round_count;
    size_t server_count; /* 0: `server` says nothing */
    struct uc_replay_latency latencies[UC_REPLAY_LATENCY_MAX];
    size_t latency_count;        /* 0 in a simulation */
    struct uc_stat_reply server; /* counted by the server meanwhile; zero in a simulation */
};

/** Say which trace was replayed, in words without a line end, or as keys of an object. */
void uc_replay_print_trace(const struct uc_replay_options *options, FILE *file);
void uc_replay_describe_trace(const struct uc_replay_options *options, struct json_t *object);

/** Print with the configuration: a table for people, or one JSON object if the options say so. */
void uc_replay_report_print(
        const struct uc_replay_options *options, const struct uc_replay_report *report, FILE *file);

#endif /* UC_BENCH_REPLAY_REPORT_H */
