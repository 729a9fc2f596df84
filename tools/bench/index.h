/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file index.h
 * ucm-bench index: how fast the cache engine answers on one core, beside random reads of as much memory. One
 * thread.
 */

#ifndef UC_BENCH_INDEX_H
#define UC_BENCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_INDEX_SIZES_MAX = 16,
    UC_INDEX_RUNS_MAX = 16, /* measurements of one size */
    UC_INDEX_ROUNDS_MAX = 1000
};

struct uc_index_options {
    const char *policy;
    uint64_t blocks[UC_INDEX_SIZES_MAX]; /* capacities to measure, in order */
    size_t size_count;
    uint64_t rounds;   /* all measurements in turn; the best of each counts */
    uint64_t round_ms; /* timed work per measurement and round */
    bool json;
    bool help;
};

/** One measurement at one size. */
struct uc_index_run {
    const char *operation;
    uint64_t batch; /* blocks per call; 0 for the yardstick */
    double per_s;   /* of the best round */
    double ratio;   /* to the independent random reads of the same round, median of the rounds */
};

struct uc_index_size_report {
    uint64_t blocks;
    double bytes_per_block;
    struct uc_index_run runs[UC_INDEX_RUNS_MAX];
    size_t run_count;
};

struct uc_index_report {
    struct uc_index_size_report sizes[UC_INDEX_SIZES_MAX];
    size_t size_count;
};

/** @retval UC_ERR_INVALID_PARAM uc_last_error() names the option */
UC_MUST_CHECK enum uc_status uc_index_options_parse(
        int argc, char *const argv[], struct uc_index_options *options_out);
void uc_index_options_print_help(FILE *file);

/** Measure all sizes. @retval UC_ERR_OUT_OF_MEMORY @retval UC_ERR_INVALID_PARAM unknown policy */
UC_MUST_CHECK enum uc_status uc_index_run(
        const struct uc_index_options *options, struct uc_index_report *report_out);

/** A table, or one JSON object. */
void uc_index_report_print(
        const struct uc_index_options *options, const struct uc_index_report *report, FILE *file);

/** @return the run of that name and batch, or NULL. */
const struct uc_index_run *uc_index_find_run(
        const struct uc_index_size_report *report, const char *operation, uint64_t batch);

#endif /* UC_BENCH_INDEX_H */
