/* SPDX-License-Identifier: Apache-2.0 */

/** @file fabric_server.h The server's process of ucm-bench fabric. One thread. */

#ifndef UC_BENCH_FABRIC_SERVER_H
#define UC_BENCH_FABRIC_SERVER_H

#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "tools/bench/fabric_slots.h"

/** What a server is started with. Borrowed texts. */
struct uc_fabric_bench_server_config {
    const char *address;       /* to listen on */
    const char *device;        /* NULL = by route */
    uint64_t memory_max_bytes; /* what a client may ask for */
    /** Memory to serve if it has the size that the client asks for; NULL = take some. */
    const struct uc_fabric_bench_memory *memory;
};

/** Serve one client on a control connection until it leaves. @retval UC_ERR_INVALID_PARAM not our client */
UC_MUST_CHECK enum uc_status uc_fabric_bench_server_run(
        const struct uc_fabric_bench_server_config *config, int control_fd);

#endif /* UC_BENCH_FABRIC_SERVER_H */
