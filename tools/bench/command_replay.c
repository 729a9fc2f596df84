/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include <ucm/log.h>

#include "tools/bench/command.h"
#include "tools/bench/replay.h"
#include "tools/bench/simulate.h"

static enum uc_status
load_trace(const struct uc_replay_options *options, struct uc_trace *trace_out)
{
    uint64_t requests = options->generate.requests;

    if (options->trace_path != NULL) {
        return uc_trace_read(options->trace_path, options->limit, trace_out);
    }

    if (options->limit > 0 && options->limit < requests) {
        requests = options->limit;
    }
    return uc_trace_generate(options->generate.seed, requests, trace_out);
}

static enum uc_status
replay(const struct uc_replay_options *options, struct uc_replay_report *report)
{
    struct uc_trace trace;
    enum uc_status status = load_trace(options, &trace);

    if (status != UC_OK) {
        return status;
    }

    status = options->simulate ? uc_simulate_run(&trace, options, &report->counts)
                               : uc_replay_run(&trace, options, report);
    uc_trace_fini(&trace);
    return status;
}

int
uc_bench_replay(int argc, char *const argv[])
{
    struct uc_replay_report report = {0};
    struct uc_replay_options options;

    if (uc_replay_options_parse(argc, argv, &options) != UC_OK) {
        (void)fprintf(
                stderr, "ucm-bench replay: %s; see ucm-bench replay --help\n", uc_last_error());
        return UC_BENCH_USAGE;
    }
    if (options.help) {
        uc_replay_options_print_help(stdout);
        return UC_BENCH_DONE;
    }
    if (replay(&options, &report) != UC_OK) {
        (void)fprintf(stderr, "ucm-bench replay: %s\n", uc_last_error());
        return UC_BENCH_FAILED;
    }

    uc_replay_report_print(&options, &report, stdout);
    if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "ucm-bench replay: the report could not be written\n");
        return UC_BENCH_FAILED;
    }
    return report.counts.mismatches > 0 || report.counts.errors > 0 ? UC_BENCH_FAILED
                                                                    : UC_BENCH_DONE;
}
