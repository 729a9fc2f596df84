/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_limit.h
 * What the machine can do at best for a transport: bare streams (tcp), memcpy (shm), perftest (verbs). Measured
 * by the client in rounds that take turns with the fabric's. One thread.
 */

#ifndef UC_BENCH_FABRIC_LIMIT_H
#define UC_BENCH_FABRIC_LIMIT_H

#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "tools/bench/fabric_client.h"

struct uc_fabric_limit;

/** What a limit moves and whom it asks. Borrowed, and outlives the limit. */
struct uc_fabric_limit_config {
    const struct uc_fabric_bench_options *options;
    const struct uc_fabric_client *client;
    const struct uc_fabric_bench_slots *slots;
    const struct uc_fabric_bench_memory *server_memory; /* NULL where the server is elsewhere */
    const char *host;
    int control_fd;
};

/** @retval UC_ERR_UNSUPPORTED no limit can be measured here; the text says why */
UC_MUST_CHECK enum uc_status uc_fabric_limit_create(
        const struct uc_fabric_limit_config *config, struct uc_fabric_limit **limit_out);
void uc_fabric_limit_destroy(struct uc_fabric_limit *limit);

/** @return its name in the report, static storage */
const char *uc_fabric_limit_name(const struct uc_fabric_limit *limit);

/** Move about so many blocks. @param[out] gbytes_per_s_out 10⁹ bytes */
UC_MUST_CHECK enum uc_status uc_fabric_limit_round(
        struct uc_fabric_limit *limit, uint64_t blocks, double *gbytes_per_s_out);

/**
 * The latency of one operation at a time.
 *
 * @param[out] p50_us_out  0 where nothing tells it
 */
UC_MUST_CHECK enum uc_status uc_fabric_limit_latency(
        struct uc_fabric_limit *limit, double *p50_us_out);

#endif /* UC_BENCH_FABRIC_LIMIT_H */
