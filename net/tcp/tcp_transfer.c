/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client's requests go out in the order posted, several per system call, a WRITE's data straight
 * from its pieces. Replies come back in the same order, a READ's data straight into its pieces; what
 * follows it is read ahead in the same call.
 */

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "net/tcp/tcp_object.h"

static void
cursor_advance(struct uc_tcp_cursor *cursor, uint64_t bytes)
{
    cursor->done_bytes += bytes;
    while (cursor->done_bytes > 0 && cursor->done_bytes >= cursor->piece->length_bytes) {
        cursor->done_bytes -= cursor->piece->length_bytes;
        cursor->piece++;
    }
}

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
sequence_of(const struct uc_fabric_op *op)
{
    return op->provider_data[0];
}

static uint64_t
length_of(const struct uc_fabric_op *op)
{
    return op->provider_data[1];
}

static uint64_t
request_wire_bytes(const struct uc_fabric_op *op)
{
    return UC_TCP_REQUEST_BYTES + (op->opcode == UC_FABRIC_WRITE ? length_of(op) : 0);
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
            .sequence = sequence_of(op),
            .offset_bytes = op->offset_bytes,
            .length_bytes = length_of(op),
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

    rest = length_of(op) - data_sent;
    most = batch->want_bytes < left_bytes ? left_bytes - batch->want_bytes : 0;
    most = rest < most ? (size_t)rest : most;
    most = cursor_iov(cursor, most, batch->iov, UC_TCP_IOV_COUNT, &batch->iov_count);
    batch->want_bytes += most;
    return most == rest;
}

static void
sent(struct uc_tcp_client *client, uint64_t bytes)
{
    while (bytes > 0) {
        struct uc_fabric_op *op = client->unsent;
        uint64_t left = request_wire_bytes(op) - client->sent_bytes;
        uint64_t step = bytes < left ? bytes : left;
        uint64_t before = client->sent_bytes;

        client->sent_bytes += step;
        bytes -= step;
        if (step < left) {
            uint64_t data_before = before < UC_TCP_REQUEST_BYTES ? UC_TCP_REQUEST_BYTES : before;

            if (client->sent_bytes > data_before) {
                cursor_advance(&client->source_cursor, client->sent_bytes - data_before);
            }
            return;
        }

        client->unsent = op->next;
        client->sent_bytes = 0;
        if (op->next != NULL) {
            client->source_cursor = (struct uc_tcp_cursor){.piece = op->next->pieces};
        }
    }
}

/* One send of operations that are not at the peer yet. */
static enum uc_tcp_io
send_requests(struct uc_tcp_client *client, size_t *left_bytes)
{
    struct batch batch;
    struct uc_fabric_op *op = client->unsent;
    struct uc_tcp_cursor cursor = client->source_cursor;
    uint64_t sent_bytes = client->sent_bytes;
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
        op = op->next;
        sent_bytes = 0;
        cursor = (struct uc_tcp_cursor){.piece = op == NULL ? NULL : op->pieces};
    }

    io = uc_tcp_source_send(
            &client->base.source, batch.iov, batch.iov_count, batch.want_bytes, &done_bytes);
    if (io == UC_TCP_MOVED) {
        *left_bytes -= done_bytes < *left_bytes ? done_bytes : *left_bytes;
        sent(client, done_bytes);
    }
    return io;
}

static void
first_done(struct uc_tcp_client *client, enum uc_status status, size_t *budget)
{
    struct uc_fabric_op *op = client->first;

    client->first = op->next;
    if (client->first == NULL) {
        client->last = NULL;
    }
    *budget -= 1;
    op->on_done(op, status);
}

static void
data_advance(struct uc_tcp_client *client, size_t bytes, size_t *budget)
{
    client->rx_left_bytes -= bytes;
    if (client->rx_left_bytes == 0) {
        first_done(client, UC_OK, budget);
    } else {
        cursor_advance(&client->target_cursor, bytes);
    }
}

/* @return false if this is not what the first operation waits for */
static bool
response_begin(struct uc_tcp_client *client, const uint8_t *bytes, size_t *budget)
{
    const struct uc_fabric_op *op = client->first;
    struct uc_tcp_response response;
    uint64_t want_bytes;

    if (uc_tcp_response_get(bytes, &response) != UC_OK || op == NULL || op == client->unsent ||
            response.sequence != sequence_of(op)) {
        return false;
    }

    want_bytes = op->opcode == UC_FABRIC_READ && response.status == UC_OK ? length_of(op) : 0;
    if (response.length_bytes != want_bytes) {
        return false;
    }

    if (want_bytes > 0) {
        client->rx_left_bytes = want_bytes;
        client->target_cursor = (struct uc_tcp_cursor){.piece = op->pieces};
    } else {
        first_done(client, response.status, budget);
    }
    return true;
}

/* Copy data that was read ahead to where it belongs. */
static void
consume_data(struct uc_tcp_client *client, size_t ready, size_t *budget)
{
    struct uc_fabric_endpoint *endpoint = &client->base;
    const struct uc_tcp_cursor *cursor = &client->target_cursor;
    uint64_t rest = cursor->piece->length_bytes - cursor->done_bytes;
    size_t count = ready < rest ? ready : (size_t)rest;

    memcpy((uint8_t *)cursor->piece->address + cursor->done_bytes,
            &endpoint->rx[endpoint->rx_begin], count);
    endpoint->rx_begin += count;
    data_advance(client, count, budget);
}

/* Take what was read ahead. @return false if it is malformed */
static bool
consume(struct uc_tcp_client *client, size_t *budget)
{
    struct uc_fabric_endpoint *endpoint = &client->base;

    while (endpoint->state == UC_TCP_READY && *budget > 0) {
        const uint8_t *bytes;

        if (client->rx_left_bytes > 0) {
            size_t ready = endpoint->rx_end - endpoint->rx_begin;

            if (ready == 0) {
                return true;
            }
            consume_data(client, ready, budget);
        } else {
            bytes = uc_tcp_endpoint_take(endpoint, UC_TCP_RESPONSE_BYTES);
            if (bytes == NULL) {
                return true;
            }
            if (!response_begin(client, bytes, budget)) {
                return false;
            }
        }
    }
    return true;
}

/* One receive: the rest of a READ's data straight to its pieces, and behind it whatever follows. */
static enum uc_tcp_io
receive(struct uc_tcp_client *client, size_t *left_bytes, size_t *budget)
{
    struct uc_fabric_endpoint *endpoint = &client->base;
    struct iovec iov[UC_TCP_IOV_COUNT + 1];
    size_t count = 0;
    size_t direct = 0;
    size_t want_bytes;
    size_t done_bytes = 0;
    enum uc_tcp_io io;

    if (client->rx_left_bytes > 0) {
        size_t most =
                client->rx_left_bytes < *left_bytes ? (size_t)client->rx_left_bytes : *left_bytes;

        direct = cursor_iov(client->target_cursor, most, iov, UC_TCP_IOV_COUNT, &count);
    }
    want_bytes = direct;
    if (direct == client->rx_left_bytes) {
        iov[count] = uc_tcp_endpoint_rx_room(endpoint);
        want_bytes += iov[count++].iov_len;
    }

    io = uc_tcp_source_receive(&endpoint->source, iov, count, want_bytes, &done_bytes);
    if (io != UC_TCP_MOVED) {
        return io;
    }

    *left_bytes -= done_bytes < *left_bytes ? done_bytes : *left_bytes;
    if (done_bytes > direct) {
        endpoint->rx_end += done_bytes - direct;
    }
    if (direct > 0) {
        /* Last: the callback may post, or close the endpoint. */
        data_advance(client, done_bytes < direct ? done_bytes : direct, budget);
    }
    return UC_TCP_MOVED;
}

static void
lost(struct uc_tcp_client *client)
{
    int error = client->base.source.lost_errno;

    (void)uc_error(UC_ERR_UNHEALTHY, "tcp: the connection to the server is lost: %s",
            error == 0 ? "closed by the server" : strerror(error));
    uc_tcp_client_fail(client, UC_ERR_UNHEALTHY);
}

bool
uc_tcp_client_transfer(struct uc_tcp_client *client, size_t *budget)
{
    size_t left_bytes = UC_TCP_TURN_BYTES;

    while (left_bytes > 0 && *budget > 0) {
        enum uc_tcp_io out = UC_TCP_BLOCKED;
        enum uc_tcp_io in;

        /* First, so that there is room to read ahead; a used up budget may have left something. */
        if (!consume(client, budget)) {
            (void)uc_error(UC_ERR_UNHEALTHY,
                    "tcp: the server sent a malformed response; is it of the same release?");
            uc_tcp_client_fail(client, UC_ERR_UNHEALTHY);
            return false;
        }
        if (client->base.state != UC_TCP_READY) {
            return false; /* fenced by a callback */
        }
        if (*budget == 0) {
            break;
        }
        if (client->unsent != NULL) {
            out = send_requests(client, &left_bytes);
        }
        if (left_bytes == 0) {
            break;
        }
        in = out == UC_TCP_LOST ? UC_TCP_LOST : receive(client, &left_bytes, budget);
        if (in == UC_TCP_LOST) {
            lost(client);
            return false;
        }
        if (in != UC_TCP_MOVED && out != UC_TCP_MOVED) {
            return false;
        }
    }

    return client->base.state == UC_TCP_READY;
}
