/* SPDX-License-Identifier: Apache-2.0 */

/** @file fabric_lane.h What fabric_client.c (setting up) and fabric_lane.c (moving blocks) share. One thread. */

#ifndef UC_BENCH_FABRIC_LANE_H
#define UC_BENCH_FABRIC_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/fabric.h"
#include "net/slot_footer.h"
#include "tools/bench/fabric_client.h"

enum {
    UC_FABRIC_CLIENT_POLL_BUDGET = 256
};

/** One operation in flight, with all it may need. */
struct uc_fabric_lane {
    struct uc_fabric_client *client;
    struct uc_fabric_op data;
    struct uc_fabric_op footer_op;
    struct uc_fabric_op flush;
    struct uc_fabric_piece *pieces; /* of the block, then the footer */
    struct uc_fabric_piece footer_piece;
    struct uc_checksum_piece *checksum_pieces;
    struct uc_checksum_stream checksum;
    uint64_t unsummed_bytes; /* of the block, not told yet */
    uint8_t *footer;
    uint64_t slot;
    uint64_t start_ns;
    unsigned pending;
};

struct uc_fabric_client {
    const struct uc_fabric_bench_options *options;
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_caps caps;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region;
    struct uc_fabric_endpoint *endpoint;
    bool answered;
    enum uc_status state;
    struct uc_fabric_bench_slots slots;
    struct uc_fabric_bench_buffers buffers;
    struct uc_fabric_bench_memory memory;
    struct uc_fabric_lane *lanes;
    bool reads;
    bool spins;

    /* Of the round that runs. */
    struct uc_fabric_client_round round;
    uint64_t next_block; /* goes on from round to round */
    uint64_t issued;
    uint64_t done;
    uint64_t end_ns;
    size_t in_flight;
    enum uc_status failure;
    uint64_t mismatches;
};

/** For the operations of a lane. */
void uc_fabric_lane_data_done(struct uc_fabric_op *op, enum uc_status status);
void uc_fabric_lane_footer_done(struct uc_fabric_op *op, enum uc_status status);
void uc_fabric_lane_flush_done(struct uc_fabric_op *op, enum uc_status status);

/** Sleep until the fabric has work. @return whether it has */
bool uc_fabric_client_sleep(struct uc_fabric_client *client);

#endif /* UC_BENCH_FABRIC_LANE_H */
