/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "tools/bench/command.h"
#include "tools/bench/fabric_bench.h"

static int
failed(void)
{
    (void)fprintf(stderr, "ucm-bench fabric: %s\n", uc_last_error());
    return UC_BENCH_FAILED;
}

int
uc_bench_fabric(int argc, char *const argv[])
{
    struct uc_fabric_bench_options options;
    struct uc_fabric_bench_report report;

    if (uc_fabric_bench_options_parse(argc, argv, &options) != UC_OK) {
        (void)fprintf(
                stderr, "ucm-bench fabric: %s; see ucm-bench fabric --help\n", uc_last_error());
        return UC_BENCH_USAGE;
    }
    if (options.help) {
        uc_fabric_bench_options_print_help(stdout);
        return UC_BENCH_DONE;
    }
    if (options.serve != NULL) {
        return uc_fabric_bench_serve(&options) == UC_OK ? UC_BENCH_DONE : failed();
    }
    if (uc_fabric_bench_run(&options, &report) != UC_OK) {
        return failed();
    }

    uc_fabric_bench_report_print(&options, &report, stdout);
    if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "ucm-bench fabric: the report could not be written\n");
        return UC_BENCH_FAILED;
    }
    if (report.mismatches > 0) {
        (void)fprintf(stderr, "ucm-bench fabric: blocks arrived wrong; see mismatches\n");
    }
    return report.mismatches == 0 ? UC_BENCH_DONE : UC_BENCH_FAILED;
}
