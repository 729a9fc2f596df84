/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file perftest.h
 * The programs of perftest (ib_read_bw and others) as the limit of verbs: starting them and reading what they
 * print. Their connections are made by rdma_cm, so the address decides the device, as with the fabric. One thread.
 */

#ifndef UC_BENCH_PERFTEST_H
#define UC_BENCH_PERFTEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum uc_perftest_tool {
    UC_PERFTEST_READ_BW,
    UC_PERFTEST_WRITE_BW,
    UC_PERFTEST_READ_LAT,
    UC_PERFTEST_TOOL_COUNT,
};

/** One run. A plain value with borrowed texts. */
struct uc_perftest {
    enum uc_perftest_tool tool;
    const char *device; /* NULL = by route */
    uint16_t port;
    uint64_t block_bytes;
    uint64_t depth;
    uint64_t queue_pairs; /* 0 = 1 */
    uint64_t operations;
};

/** @return the program's name. */
const char *uc_perftest_name(enum uc_perftest_tool tool);

/** @retval UC_ERR_UNSUPPORTED the program is not in PATH; the text says what to install */
UC_MUST_CHECK enum uc_status uc_perftest_check(enum uc_perftest_tool tool);

/** Check what a peer asks for. @retval UC_ERR_INVALID_PARAM */
UC_MUST_CHECK enum uc_status uc_perftest_validate(const struct uc_perftest *perftest);

/** Start the server's side; it ends after one client. */
UC_MUST_CHECK enum uc_status uc_perftest_start_server(
        const struct uc_perftest *perftest, pid_t *pid_out);

/**
 * Run the client's side against it.
 *
 * @param[out] value_out  GB/s, or the median latency in µs; 0 where the program cannot tell
 * @param[out] seconds_out  of the whole process
 */
UC_MUST_CHECK enum uc_status uc_perftest_run_client(const struct uc_perftest *perftest,
        const char *host, double *value_out, double *seconds_out);

/**
 * Find the figure in what a program printed: the average bandwidth in Gb/s, or the typical latency in µs.
 *
 * @retval UC_ERR_NOT_FOUND no line of figures
 */
UC_MUST_CHECK enum uc_status uc_perftest_parse(
        enum uc_perftest_tool tool, const char *output, double *figure_out);

#endif /* UC_BENCH_PERFTEST_H */
