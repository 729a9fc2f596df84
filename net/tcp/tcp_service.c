/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An admitted peer's requests are taken in order. A WRITE is done while its data arrives; a READ waits
 * in the ring of replies and is opened (checked, its slot held) only when its bytes are about to be
 * sent. When the ring is full nothing more is read, so a peer that does not take its replies stops
 * itself.
 *
 * The last READ of the ring is detached before it is complete: its last bytes are copied and its slot is
 * let go, and only then are they sent. So whoever has received all replies knows that none of the slots
 * is held any more on its account; what it evicts next does not depend on when this thread comes back
 * from send.
 */

#include <assert.h>
#include <string.h>

#include <ucm/log.h>

#include "net/tcp/tcp_object.h"

static struct uc_tcp_reply *
reply_at(struct uc_tcp_target *target, size_t idx)
{
    return &target->replies[(target->reply_first + idx) % UC_TCP_BATCH_COUNT];
}

static void
release(struct uc_tcp_target *target, const struct uc_tcp_reply *reply)
{
    if (target->ops->hold != NULL && target->ops->release != NULL) {
        target->ops->release(target->context, target->peer, reply->request.region_idx,
                reply->request.offset_bytes);
    }
}

/* Not being sent after all: the slot is let go until then. */
static void
reply_shut(struct uc_tcp_target *target, struct uc_tcp_reply *reply)
{
    if (reply->is_open && reply->data != NULL) {
        if (!reply->is_detached) {
            release(target, reply);
        }
        reply->is_open = false;
        reply->is_detached = false;
        reply->data = NULL;
    }
}

/* Copy the last bytes of the first reply and let its slot go. */
static void
reply_detach(struct uc_tcp_target *target, struct uc_tcp_reply *reply, uint64_t rest_bytes)
{
    assert(rest_bytes <= UC_TCP_TAIL_BYTES);
    memcpy(&target->tail[UC_TCP_TAIL_BYTES - rest_bytes],
            reply->data + reply->request.length_bytes - rest_bytes, (size_t)rest_bytes);
    reply->is_detached = true;
    release(target, reply);
}

static bool
is_last_reply(const struct uc_tcp_target *target, size_t idx)
{
    return idx + 1 == target->reply_count;
}

/*
 * May the peer do this? On Ok the slot is held, but for a FLUSH, and *data_out is where the bytes
 * are. The region index, offset and length are the peer's.
 */
static enum uc_status
access_begin(struct uc_tcp_target *target, const struct uc_tcp_request *request, uint8_t **data_out)
{
    uint64_t length_bytes =
            request->opcode == UC_FABRIC_FLUSH ? UC_FLUSH_BYTES : request->length_bytes;
    struct uc_region region;
    enum uc_status status;

    if (uc_region_table_find(target->base.domain->regions, request->region_idx, &region) != UC_OK ||
            !uc_region_range_fits(region.length_bytes, request->offset_bytes, length_bytes)) {
        return UC_ERR_INVALID_PARAM;
    }
    if (request->opcode == UC_FABRIC_FLUSH) {
        return UC_OK;
    }
    if (request->opcode == UC_FABRIC_WRITE &&
            (target->access != UC_FABRIC_READ_WRITE || region.access != UC_FABRIC_READ_WRITE)) {
        return UC_ERR_PERMISSION_DENIED;
    }

    if (target->ops->hold != NULL) {
        status = target->ops->hold(target->context, target->peer, request->region_idx,
                request->offset_bytes, request->length_bytes, request->generation, request->opcode);
        if (status != UC_OK) {
            return status;
        }
    }
    *data_out = region.address + request->offset_bytes;
    return UC_OK;
}

/* Settle a READ that is about to be sent. */
static void
reply_open(struct uc_tcp_target *target, struct uc_tcp_reply *reply)
{
    uint8_t *data = NULL;

    reply->status = access_begin(target, &reply->request, &data);
    reply->data = data;
    reply->is_open = true;
}

static void
reply_add(struct uc_tcp_target *target, const struct uc_tcp_reply *reply)
{
    assert(target->reply_count < UC_TCP_BATCH_COUNT);
    *reply_at(target, target->reply_count) = *reply;
    target->reply_count++;
}

static void
write_end(struct uc_tcp_target *target)
{
    if (target->write_data != NULL) {
        target->write_data = NULL;
        release(target, &target->write);
    }
    reply_add(target, &target->write);
}

/* @return false if the frame is malformed */
static bool
request_begin(struct uc_tcp_target *target, const uint8_t *bytes)
{
    struct uc_tcp_reply reply = {0};

    if (uc_tcp_request_get(bytes, &reply.request) != UC_OK) {
        return false;
    }

    switch (reply.request.opcode) {
    case UC_FABRIC_READ:
        reply_add(target, &reply);
        break;
    case UC_FABRIC_FLUSH:
        reply_open(target, &reply);
        reply_add(target, &reply);
        break;
    case UC_FABRIC_WRITE:
        reply.is_open = true;
        target->write_data = NULL;
        reply.status = access_begin(target, &reply.request, &target->write_data);
        target->write = reply;
        target->rx_left_bytes = reply.request.length_bytes;
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
    struct uc_fabric_endpoint *endpoint = &target->base;

    for (;;) {
        const uint8_t *bytes;

        if (target->rx_left_bytes > 0) {
            size_t ready = endpoint->rx_end - endpoint->rx_begin;
            size_t count = ready < target->rx_left_bytes ? ready : (size_t)target->rx_left_bytes;

            if (count == 0) {
                return true;
            }
            if (target->write_data != NULL) {
                memcpy(target->write_data, &endpoint->rx[endpoint->rx_begin], count);
            }
            endpoint->rx_begin += count;
            write_advance(target, count);
        } else if (target->reply_count == UC_TCP_BATCH_COUNT ||
                   (bytes = uc_tcp_endpoint_take(endpoint, UC_TCP_REQUEST_BYTES)) == NULL) {
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
    struct uc_fabric_endpoint *endpoint = &target->base;
    struct uc_fabric *fabric = endpoint->source.fabric;
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
        iov[count++] = uc_tcp_endpoint_rx_room(endpoint);
    }

    io = uc_tcp_source_receive(&endpoint->source, iov, count,
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
    endpoint->rx_end += done_bytes;
    return UC_TCP_MOVED;
}

struct batch {
    struct iovec iov[2 * UC_TCP_BATCH_COUNT];
    uint8_t headers[UC_TCP_BATCH_COUNT][UC_TCP_RESPONSE_BYTES];
    size_t iov_count;
    size_t want_bytes;
};

static uint64_t
reply_data_bytes(const struct uc_tcp_reply *reply)
{
    return reply->data == NULL ? 0 : reply->request.length_bytes;
}

/* Append what is not sent yet of a reply's data, at most @p most bytes. */
static void
batch_add_data(struct uc_tcp_target *target, struct batch *batch, size_t idx,
        struct uc_tcp_reply *reply, uint64_t rest, size_t most)
{
    struct iovec *iov = &batch->iov[batch->iov_count++];
    const uint8_t *data = reply->data + reply->request.length_bytes - rest;

    if (!reply->is_detached && is_last_reply(target, idx)) {
        if (rest > UC_TCP_TAIL_BYTES) {
            rest -= UC_TCP_TAIL_BYTES;
        } else {
            reply_detach(target, reply, rest);
        }
    }
    if (reply->is_detached) {
        data = &target->tail[UC_TCP_TAIL_BYTES - rest];
    }
    /* An iovec has no const form; sendmsg only reads. */
    iov->iov_base = (void *)(uintptr_t)data;
    iov->iov_len = rest < most ? (size_t)rest : most;
    batch->want_bytes += iov->iov_len;
}

/* Append what is not sent yet of a reply, at most @p most bytes of its data. */
static void
batch_add(struct uc_tcp_target *target, struct batch *batch, size_t idx, uint64_t sent_bytes,
        size_t most)
{
    struct uc_tcp_reply *reply = reply_at(target, idx);
    struct uc_tcp_response response = {
            .status = reply->status,
            .sequence = reply->request.sequence,
            .length_bytes = reply_data_bytes(reply),
    };
    uint64_t data_sent = 0;

    if (sent_bytes < UC_TCP_RESPONSE_BYTES) {
        struct iovec *iov = &batch->iov[batch->iov_count++];

        uc_tcp_response_put(batch->headers[idx], &response);
        iov->iov_base = &batch->headers[idx][sent_bytes];
        iov->iov_len = UC_TCP_RESPONSE_BYTES - (size_t)sent_bytes;
        batch->want_bytes += iov->iov_len;
    } else {
        data_sent = sent_bytes - UC_TCP_RESPONSE_BYTES;
    }
    if (response.length_bytes > data_sent) {
        batch_add_data(target, batch, idx, reply, response.length_bytes - data_sent, most);
    }
}

static void
sent(struct uc_tcp_target *target, size_t done_bytes, size_t *budget)
{
    uint64_t bytes = done_bytes;

    while (target->reply_count > 0) {
        struct uc_tcp_reply *reply = reply_at(target, 0);
        uint64_t left = UC_TCP_RESPONSE_BYTES + reply_data_bytes(reply) - target->sent_bytes;

        if (!reply->is_open || bytes < left) {
            target->sent_bytes += bytes;
            return;
        }
        bytes -= left;
        target->sent_bytes = 0;
        target->reply_first = (target->reply_first + 1) % UC_TCP_BATCH_COUNT;
        target->reply_count--;
        *budget -= *budget > 0 ? 1 : 0;
        if (reply->data != NULL) {
            reply->data = NULL;
            if (!reply->is_detached) {
                release(target, reply);
            }
        }
    }
}

/* One send of replies from the first on, until about *left_bytes are on their way. */
static enum uc_tcp_io
send_replies(struct uc_tcp_target *target, size_t *left_bytes, size_t *budget)
{
    struct batch batch = {.iov_count = 0};
    size_t done_bytes = 0;
    size_t opened = 0;
    enum uc_tcp_io io;

    while (opened < target->reply_count && batch.want_bytes < *left_bytes) {
        struct uc_tcp_reply *reply = reply_at(target, opened);

        if (!reply->is_open) {
            reply_open(target, reply);
        }
        if (opened > 0 && is_last_reply(target, opened) &&
                reply_data_bytes(reply) <= UC_TCP_TAIL_BYTES && reply->data != NULL) {
            reply_shut(target, reply);
            break; /* the first reply only can be detached: its turn comes */
        }
        batch_add(target, &batch, opened, opened == 0 ? target->sent_bytes : 0,
                *left_bytes - batch.want_bytes);
        opened++;
    }

    io = uc_tcp_source_send(
            &target->base.source, batch.iov, batch.iov_count, batch.want_bytes, &done_bytes);
    if (io == UC_TCP_MOVED) {
        size_t before = target->reply_count;

        *left_bytes -= done_bytes < *left_bytes ? done_bytes : *left_bytes;
        sent(target, done_bytes, budget);
        opened -= before - target->reply_count;
    }
    /* Slots of READs of which nothing was sent are not held while the peer makes us wait. */
    for (size_t idx = target->sent_bytes > 0 ? 1 : 0; idx < opened; idx++) {
        reply_shut(target, reply_at(target, idx));
    }
    return io;
}

/* The peer broke the protocol. Its connection ends, nobody else's. */
static void
malformed(struct uc_tcp_target *target)
{
    if (uc_tcp_fabric_may_warn(target->base.source.fabric)) {
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
        if (target->reply_count > 0 && left_bytes > 0 && target->base.source.writable) {
            io = send_replies(target, &left_bytes, budget);
            if (io == UC_TCP_LOST) {
                uc_tcp_target_drop(target);
                return false;
            }
            moved = moved || io == UC_TCP_MOVED;
        }
        if (target->base.state != UC_TCP_READY) {
            return false; /* fenced by a callback */
        }
        if (!moved) {
            return false;
        }
    }

    return true;
}

void
uc_tcp_target_close(struct uc_tcp_target *target)
{
    if (target->base.state == UC_TCP_CLOSED) {
        return;
    }

    target->base.state = UC_TCP_CLOSED;
    uc_tcp_source_close(&target->base.source, true);
    if (target->listener != NULL) {
        target->listener->half_open_count--;
        target->listener = NULL;
    }
    if (target->write_data != NULL) {
        target->write_data = NULL;
        release(target, &target->write);
    }
    for (size_t idx = 0; idx < target->reply_count; idx++) {
        reply_shut(target, reply_at(target, idx));
    }
    target->reply_count = 0;
}

void
uc_tcp_target_drop(struct uc_tcp_target *target)
{
    uc_tcp_target_close(target);
    if (target->is_admitted) {
        target->ops->gone(target->context, target->peer);
    }
    uc_tcp_endpoint_bury(&target->base);
}
