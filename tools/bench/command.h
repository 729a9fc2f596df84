/* SPDX-License-Identifier: Apache-2.0 */

/** @file command.h Subcommands of ucm-bench. One file and one row of the table in main.c each. */

#ifndef UC_BENCH_COMMAND_H
#define UC_BENCH_COMMAND_H

enum uc_bench_exit {
    UC_BENCH_DONE = 0,
    UC_BENCH_FAILED = 1,
    UC_BENCH_USAGE = 2,
};

struct uc_bench_command {
    const char *name;
    const char *summary;
    /** @p argv holds what follows the name. @return an enum uc_bench_exit */
    int (*run)(int argc, char *const argv[]);
};

int uc_bench_fabric(int argc, char *const argv[]);
int uc_bench_replay(int argc, char *const argv[]);
int uc_bench_index(int argc, char *const argv[]);
int uc_bench_store(int argc, char *const argv[]);

#endif /* UC_BENCH_COMMAND_H */
