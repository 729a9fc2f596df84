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

enum {
    PROGRESS_NS = 2000000000,
};

struct replay {
    const struct uc_trace *trace;
    const struct uc_replay_options *options;
    struct uc_replay_servers servers;
    struct uc_replay_group group;
    struct uc_block_writers *writers;
    struct uc_replay_report report;
};

/* The same in every process of a node. */
static enum uc_status
make_topology(const struct replay *replay, struct uc_dict **topology_out)
{
    const struct uc_replay_options *options = replay->options;
    struct uc_dict *config = NULL;
    enum uc_status status = uc_dict_create(&config);

    if (status == UC_OK) {
        status = uc_dict_set_bool(config, "checksum", options->checksum);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(config, "block_bytes", (int64_t)options->block_bytes);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(config, "timeout_ms", (int64_t)options->timeout_ms);
    }
    if (status == UC_OK) {
        status = uc_replay_servers_topology(&replay->servers, config, topology_out);
    }
    uc_dict_destroy(config);
    return status;
}

static enum uc_status
start(struct replay *replay)
{
    struct uc_dict *topology = NULL;
    enum uc_status status = uc_replay_servers_open(&replay->servers, replay->options);

    if (status == UC_OK) {
        status = make_topology(replay, &topology);
    }
    if (status != UC_OK) {
        return status;
    }

    status = uc_replay_group_start(
            &replay->group, topology, replay->options->block_bytes, (size_t)replay->options->nodes);
    uc_dict_destroy(topology);
    if (status == UC_OK && replay->options->pids_file != NULL) {
        status = uc_replay_group_write_pids(&replay->group, replay->options->pids_file);
    }
    return status;
}

/* Add one outcome to the score. */
static void
count_outcome(struct replay *replay, const struct uc_trace_request *request, size_t node,
        const struct uc_replay_outcome *outcome, const uint8_t *present)
{
    const uint64_t *hash_ids = uc_trace_hash_ids(replay->trace, request);
    struct uc_replay_counts *counts = &replay->report.counts;
    uint64_t present_count = 0;

    counts->requests++;
    counts->block_refs += request->count;
    counts->prefix_hits += outcome->hits;
    counts->refused_puts += outcome->refused_puts;
    counts->failed_reads += outcome->failed_reads;
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
            replay->trace->request_count, replay->report.counts.prefix_hits,
            replay->report.counts.mismatches);
    if (done == replay->trace->request_count) {
        (void)fputc('\n', stderr);
    }
}

static enum uc_status
replay_requests(struct replay *replay)
{
    uint64_t next_progress_ns = 0;

    for (size_t idx = 0; idx < replay->trace->request_count; idx++) {
        const struct uc_trace_request *request = &replay->trace->requests[idx];
        struct uc_replay_outcome outcome;
        const uint8_t *present;
        size_t node;

        if (uc_replay_group_serve(&replay->group, idx, uc_trace_hash_ids(replay->trace, request),
                    request->count, &node, &outcome, &present) == UC_OK) {
            count_outcome(replay, request, node, &outcome, present);
        } else if (replay->group.dead_count == replay->group.node_count) {
            return uc_error(UC_ERR_UNHEALTHY, "all %zu nodes are dead after %zu requests",
                    replay->group.node_count, idx);
        } else {
            replay->report.counts.lost_requests++;
        }
        show_progress(replay, idx + 1, &next_progress_ns);
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
    uint64_t start_ns;

    if (status == UC_OK) {
        status = start(&replay);
    }
    start_ns = uc_clock_now_ns();
    if (status == UC_OK) {
        status = replay_requests(&replay);
    }
    replay.report.counts.seconds = (double)(uc_clock_now_ns() - start_ns) / 1e9;
    status = finish(&replay, status);
    if (status == UC_OK) {
        *report_out = replay.report;
    }
    return status;
}
