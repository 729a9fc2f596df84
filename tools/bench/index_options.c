/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/index.h"

enum {
    DEFAULT_ROUNDS = 7,
    DEFAULT_ROUND_MS = 60,
    MIN_BLOCKS = 64 /* one batch */
};

static const char default_blocks[] = "1000000,16000000";

static enum uc_status
parse_number(const char *name, const char *text, const char **end_out, uint64_t min, uint64_t max,
        uint64_t *value_out)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || value < min || value > max) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, name, text, min, max);
    }

    *end_out = end;
    *value_out = value;
    return UC_OK;
}

static enum uc_status
set_number(const char *name, const char *text, uint64_t max, uint64_t *value_out)
{
    const char *end = text;
    enum uc_status status = parse_number(name, text, &end, 1, max, value_out);

    if (status == UC_OK && *end != '\0') {
        return uc_error(UC_ERR_INVALID_PARAM, "--%s: '%s' is not a number", name, text);
    }
    return status;
}

static enum uc_status
set_blocks(const char *text, struct uc_index_options *options)
{
    const char *at = text;

    options->size_count = 0;
    for (;;) {
        enum uc_status status;

        if (options->size_count == UC_INDEX_SIZES_MAX) {
            return uc_error(
                    UC_ERR_INVALID_PARAM, "--blocks: more than %d sizes", UC_INDEX_SIZES_MAX);
        }
        status = parse_number(
                "blocks", at, &at, MIN_BLOCKS, INT32_MAX, &options->blocks[options->size_count]);
        if (status != UC_OK) {
            return status;
        }
        options->size_count++;
        if (*at == '\0') {
            return UC_OK;
        }
        if (*at != ',') {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "--blocks: '%s' is not a list of numbers with commas between them", text);
        }
        at++;
    }
}

/* @return whether @p word is the option @p name; the value behind = or in the next word. */
static bool
takes_value(const char *name, const char *word, int argc, char *const argv[], int *at,
        const char **value_out)
{
    size_t length = strlen(name);

    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0) {
        return false;
    }
    if (word[2 + length] == '=') {
        *value_out = word + 2 + length + 1;
        return true;
    }
    if (word[2 + length] != '\0') {
        return false;
    }

    *value_out = *at < argc ? argv[(*at)++] : "";
    return true;
}

static enum uc_status
parse_one(int argc, char *const argv[], int *at, struct uc_index_options *options)
{
    const char *word = argv[(*at)++];
    const char *value;

    if (strcmp(word, "--json") == 0) {
        options->json = true;
        return UC_OK;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        options->help = true;
        return UC_OK;
    }
    if (takes_value("policy", word, argc, argv, at, &value)) {
        options->policy = value;
        return UC_OK;
    }
    if (takes_value("blocks", word, argc, argv, at, &value)) {
        return set_blocks(value, options);
    }
    if (takes_value("rounds", word, argc, argv, at, &value)) {
        return set_number("rounds", value, UC_INDEX_ROUNDS_MAX, &options->rounds);
    }
    if (takes_value("round-ms", word, argc, argv, at, &value)) {
        return set_number("round-ms", value, 60000, &options->round_ms);
    }

    return uc_error(UC_ERR_INVALID_PARAM, "unknown option '%s'", word);
}

enum uc_status
uc_index_options_parse(int argc, char *const argv[], struct uc_index_options *options_out)
{
    struct uc_index_options options = {
            .policy = "lru",
            .rounds = DEFAULT_ROUNDS,
            .round_ms = DEFAULT_ROUND_MS,
    };
    enum uc_status status = set_blocks(default_blocks, &options);
    int at = 0;

    while (status == UC_OK && at < argc) {
        status = parse_one(argc, argv, &at, &options);
    }
    if (status == UC_OK) {
        *options_out = options;
    }
    return status;
}

void
uc_index_options_print_help(FILE *file)
{
    (void)fprintf(file,
            "usage: ucm-bench index [options]\n\n"
            "Measure the cache engine alone, on one core: lookups, alloc with commit, pin with "
            "unpin,\nbeside random reads of one cache line over as much memory.\n\n"
            "  --policy NAME                replacement policy of the cache (default lru)\n"
            "  --blocks N,...               capacities to measure (default %s)\n"
            "  --rounds N                   rounds; the best one counts (default %d)\n"
            "  --round-ms MS                time per measurement and round (default %d)\n"
            "  --json                       report as one JSON object\n"
            "  --help                       print this\n\n"
            "exit status: 0 done, 1 failed, 2 wrong usage\n",
            default_blocks, DEFAULT_ROUNDS, DEFAULT_ROUND_MS);
}
