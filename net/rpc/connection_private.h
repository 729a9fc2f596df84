/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file connection_private.h
 * What connection.c (bytes and frames) and call.c (calls and answers) share. One thread, the owner's.
 *
 * Memory of an idle connection: this struct, UC_RPC_QUEUE_BYTES_MIN of receive buffer, as much of send
 * buffer once something had to wait, and UC_RPC_PENDING_MIN slots: below 16 KiB. Larger buffers are given
 * back after UC_RPC_SHRINK_AFTER_MS without traffic, by uc_rpc_connection_expire(). Slots, 32 bytes each,
 * stay for as many calls as were ever pending at once: their sequences must not start again.
 */

#ifndef UC_NET_RPC_CONNECTION_PRIVATE_H
#define UC_NET_RPC_CONNECTION_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/clock.h>

#include "net/rpc/connection.h"

enum {
    UC_RPC_LENGTH_BYTES = 4,             /* before every frame */
    UC_RPC_QUEUE_BYTES_MIN = 6 << 10,    /* a lookup of 256 keys fits */
    UC_RPC_QUEUE_BYTES_BUSY = 256 << 10, /* a stream of small frames is received in such pieces */
    UC_RPC_SEND_BYTES_MAX = 64 << 20,    /* queued for a peer that does not read: it is closed */
    UC_RPC_FLUSH_BYTES = 256 << 10,      /* answers of one batch that are sent before it ends */
    UC_RPC_RECEIVES_PER_TURN = 32,       /* so that one peer cannot keep the thread for itself */
    UC_RPC_SHRINK_AFTER_MS = 1000,
    UC_RPC_PENDING_MIN = 8,
    UC_RPC_PENDING_MAX = 1 << 16, /* a slot's number is half of the message id */
    UC_RPC_HEAD_BYTES = 64,       /* envelope up to the params or the result */
    UC_RPC_ERROR_TEXT_MAX = 512,  /* bytes of an error's message that are sent or kept */
};

enum uc_rpc_message {
    UC_RPC_MESSAGE_REQUEST = 0,
    UC_RPC_MESSAGE_RESPONSE = 1,
    UC_RPC_MESSAGE_NOTIFICATION = 2,
};

/** Bytes [head, tail) of a buffer that grows. */
struct uc_rpc_queue {
    uint8_t *bytes;
    size_t head;
    size_t tail;
    size_t capacity;
};

/** A call that waits for its answer; a free slot is linked by next_free. */
struct uc_rpc_pending {
    uc_rpc_reply_fn on_reply; /* NULL = free */
    void *context;
    uint64_t deadline_ms;
    uint32_t next_free;
    uint16_t sequence; /* of this slot's next call, so that a late answer meets no other call */
};

struct uc_rpc_connection {
    int fd;
    const struct uc_rpc_handler *handler;
    void *context;
    size_t frame_bytes_max;

    struct uc_rpc_queue receive;
    struct uc_rpc_queue send;

    struct uc_rpc_pending *pending;
    uint32_t pending_capacity;
    uint32_t pending_count;
    uint32_t pending_free; /* first free slot; pending_capacity = none */
    uint64_t earliest_ms;  /* no deadline is earlier */

    enum uc_status failure; /* why the stream is dead; UC_OK = it lives */
    bool closed_told;
    bool in_progress; /* callbacks are running: output is collected, input stays in place */
    bool keep_input;  /* call_wait got its answer, which lies in the receive buffer */
    bool active;      /* traffic since the last expire */
    bool destroyed;   /* by a callback; freed when the outermost function leaves */
    uint32_t depth;   /* functions on the stack that still need the struct */
    uint64_t idle_since_ms;
};

/** Bracket everything that runs callbacks; the last leave frees a destroyed connection. */
void uc_rpc_connection_enter(struct uc_rpc_connection *connection);
void uc_rpc_connection_leave(struct uc_rpc_connection *connection);

/** Mark the stream dead; the first reason stays. The owner is told by the next progress. */
void uc_rpc_connection_fail(struct uc_rpc_connection *connection, enum uc_status reason);

/** Send a frame made of two parts, or queue what the socket does not take. Shows in `failure`. */
void uc_rpc_connection_send(struct uc_rpc_connection *connection, const uint8_t *head,
        size_t head_bytes, const uint8_t *body, size_t body_bytes);

/** A scanned message: hand it to whom it concerns, or fail the connection. */
void uc_rpc_dispatch(struct uc_rpc_connection *connection, const uint8_t *bytes, size_t length);

/** Make sure that there is a free slot; the next add takes it. @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_rpc_pending_reserve(
        struct uc_rpc_connection *connection, uint32_t *message_id_out);
void uc_rpc_pending_add(struct uc_rpc_connection *connection, uint64_t deadline_ms,
        uc_rpc_reply_fn on_reply, void *context);
/** Free the slot of an answered call. @return false if no call waits under this id */
bool uc_rpc_pending_take(
        struct uc_rpc_connection *connection, uint32_t message_id, struct uc_rpc_pending *call_out);
/** Answer every pending call with Unhealthy. */
void uc_rpc_pending_fail_all(struct uc_rpc_connection *connection);

/** Say once in a while that a peer sent nonsense (rate limited over all connections). */
void uc_rpc_log_bad_peer(const struct uc_rpc_connection *connection);

#endif /* UC_NET_RPC_CONNECTION_PRIVATE_H */
