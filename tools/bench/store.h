/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file store.h
 * ucm-bench store: put and get through any topology in one process, and in turn with them what bounds them: memcpy
 * over the same memory, and the medium. One thread.
 */

#ifndef UC_BENCH_STORE_H
#define UC_BENCH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "tools/bench/store_limit.h"
#include "tools/bench/store_rounds.h"

enum {
    UC_STORE_DEPTH_MAX = 1024
};

/** Texts are borrowed from the command line. */
struct uc_store_options {
    const char *config_path;
    const char *server;  /* HOST:PORT[,…]; NULL = none or spawned */
    const char *address; /* that a spawned server listens on */
    const char *fabric;
    const char *direct_dir; /* NULL = where the topology keeps its blocks */
    const char *direct_by;
    uint64_t blocks; /* never 0 once parsed */
    uint64_t block_bytes;
    uint64_t depth; /* jobs in flight, a block each */
    uint64_t seconds;
    uint64_t rounds;  /* at least */
    uint64_t warm_up; /* sweeps that are not measured */
    uint64_t ttl_ms;  /* 0 = none */
    uint64_t stall_ms;
    uint64_t cache_bytes; /* of this host's last level; 0 = not known */
    bool spawn_server;
    bool huge_pages; /* for blocks that go to a medium */
    bool json;
    bool help;
};

/** One kind of operation over all rounds. */
struct uc_store_phase {
    const char *name; /* static storage; NULL = not measured */
    uint64_t ops;
    uint64_t bytes;
    double seconds;
    double p50_us; /* 0 for yardsticks */
    double p99_us;
};

struct uc_store_report {
    struct uc_store_phase phases[UC_STORE_PHASE_COUNT];
    struct uc_store_rounds rounds;
    struct uc_store_limits limits;
    bool is_fio;       /* who moved the files of the medium: fio, or the bare loop */
    bool huge_pages;   /* asked for, for the blocks and for fio */
    bool is_abandoned; /* jobs are still in flight: their memory was not given back */
    uint64_t verified_bytes;
    uint64_t missing_blocks; /* put, and not there for the get */
    uint64_t refused_blocks; /* put windows that found no space */
    uint64_t failed_blocks;  /* not transferred */
    uint64_t mismatches;
    uint64_t errors; /* calls that failed and should not have */
};

/** @retval UC_ERR_INVALID_PARAM uc_last_error() names the option */
UC_MUST_CHECK enum uc_status uc_store_options_parse(
        int argc, char *const argv[], struct uc_store_options *options_out);
void uc_store_options_print_help(FILE *file);

/**
 * @param[out] report  zeroed before. Complete on success: give its rounds back. After a failure only is_abandoned is
 *                     set: then the process must end without calling anything that runs at exit
 * @retval UC_ERR_TIMEOUT  nothing has ended for so long as the options say
 * @retval as uc_topology_expand(), uc_assembler_create(); UC_ERR_OUT_OF_MEMORY for the working set
 */
UC_MUST_CHECK enum uc_status uc_store_run(
        const struct uc_store_options *options, struct uc_store_report *report);

/** A table, or one JSON object. */
void uc_store_report_print(
        const struct uc_store_options *options, const struct uc_store_report *report, FILE *file);

#endif /* UC_BENCH_STORE_H */
