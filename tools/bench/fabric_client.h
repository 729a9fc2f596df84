/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_client.h
 * The client's side of ucm-bench fabric: one connection, operations that follow each other at a given depth,
 * with or without what the remote store does to trust the bytes. One thread.
 */

#ifndef UC_BENCH_FABRIC_CLIENT_H
#define UC_BENCH_FABRIC_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"
#include "net/slot_footer.h"
#include "tools/bench/fabric_bench.h"
#include "tools/bench/fabric_slots.h"
#include "tools/bench/latency.h"

struct uc_fabric_client;

/** Where the server is. Borrowed. */
struct uc_fabric_client_peer {
    const char *address;
    uint16_t port;
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    struct uc_fabric_region_key region;
};

/** How to move blocks. */
struct uc_fabric_client_round {
    bool verified; /* READ with footer, checked; WRITE with footer, then FLUSH */
    uint64_t depth;
    uint64_t duration_ns;       /* no operation starts later */
    uint64_t ops_max;           /* nor more than so many */
    struct uc_latency *latency; /* of each operation is added; NULL = not wanted */
};

struct uc_fabric_client_moved {
    uint64_t ops;
    uint64_t bytes; /* of blocks, footers not counted */
    uint64_t elapsed_ns;
    uint64_t cpu_ns; /* of this process */
};

/** Open the fabric and take memory; connects to nothing. @retval as the fabric's calls */
UC_MUST_CHECK enum uc_status uc_fabric_client_create(const struct uc_fabric_bench_options *options,
        const struct uc_fabric_bench_slots *slots, struct uc_fabric_client **client_out);
void uc_fabric_client_destroy(struct uc_fabric_client *client);

/** @retval UC_ERR_TIMEOUT, or what the connection failed with */
UC_MUST_CHECK enum uc_status uc_fabric_client_connect(
        struct uc_fabric_client *client, const struct uc_fabric_client_peer *peer);

/** Move blocks, on from where the last round stopped. @retval what an operation failed with */
UC_MUST_CHECK enum uc_status uc_fabric_client_run(struct uc_fabric_client *client,
        const struct uc_fabric_client_round *round, struct uc_fabric_client_moved *moved_out);

/** @return the buffers' memory: for limits that move the same bytes. */
const struct uc_fabric_bench_memory *uc_fabric_client_memory(const struct uc_fabric_client *client);
/** @return buffers that a block each fits in. */
uint64_t uc_fabric_client_buffer_count(const struct uc_fabric_client *client);
/** @return blocks that were verified and wrong. */
uint64_t uc_fabric_client_mismatches(const struct uc_fabric_client *client);
/** @return whether checksums are taken from bytes that the fabric tells while they are hot. */
bool uc_fabric_client_is_fused(const struct uc_fabric_client *client);

#endif /* UC_BENCH_FABRIC_CLIENT_H */
