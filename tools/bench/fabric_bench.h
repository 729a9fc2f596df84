/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_bench.h
 * ucm-bench fabric: a transport alone, between two processes, beside the best that the same bytes can do there
 * in the same run. The process that measures is the client; the server is a child, or a process elsewhere.
 */

#ifndef UC_BENCH_FABRIC_BENCH_H
#define UC_BENCH_FABRIC_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_FABRIC_BENCH_DEPTH_MAX = 1024,
    UC_FABRIC_BENCH_PIECES_MAX = 512,
    UC_FABRIC_BENCH_CONNECTIONS_MAX = 64,
    UC_FABRIC_BENCH_ROUNDS_MAX = 99,
    UC_FABRIC_BENCH_REASON_BYTES = 256,
};

/** Texts are borrowed from the command line. */
struct uc_fabric_bench_options {
    const char *fabric;
    const char *op;      /* "read" or "write" */
    const char *buffers; /* "cold" or "reused" */
    const char *address; /* where the two meet when both run here */
    const char *device;  /* NULL = by route */
    const char *serve;   /* HOST:PORT: be the server there; NULL = no */
    const char *connect; /* HOST:PORT: a server that runs; NULL = a child */
    const char *limit;   /* "on" or "off" */
    uint64_t block_bytes;
    uint64_t pieces;
    uint64_t depth;
    uint64_t connections; /* 0 = the provider's choice */
    uint64_t seconds;     /* of each measurement */
    uint64_t rounds;
    uint64_t working_set_bytes; /* 0 = several times the last-level cache */
    bool json;
    bool help;
};

/** A rate that was measured round by round, or why it was not. A plain value. */
struct uc_fabric_bench_rate {
    const char *name; /* static storage */
    bool measured;
    double gbytes_per_s; /* median of the rounds, 10⁹ bytes */
    double ratio;        /* to the limit, median over the rounds; 0 without a limit */
    char reason[UC_FABRIC_BENCH_REASON_BYTES]; /* where nothing was measured */
};

struct uc_fabric_bench_latency {
    double p50_us;
    double p99_us;
    double p999_us;
};

/** Processor time of one side. */
struct uc_fabric_bench_cpu {
    double s_per_gbyte;
    double share; /* of one processor */
};

struct uc_fabric_bench_report {
    struct uc_fabric_bench_rate plain; /* the fabric only */
    struct uc_fabric_bench_rate verified;
    struct uc_fabric_bench_rate limit;
    struct uc_fabric_bench_latency latency; /* of an operation among `depth` */
    struct uc_fabric_bench_latency alone;   /* of one at a time */
    double limit_alone_us;                  /* what ib_read_lat says; 0 = nothing does */
    struct uc_fabric_bench_cpu client;
    struct uc_fabric_bench_cpu server;
    double ops_per_s;
    uint64_t bytes; /* moved by the plain rounds */
    uint64_t rounds;
    uint64_t slots; /* of the server: the working set */
    uint64_t working_set_bytes;
    uint64_t cache_bytes; /* last level, 0 = unknown */
    uint64_t mismatches;  /* blocks whose footer or checksum was wrong */
    bool fused;           /* the checksum was taken while the bytes were hot */
};

/** @retval UC_ERR_INVALID_PARAM uc_last_error() names the option */
UC_MUST_CHECK enum uc_status uc_fabric_bench_options_parse(
        int argc, char *const argv[], struct uc_fabric_bench_options *options_out);
void uc_fabric_bench_options_print_help(FILE *file);

/** Measure. @retval as the fabric's calls; UNHEALTHY when the server is gone */
UC_MUST_CHECK enum uc_status uc_fabric_bench_run(
        const struct uc_fabric_bench_options *options, struct uc_fabric_bench_report *report_out);

/** Be the server of one client, at options->serve. Returns when the client has left. */
UC_MUST_CHECK enum uc_status uc_fabric_bench_serve(const struct uc_fabric_bench_options *options);

/** A table, or one JSON object. */
void uc_fabric_bench_report_print(const struct uc_fabric_bench_options *options,
        const struct uc_fabric_bench_report *report, FILE *file);

#endif /* UC_BENCH_FABRIC_BENCH_H */
