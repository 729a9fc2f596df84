/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file curve.h
 * Hit-rate curves: one trace on every policy at every capacity, and the clairvoyant optimum beside them.
 * One thread.
 */

#ifndef UC_BENCH_CURVE_H
#define UC_BENCH_CURVE_H

#include <stdio.h>

#include "tools/bench/policy_spec.h"
#include "tools/bench/replay_report.h"
#include "tools/bench/trace.h"

enum {
    UC_CURVE_POLICIES_MAX = 16
};

/** Results. Release with uc_curve_destroy(). */
struct uc_curve {
    struct uc_policy_spec policies[UC_CURVE_POLICIES_MAX];
    size_t policy_count;
    struct uc_replay_capacities capacities;
    uint64_t requests;
    uint64_t block_refs;
    /* Policy by policy, as the capacities go. */
    struct uc_replay_counts counts[UC_CURVE_POLICIES_MAX][UC_REPLAY_CAPACITIES_MAX];
    uint64_t optimum_hits[UC_REPLAY_CAPACITIES_MAX];
    double seconds;
};

/** @retval UC_ERR_INVALID_PARAM  a policy, a parameter of one, or too many of them */
UC_MUST_CHECK enum uc_status uc_curve_run(const struct uc_trace *trace,
        const struct uc_replay_options *options, struct uc_curve **curve_out);
void uc_curve_destroy(struct uc_curve *curve);

/** Percent of the references. */
double uc_curve_hit_pct(const struct uc_curve *curve, uint64_t hits);

/** A table for people, or one JSON object if the options say so. */
void uc_curve_print(
        const struct uc_replay_options *options, const struct uc_curve *curve, FILE *file);

/**
 * Draw the curves with gnuplot.
 *
 * @retval UC_ERR_NOT_FOUND  gnuplot is not installed; the text says how to get it
 * @retval UC_ERR_OS_API     it failed, or the file cannot be written
 */
UC_MUST_CHECK enum uc_status uc_curve_plot(
        const struct uc_replay_options *options, const struct uc_curve *curve);

/** The program that draws them; what uc_curve_plot() feeds to gnuplot. */
void uc_curve_write_gnuplot(
        const struct uc_replay_options *options, const struct uc_curve *curve, FILE *file);

#endif /* UC_BENCH_CURVE_H */
