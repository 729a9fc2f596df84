/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file rpc_side.h
 * Fixture of the connection suites: one or two connections over a socket pair that note what they are
 * told. `raw_fd` is the other end of `left` where `right` is not used. One thread.
 */

#ifndef UC_TEST_RPC_SIDE_H
#define UC_TEST_RPC_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/rpc/connection.h"
#include "net/rpc/messages.h"

enum {
    FRAME_MAX = 1 << 20,
    SEEN_MAX = 64,
    LONG_MS = 60000,
};

/* What one side was told. */
struct side {
    struct uc_rpc_connection *connection;
    size_t request_count;
    size_t notification_count;
    size_t closed_count;
    enum uc_status closed_reason;
    enum uc_rpc_method methods[SEEN_MAX];
    uint32_t ids[SEEN_MAX];
    size_t param_bytes[SEEN_MAX];
    bool answer;          /* answer at once, with nil */
    bool destroy_in_call; /* destroy the connection from the callback */
    size_t reply_count;
    enum uc_status reply_status[SEEN_MAX];
    uint8_t reply_first[SEEN_MAX];
    char reply_error[256];
};

extern struct side left;
extern struct side right;
extern int raw_fd;
extern const struct uc_rpc_handler side_handler;

void side_pair(int fds[2]);
void side_open(struct side *side, int fd);
void side_on_closed(void *context, struct uc_rpc_connection *connection, enum uc_status reason);
void side_on_reply(void *context, enum uc_status status, struct uc_rpc_view result);

/** Two connections, or one and a raw end; both are undone by side_teardown(). */
void side_setup_pair(void);
void side_setup_raw(void);
void side_teardown(void);

/** Let both connections work until nothing moves. */
void side_progress_both(void);
/** A call without params. */
UC_MUST_CHECK enum uc_status side_call(
        struct side *side, enum uc_rpc_method method, uint64_t timeout_ms);
/** Write a frame, with its length in front, to the raw end. */
void side_raw_send(const void *bytes, size_t length);
#define RAW_SEND(literal) side_raw_send((literal), sizeof(literal) - 1)

#endif /* UC_TEST_RPC_SIDE_H */
