/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <unistd.h>

#include "tools/bench/command.h"
#include "tools/bench/store.h"

int
uc_bench_store(int argc, char *const argv[])
{
    struct uc_store_options options;
    struct uc_store_report report = {0};

    if (uc_store_options_parse(argc, argv, &options) != UC_OK) {
        (void)fprintf(stderr, "ucm-bench store: %s; see ucm-bench store --help\n", uc_last_error());
        return UC_BENCH_USAGE;
    }
    if (options.help) {
        uc_store_options_print_help(stdout);
        return UC_BENCH_DONE;
    }
    if (uc_store_run(&options, &report) != UC_OK) {
        (void)fprintf(stderr, "ucm-bench store: %s\n", uc_last_error());
        if (report.is_abandoned) {
            /* Threads of the store still use what an orderly end would take from them. */
            _exit(UC_BENCH_FAILED);
        }
        return UC_BENCH_FAILED;
    }

    uc_store_report_print(&options, &report, stdout);
    uc_store_rounds_fini(&report.rounds);
    if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "ucm-bench store: the report could not be written\n");
        return UC_BENCH_FAILED;
    }
    return report.mismatches == 0 && report.errors == 0 ? UC_BENCH_DONE : UC_BENCH_FAILED;
}
