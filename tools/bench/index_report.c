/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <jansson.h>

#include "tools/bench/index.h"

static double
rate_of(const struct uc_index_size_report *report, const char *operation, uint64_t batch)
{
    const struct uc_index_run *run = uc_index_find_run(report, operation, batch);

    return run == NULL ? 0 : run->per_s;
}

static json_t *
describe_runs(const struct uc_index_report *report)
{
    json_t *runs = json_array();

    for (size_t size = 0; size < report->size_count; size++) {
        const struct uc_index_size_report *at = &report->sizes[size];

        for (size_t idx = 0; idx < at->run_count; idx++) {
            const struct uc_index_run *run = &at->runs[idx];

            (void)json_array_append_new(
                    runs, json_pack("{s:I, s:s, s:I, s:f, s:f, s:f, s:f}", "blocks",
                                  (json_int_t)at->blocks, "operation", run->operation, "batch",
                                  (json_int_t)run->batch, "per_s", run->per_s, "ns",
                                  run->per_s > 0 ? 1e9 / run->per_s : 0, "of_random_reads",
                                  run->ratio, "bytes_per_block", at->bytes_per_block));
        }
    }
    return runs;
}

static void
print_json(const struct uc_index_options *options, const struct uc_index_report *report, FILE *file)
{
    const struct uc_index_size_report *first = &report->sizes[0];
    json_t *root = json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f}", "mode", "index", "policy",
            options->policy, "blocks", (json_int_t)first->blocks, "lookups_per_s",
            rate_of(first, "lookup_hit", 256), "alloc_commit_per_s",
            rate_of(first, "alloc_commit_evict", 64), "pin_unpin_per_s",
            rate_of(first, "pin_unpin", 64), "bytes_per_block", first->bytes_per_block,
            "random_reads_per_s", rate_of(first, "random_reads", 0));

    (void)json_object_set_new(root, "runs", describe_runs(report));
    (void)json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(root);
}

static void
print_table(
        const struct uc_index_options *options, const struct uc_index_report *report, FILE *file)
{
    for (size_t size = 0; size < report->size_count; size++) {
        const struct uc_index_size_report *at = &report->sizes[size];

        (void)fprintf(file, "%spolicy %s, %" PRIu64 " blocks, %.1f bytes per block\n",
                size == 0 ? "" : "\n", options->policy, at->blocks, at->bytes_per_block);
        (void)fprintf(file, "%-24s %6s %12s %10s %16s\n", "operation", "batch", "blocks/s", "ns",
                "of random reads");
        for (size_t idx = 0; idx < at->run_count; idx++) {
            const struct uc_index_run *run = &at->runs[idx];

            (void)fprintf(file, "%-24s %6" PRIu64 " %11.2fM %10.1f %16.3f\n", run->operation,
                    run->batch, run->per_s / 1e6, run->per_s > 0 ? 1e9 / run->per_s : 0,
                    run->ratio);
        }
    }
}

void
uc_index_report_print(
        const struct uc_index_options *options, const struct uc_index_report *report, FILE *file)
{
    if (options->json) {
        print_json(options, report, file);
    } else {
        print_table(options, report, file);
    }
}
