/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file tcp_stream.h
 * A socket of the fabric and what was read ahead of it. The polling thread's alone; nothing here
 * allocates or blocks but uc_tcp_fabric_look_up().
 */

#ifndef UC_NET_TCP_STREAM_H
#define UC_NET_TCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/turns.h"

struct uc_fabric;

enum {
    UC_TCP_ADDRESS_COUNT = 4, /* addresses tried for one name */
    UC_TCP_RX_BYTES = 65536,  /* read ahead per stream, so that small blocks share a system call */
    UC_TCP_RX_LITTLE_BYTES =
            4096, /* … where blocks are large: what is read ahead is copied once more */
    UC_TCP_LARGE_BYTES = 16384,          /* such a block */
    UC_TCP_LOCAL_SEND_BYTES = 512 << 10, /* of the send buffer between two processes of one host */
};

enum uc_tcp_io {
    UC_TCP_MOVED,   /* some bytes */
    UC_TCP_BLOCKED, /* none now; an event will tell */
    UC_TCP_LOST,    /* closed or failed; errno in the source */
};

struct uc_tcp_source {
    struct uc_source base;
    int lost_errno;  /* why it was lost; 0 = the peer closed it */
    bool writable;   /* since the last event, nothing said that there is no room */
    bool is_hung_up; /* the peer will send no more: a short read is not the end of it */
};

struct uc_tcp_stream {
    struct uc_tcp_source source;
    size_t rx_begin; /* what was read ahead is rx[rx_begin, rx_end) */
    size_t rx_end;
    uint8_t *rx; /* UC_TCP_RX_BYTES; the owner's */
};

struct uc_tcp_address {
    struct sockaddr_storage storage;
    socklen_t length_bytes;
};

/** Look a name up. May block. */
UC_MUST_CHECK enum uc_status uc_tcp_fabric_look_up(struct uc_fabric *fabric, const char *name);

/**
 * Addresses of @p text without blocking: the name that open looked up, or a numeric address.
 *
 * @param[out] addresses_out  up to UC_TCP_ADDRESS_COUNT
 */
UC_MUST_CHECK enum uc_status uc_tcp_fabric_resolve(const struct uc_fabric *fabric, const char *text,
        uint16_t port, struct uc_tcp_address *addresses_out, size_t *count_out);

/** Register the descriptor, which the source owns from now on, with the fabric's epoll. */
UC_MUST_CHECK enum uc_status uc_tcp_source_watch(struct uc_tcp_source *source, int fd);

/**
 * Fit the send buffer of a connected socket to its path. Whatever lies in it on one host was written by this
 * core and is read by another: as long as that fits in a core's cache, copying is faster by a third.
 * Between hosts the kernel knows better.
 */
void uc_tcp_source_fit(struct uc_tcp_source *source);

/** The event() of every stream: what may be done now. */
void uc_tcp_source_event(struct uc_source *base, uint32_t events);

/**
 * Close the socket and leave all rings. Idempotent.
 *
 * @param[in] discard  reset the connection: bytes on their way, either way, are thrown away
 */
void uc_tcp_source_close(struct uc_tcp_source *source, bool discard);

/** One recvmsg. @param[in] want_bytes sum of the pieces */
enum uc_tcp_io uc_tcp_source_receive(struct uc_tcp_source *source, struct iovec *iov, size_t count,
        size_t want_bytes, size_t *done_bytes_out);

/** One sendmsg; likewise. */
enum uc_tcp_io uc_tcp_source_send(struct uc_tcp_source *source, struct iovec *iov, size_t count,
        size_t want_bytes, size_t *done_bytes_out);

/** @return @p length bytes that were read ahead, or NULL while there are fewer. */
const uint8_t *uc_tcp_stream_take(struct uc_tcp_stream *stream, size_t length);

/**
 * Free room behind what was read ahead. Callers parse whole frames first, so that less than one is
 * left and the room is never empty.
 *
 * @param[in] most  of the buffer to use: UC_TCP_RX_BYTES or UC_TCP_RX_LITTLE_BYTES
 */
struct iovec uc_tcp_stream_room(struct uc_tcp_stream *stream, size_t most);

#endif /* UC_NET_TCP_STREAM_H */
