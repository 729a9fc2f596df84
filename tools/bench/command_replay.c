/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include <ucm/log.h>

#include "tools/bench/command.h"
#include "tools/bench/curve.h"
#include "tools/bench/replay.h"
#include "tools/bench/simulate.h"
#include "tools/bench/trace_load.h"

static enum uc_status
replay(const struct uc_replay_options *options, const struct uc_trace *trace, bool *good_out)
{
    struct uc_replay_report report = {0};
    enum uc_status status = options->simulate ? uc_simulate_run(trace, options, &report.counts)
                                              : uc_replay_run(trace, options, &report);

    if (status != UC_OK) {
        return status;
    }

    uc_replay_report_print(options, &report, stdout);
    *good_out = report.counts.mismatches == 0 && report.counts.errors == 0;
    return UC_OK;
}

/* The table first: it is of use even if there is no plot. */
static enum uc_status
draw_curve(const struct uc_replay_options *options, const struct uc_trace *trace)
{
    struct uc_curve *curve;
    enum uc_status status = uc_curve_run(trace, options, &curve);

    if (status != UC_OK) {
        return status;
    }

    uc_curve_print(options, curve, stdout);
    if (options->plot_path != NULL) {
        (void)fflush(stdout);
        status = uc_curve_plot(options, curve);
    }
    uc_curve_destroy(curve);
    return status;
}

static enum uc_status
run(const struct uc_replay_options *options, bool *good_out)
{
    struct uc_trace trace;
    enum uc_status status = uc_trace_load(options, &trace);

    if (status != UC_OK) {
        return status;
    }

    if (uc_replay_options_ask_curve(options)) {
        status = draw_curve(options, &trace);
    } else {
        status = replay(options, &trace, good_out);
    }
    uc_trace_fini(&trace);
    return status;
}

int
uc_bench_replay(int argc, char *const argv[])
{
    struct uc_replay_options options;
    bool good = true;

    if (uc_replay_options_parse(argc, argv, &options) != UC_OK) {
        (void)fprintf(
                stderr, "ucm-bench replay: %s; see ucm-bench replay --help\n", uc_last_error());
        return UC_BENCH_USAGE;
    }
    if (options.help) {
        uc_replay_options_print_help(stdout);
        return UC_BENCH_DONE;
    }
    if (run(&options, &good) != UC_OK) {
        (void)fflush(stdout);
        (void)fprintf(stderr, "ucm-bench replay: %s\n", uc_last_error());
        return UC_BENCH_FAILED;
    }
    if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "ucm-bench replay: the report could not be written\n");
        return UC_BENCH_FAILED;
    }
    return good ? UC_BENCH_DONE : UC_BENCH_FAILED;
}
