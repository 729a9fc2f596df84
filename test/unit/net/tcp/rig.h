/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file rig.h
 * A tcp fabric on the test's thread with a clock that the test turns, and peers that are bare sockets.
 * One thread; the loopback address, port 0.
 */

#ifndef UC_TEST_TCP_RIG_H
#define UC_TEST_TCP_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <check.h>

#include "net/fabric.h"
#include "net/tcp/tcp_object.h"

enum {
    RIG_REGION_BYTES = 1 << 20,
};

struct rig {
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region; /* index 0, read-write */
    struct uc_fabric_listener *listener;
    uint8_t *memory;
    uint64_t now_ms;
    enum uc_fabric_access access;    /* given to the next peer */
    enum uc_status admit_status;     /* likewise */
    enum uc_status hold_status;      /* given to the next access */
    struct uc_fabric_endpoint *last; /* admitted */
    int admit_count;
    int connected_count;
    int gone_count;
    int hold_count; /* successful ones */
    int release_count;
    int wrong_hold_count; /* outside the region, or of a FLUSH */
};

extern struct rig rig;

/** Fixtures. close asserts that holds and releases balance. */
void rig_open(void);
void rig_close(void);

/** Poll until nothing is left to do now. Bytes under way may still arrive: wait with rig_until. */
void rig_settle(void);

/** Settle, then wait a little for the fabric or for @p fd (-1 = none). @return false if it is late */
bool rig_step(int fd, uint64_t start_ns);

/** Poll the fabric until the condition holds. */
#define rig_until(condition)                           \
    do {                                               \
        uint64_t start_ns_ = uc_clock_now_ns();        \
        rig_settle();                                  \
        while (!(condition)) {                         \
            if (!rig_step(-1, start_ns_)) {            \
                ck_abort_msg("never: %s", #condition); \
            }                                          \
        }                                              \
    } while (0)

/** @return a non-blocking socket connected to the listener, whose other end waits to be accepted */
int peer_knock(void);

/** @return a non-blocking socket connected to the listener, accepted */
int peer_connect(void);

/** Connect, say hello and read the answer. */
int peer_admitted(void);

/** Send everything, polling the fabric whenever the socket is full. Fails quietly if it is closed. */
void peer_send(int fd, const void *bytes, size_t length);

/** Receive exactly @p length bytes, polling the fabric. @return false if the stream ends first */
bool peer_receive(int fd, void *bytes, size_t length);

/** @return whether the fabric closed this connection; throws away what it sent before */
bool peer_is_closed(int fd);

void peer_send_request(int fd, enum uc_fabric_opcode opcode, uint32_t region_idx, uint64_t offset,
        uint64_t length, uint64_t sequence);

/** Read one response and fail unless it matches. */
void peer_expect(int fd, uint64_t sequence, enum uc_status status, uint64_t length);

/** @return descriptors open in this process */
int fd_count(void);

#endif /* UC_TEST_TCP_RIG_H */
