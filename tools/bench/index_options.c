/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include "tools/bench/index.h"
#include "tools/bench/option_table.h"

enum {
    MIN_BLOCKS = 64 /* one batch */
};

/* Numbers separated by commas; the target is the whole struct. */
static enum uc_status
set_blocks(const struct uc_option *option, const char *text, void *target)
{
    struct uc_index_options *options = target;

    return uc_option_numbers(
            option, text, options->blocks, UC_INDEX_SIZES_MAX, &options->size_count);
}

#define MEMBER(member) offsetof(struct uc_index_options, member)

static const struct uc_option options_table[] = {
        {"policy", UC_OPTION_TEXT, "NAME", "lru", 0, 0, NULL, MEMBER(policy),
                "replacement policy of the cache", NULL},
        {"blocks", UC_OPTION_CUSTOM, "N[,N…]", "1000000,16000000", MIN_BLOCKS, INT32_MAX, NULL, 0,
                "capacities to measure", set_blocks},
        {"rounds", UC_OPTION_COUNT, "N", "7", 1, UC_INDEX_ROUNDS_MAX, NULL, MEMBER(rounds),
                "rounds; the best one counts", NULL},
        {"round-ms", UC_OPTION_COUNT, "MS", "60", 1, 60000, NULL, MEMBER(round_ms),
                "time per measurement and round", NULL},
        {"json", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(json), "report as one JSON object",
                NULL},
        {"help", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(help), "print this", NULL},
};

enum {
    OPTION_TOTAL = sizeof(options_table) / sizeof(options_table[0])
};

enum uc_status
uc_index_options_parse(int argc, char *const argv[], struct uc_index_options *options_out)
{
    struct uc_index_options options = {0};
    enum uc_status status = uc_options_default(options_table, OPTION_TOTAL, &options);

    if (status == UC_OK) {
        status = uc_options_parse(options_table, OPTION_TOTAL, argc, argv, &options);
    }
    if (status == UC_OK) {
        *options_out = options;
    }
    return status;
}

void
uc_index_options_print_help(FILE *file)
{
    (void)fputs("usage: ucm-bench index [options]\n\n"
                "Measure the cache engine alone, on one core: lookups, alloc with commit, pin with "
                "unpin,\nbeside random reads of one cache line over as much memory.\n\n",
            file);
    uc_options_print(options_table, OPTION_TOTAL, file);
    (void)fputs("\nexit status: 0 done, 1 failed, 2 wrong usage\n", file);
}
