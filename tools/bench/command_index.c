/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "tools/bench/command.h"
#include "tools/bench/index.h"

int
uc_bench_index(int argc, char *const argv[])
{
    static struct uc_index_report report; /* too big for a stack */
    struct uc_index_options options;

    if (uc_index_options_parse(argc, argv, &options) != UC_OK) {
        (void)fprintf(stderr, "ucm-bench index: %s; see ucm-bench index --help\n", uc_last_error());
        return UC_BENCH_USAGE;
    }
    if (options.help) {
        uc_index_options_print_help(stdout);
        return UC_BENCH_DONE;
    }
    if (uc_index_run(&options, &report) != UC_OK) {
        (void)fprintf(stderr, "ucm-bench index: %s\n", uc_last_error());
        return UC_BENCH_FAILED;
    }

    uc_index_report_print(&options, &report, stdout);
    if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "ucm-bench index: the report could not be written\n");
        return UC_BENCH_FAILED;
    }
    return UC_BENCH_DONE;
}
