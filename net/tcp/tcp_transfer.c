/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A lane's requests go out in the order posted, several per system call, a WRITE's data straight
 * from its pieces. Replies come back in the same order, a READ's data straight into its pieces; what
 * follows it is read ahead in the same call.
 */

#include <string.h>

#include "net/tcp/tcp_client.h"

/* Pieces from the cursor on, at most `most` bytes, which the operation still has. @return bytes */
static size_t
cursor_iov(
        struct uc_tcp_cursor cursor, size_t most, struct iovec *iov, size_t capacity, size_t *count)
{
    size_t total = 0;

    while (total < most && *count < capacity) {
        uint64_t rest = cursor.piece->length_bytes - cursor.done_bytes;
        size_t length = rest < most - total ? (size_t)rest : most - total;

        iov[*count].iov_base = (uint8_t *)cursor.piece->address + cursor.done_bytes;
        iov[*count].iov_len = length;
        *count += 1;
        total += length;
        cursor.piece++;
        cursor.done_bytes = 0;
    }
    return total;
}

static uint64_t
request_wire_bytes(const struct uc_fabric_op *op)
{
    return UC_TCP_REQUEST_BYTES + (op->opcode == UC_FABRIC_WRITE ? uc_tcp_op_length(op) : 0);
}

struct batch {
    struct iovec iov[UC_TCP_IOV_COUNT];
    uint8_t headers[UC_TCP_BATCH_COUNT][UC_TCP_REQUEST_BYTES];
    size_t iov_count;
    size_t header_count;
    size_t want_bytes;
};

static void
batch_add_header(struct batch *batch, const struct uc_fabric_op *op, size_t sent_bytes)
{
    uint8_t *bytes = batch->headers[batch->header_count++];
    struct iovec *iov = &batch->iov[batch->iov_count++];
    struct uc_tcp_request request = {
            .opcode = op->opcode,
            .region_idx = op->region_idx,
            .sequence = uc_tcp_op_sequence(op),
            .offset_bytes = op->offset_bytes,
            .length_bytes = uc_tcp_op_length(op),
            .generation = op->generation,
    };

    uc_tcp_request_put(bytes, &request);
    iov->iov_base = bytes + sent_bytes;
    iov->iov_len = UC_TCP_REQUEST_BYTES - sent_bytes;
    batch->want_bytes += iov->iov_len;
}

/* Append what is not sent yet of an operation. @return whether that was all of it */
static bool
batch_add(struct batch *batch, const struct uc_fabric_op *op, uint64_t sent_bytes,
        struct uc_tcp_cursor cursor, size_t left_bytes)
{
    uint64_t data_sent = 0;
    uint64_t rest;
    size_t most;

    if (sent_bytes < UC_TCP_REQUEST_BYTES) {
        batch_add_header(batch, op, (size_t)sent_bytes);
    } else {
        data_sent = sent_bytes - UC_TCP_REQUEST_BYTES;
    }
    if (op->opcode != UC_FABRIC_WRITE) {
        return true;
    }

    rest = uc_tcp_op_length(op) - data_sent;
    most = batch->want_bytes < left_bytes ? left_bytes - batch->want_bytes : 0;
    most = rest < most ? (size_t)rest : most;
    most = cursor_iov(cursor, most, batch->iov, UC_TCP_IOV_COUNT, &batch->iov_count);
    batch->want_bytes += most;
    return most == rest;
}

static void
sent(struct uc_tcp_lane *lane, uint64_t bytes)
{
    while (bytes > 0) {
        struct uc_fabric_op *op = lane->unsent;
        uint64_t left = request_wire_bytes(op) - lane->sent_bytes;
        uint64_t step = bytes < left ? bytes : left;
        uint64_t before = lane->sent_bytes;

        lane->sent_bytes += step;
        bytes -= step;
        if (step < left) {
            uint64_t data_before = before < UC_TCP_REQUEST_BYTES ? UC_TCP_REQUEST_BYTES : before;

            if (lane->sent_bytes > data_before) {
                uc_tcp_cursor_advance(&lane->source_cursor, lane->sent_bytes - data_before);
            }
            return;
        }

        lane->unsent = uc_tcp_op_following(op);
        lane->sent_bytes = 0;
        if (uc_tcp_op_following(op) != NULL) {
            lane->source_cursor = (struct uc_tcp_cursor){.piece = uc_tcp_op_following(op)->pieces};
        }
    }
}

/* One send of operations that are not at the peer yet. */
static enum uc_tcp_io
send_requests(struct uc_tcp_lane *lane, size_t *left_bytes)
{
    struct batch batch;
    struct uc_fabric_op *op = lane->unsent;
    struct uc_tcp_cursor cursor = lane->source_cursor;
    uint64_t sent_bytes = lane->sent_bytes;
    size_t done_bytes = 0;
    enum uc_tcp_io io;

    batch.iov_count = 0;
    batch.header_count = 0;
    batch.want_bytes = 0;
    while (op != NULL && batch.want_bytes < *left_bytes && batch.iov_count < UC_TCP_IOV_COUNT &&
            batch.header_count < UC_TCP_BATCH_COUNT) {
        if (!batch_add(&batch, op, sent_bytes, cursor, *left_bytes)) {
            break;
        }
        op = uc_tcp_op_following(op);
        sent_bytes = 0;
        cursor = (struct uc_tcp_cursor){.piece = op == NULL ? NULL : op->pieces};
    }

    io = uc_tcp_source_send(
            &lane->stream.source, batch.iov, batch.iov_count, batch.want_bytes, &done_bytes);
    if (io == UC_TCP_MOVED) {
        *left_bytes -= done_bytes < *left_bytes ? done_bytes : *left_bytes;
        sent(lane, done_bytes);
    }
    return io;
}

static void
data_advance(struct uc_tcp_lane *lane, size_t bytes, size_t *budget)
{
    lane->rx_left_bytes -= bytes;
    if (lane->rx_left_bytes == 0) {
        uc_tcp_lane_finish(lane, UC_OK, budget);
        return;
    }

    uc_tcp_cursor_advance(&lane->target_cursor, bytes);
    if (lane->client->first == lane->first) {
        uc_tcp_client_feed(lane->client);
    }
}

/* @return false if this is not what the first operation waits for */
static bool
response_begin(struct uc_tcp_lane *lane, const uint8_t *bytes, size_t *budget)
{
    const struct uc_fabric_op *op = lane->first;
    struct uc_tcp_response response;
    uint64_t want_bytes;

    if (uc_tcp_response_get(bytes, &response) != UC_OK || op == NULL || op == lane->unsent ||
            response.sequence != uc_tcp_op_sequence(op)) {
        return false;
    }

    want_bytes =
            op->opcode == UC_FABRIC_READ && response.status == UC_OK ? uc_tcp_op_length(op) : 0;
    if (response.length_bytes != want_bytes) {
        return false;
    }

    if (want_bytes > 0) {
        lane->rx_left_bytes = want_bytes;
        lane->target_cursor = (struct uc_tcp_cursor){.piece = op->pieces};
    } else {
        uc_tcp_lane_finish(lane, response.status, budget);
    }
    return true;
}

/* Copy data that was read ahead to where it belongs. */
static void
consume_data(struct uc_tcp_lane *lane, size_t ready, size_t *budget)
{
    struct uc_tcp_stream *stream = &lane->stream;
    const struct uc_tcp_cursor *cursor = &lane->target_cursor;
    uint64_t rest = cursor->piece->length_bytes - cursor->done_bytes;
    size_t count = ready < rest ? ready : (size_t)rest;

    memcpy((uint8_t *)cursor->piece->address + cursor->done_bytes, &stream->rx[stream->rx_begin],
            count);
    stream->rx_begin += count;
    data_advance(lane, count, budget);
}

/* Take what was read ahead. @return false if it is malformed */
static bool
consume(struct uc_tcp_lane *lane, size_t *budget)
{
    struct uc_tcp_stream *stream = &lane->stream;

    while (lane->state == UC_TCP_READY && *budget > 0) {
        const uint8_t *bytes;

        if (lane->rx_left_bytes > 0) {
            size_t ready = stream->rx_end - stream->rx_begin;

            if (ready == 0) {
                return true;
            }
            consume_data(lane, ready, budget);
        } else {
            bytes = uc_tcp_stream_take(stream, UC_TCP_RESPONSE_BYTES);
            if (bytes == NULL) {
                return true;
            }
            if (!response_begin(lane, bytes, budget)) {
                return false;
            }
        }
    }
    return true;
}

/*
 * How much to read ahead of what comes behind the data that is arriving: one header before large
 * data, which then needs no copy, and many small blocks in one call.
 */
static size_t
room_bytes(const struct uc_tcp_lane *lane)
{
    const struct uc_fabric_op *op = lane->first;

    if (op != NULL && lane->rx_left_bytes > 0) {
        op = uc_tcp_op_following(op);
    }
    return op == NULL || (op->opcode == UC_FABRIC_READ &&
                                 uc_tcp_op_length(op) >= UC_TCP_LARGE_BYTES)
                   ? UC_TCP_RX_LITTLE_BYTES
                   : UC_TCP_RX_BYTES;
}

/* Most bytes of the first operation's data to take at once. */
static size_t
direct_bytes(const struct uc_tcp_lane *lane, size_t left_bytes)
{
    size_t most = lane->first->on_bytes != NULL && left_bytes > UC_TCP_RUN_BYTES ? UC_TCP_RUN_BYTES
                                                                                 : left_bytes;

    return lane->rx_left_bytes < most ? (size_t)lane->rx_left_bytes : most;
}

/* One receive: the rest of a READ's data straight to its pieces, and behind it whatever follows. */
static enum uc_tcp_io
receive(struct uc_tcp_lane *lane, size_t *left_bytes, size_t *budget)
{
    struct uc_tcp_stream *stream = &lane->stream;
    struct iovec iov[UC_TCP_IOV_COUNT + 1];
    size_t count = 0;
    size_t direct = 0;
    size_t want_bytes;
    size_t done_bytes = 0;
    enum uc_tcp_io io;

    if (lane->rx_left_bytes > 0) {
        direct = cursor_iov(lane->target_cursor, direct_bytes(lane, *left_bytes), iov,
                UC_TCP_IOV_COUNT, &count);
    }
    want_bytes = direct;
    if (direct == lane->rx_left_bytes) {
        iov[count] = uc_tcp_stream_room(stream, room_bytes(lane));
        want_bytes += iov[count++].iov_len;
    }

    io = uc_tcp_source_receive(&stream->source, iov, count, want_bytes, &done_bytes);
    if (io != UC_TCP_MOVED) {
        return io;
    }

    *left_bytes -= done_bytes < *left_bytes ? done_bytes : *left_bytes;
    if (done_bytes > direct) {
        stream->rx_end += done_bytes - direct;
    }
    if (direct > 0) {
        /* Last: the callback may post, or close the endpoint. */
        data_advance(lane, done_bytes < direct ? done_bytes : direct, budget);
    }
    return UC_TCP_MOVED;
}

static void
lost(struct uc_tcp_lane *lane)
{
    int error = lane->stream.source.lost_errno;

    (void)uc_error(UC_ERR_UNHEALTHY, "tcp: the connection to the server is lost: %s",
            error == 0 ? "closed by the server" : strerror(error));
    uc_tcp_client_fail(lane->client, UC_ERR_UNHEALTHY);
}

bool
uc_tcp_lane_transfer(struct uc_tcp_lane *lane, size_t *budget)
{
    size_t left_bytes = UC_TCP_TURN_BYTES;

    uc_tcp_client_deliver(lane->client, budget); /* what a used up budget has left */
    while (left_bytes > 0 && *budget > 0) {
        enum uc_tcp_io out = UC_TCP_BLOCKED;
        enum uc_tcp_io in;

        /* First, so that there is room to read ahead; a used up budget may have left something. */
        if (!consume(lane, budget)) {
            (void)uc_error(UC_ERR_UNHEALTHY,
                    "tcp: the server sent a malformed response; is it of the same release?");
            uc_tcp_client_fail(lane->client, UC_ERR_UNHEALTHY);
            return false;
        }
        if (lane->state != UC_TCP_READY) {
            return false; /* fenced by a callback */
        }
        if (*budget == 0) {
            break;
        }
        if (lane->unsent != NULL) {
            out = send_requests(lane, &left_bytes);
        }
        if (left_bytes == 0) {
            break;
        }
        in = out == UC_TCP_LOST ? UC_TCP_LOST : receive(lane, &left_bytes, budget);
        if (in == UC_TCP_LOST) {
            lost(lane);
            return false;
        }
        if (in != UC_TCP_MOVED && out != UC_TCP_MOVED) {
            return false;
        }
    }

    return lane->state == UC_TCP_READY;
}
