/* SPDX-License-Identifier: Apache-2.0 */

/* The parent of a real replay: starts servers if asked to, starts the nodes, hands out requests, keeps score. */

#include "tools/bench/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/dict.h>
#include <ucm/log.h>

#include "tools/bench/block_writers.h"
#include "tools/bench/replay_group.h"
#include "tools/bench/replay_servers.h"
#include "tools/bench/replay_topologies.h"
#include "tools/bench/trace_lifetimes.h"

enum {
    PROGRESS_NS = 2000000000,
};

struct replay {
    const struct uc_trace *trace;
    const struct uc_replay_options *options;
    struct uc_replay_servers servers;
    struct uc_replay_group group;
    struct uc_block_writers *writers;
    struct uc_replay_counts counts; /* of this round */
    struct uc_replay_report report;
};

static enum uc_status
start(struct replay *replay)
{
    const struct uc_replay_options *options = replay->options;
    struct uc_replay_topologies topologies = {0};
    struct uc_replay_group_setup setup = {.where = options->config_path,
            .block_bytes = options->block_bytes,
            .node_count = (size_t)options->nodes};
    enum uc_status status = uc_replay_topologies_read(&topologies, options);

    if (status == UC_OK) {
        status = uc_replay_servers_open(&replay->servers, options);
    }
    if (status == UC_OK) {
        status = uc_replay_topologies_make(&topologies, &replay->servers);
    }
    if (status == UC_OK) {
        setup.topologies = topologies.nodes;
        status = uc_replay_group_start(&replay->group, &setup);
    }
    uc_replay_topologies_fini(&topologies);
    if (status == UC_OK && options->pids_file != NULL) {
        status = uc_replay_group_write_pids(&replay->group, options->pids_file);
    }
    return status;
}

/* Add one outcome to the score. */
static void
count_outcome(struct replay *replay, const struct uc_trace_request *request, size_t node,
        const struct uc_replay_outcome *outcome, const uint8_t *present)
{
    const uint64_t *hash_ids = uc_trace_hash_ids(replay->trace, request);
    struct uc_replay_counts *counts = &replay->counts;
    uint64_t present_count = 0;

    counts->requests++;
    counts->block_refs += request->count;
    counts->prefix_hits += outcome->hits;
    counts->refused_puts += outcome->refused_puts;
    counts->failed_reads += outcome->failed_reads;
    counts->prefetches += outcome->prefetches;
    counts->failed_prefetches += outcome->failed_prefetches;
    counts->verified_bytes += outcome->verified_bytes;
    counts->mismatches += outcome->mismatches;
    counts->errors += outcome->errors;
    for (size_t idx = 0; idx < outcome->hits; idx++) {
        counts->cross_node_hits +=
                uc_block_writers_get(replay->writers, hash_ids[idx]) != (uint32_t)node;
    }
    if (outcome->put_keys == 0) {
        return;
    }

    for (size_t idx = (size_t)outcome->hits; idx < request->count; idx++) {
        if (present[idx]) {
            present_count++;
        } else if (outcome->put_failed == 0) {
            uc_block_writers_set(replay->writers, hash_ids[idx], (uint32_t)node);
        }
    }
    counts->present_blocks += present_count;
    if (outcome->put_keys > present_count + outcome->put_failed) {
        counts->written_blocks += outcome->put_keys - present_count - outcome->put_failed;
    }
}

static void
show_progress(const struct replay *replay, size_t done, uint64_t *next_ns)
{
    uint64_t now_ns = uc_clock_now_ns();

    if (now_ns < *next_ns || !isatty(STDERR_FILENO)) {
        return;
    }

    *next_ns = now_ns + PROGRESS_NS;
    (void)fprintf(stderr,
            "\rucm-bench: %zu of %zu requests, %" PRIu64 " hits, %" PRIu64 " mismatches", done,
            replay->trace->request_count, replay->counts.prefix_hits, replay->counts.mismatches);
    if (done == replay->trace->request_count) {
        (void)fputc('\n', stderr);
    }
}

static enum uc_status
replay_requests(struct replay *replay, uint64_t first_sequence)
{
    uint64_t next_progress_ns = 0;

    for (size_t idx = 0; idx < replay->trace->request_count; idx++) {
        const struct uc_trace_request *traced = &replay->trace->requests[idx];
        struct uc_replay_request request = {
                .sequence = first_sequence + idx,
                .hash_ids = uc_trace_hash_ids(replay->trace, traced),
                .count = traced->count,
        };
        struct uc_replay_outcome outcome;
        const uint8_t *present;
        size_t node;

        /* The same in every round, so that it goes the same way. */
        if (replay->options->ttl_seed != 0) {
            request.ttl_ms = uc_trace_ttl_ms(replay->options->ttl_seed, idx);
        }
        if (uc_replay_group_serve(&replay->group, &request, &node, &outcome, &present) == UC_OK) {
            count_outcome(replay, traced, node, &outcome, present);
        } else if (replay->group.dead_count == replay->group.node_count) {
            return uc_error(UC_ERR_UNHEALTHY, "all %zu nodes are dead after %zu requests",
                    replay->group.node_count, idx);
        } else {
            replay->counts.lost_requests++;
        }
        show_progress(replay, idx + 1, &next_progress_ns);
    }
    return UC_OK;
}

/* Keep the score of a round, and add it to the whole. */
static void
close_round(struct replay *replay, struct uc_replay_tiers *before)
{
    struct uc_replay_round *round = &replay->report.rounds[replay->report.round_count++];
    struct uc_replay_counts *whole = &replay->report.counts;
    struct uc_replay_tiers now;

    uc_replay_group_tiers(&replay->group, &now);
    round->tiers = now;
    round->counts = replay->counts;
    uc_replay_tiers_since(&round->tiers, before);
    uc_replay_tiers_complete(
            &round->tiers, replay->counts.prefix_hits - replay->counts.failed_reads);
    uc_replay_tiers_add(&replay->report.tiers, &round->tiers);
    *before = now;

#define ADD_(name, help) whole->name += replay->counts.name;
    UC_REPLAY_COUNT_MAP(ADD_)
#undef ADD_
    whole->seconds += replay->counts.seconds;
    replay->counts = (struct uc_replay_counts){0};
}

static enum uc_status
replay_rounds(struct replay *replay)
{
    struct uc_replay_tiers before;

    uc_replay_group_tiers(&replay->group, &before);
    for (uint64_t round = 0; round < replay->options->repeat; round++) {
        uint64_t start_ns = uc_clock_now_ns();
        enum uc_status status = replay_requests(replay, round * replay->trace->request_count);

        if (status != UC_OK) {
            return status;
        }
        replay->counts.seconds = (double)(uc_clock_now_ns() - start_ns) / 1e9;
        close_round(replay, &before);
    }
    return UC_OK;
}

static const char *const operation_names[] = {
#define OPERATION_NAME_(name) #name,
        UC_REPLAY_OPERATION_MAP(OPERATION_NAME_)
#undef OPERATION_NAME_
};

static void
report_latencies(struct replay *replay, struct uc_latency *latencies)
{
    for (size_t op = 0; op < UC_REPLAY_OP_COUNT; op++) {
        replay->report.latencies[op] = (struct uc_replay_latency){
                .operation = operation_names[op],
                .count = latencies[op].count,
                .p50_us = uc_latency_percentile_us(&latencies[op], 50),
                .p99_us = uc_latency_percentile_us(&latencies[op], 99),
                .max_us = uc_latency_percentile_us(&latencies[op], 100),
        };
        uc_latency_fini(&latencies[op]);
    }
    replay->report.latency_count = UC_REPLAY_OP_COUNT;
}

static enum uc_status
finish(struct replay *replay, enum uc_status status)
{
    struct uc_latency latencies[UC_REPLAY_OP_COUNT] = {0};
    enum uc_status server_status;

    replay->report.counts.dead_nodes = replay->group.dead_count;
    uc_replay_group_finish(&replay->group, latencies);
    report_latencies(replay, latencies);
    uc_block_writers_destroy(replay->writers);
    if (status == UC_OK) {
        status = uc_replay_servers_count(&replay->servers, &replay->report.server);
        replay->report.server_count = replay->servers.list.count;
        replay->report.counts.evicted_blocks = replay->report.server.evicted_blocks_total;
    }
    server_status = uc_replay_servers_close(&replay->servers);
    return status == UC_OK ? server_status : status;
}

enum uc_status
uc_replay_run(const struct uc_trace *trace, const struct uc_replay_options *options,
        struct uc_replay_report *report_out)
{
    struct replay replay = {.trace = trace, .options = options};
    enum uc_status status = uc_block_writers_create(trace->hash_id_count + 1, &replay.writers);

    if (status == UC_OK) {
        status = start(&replay);
    }
    if (status == UC_OK) {
        status = replay_rounds(&replay);
    }
    status = finish(&replay, status);
    if (status == UC_OK) {
        *report_out = replay.report;
    }
    return status;
}
