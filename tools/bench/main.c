/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "core/base/standard_streams.h"
#include "tools/bench/command.h"

static const struct uc_bench_command commands[] = {
        {"replay", "replay a trace of requests, on the index alone or through a server",
                uc_bench_replay},
        {"fabric", "measure a transport alone, beside the best that the machine can do",
                uc_bench_fabric},
        {"index", "measure the cache engine alone: lookups, alloc with commit, pins",
                uc_bench_index},
        {"store", "measure put and get through any topology, beside memcpy", uc_bench_store},
};

enum {
    COMMAND_COUNT = sizeof(commands) / sizeof(commands[0])
};

static void
print_help(FILE *file)
{
    (void)fputs("usage: ucm-bench COMMAND [options]\n\ncommands:\n", file);
    for (size_t idx = 0; idx < COMMAND_COUNT; idx++) {
        (void)fprintf(file, "  %-12s %s\n", commands[idx].name, commands[idx].summary);
    }
    (void)fputs("\nucm-bench COMMAND --help lists the options of a command.\n", file);
}

static int
run(int argc, char *argv[])
{
    const char *name = argc > 1 ? argv[1] : NULL;

    if (name == NULL) {
        print_help(stderr);
        return UC_BENCH_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return UC_BENCH_DONE;
    }
    if (strcmp(name, "--version") == 0) {
        (void)puts("ucm-bench " UC_VERSION);
        return UC_BENCH_DONE;
    }
    for (size_t idx = 0; idx < COMMAND_COUNT; idx++) {
        if (strcmp(commands[idx].name, name) == 0) {
            return commands[idx].run(argc - 2, argv + 2);
        }
    }

    (void)fprintf(stderr, "ucm-bench: unknown command '%s'; see ucm-bench --help\n", name);
    return UC_BENCH_USAGE;
}

int
main(int argc, char *argv[])
{
    int code;

    if (uc_standard_streams_hold() != UC_OK) {
        (void)fprintf(stderr, "ucm-bench: %s\n", uc_last_error());
        return UC_BENCH_FAILED;
    }

    code = run(argc, argv);
    if (uc_standard_streams_finish() != UC_OK && code == UC_BENCH_DONE) {
        (void)fprintf(stderr, "ucm-bench: %s\n", uc_last_error());
        code = UC_BENCH_FAILED;
    }
    return code;
}
