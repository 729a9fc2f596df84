/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <unistd.h>

#include "tools/bench/option_table.h"
#include "tools/bench/store.h"

enum {
    BLOCKS_MAX = 1 << 20,
    /* Without --blocks: source and target are four times the last-level cache within these bounds. */
    BLOCKS_LEAST = 512,
    BLOCKS_MOST = 4096,
};

static const uint64_t working_set_max = 1ull << 40;

#define MEMBER(member) offsetof(struct uc_store_options, member)

static const char *const direct_choices[] = {"auto", "fio", "uring", NULL};
static const char *const fabric_choices[] = {"shm", "tcp", "verbs", "auto", NULL};

static const struct uc_option options_table[] = {
        {"config", UC_OPTION_TEXT, "FILE", NULL, 0, 0, NULL, MEMBER(config_path), "topology, YAML",
                NULL},
        {"server", UC_OPTION_TEXT, "HOST:PORT[,…]", NULL, 0, 0, NULL, MEMBER(server),
                "what $SERVER and $SERVERS in it stand for", NULL},
        {"spawn-server", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(spawn_server),
                "start a server for this run and stop it afterwards", NULL},
        {"address", UC_OPTION_TEXT, "HOST", "127.0.0.1", 0, 0, NULL, MEMBER(address),
                "where a spawned server listens", NULL},
        {"fabric", UC_OPTION_CHOICE, "shm|tcp|verbs|auto", "auto", 0, 0, fabric_choices,
                MEMBER(fabric), "what $FABRIC stands for", NULL},
        {"blocks", UC_OPTION_COUNT, "N", "0", 0, BLOCKS_MAX, NULL, MEMBER(blocks),
                "blocks of a sweep; 0 = from the size of the last-level cache", NULL},
        {"block-bytes", UC_OPTION_BYTES, "SIZE", "1MiB", 1, 1ull << 30, NULL, MEMBER(block_bytes),
                "size of a block", NULL},
        {"depth", UC_OPTION_COUNT, "N", "8", 1, UC_STORE_DEPTH_MAX, NULL, MEMBER(depth),
                "blocks in flight", NULL},
        {"rounds", UC_OPTION_COUNT, "N", "1", 1, 1000, NULL, MEMBER(rounds),
                "sweeps of new blocks, in turn with what bounds them; medians count", NULL},
        {"seconds", UC_OPTION_COUNT, "N", "0", 0, 3600, NULL, MEMBER(seconds),
                "start more rounds until so much time has passed", NULL},
        {"warm-up", UC_OPTION_COUNT, "SWEEPS", "0", 0, 1000, NULL, MEMBER(warm_up),
                "sweeps before that are not measured: new memory is slow when first written", NULL},
        {"ttl-ms", UC_OPTION_COUNT, "MS", "0", 0, INT64_MAX, NULL, MEMBER(ttl_ms),
                "lifetime that the requests predict; 0 = none", NULL},
        {"stall-ms", UC_OPTION_COUNT, "MS", "60000", 1, INT32_MAX, NULL, MEMBER(stall_ms),
                "give up when blocks are in flight and none ends for so long", NULL},
        {"direct-dir", UC_OPTION_TEXT, "DIR", NULL, 0, 0, NULL, MEMBER(direct_dir),
                "write and read files there, too (O_DIRECT); a posix store's own root needs no word",
                NULL},
        {"direct-by", UC_OPTION_CHOICE, "auto|fio|uring", "auto", 0, 0, direct_choices,
                MEMBER(direct_by), "who does that; auto = fio if it is installed", NULL},
        {"huge-pages", UC_OPTION_ON_OFF, "on|off", "on", 0, 0, NULL, MEMBER(huge_pages),
                "ask for huge pages where the medium is the limit, for the blocks and for fio",
                NULL},
        {"json", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(json), "report as one JSON object",
                NULL},
        {"help", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(help), "print this", NULL},
};

enum {
    OPTION_TOTAL = sizeof(options_table) / sizeof(options_table[0])
};

static uint64_t
last_level_cache_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);

    if (bytes <= 0) {
        bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    }
    return bytes <= 0 ? 0 : (uint64_t)bytes;
}

static void
derive(struct uc_store_options *options)
{
    options->cache_bytes = last_level_cache_bytes();
    if (options->blocks == 0) {
        options->blocks = 2 * options->cache_bytes / options->block_bytes;
        options->blocks = options->blocks < BLOCKS_LEAST ? BLOCKS_LEAST : options->blocks;
        options->blocks = options->blocks > BLOCKS_MOST ? BLOCKS_MOST : options->blocks;
    }
}

static enum uc_status
check_together(const struct uc_store_options *options)
{
    if (options->config_path == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "give --config");
    }
    if (options->server != NULL && options->spawn_server) {
        return uc_error(UC_ERR_INVALID_PARAM, "give one of --server and --spawn-server");
    }
    if (options->blocks > working_set_max / options->block_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--blocks times --block-bytes is more than 1 TiB: the blocks lie in memory");
    }
    if (options->direct_dir != NULL && options->block_bytes % 4096 != 0) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "--direct-dir needs --block-bytes to be a multiple of 4096");
    }
    return UC_OK;
}

enum uc_status
uc_store_options_parse(int argc, char *const argv[], struct uc_store_options *options_out)
{
    struct uc_store_options options = {0};
    enum uc_status status = uc_options_default(options_table, OPTION_TOTAL, &options);

    if (status == UC_OK) {
        status = uc_options_parse(options_table, OPTION_TOTAL, argc, argv, &options);
    }
    if (status == UC_OK && !options.help) {
        derive(&options);
        status = check_together(&options);
    }
    if (status == UC_OK) {
        *options_out = options;
    }
    return status;
}

void
uc_store_options_print_help(FILE *file)
{
    (void)fputs(
            "usage: ucm-bench store --config FILE [options]\n\n"
            "Put blocks through a topology and get them back, in turn with what bounds them: memcpy "
            "over\nthe same memory, or the medium.\n\n",
            file);
    uc_options_print(options_table, OPTION_TOTAL, file);
    (void)fputs("\nexit status: 0 done, 1 failed or wrong bytes, 2 wrong usage\n", file);
}
