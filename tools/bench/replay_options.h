/* SPDX-License-Identifier: Apache-2.0 */

/** @file replay_options.h Command line of `ucm-bench replay`: one table parses and documents it. */

#ifndef UC_BENCH_REPLAY_OPTIONS_H
#define UC_BENCH_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_replay_generate {
    uint64_t seed;
    uint64_t requests; /* 0 = no generated trace */
};

enum {
    UC_REPLAY_CAPACITIES_MAX = 32,
    UC_REPLAY_ROUNDS_MAX = 16
};

/** A plain value. */
struct uc_replay_capacities {
    uint64_t blocks[UC_REPLAY_CAPACITIES_MAX];
    size_t count;
};

/** What to replay, and how. Texts are borrowed from the command line. */
struct uc_replay_options {
    const char *trace_path; /* NULL = generated */
    struct uc_replay_generate generate;
    const char *mix_path; /* second trace; NULL = none */
    const char *half;     /* all, first, second */
    uint64_t thin;        /* every n-th request */
    double time_scale;
    uint64_t nodes;
    struct uc_replay_capacities capacities;
    uint64_t capacity_blocks; /* the first of these */
    uint64_t block_bytes;
    const char *policy;      /* in a simulation a list, see policy_spec.h */
    const char *plot_path;   /* NULL = no plot */
    const char *fabric;      /* tcp, verbs, auto */
    const char *server;      /* host:port, a comma between several; NULL = spawned or simulated */
    uint64_t server_count;   /* to spawn */
    const char *address;     /* that a spawned server listens on */
    const char *config_path; /* topology of the nodes; NULL = one remote store */
    uint64_t ttl_seed;       /* 0 = no request has a lifetime */
    uint64_t repeat;         /* rounds over the trace */
    const char *namespace_name;
    const char *credential;
    const char *pids_file; /* NULL = none */
    uint64_t timeout_ms;
    uint64_t limit; /* requests; 0 = all */
    bool spawn_server;
    bool simulate;
    bool checksum;
    bool json;
    bool help;
};

/**
 * Parse `--name value`, `--name=value` and flags; @p argv holds no command name.
 *
 * @retval UC_ERR_INVALID_PARAM  unknown, malformed, missing or contradicting; the text says which. With
 *                               `--help` nothing else is checked
 */
UC_MUST_CHECK enum uc_status uc_replay_options_parse(
        int argc, char *const argv[], struct uc_replay_options *options_out);

/** @return whether they ask for a curve: several policies or capacities, or a plot. */
bool uc_replay_options_ask_curve(const struct uc_replay_options *options);

void uc_replay_options_print_help(FILE *file);

#endif /* UC_BENCH_REPLAY_OPTIONS_H */
