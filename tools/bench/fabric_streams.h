/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_streams.h
 * The limit of tcp: bare send and recv over as many connections, from and into the memory that the fabric moves,
 * a thread per connection on either side. Each object is used by one thread.
 */

#ifndef UC_BENCH_FABRIC_STREAMS_H
#define UC_BENCH_FABRIC_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "tools/bench/fabric_bench.h"

/** Connections, and the blocks that they run through: block i at base + i * stride. Zero-initialise. */
struct uc_fabric_streams {
    int fds[UC_FABRIC_BENCH_CONNECTIONS_MAX];
    size_t count;
    uint8_t *base;
    uint64_t block_bytes;
    uint64_t stride;
    uint64_t block_count;
    uint64_t next_block;
};

/** Listen at @p host (an IPv4 or IPv6 address), on a free port if @p wanted_port is 0. */
UC_MUST_CHECK enum uc_status uc_fabric_streams_listen(
        const char *host, uint16_t wanted_port, int *listener_fd_out, uint16_t *port_out);
/** Take @p count connections; ten seconds at most. */
UC_MUST_CHECK enum uc_status uc_fabric_streams_accept(
        struct uc_fabric_streams *streams, int listener_fd, size_t count);
UC_MUST_CHECK enum uc_status uc_fabric_streams_connect(
        struct uc_fabric_streams *streams, const char *host, uint16_t port, size_t count);

/**
 * Send or receive blocks, shared evenly by the connections; returns when all are out, or in. The receiver
 * confirms, so that the sender's time includes the last byte. With @p spin both sides ask again and again instead
 * of sleeping: faster where waking up is dear and there are processors to spare.
 *
 * @retval UC_ERR_UNHEALTHY the other side is gone, or has not moved for a minute
 */
UC_MUST_CHECK enum uc_status uc_fabric_streams_move(
        struct uc_fabric_streams *streams, uint64_t blocks, bool send, bool spin);

void uc_fabric_streams_close(struct uc_fabric_streams *streams);

#endif /* UC_BENCH_FABRIC_STREAMS_H */
