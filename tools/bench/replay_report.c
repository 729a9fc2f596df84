/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/stat_json.h"

static bool
takes_half(const struct uc_replay_options *options)
{
    return options->half != NULL && strcmp(options->half, "all") != 0;
}

void
uc_replay_describe_trace(const struct uc_replay_options *options, json_t *object)
{
    if (options->trace_path != NULL) {
        (void)json_object_set_new(object, "trace", json_string(options->trace_path));
    } else {
        (void)json_object_set_new(
                object, "generate_seed", json_integer((json_int_t)options->generate.seed));
    }
    if (options->mix_path != NULL) {
        (void)json_object_set_new(object, "mix", json_string(options->mix_path));
    }
    if (takes_half(options)) {
        (void)json_object_set_new(object, "half", json_string(options->half));
    }
    if (options->thin > 1) {
        (void)json_object_set_new(object, "thin", json_integer((json_int_t)options->thin));
    }
    if (options->time_scale != 1) {
        (void)json_object_set_new(object, "time_scale", json_real(options->time_scale));
    }
}

void
uc_replay_print_trace(const struct uc_replay_options *options, FILE *file)
{
    if (options->trace_path != NULL) {
        (void)fprintf(file, "trace %s", options->trace_path);
    } else {
        (void)fprintf(file, "generated trace %" PRIu64 ":%" PRIu64, options->generate.seed,
                options->generate.requests);
    }
    if (options->mix_path != NULL) {
        (void)fprintf(file, " and %s", options->mix_path);
    }
    if (takes_half(options)) {
        (void)fprintf(file, ", %s half", options->half);
    }
    if (options->thin > 1) {
        (void)fprintf(file, ", one request in %" PRIu64, options->thin);
    }
    if (options->time_scale != 1) {
        (void)fprintf(file, ", times %g of the original", options->time_scale);
    }
}

/* What each tier answered. A store that does not count shows as null. */
static json_t *
tiers_json(const struct uc_replay_tiers *tiers)
{
    json_t *list = json_array();

    for (size_t idx = 0; idx < tiers->count; idx++) {
        const struct uc_replay_tier *tier = &tiers->tiers[idx];
        json_t *hits = tier->is_counted ? json_integer((json_int_t)uc_replay_tier_hits(tiers, idx))
                                        : json_null();

        (void)json_array_append_new(list,
                json_pack("{s:s, s:s, s:o, s:I, s:I}", "path", tier->path, "store", tier->store,
                        "hits", hits, "blocks_loaded", (json_int_t)tier->blocks_loaded,
                        "blocks_dumped", (json_int_t)tier->blocks_dumped));
    }
    return list;
}

static json_t *
rounds_json(const struct uc_replay_report *report)
{
    json_t *list = json_array();

    for (size_t idx = 0; idx < report->round_count; idx++) {
        const struct uc_replay_counts *counts = &report->rounds[idx].counts;
        json_t *object = json_object();

#define SET_COUNT_(name, help) \
    (void)json_object_set_new(object, #name, json_integer((json_int_t)counts->name));
        UC_REPLAY_COUNT_MAP(SET_COUNT_)
#undef SET_COUNT_
        (void)json_object_set_new(object, "seconds", json_real(counts->seconds));
        (void)json_object_set_new(object, "hits_by_tier", tiers_json(&report->rounds[idx].tiers));
        (void)json_array_append_new(list, object);
    }
    return list;
}

static void
add_topology(const struct uc_replay_options *options, const struct uc_replay_report *report,
        json_t *root)
{
    (void)json_object_set_new(root, "fabric", json_string(options->fabric));
    (void)json_object_set_new(root, "block_bytes", json_integer((json_int_t)options->block_bytes));
    if (options->config_path != NULL) {
        (void)json_object_set_new(root, "config", json_string(options->config_path));
    }
    if (options->ttl_seed != 0) {
        (void)json_object_set_new(root, "ttl_seed", json_integer((json_int_t)options->ttl_seed));
    }
    (void)json_object_set_new(root, "hits_by_tier", tiers_json(&report->tiers));
    if (report->round_count > 1) {
        (void)json_object_set_new(root, "rounds", rounds_json(report));
    }
}

static void
print_json(
        const struct uc_replay_options *options, const struct uc_replay_report *report, FILE *file)
{
    json_t *root = json_pack("{s:s, s:I, s:I, s:s}", "mode",
            options->simulate ? "simulate" : "replay", "nodes", (json_int_t)options->nodes,
            "capacity_blocks", (json_int_t)options->capacity_blocks, "policy", options->policy);
    json_t *latencies = json_object();

    uc_replay_describe_trace(options, root);
    if (!options->simulate) {
        add_topology(options, report, root);
    }

#define SET_COUNT_(name, help) \
    (void)json_object_set_new(root, #name, json_integer((json_int_t)report->counts.name));
    UC_REPLAY_COUNT_MAP(SET_COUNT_)
#undef SET_COUNT_
    (void)json_object_set_new(root, "seconds", json_real(report->counts.seconds));

    for (size_t idx = 0; idx < report->latency_count; idx++) {
        const struct uc_replay_latency *latency = &report->latencies[idx];

        (void)json_object_set_new(latencies, latency->operation,
                json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)latency->count, "p50",
                        latency->p50_us, "p99", latency->p99_us, "max", latency->max_us));
    }
    (void)json_object_set_new(root, "latency_us", latencies);

    if (report->server_count > 0) {
        (void)json_object_set_new(root, "server", uc_stat_json(&report->server));
    }

    (void)json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(root);
}

static double
percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

static void
print_latencies(const struct uc_replay_report *report, FILE *file)
{
    if (report->latency_count == 0) {
        return;
    }

    (void)fprintf(
            file, "\n%-16s %12s %12s %12s %12s\n", "latency (us)", "count", "p50", "p99", "max");
    for (size_t idx = 0; idx < report->latency_count; idx++) {
        const struct uc_replay_latency *latency = &report->latencies[idx];

        (void)fprintf(file, "%-18s %12" PRIu64 " %12.1f %12.1f %12.1f\n", latency->operation,
                latency->count, latency->p50_us, latency->p99_us, latency->max_us);
    }
}

static void
print_tiers(const char *title, const struct uc_replay_tiers *tiers, FILE *file)
{
    (void)fprintf(file, "\n%-24s %-10s %12s %14s %14s\n", title, "store", "hits", "blocks loaded",
            "blocks dumped");
    for (size_t idx = 0; idx < tiers->count; idx++) {
        const struct uc_replay_tier *tier = &tiers->tiers[idx];
        char hits[24] = "not counted";

        if (tier->is_counted) {
            (void)snprintf(hits, sizeof(hits), "%" PRIu64, uc_replay_tier_hits(tiers, idx));
        }
        (void)fprintf(file, "%-24s %-10s %12s %14" PRIu64 " %14" PRIu64 "\n", tier->path,
                tier->store, hits, tier->blocks_loaded, tier->blocks_dumped);
    }
}

/* The whole, or round by round. One store says no more than the table above. */
static void
print_all_tiers(const struct uc_replay_report *report, FILE *file)
{
    for (size_t idx = 0; report->round_count > 1 && idx < report->round_count; idx++) {
        char title[48];

        (void)snprintf(title, sizeof(title), "tiers, round %zu", idx + 1);
        print_tiers(title, &report->rounds[idx].tiers, file);
    }
    if (report->round_count <= 1 && report->tiers.count > 1) {
        print_tiers("tiers", &report->tiers, file);
    }
}

static void
print_table(
        const struct uc_replay_options *options, const struct uc_replay_report *report, FILE *file)
{
    const struct uc_replay_counts *counts = &report->counts;

    uc_replay_print_trace(options, file);
    (void)fprintf(file, ", %" PRIu64 " nodes, ", options->nodes);
    if (options->config_path != NULL) {
        (void)fprintf(file, "topology %s\n\n", options->config_path);
    } else {
        (void)fprintf(file, "%" PRIu64 " blocks, policy %s%s\n\n", options->capacity_blocks,
                options->policy, options->simulate ? ", index alone (simulated)" : "");
    }

#define PRINT_COUNT_(name, help) \
    (void)fprintf(file, "%-18s %12" PRIu64 "  %s\n", #name, counts->name, (help));
    UC_REPLAY_COUNT_MAP(PRINT_COUNT_)
#undef PRINT_COUNT_

    (void)fprintf(file, "%-18s %12.2f  %% of the references\n", "hit rate",
            percent(counts->prefix_hits, counts->block_refs));
    (void)fprintf(file, "%-18s %12.3f\n", "seconds", counts->seconds);
    print_all_tiers(report, file);
    print_latencies(report, file);
}

void
uc_replay_report_print(
        const struct uc_replay_options *options, const struct uc_replay_report *report, FILE *file)
{
    if (options->json) {
        print_json(options, report, file);
    } else {
        print_table(options, report, file);
    }
}
