/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file played_device.h
 * A device that is played by the test: libibverbs calls it through the tables of a context, and what it
 * calls by name is wrapped by the linker. One endpoint of an initiator with operations to post on it.
 */

#ifndef UC_TEST_VERBS_PLAYED_DEVICE_H
#define UC_TEST_VERBS_PLAYED_DEVICE_H

#include <check.h>

#include "net/verbs/verbs.h"

enum {
    DEPTH = 64,
    QUEUE_MAX = 4096,
    OP_COUNT = 1000,
    BLOCK_BYTES = 64,
};

/* The device's half of a queue pair: what was posted, and what it will report. */
struct device {
    uint64_t posted[QUEUE_MAX];
    enum ibv_wr_opcode opcodes[QUEUE_MAX];
    uint64_t addresses[QUEUE_MAX];
    bool signalled[QUEUE_MAX];
    size_t posted_count;
    size_t chain_count;
    size_t report_count; /* how many of them poll_cq has passed */
    size_t allow_count;  /* how many it may pass */
    size_t fail_idx;     /* this one fails, the rest is flushed; QUEUE_MAX = none */
    enum ibv_wc_status fail_status;
    size_t refuse_idx; /* post_send stops here */
    size_t complete_on_notify;
    bool in_error;
    bool destroyed;
    size_t in_flight_max;
};

struct test_op {
    struct uc_fabric_op op;
    struct uc_fabric_piece piece;
    unsigned done;
    enum uc_status status;
    size_t order;
};

extern struct device devices[UC_VERBS_PAIRS_MAX];
extern size_t notify_count;
extern struct ibv_async_event async_event; /* what the device has to tell … */
extern size_t async_event_count;           /* … so often */
extern struct rdma_cm_id *notified_id;     /* rdma_cm was told of an event on it */
extern struct uc_fabric *fabric;
extern struct uc_fabric_domain *domain;
extern struct uc_fabric_region region; /* memory */
extern struct uc_fabric_endpoint *endpoint;
extern uint8_t memory[4096];
extern struct test_op ops[OP_COUNT];
extern size_t done_count;
extern size_t told; /* how often on_state was called */
extern enum uc_status told_status;
extern void (*in_callback)(void); /* run by every on_done */

/** Fixture: a ready endpoint with one queue pair. Tests end with teardown(). */
void setup(void);
void teardown(void);
/** Make the endpoint a group; its queue pairs have no ids. */
void set_pair_count(uint32_t count);

void prepare_op(size_t idx, enum uc_fabric_opcode opcode, uint64_t length_bytes);
/** Post prepared operations as one list. */
enum uc_status post_list(size_t first, size_t count);
/** Prepare operations of BLOCK_BYTES and post them as one list. */
enum uc_status post_ops(size_t first, size_t count, enum uc_fabric_opcode opcode);
void expect_each_once(size_t count);

#endif /* UC_TEST_VERBS_PLAYED_DEVICE_H */
