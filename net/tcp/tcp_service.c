/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The requests of one stream are taken in order. A WRITE is done while its data arrives; READs go to the
 * ring of replies. When the ring is full nothing more is read, so a peer that does not take its replies
 * stops itself.
 */

#include <string.h>

#include <ucm/log.h>

#include "net/tcp/tcp_target.h"

static void
write_end(struct uc_tcp_target *target)
{
    if (target->write_data != NULL) {
        target->write_data = NULL;
        uc_tcp_access_end(target, &target->write.request);
    }
    uc_tcp_reply_add(target, &target->write);
}

/* @return false if the frame is malformed */
static bool
request_begin(struct uc_tcp_target *target, const uint8_t *bytes)
{
    struct uc_tcp_reply reply = {0};
    uint8_t *unused = NULL;

    if (uc_tcp_request_get(bytes, &reply.request) != UC_OK) {
        return false;
    }

    switch (reply.request.opcode) {
    case UC_FABRIC_READ:
        uc_tcp_reply_add(target, &reply);
        break;
    case UC_FABRIC_FLUSH:
        reply.status = uc_tcp_access_begin(target, &reply.request, &unused);
        reply.is_open = true;
        uc_tcp_reply_add(target, &reply);
        break;
    case UC_FABRIC_WRITE:
        reply.is_open = true;
        target->write_data = NULL;
        reply.status = uc_tcp_access_begin(target, &reply.request, &target->write_data);
        target->write = reply;
        target->rx_left_bytes = reply.request.length_bytes;
        target->room_bytes = target->rx_left_bytes >= UC_TCP_LARGE_BYTES ? UC_TCP_RX_LITTLE_BYTES
                                                                         : UC_TCP_RX_BYTES;
        break;
    }
    return true;
}

static void
write_advance(struct uc_tcp_target *target, size_t done_bytes)
{
    if (target->write_data != NULL) {
        target->write_data += done_bytes;
    }
    target->rx_left_bytes -= done_bytes;
    if (target->rx_left_bytes == 0) {
        write_end(target);
    }
}

/* Take what was read ahead. @return false if it is malformed */
static bool
consume(struct uc_tcp_target *target)
{
    struct uc_tcp_stream *stream = &target->stream;

    for (;;) {
        const uint8_t *bytes;

        if (target->rx_left_bytes > 0) {
            size_t ready = stream->rx_end - stream->rx_begin;
            size_t count = ready < target->rx_left_bytes ? ready : (size_t)target->rx_left_bytes;

            if (count == 0) {
                return true;
            }
            if (target->write_data != NULL) {
                memcpy(target->write_data, &stream->rx[stream->rx_begin], count);
            }
            stream->rx_begin += count;
            write_advance(target, count);
        } else if (target->reply_count == UC_TCP_BATCH_COUNT ||
                   (bytes = uc_tcp_stream_take(stream, UC_TCP_REQUEST_BYTES)) == NULL) {
            return true;
        } else if (!request_begin(target, bytes)) {
            return false;
        }
    }
}

/*
 * One receive: the rest of a WRITE's data straight to its slot, and behind it whatever follows. Data
 * of a refused WRITE goes to the fabric's scratch memory.
 */
static enum uc_tcp_io
receive(struct uc_tcp_target *target, size_t *left_bytes)
{
    struct uc_tcp_stream *stream = &target->stream;
    struct uc_fabric *fabric = uc_tcp_source_fabric(&stream->source);
    struct iovec iov[2];
    size_t direct = 0;
    size_t count = 0;
    size_t done_bytes = 0;
    enum uc_tcp_io io;

    if (target->rx_left_bytes > 0) {
        size_t most = target->write_data == NULL && *left_bytes > sizeof(fabric->scratch)
                              ? sizeof(fabric->scratch)
                              : *left_bytes;

        direct = target->rx_left_bytes < most ? (size_t)target->rx_left_bytes : most;
        iov[count].iov_base = target->write_data == NULL ? fabric->scratch : target->write_data;
        iov[count++].iov_len = direct;
    }
    if (direct == target->rx_left_bytes) {
        iov[count++] = uc_tcp_stream_room(stream, target->room_bytes);
    }

    io = uc_tcp_source_receive(&stream->source, iov, count,
            iov[0].iov_len + (count == 2 ? iov[1].iov_len : 0), &done_bytes);
    if (io != UC_TCP_MOVED) {
        return io;
    }

    *left_bytes -= done_bytes < *left_bytes ? done_bytes : *left_bytes;
    if (direct > 0) {
        size_t here = done_bytes < direct ? done_bytes : direct;

        write_advance(target, here);
        done_bytes -= here;
    }
    stream->rx_end += done_bytes;
    return UC_TCP_MOVED;
}

/* The peer broke the protocol. Its connection ends, nobody else's. */
static void
malformed(struct uc_tcp_target *target)
{
    if (uc_turns_may_warn(target->stream.source.base.turns)) {
        uc_log_warn("tcp: a peer sent a malformed request, closing its connection; is it of the "
                    "same release?");
    }
    uc_tcp_target_drop(target);
}

bool
uc_tcp_target_serve(struct uc_tcp_target *target, size_t *budget)
{
    size_t left_bytes = UC_TCP_TURN_BYTES;

    while (left_bytes > 0 && *budget > 0) {
        bool moved = false;
        enum uc_tcp_io io;

        if (!consume(target)) {
            malformed(target);
            return false;
        }
        if (target->reply_count < UC_TCP_BATCH_COUNT) {
            io = receive(target, &left_bytes);
            if (io == UC_TCP_LOST) {
                uc_tcp_target_drop(target);
                return false;
            }
            moved = io == UC_TCP_MOVED;
        }
        if (target->reply_count > 0 && left_bytes > 0 && target->stream.source.writable) {
            io = uc_tcp_reply_send(target, &left_bytes, budget);
            if (io == UC_TCP_LOST) {
                uc_tcp_target_drop(target);
                return false;
            }
            moved = moved || io == UC_TCP_MOVED;
        }
        if (target->state != UC_TCP_READY) {
            return false; /* fenced by a callback */
        }
        if (!moved) {
            return false;
        }
    }

    return true;
}

void
uc_tcp_target_forget(struct uc_tcp_target *target)
{
    if (target->write_data != NULL) {
        target->write_data = NULL;
        uc_tcp_access_end(target, &target->write.request);
    }
    uc_tcp_reply_drop_all(target);
}
