/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A READ waits in the ring of replies and is opened (checked, its slot held) only when its bytes are
 * about to be sent.
 *
 * The last READ of the ring is detached before it is complete: its last bytes are copied and its slot is
 * let go, and only then are they sent. So whoever has received all replies knows that none of the slots
 * is held any more on its account; what it evicts next does not depend on when this thread comes back
 * from send. A small READ is copied whole, which costs less than a second send.
 */

#include <assert.h>
#include <string.h>

#include "net/tcp/tcp_target.h"

static struct uc_tcp_reply *
reply_at(struct uc_tcp_target *target, size_t idx)
{
    return &target->replies[(target->reply_first + idx) % UC_TCP_BATCH_COUNT];
}

/* Not being sent after all: the slot is let go until then. */
static void
reply_shut(struct uc_tcp_target *target, struct uc_tcp_reply *reply)
{
    if (reply->is_open && reply->data != NULL) {
        if (!reply->is_detached) {
            uc_tcp_access_end(target, &reply->request);
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
    uc_tcp_access_end(target, &reply->request);
}

static bool
is_last_reply(const struct uc_tcp_target *target, size_t idx)
{
    return idx + 1 == target->reply_count;
}

/* Settle a READ that is about to be sent. */
static void
reply_open(struct uc_tcp_target *target, struct uc_tcp_reply *reply)
{
    uint8_t *data = NULL;

    reply->status = uc_tcp_access_begin(target, &reply->request, &data);
    reply->data = data;
    reply->is_open = true;
}

void
uc_tcp_reply_add(struct uc_tcp_target *target, const struct uc_tcp_reply *reply)
{
    assert(target->reply_count < UC_TCP_BATCH_COUNT);
    *reply_at(target, target->reply_count) = *reply;
    target->reply_count++;
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
            rest -= UC_TCP_TAIL_LEAST_BYTES;
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
                uc_tcp_access_end(target, &reply->request);
            }
        }
    }
}

enum uc_tcp_io
uc_tcp_reply_send(struct uc_tcp_target *target, size_t *left_bytes, size_t *budget)
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
            &target->stream.source, batch.iov, batch.iov_count, batch.want_bytes, &done_bytes);
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

void
uc_tcp_reply_drop_all(struct uc_tcp_target *target)
{
    for (size_t idx = 0; idx < target->reply_count; idx++) {
        reply_shut(target, reply_at(target, idx));
    }
    target->reply_count = 0;
}
