/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/fields.h"

enum option_kind {
    OPTION_FLAG,     /* bool, no value */
    OPTION_ON_OFF,   /* bool */
    OPTION_TEXT,     /* const char * */
    OPTION_CHOICE,   /* const char *, one of `choices` */
    OPTION_COUNT,    /* uint64_t */
    OPTION_COUNTS,   /* struct uc_replay_capacities */
    OPTION_FACTOR,   /* double */
    OPTION_BYTES,    /* uint64_t, with a unit */
    OPTION_GENERATE, /* struct uc_replay_generate */
};

enum {
    GENERATED_REQUESTS = 1000
};

struct option {
    const char *name;
    enum option_kind kind;
    const char *value_text; /* in the help; NULL for flags */
    const char *default_text;
    uint64_t min;
    uint64_t max;
    const char *const *choices;
    size_t offset; /* in struct uc_replay_options */
    const char *help;
};

#define MEMBER(member) offsetof(struct uc_replay_options, member)

static const char *const fabric_choices[] = {"tcp", "verbs", "auto", NULL};
static const char *const half_choices[] = {"all", "first", "second", NULL};

static const struct option options_table[] = {
        {"trace", OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(trace_path),
                "trace to replay: one JSON object per line"},
        {"generate", OPTION_GENERATE, "SEED[:REQUESTS]", NULL, 0, 0, NULL, MEMBER(generate),
                "a generated trace instead of a file (1000 requests unless given)"},
        {"limit", OPTION_COUNT, "N", "0", 0, UINT64_MAX, NULL, MEMBER(limit),
                "replay the first N requests only; 0 = all"},
        {"mix", OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(mix_path),
                "merge a second trace by its times; no block in common"},
        {"half", OPTION_CHOICE, "all|first|second", "all", 0, 0, half_choices, MEMBER(half),
                "replay one half of the requests"},
        {"thin", OPTION_COUNT, "N", "1", 1, UINT32_MAX, NULL, MEMBER(thin),
                "replay every N-th request"},
        {"time-scale", OPTION_FACTOR, "X", "1", 0, 0, NULL, MEMBER(time_scale),
                "multiply all times, 0.001 to 1000"},
        {"nodes", OPTION_COUNT, "N", "2", 1, 256, NULL, MEMBER(nodes),
                "inference nodes that take requests in turn"},
        {"capacity-blocks", OPTION_COUNTS, "N[,N…]", "10000", 1, INT32_MAX, NULL,
                MEMBER(capacities), "blocks that the cache holds; several give a curve"},
        {"block-bytes", OPTION_BYTES, "SIZE", "64KiB", 1, 1ull << 30, NULL, MEMBER(block_bytes),
                "size of a block"},
        {"policy", OPTION_TEXT, "NAME[,NAME…]", "lru", 0, 0, NULL, MEMBER(policy),
                "replacement policy of the cache; NAME:KEY=VALUE sets a parameter, several give a "
                "curve"},
        {"plot", OPTION_TEXT, "FILE.png", NULL, 0, 0, NULL, MEMBER(plot_path),
                "draw the curve (needs gnuplot)"},
        {"simulate", OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(simulate),
                "ask the index alone: no server, no bytes"},
        {"server", OPTION_TEXT, "HOST:PORT[,…]", NULL, 0, 0, NULL, MEMBER(server),
                "replay against a running server; several share the blocks"},
        {"spawn-server", OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(spawn_server),
                "start a server for this replay and stop it afterwards"},
        {"servers", OPTION_COUNT, "N", "1", 1, 64, NULL, MEMBER(server_count),
                "with --spawn-server: so many, each of the capacity, share the blocks"},
        {"address", OPTION_TEXT, "HOST", "127.0.0.1", 0, 0, NULL, MEMBER(address),
                "where a spawned server listens"},
        {"namespace", OPTION_TEXT, "NAME", "default", 0, 0, NULL, MEMBER(namespace_name),
                "namespace on the server"},
        {"credential", OPTION_TEXT, "TEXT", NULL, 0, 0, NULL, MEMBER(credential),
                "what the server expects"},
        {"fabric", OPTION_CHOICE, "tcp|verbs|auto", "auto", 0, 0, fabric_choices, MEMBER(fabric),
                "transport of the blocks"},
        {"checksum", OPTION_ON_OFF, "on|off", "on", 0, 0, NULL, MEMBER(checksum),
                "checksums in the footers of the blocks"},
        {"timeout-ms", OPTION_COUNT, "MS", "30000", 1, 3600000, NULL, MEMBER(timeout_ms),
                "deadline of one transfer"},
        {"pids-file", OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(pids_file),
                "write the process ids of the nodes there, as JSON"},
        {"json", OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(json), "report as one JSON object"},
        {"help", OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(help), "print this"},
};

enum {
    OPTION_TOTAL = sizeof(options_table) / sizeof(options_table[0])
};

static enum uc_status
parse_digits(const char *text, uint64_t *value_out)
{
    unsigned long long value;
    char *end;

    if (text[0] < '0' || text[0] > '9') {
        return UC_ERR_INVALID_PARAM; /* no sign, no space */
    }

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return UC_ERR_INVALID_PARAM;
    }

    *value_out = value;
    return UC_OK;
}

static enum uc_status
set_number(const struct option *option, const char *text, uint64_t *target)
{
    enum uc_status status;
    uint64_t value = 0;

    status = option->kind == OPTION_BYTES ? uc_bytes_parse(text, &value)
                                          : parse_digits(text, &value);
    if (status != UC_OK || value < option->min || value > option->max) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "%s", option->name, text,
                option->min, option->max,
                option->kind == OPTION_BYTES ? " bytes (a unit such as KiB is allowed)" : "");
    }

    *target = value;
    return UC_OK;
}

/* Numbers separated by commas. */
static enum uc_status
set_counts(const struct option *option, const char *text, struct uc_replay_capacities *target)
{
    struct uc_replay_capacities capacities = {.count = 0};

    while (text != NULL) {
        size_t length = strcspn(text, ",");
        char number[32] = {0};
        enum uc_status status;

        if (capacities.count == UC_REPLAY_CAPACITIES_MAX) {
            return uc_error(UC_ERR_INVALID_PARAM, "--%s: more than %d numbers", option->name,
                    UC_REPLAY_CAPACITIES_MAX);
        }
        memcpy(number, text, length < sizeof(number) ? length : sizeof(number) - 1);
        status = set_number(option, number, &capacities.blocks[capacities.count++]);
        if (status != UC_OK) {
            return status;
        }
        text = text[length] == ',' ? text + length + 1 : NULL;
    }

    *target = capacities;
    return UC_OK;
}

static enum uc_status
set_factor(const struct option *option, const char *text, double *target)
{
    char *end;
    double value = strtod(text, &end);

    /* The negation refuses what is not a number, too. */
    if (end == text || *end != '\0' || !(value >= 0.001 && value <= 1000)) {
        return uc_error(UC_ERR_INVALID_PARAM, "--%s: '%s' is not a factor from 0.001 to 1000",
                option->name, text);
    }

    *target = value;
    return UC_OK;
}

static enum uc_status
set_generate(const struct option *option, const char *text, struct uc_replay_generate *target)
{
    struct uc_replay_generate generate = {.requests = GENERATED_REQUESTS};
    const char *colon = strchr(text, ':');
    char seed[32] = {0};
    size_t seed_length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    enum uc_status status = UC_ERR_INVALID_PARAM;

    if (seed_length < sizeof(seed)) {
        memcpy(seed, text, seed_length);
        status = parse_digits(seed, &generate.seed);
    }
    if (status == UC_OK && colon != NULL) {
        status = parse_digits(colon + 1, &generate.requests);
    }
    if (status != UC_OK || generate.requests == 0 || generate.requests > 10000000) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--%s: '%s' is not SEED or SEED:REQUESTS with 1 to 10000000 requests", option->name,
                text);
    }

    *target = generate;
    return UC_OK;
}

static enum uc_status
set_on_off(const struct option *option, const char *text, bool *target)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "--%s: '%s' is neither on nor off", option->name, text);
    }

    *target = strcmp(text, "on") == 0;
    return UC_OK;
}

static enum uc_status
set_text(const struct option *option, const char *text, const char **target)
{
    bool found = option->choices == NULL;

    for (size_t idx = 0; !found && option->choices[idx] != NULL; idx++) {
        found = strcmp(option->choices[idx], text) == 0;
    }
    if (!found || text[0] == '\0') {
        return uc_error(UC_ERR_INVALID_PARAM, "--%s: '%s' is not %s", option->name, text,
                option->value_text);
    }

    *target = text;
    return UC_OK;
}

static enum uc_status
set_option(const struct option *option, const char *text, struct uc_replay_options *options)
{
    void *target = (char *)options + option->offset;

    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)target = true;
        return UC_OK;
    case OPTION_ON_OFF:
        return set_on_off(option, text, target);
    case OPTION_TEXT:
    case OPTION_CHOICE:
        return set_text(option, text, target);
    case OPTION_COUNT:
    case OPTION_BYTES:
        return set_number(option, text, target);
    case OPTION_COUNTS:
        return set_counts(option, text, target);
    case OPTION_FACTOR:
        return set_factor(option, text, target);
    case OPTION_GENERATE:
        return set_generate(option, text, target);
    }

    return UC_ERR_GENERAL;
}

static const struct option *
find_option(const char *name, size_t length)
{
    for (size_t idx = 0; idx < OPTION_TOTAL; idx++) {
        if (strlen(options_table[idx].name) == length &&
                memcmp(options_table[idx].name, name, length) == 0) {
            return &options_table[idx];
        }
    }

    return NULL;
}

/* One option at argv[*at]; moves *at behind what it used. */
static enum uc_status
parse_one(int argc, char *const argv[], int *at, struct uc_replay_options *options)
{
    const char *word = argv[(*at)++];
    const char *name = word + 2;
    const char *equals;
    const struct option *option;

    if (strncmp(word, "--", 2) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%s' is not an option", word);
    }

    equals = strchr(name, '=');
    option = find_option(name, equals == NULL ? strlen(name) : (size_t)(equals - name));
    if (option == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "unknown option '%s'", word);
    }
    if (option->kind == OPTION_FLAG) {
        return equals == NULL ? set_option(option, NULL, options)
                              : uc_error(UC_ERR_INVALID_PARAM, "--%s takes no value", option->name);
    }
    if (equals != NULL) {
        return set_option(option, equals + 1, options);
    }
    if (*at == argc) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "--%s needs a value: %s", option->name, option->value_text);
    }

    return set_option(option, argv[(*at)++], options);
}

static enum uc_status
set_defaults(struct uc_replay_options *options)
{
    for (size_t idx = 0; idx < OPTION_TOTAL; idx++) {
        if (options_table[idx].default_text != NULL) {
            enum uc_status status =
                    set_option(&options_table[idx], options_table[idx].default_text, options);

            if (status != UC_OK) {
                return status;
            }
        }
    }

    return UC_OK;
}

static enum uc_status
check_together(const struct uc_replay_options *options)
{
    bool generated = options->generate.requests > 0;
    int targets = (options->server != NULL ? 1 : 0) + (options->spawn_server ? 1 : 0) +
                  (options->simulate ? 1 : 0);

    if ((options->trace_path != NULL) == generated) {
        return uc_error(UC_ERR_INVALID_PARAM, "give one of --trace and --generate");
    }
    if (targets != 1) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "give one of --server, --spawn-server and --simulate");
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
    enum uc_status status = set_defaults(&options);
    int at = 0;

    while (status == UC_OK && at < argc) {
        status = parse_one(argc, argv, &at, &options);
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

/* Bytes that take no column of their own: what UTF-8 adds to a character. */
static int
hidden_bytes(const char *text)
{
    int count = 0;

    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xc0) == 0x80 ? 1 : 0;
    }
    return count;
}

void
uc_replay_options_print_help(FILE *file)
{
    (void)fputs("usage: ucm-bench replay (--trace FILE | --generate SEED[:REQUESTS])\n"
                "                        (--simulate | --spawn-server | --server HOST:PORT[,…]) "
                "[options]\n\n"
                "Replay a trace of requests: each reads its longest present prefix and writes the "
                "rest.\n\n",
            file);
    for (size_t idx = 0; idx < OPTION_TOTAL; idx++) {
        const struct option *option = &options_table[idx];
        char usage[64];

        (void)snprintf(usage, sizeof(usage), "--%s%s%s", option->name,
                option->value_text == NULL ? "" : " ",
                option->value_text == NULL ? "" : option->value_text);
        (void)fprintf(file, "  %-*s %s", 28 + hidden_bytes(usage), usage, option->help);
        if (option->default_text != NULL) {
            (void)fprintf(file, " (default %s)", option->default_text);
        }
        (void)fputc('\n', file);
    }
    (void)fputs("\nexit status: 0 done, 1 failed or wrong bytes, 2 wrong usage\n", file);
}
