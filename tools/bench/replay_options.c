/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/option_table.h"

enum {
    GENERATED_REQUESTS = 1000
};

#define MEMBER(member) offsetof(struct uc_replay_options, member)

static const char *const fabric_choices[] = {"shm", "tcp", "verbs", "auto", NULL};
static const char *const half_choices[] = {"all", "first", "second", NULL};

/* Numbers separated by commas. */
static enum uc_status
set_counts(const struct uc_option *option, const char *text, void *target)
{
    struct uc_replay_capacities capacities = {.count = 0};
    enum uc_status status = uc_option_numbers(
            option, text, capacities.blocks, UC_REPLAY_CAPACITIES_MAX, &capacities.count);

    if (status == UC_OK) {
        *(struct uc_replay_capacities *)target = capacities;
    }
    return status;
}

static enum uc_status
set_factor(const struct uc_option *option, const char *text, void *target)
{
    char *end;
    double value = strtod(text, &end);

    /* The negation refuses what is not a number, too. */
    if (end == text || *end != '\0' || !(value >= 0.001 && value <= 1000)) {
        return uc_error(UC_ERR_INVALID_PARAM, "--%s: '%s' is not a factor from 0.001 to 1000",
                option->name, text);
    }

    *(double *)target = value;
    return UC_OK;
}

static enum uc_status
set_generate(const struct uc_option *option, const char *text, void *target)
{
    struct uc_replay_generate generate = {.requests = GENERATED_REQUESTS};
    const char *colon = strchr(text, ':');
    char seed[32] = {0};
    size_t seed_length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    enum uc_status status = UC_ERR_INVALID_PARAM;

    if (seed_length < sizeof(seed)) {
        memcpy(seed, text, seed_length);
        status = uc_option_digits(seed, &generate.seed);
    }
    if (status == UC_OK && colon != NULL) {
        status = uc_option_digits(colon + 1, &generate.requests);
    }
    if (status != UC_OK || generate.requests == 0 || generate.requests > 10000000) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--%s: '%s' is not SEED or SEED:REQUESTS with 1 to 10000000 requests", option->name,
                text);
    }

    *(struct uc_replay_generate *)target = generate;
    return UC_OK;
}

static const struct uc_option options_table[] = {
        {"trace", UC_OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(trace_path),
                "trace to replay: one JSON object per line", NULL},
        {"generate", UC_OPTION_CUSTOM, "SEED[:REQUESTS]", NULL, 0, 0, NULL, MEMBER(generate),
                "a generated trace instead of a file (1000 requests unless given)", set_generate},
        {"limit", UC_OPTION_COUNT, "N", "0", 0, UINT64_MAX, NULL, MEMBER(limit),
                "replay the first N requests only; 0 = all", NULL},
        {"mix", UC_OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(mix_path),
                "merge a second trace by its times; no block in common", NULL},
        {"half", UC_OPTION_CHOICE, "all|first|second", "all", 0, 0, half_choices, MEMBER(half),
                "replay one half of the requests", NULL},
        {"thin", UC_OPTION_COUNT, "N", "1", 1, UINT32_MAX, NULL, MEMBER(thin),
                "replay every N-th request", NULL},
        {"time-scale", UC_OPTION_CUSTOM, "X", "1", 0, 0, NULL, MEMBER(time_scale),
                "multiply all times, 0.001 to 1000", set_factor},
        {"nodes", UC_OPTION_COUNT, "N", "2", 1, 256, NULL, MEMBER(nodes),
                "inference nodes that take requests in turn", NULL},
        {"capacity-blocks", UC_OPTION_CUSTOM, "N[,N…]", "10000", 1, INT32_MAX, NULL,
                MEMBER(capacities), "blocks that the cache holds; several give a curve",
                set_counts},
        {"block-bytes", UC_OPTION_BYTES, "SIZE", "64KiB", 1, 1ull << 30, NULL, MEMBER(block_bytes),
                "size of a block", NULL},
        {"policy", UC_OPTION_TEXT, "NAME[,NAME…]", "lru", 0, 0, NULL, MEMBER(policy),
                "replacement policy of the cache; NAME:KEY=VALUE sets a parameter, several give a "
                "curve",
                NULL},
        {"plot", UC_OPTION_TEXT, "FILE.png", NULL, 0, 0, NULL, MEMBER(plot_path),
                "draw the curve (needs gnuplot)", NULL},
        {"simulate", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(simulate),
                "ask the index alone: no server, no bytes", NULL},
        {"server", UC_OPTION_TEXT, "HOST:PORT[,…]", NULL, 0, 0, NULL, MEMBER(server),
                "replay against a running server; several share the blocks", NULL},
        {"spawn-server", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(spawn_server),
                "start a server for this replay and stop it afterwards", NULL},
        {"servers", UC_OPTION_COUNT, "N", "1", 1, 64, NULL, MEMBER(server_count),
                "with --spawn-server: so many, each of the capacity, share the blocks", NULL},
        {"address", UC_OPTION_TEXT, "HOST", "127.0.0.1", 0, 0, NULL, MEMBER(address),
                "where a spawned server listens", NULL},
        {"config", UC_OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(config_path),
                "topology of every node, YAML, instead of one remote store", NULL},
        {"ttl-seed", UC_OPTION_COUNT, "N", "0", 0, UINT64_MAX, NULL, MEMBER(ttl_seed),
                "draw a lifetime for each request from this seed; 0 = none has one", NULL},
        {"repeat", UC_OPTION_COUNT, "N", "1", 1, UC_REPLAY_ROUNDS_MAX, NULL, MEMBER(repeat),
                "replay the trace so often, with the same nodes", NULL},
        {"namespace", UC_OPTION_TEXT, "NAME", "default", 0, 0, NULL, MEMBER(namespace_name),
                "namespace on the server", NULL},
        {"credential", UC_OPTION_TEXT, "TEXT", NULL, 0, 0, NULL, MEMBER(credential),
                "what the server expects", NULL},
        {"fabric", UC_OPTION_CHOICE, "shm|tcp|verbs|auto", "auto", 0, 0, fabric_choices,
                MEMBER(fabric), "transport of the blocks", NULL},
        {"checksum", UC_OPTION_ON_OFF, "on|off", "on", 0, 0, NULL, MEMBER(checksum),
                "checksums in the footers of the blocks", NULL},
        {"timeout-ms", UC_OPTION_COUNT, "MS", "30000", 1, 3600000, NULL, MEMBER(timeout_ms),
                "deadline of one transfer", NULL},
        {"pids-file", UC_OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(pids_file),
                "write the process ids of the nodes there, as JSON", NULL},
        {"json", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(json), "report as one JSON object",
                NULL},
        {"help", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(help), "print this", NULL},
};

enum {
    OPTION_TOTAL = sizeof(options_table) / sizeof(options_table[0])
};

static enum uc_status
check_together(const struct uc_replay_options *options)
{
    bool generated = options->generate.requests > 0;
    int targets = (options->server != NULL ? 1 : 0) + (options->spawn_server ? 1 : 0) +
                  (options->simulate ? 1 : 0);

    if ((options->trace_path != NULL) == generated) {
        return uc_error(UC_ERR_INVALID_PARAM, "give one of --trace and --generate");
    }
    if (options->config_path != NULL && options->simulate) {
        return uc_error(UC_ERR_INVALID_PARAM, "--config says what --simulate leaves out");
    }
    /* A topology may do without a server. */
    if (targets > 1 || (targets == 0 && options->config_path == NULL)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "give one of --server, --spawn-server and --simulate, or --config");
    }
    if (options->simulate && (options->repeat > 1 || options->ttl_seed != 0)) {
        return uc_error(UC_ERR_INVALID_PARAM, "--repeat and --ttl-seed go without --simulate");
    }

    if (!options->simulate &&
            (uc_replay_options_ask_curve(options) || strchr(options->policy, ':') != NULL)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--plot, several of --policy or --capacity-blocks, and parameters of a policy go "
                "with --simulate");
    }

    return UC_OK;
}

bool
uc_replay_options_ask_curve(const struct uc_replay_options *options)
{
    return options->capacities.count > 1 || strchr(options->policy, ',') != NULL ||
           options->plot_path != NULL;
}

enum uc_status
uc_replay_options_parse(int argc, char *const argv[], struct uc_replay_options *options_out)
{
    struct uc_replay_options options = {0};
    enum uc_status status = uc_options_default(options_table, OPTION_TOTAL, &options);

    if (status == UC_OK) {
        status = uc_options_parse(options_table, OPTION_TOTAL, argc, argv, &options);
    }
    if (status == UC_OK && !options.help) {
        status = check_together(&options);
    }
    options.capacity_blocks = options.capacities.blocks[0];
    if (status == UC_OK) {
        *options_out = options;
    }
    return status;
}

void
uc_replay_options_print_help(FILE *file)
{
    (void)fputs("usage: ucm-bench replay (--trace FILE | --generate SEED[:REQUESTS])\n"
                "                        (--simulate | --spawn-server | --server HOST:PORT[,…] | "
                "--config FILE) [options]\n\n"
                "Replay a trace of requests: each reads its longest present prefix and writes the "
                "rest.\n\n",
            file);
    uc_options_print(options_table, OPTION_TOTAL, file);
    (void)fputs("\nexit status: 0 done, 1 failed or wrong bytes, 2 wrong usage\n", file);
}
