/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file connection.h
 * One msgpack-RPC connection over a stream socket, used alike by server and client: non-blocking, driven
 * by whoever polls its descriptor. Frames: u32 little-endian length, then one msgpack-RPC message
 * (net/PROTOCOL.md). Every received frame is scanned (uc_rpc_scan()) before it is unpacked.
 *
 * Threads: one at a time. Callbacks are made from inside progress, expire and call_wait, and from no other
 * function; destroy inside a callback of the same connection is allowed (it takes effect when the callback
 * returns), progress there does nothing, and call_wait there is refused.
 *
 * A dead stream is told by the next progress; its descriptor polls as readable until then. What a callback
 * or a later call sends while progress runs leaves with one send at its end.
 */

#ifndef UC_NET_RPC_CONNECTION_H
#define UC_NET_RPC_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/rpc/buffer.h"
#include "net/rpc/method.h"

struct uc_rpc_connection;

enum {
    UC_RPC_FRAME_BYTES_DEFAULT = 16 << 20,
};

/** What the owner is told. */
struct uc_rpc_handler {
    /** A request: answer it now or later with uc_rpc_reply() or uc_rpc_reply_error(). */
    void (*on_request)(void *context, struct uc_rpc_connection *connection, uint32_t message_id,
            enum uc_rpc_method method, struct uc_rpc_view params);
    /** A notification. */
    void (*on_notification)(void *context, struct uc_rpc_connection *connection,
            enum uc_rpc_method method, struct uc_rpc_view params);
    /**
     * The stream is dead (peer closed, error, bad frame); once. Pending calls were failed before
     * (Unhealthy). The owner destroys the connection, here or later.
     */
    void (*on_closed)(void *context, struct uc_rpc_connection *connection, enum uc_status reason);
};

/**
 * Answer to a call: @p status is Ok with the result, or the peer's error code (its message is in
 * uc_last_error()), or Unhealthy (connection lost) or Timeout. The view lives for the call only.
 */
typedef void (*uc_rpc_reply_fn)(void *context, enum uc_status status, struct uc_rpc_view result);

/**
 * Take over a connected (or connecting) stream socket, TCP or unix: set it non-blocking, TCP_NODELAY.
 *
 * @param[in] fd       the connection's on success, the caller's on failure
 * @param[in] handler  borrowed for the connection's life; a client may leave members NULL (requests
 *                     are answered Unsupported). Requests of methods that this build does not know are answered so,
 *                     too, and never reach the handler
 * @param[in] frame_bytes_max  cap on received frames; a longer one closes the connection
 */
UC_MUST_CHECK enum uc_status uc_rpc_connection_create(int fd, const struct uc_rpc_handler *handler,
        void *context, size_t frame_bytes_max, struct uc_rpc_connection **connection_out);

/** Close the socket; pending calls are dropped without callback. NULL is allowed. */
void uc_rpc_connection_destroy(struct uc_rpc_connection *connection);

int uc_rpc_connection_fd(const struct uc_rpc_connection *connection);

/** Events to poll for now: POLLIN, and POLLOUT while output is queued. */
short uc_rpc_connection_events(const struct uc_rpc_connection *connection);

/**
 * Read, dispatch and write without blocking; run after poll, or any time. Takes a bounded amount of input
 * per call, so that one peer cannot keep the thread: poll level-triggered.
 */
void uc_rpc_connection_progress(struct uc_rpc_connection *connection);

/**
 * Fail calls whose deadline passed (Timeout), and give memory back that a burst needed a second ago.
 * @return when to call again, at the latest; UC_TIME_NEVER_MS = nothing waits
 */
uint64_t uc_rpc_connection_expire(struct uc_rpc_connection *connection, uint64_t now_ms);

/**
 * Start a call: @p params is an encoded msgpack array (net/rpc/messages.h). The frame is written at once
 * as far as the socket takes it.
 *
 * @retval UC_ERR_UNHEALTHY  the connection is dead; on_reply will not run
 */
UC_MUST_CHECK enum uc_status uc_rpc_call(struct uc_rpc_connection *connection,
        enum uc_rpc_method method, const struct uc_rpc_buffer *params, uint64_t timeout_ms,
        uc_rpc_reply_fn on_reply, void *context);

/**
 * Call and drive the connection with poll() until the answer or the deadline.
 *
 * @param[out] result_out  valid until the next function on this connection; may be NULL
 */
UC_MUST_CHECK enum uc_status uc_rpc_call_wait(struct uc_rpc_connection *connection,
        enum uc_rpc_method method, const struct uc_rpc_buffer *params, uint64_t timeout_ms,
        struct uc_rpc_view *result_out);

/** One-way message. */
UC_MUST_CHECK enum uc_status uc_rpc_notify(struct uc_rpc_connection *connection,
        enum uc_rpc_method method, const struct uc_rpc_buffer *params);

/** Answer a request. @p result is one encoded msgpack object; NULL = nil. */
void uc_rpc_reply(struct uc_rpc_connection *connection, uint32_t message_id,
        const struct uc_rpc_buffer *result);
/** Answer with [code, message]; @p message NULL = uc_last_error() if that fits the status, else "". */
void uc_rpc_reply_error(struct uc_rpc_connection *connection, uint32_t message_id,
        enum uc_status status, const char *message);

/**
 * Connect a TCP socket (@p address "HOST", IPv4 or IPv6) or, where it starts with '/', a unix one, with a
 * time limit. Blocks.
 */
UC_MUST_CHECK enum uc_status uc_rpc_dial(
        const char *address, uint16_t port, uint64_t timeout_ms, int *fd_out);
/** Split "HOST:PORT" or "[V6]:PORT"; @p host_out has room for @p host_bytes. InvalidParam. */
UC_MUST_CHECK enum uc_status uc_rpc_parse_address(const char *text, uint16_t default_port,
        char *host_out, size_t host_bytes, uint16_t *port_out);

/**
 * Check untrusted bytes before unpacking: exactly one msgpack object, every count ≤ bytes left, depth ≤ 8,
 * no extension types. @retval UC_ERR_INVALID_PARAM
 */
UC_MUST_CHECK enum uc_status uc_rpc_scan(const uint8_t *bytes, size_t length);

#endif /* UC_NET_RPC_CONNECTION_H */
