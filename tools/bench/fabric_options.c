/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>

#include "tools/bench/fabric_bench.h"
#include "tools/bench/option_table.h"

static const uint64_t gib = 1ull << 30;

#define MEMBER(member) offsetof(struct uc_fabric_bench_options, member)

static const char *const fabric_choices[] = {"tcp", "shm", "verbs", NULL};
static const char *const op_choices[] = {"read", "write", NULL};
static const char *const buffer_choices[] = {"cold", "reused", NULL};
static const char *const switch_choices[] = {"on", "off", NULL};

static const struct uc_option options_table[] = {
        {"fabric", UC_OPTION_CHOICE, "tcp|shm|verbs", "tcp", 0, 0, fabric_choices, MEMBER(fabric),
                "the transport", NULL},
        {"op", UC_OPTION_CHOICE, "read|write", "read", 0, 0, op_choices, MEMBER(op),
                "what the client does", NULL},
        {"block-bytes", UC_OPTION_BYTES, "SIZE", "1MiB", 8, 1ull << 30, NULL, MEMBER(block_bytes),
                "size of a block; an operation moves one", NULL},
        {"pieces", UC_OPTION_COUNT, "N", "1", 1, UC_FABRIC_BENCH_PIECES_MAX, NULL, MEMBER(pieces),
                "pieces of a block in the client's memory, far apart", NULL},
        {"depth", UC_OPTION_COUNT, "N", "8", 1, UC_FABRIC_BENCH_DEPTH_MAX, NULL, MEMBER(depth),
                "operations in flight", NULL},
        {"connections", UC_OPTION_COUNT, "N", "0", 0, UC_FABRIC_BENCH_CONNECTIONS_MAX, NULL,
                MEMBER(connections), "queue pairs or sockets; 0 = as the transport thinks best",
                NULL},
        {"seconds", UC_OPTION_COUNT, "N", "2", 1, 3600, NULL, MEMBER(seconds),
                "time for each measurement, all rounds together", NULL},
        {"rounds", UC_OPTION_COUNT, "N", "5", 1, UC_FABRIC_BENCH_ROUNDS_MAX, NULL, MEMBER(rounds),
                "rounds in which transport and limit take turns; medians count", NULL},
        {"working-set", UC_OPTION_BYTES, "SIZE", NULL, 1, 1ull << 40, NULL,
                MEMBER(working_set_bytes),
                "bytes that the blocks stream through; default 4 times the last-level cache, "
                "an eighth of the free memory at most",
                NULL},
        {"buffers", UC_OPTION_CHOICE, "cold|reused", "cold", 0, 0, buffer_choices, MEMBER(buffers),
                "the client's memory: as large as the working set, or the same again and again",
                NULL},
        {"limit", UC_OPTION_CHOICE, "on|off", "on", 0, 0, switch_choices, MEMBER(limit),
                "measure what the machine can do at best beside", NULL},
        {"address", UC_OPTION_TEXT, "HOST", "127.0.0.1", 0, 0, NULL, MEMBER(address),
                "where a server of one's own listens", NULL},
        {"device", UC_OPTION_TEXT, "NAME[:PORT]", NULL, 0, 0, NULL, MEMBER(device),
                "RDMA device; default: by route", NULL},
        {"server", UC_OPTION_TEXT, "HOST:PORT", NULL, 0, 0, NULL, MEMBER(serve),
                "be the server there, for one client", NULL},
        {"connect", UC_OPTION_TEXT, "HOST:PORT", NULL, 0, 0, NULL, MEMBER(connect),
                "measure against a server that was started so", NULL},
        {"json", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(json), "report as one JSON object",
                NULL},
        {"help", UC_OPTION_FLAG, NULL, NULL, 0, 0, NULL, MEMBER(help), "print this", NULL},
};

enum {
    OPTION_TOTAL = sizeof(options_table) / sizeof(options_table[0])
};

static enum uc_status
check_together(const struct uc_fabric_bench_options *options)
{
    if (options->serve != NULL && options->connect != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "give one of --server and --connect");
    }
    if (options->block_bytes % options->pieces != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--block-bytes must be a multiple of --pieces: all pieces have the same size");
    }
    if (options->connections > options->depth) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--connections is more than --depth: some would have nothing to do");
    }
    if (options->block_bytes * options->depth > 16 * gib) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--block-bytes times --depth is more than 16 GiB; lower one of them");
    }
    return UC_OK;
}

enum uc_status
uc_fabric_bench_options_parse(
        int argc, char *const argv[], struct uc_fabric_bench_options *options_out)
{
    struct uc_fabric_bench_options options = {0};
    enum uc_status status = uc_options_default(options_table, OPTION_TOTAL, &options);

    if (status == UC_OK) {
        status = uc_options_parse(options_table, OPTION_TOTAL, argc, argv, &options);
    }
    if (status == UC_OK && !options.help) {
        status = check_together(&options);
    }
    if (status == UC_OK) {
        *options_out = options;
    }
    return status;
}

void
uc_fabric_bench_options_print_help(FILE *file)
{
    (void)fputs("usage: ucm-bench fabric [options]\n\n"
                "Measure a transport alone, between two processes, and in turns with it what the "
                "machine\ncan do at best: a bare send/recv loop (tcp), memcpy (shm), perftest "
                "(verbs).\n\n",
            file);
    uc_options_print(options_table, OPTION_TOTAL, file);
    (void)fputs("\nexit status: 0 done, 1 failed or wrong bytes, 2 wrong usage\n", file);
}
