/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "tools/bench/fabric_bench.h"

static json_t *
number_or_null(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

static json_t *
describe_rate(const struct uc_fabric_bench_rate *rate, bool has_limit)
{
    return json_pack("{s:o, s:o}", "gbytes_per_s",
            number_or_null(rate->measured, rate->gbytes_per_s), "ratio",
            number_or_null(rate->measured && has_limit, rate->ratio));
}

static json_t *
describe_limit(const struct uc_fabric_bench_report *report)
{
    const struct uc_fabric_bench_rate *limit = &report->limit;
    json_t *root = json_pack("{s:s?, s:o}", "name", limit->name, "gbytes_per_s",
            number_or_null(limit->measured, limit->gbytes_per_s));

    if (!limit->measured) {
        (void)json_object_set_new(root, "reason", json_string(limit->reason));
    }
    if (report->limit_alone_us > 0) {
        (void)json_object_set_new(root, "read_lat_us", json_real(report->limit_alone_us));
    }
    return root;
}

static void
print_json(const struct uc_fabric_bench_options *options,
        const struct uc_fabric_bench_report *report, FILE *file)
{
    json_t *root = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:I}", "mode", "fabric",
            "fabric", options->fabric, "op", options->op, "block_bytes",
            (json_int_t)options->block_bytes, "pieces", (json_int_t)options->pieces, "depth",
            (json_int_t)options->depth, "connections", (json_int_t)options->connections, "buffers",
            options->buffers, "working_set_bytes", (json_int_t)report->working_set_bytes,
            "last_level_cache_bytes", (json_int_t)report->cache_bytes);
    json_t *verified = describe_rate(&report->verified, report->limit.measured);

    (void)json_object_update_new(
            root, json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "gbytes_per_s",
                          report->plain.gbytes_per_s, "ops_per_s", report->ops_per_s, "p50_us",
                          report->latency.p50_us, "p99_us", report->latency.p99_us, "p99_9_us",
                          report->latency.p999_us, "ratio",
                          number_or_null(report->limit.measured, report->plain.ratio), "limit",
                          describe_limit(report)));
    (void)json_object_set_new(verified, "fused", json_boolean(report->fused));
    (void)json_object_set_new(root, "verified", verified);
    (void)json_object_update_new(root,
            json_pack("{s:{s:f, s:f, s:f}, s:{s:f, s:f}, s:{s:f, s:f}, s:I, s:I, s:I}",
                    "one_at_a_time", "p50_us", report->alone.p50_us, "p99_us", report->alone.p99_us,
                    "p99_9_us", report->alone.p999_us, "cpu_s_per_gbyte", "client",
                    report->client.s_per_gbyte, "server", report->server.s_per_gbyte, "cpu_share",
                    "client", report->client.share, "server", report->server.share, "bytes",
                    (json_int_t)report->bytes, "rounds", (json_int_t)report->rounds, "mismatches",
                    (json_int_t)report->mismatches));
    (void)json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(root);
}

static void
print_rate(const char *name, const struct uc_fabric_bench_rate *rate, bool has_limit, FILE *file)
{
    (void)fprintf(file, "  %-24s %8.3f GB/s", name, rate->gbytes_per_s);
    if (has_limit) {
        (void)fprintf(file, "  %6.3f of the limit", rate->ratio);
    }
    (void)fputc('\n', file);
}

static void
print_latency(const char *name, const struct uc_fabric_bench_latency *latency, FILE *file)
{
    (void)fprintf(file, "  %-24s %8.1f µs, 99 %%: %.1f, 99.9 %%: %.1f\n", name, latency->p50_us,
            latency->p99_us, latency->p999_us);
}

static void
print_text(const struct uc_fabric_bench_options *options,
        const struct uc_fabric_bench_report *report, FILE *file)
{
    bool has_limit = report->limit.measured;

    (void)fprintf(file,
            "%s %s: blocks of %" PRIu64 " bytes in %" PRIu64 " pieces, %" PRIu64
            " in flight, working set %" PRIu64 " MiB (last-level cache %" PRIu64
            " MiB), %s buffers, medians of %" PRIu64 " rounds\n",
            options->fabric, options->op, options->block_bytes, options->pieces, options->depth,
            report->working_set_bytes >> 20, report->cache_bytes >> 20, options->buffers,
            report->rounds);
    print_rate("fabric only", &report->plain, has_limit, file);
    print_rate(report->fused ? "verified, fused" : "verified", &report->verified, has_limit, file);
    if (has_limit) {
        print_rate(report->limit.name, &report->limit, false, file);
    } else {
        (void)fprintf(file, "  %-24s %s\n", "no limit", report->limit.reason);
    }
    (void)fprintf(file, "  %-24s %8.0f\n", "operations/s", report->ops_per_s);
    print_latency("latency", &report->latency, file);
    print_latency("latency, one at a time", &report->alone, file);
    if (report->limit_alone_us > 0) {
        (void)fprintf(file, "  %-24s %8.1f µs\n", "ib_read_lat", report->limit_alone_us);
    }
    (void)fprintf(file,
            "  %-24s %8.3f s/GB client, %.3f s/GB server (%.1f %% and %.1f %% of a processor)\n",
            "processor time", report->client.s_per_gbyte, report->server.s_per_gbyte,
            100 * report->client.share, 100 * report->server.share);
    if (report->mismatches > 0) {
        (void)fprintf(file, "  %-24s %8" PRIu64 " blocks\n", "WRONG", report->mismatches);
    }
}

void
uc_fabric_bench_report_print(const struct uc_fabric_bench_options *options,
        const struct uc_fabric_bench_report *report, FILE *file)
{
    if (options->json) {
        print_json(options, report, file);
    } else {
        print_text(options, report, file);
    }
}
