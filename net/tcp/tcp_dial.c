/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lane 0 connects first and has the nonce accepted; the others follow to the same address and join it.
 * The endpoint is ready when all are.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "net/tcp/tcp_client.h"

/* @return 0 when the attempt is under way, else errno; CONNECTING ends with an event. */
static int
start_connecting(struct uc_tcp_lane *lane)
{
    const struct uc_tcp_address *address = &lane->client->addresses[lane->address_idx];
    struct uc_tcp_source *source = &lane->stream.source;
    const int on = 1;
    int error;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return errno;
    }

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (const struct sockaddr *)&address->storage, address->length_bytes) != 0 &&
            errno != EINPROGRESS) {
        error = errno;
        (void)close(fd);
        return error;
    }
    if (uc_tcp_source_watch(source, fd) != UC_OK) {
        (void)close(fd);
        return ENOMEM;
    }

    return 0;
}

static enum uc_status
connect_error(int error)
{
    if (error == EMFILE || error == ENFILE) {
        return uc_error(UC_ERR_OS_API,
                "tcp: connect: %s; raise the limit of open files (ulimit -n)", strerror(error));
    }

    return uc_error(UC_ERR_UNHEALTHY,
            "tcp: connect: %s; is the server up, and the port reachable from here?",
            strerror(error));
}

enum uc_status
uc_tcp_lane_dial(struct uc_tcp_lane *lane)
{
    int error = ECONNREFUSED;

    while (lane->address_idx < lane->client->address_count) {
        error = start_connecting(lane);
        if (error == 0) {
            return UC_OK;
        }
        lane->address_idx++;
    }

    return connect_error(error);
}

/* The handshake ended, well or not. @return whether the hello is on its way */
static bool
finish_connecting(struct uc_tcp_lane *lane)
{
    struct uc_tcp_client *client = lane->client;
    struct uc_tcp_source *source = &lane->stream.source;
    struct uc_tcp_hello hello = {
            .lane_idx = (uint32_t)(lane - client->lanes), .lane_count = client->lane_count};
    uint8_t bytes[UC_TCP_HELLO_BYTES];
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    size_t done_bytes = 0;
    socklen_t length_bytes = sizeof(int);
    enum uc_status status;
    int error = 0;

    if (!source->writable) {
        return false;
    }

    if (getsockopt(source->base.fd, SOL_SOCKET, SO_ERROR, &error, &length_bytes) != 0) {
        error = errno;
    }
    if (error == 0) {
        uc_tcp_source_fit(source);
        memcpy(hello.nonce, client->nonce, sizeof(hello.nonce));
        uc_tcp_hello_put(bytes, &hello);
        if (uc_tcp_source_send(source, &iov, 1, sizeof(bytes), &done_bytes) == UC_TCP_MOVED &&
                done_bytes == sizeof(bytes)) {
            lane->state = UC_TCP_GREETING;
            return true;
        }
        error = source->lost_errno == 0 ? EPIPE : source->lost_errno;
    }

    uc_source_release(&source->base);
    lane->address_idx++;
    if (lane->address_idx >= client->address_count) {
        uc_tcp_client_fail(client, connect_error(error));
        return false;
    }

    status = uc_tcp_lane_dial(lane);
    if (status != UC_OK) {
        uc_tcp_client_fail(client, status);
    }
    return false;
}

/* Lane 0 was admitted: the others to where it is. @return false if the endpoint failed */
static bool
dial_others(struct uc_tcp_client *client)
{
    for (uint32_t idx = 1; idx < client->lane_count; idx++) {
        enum uc_status status;

        client->lanes[idx].address_idx = client->lanes[0].address_idx;
        status = uc_tcp_lane_dial(&client->lanes[idx]);
        if (status != UC_OK) {
            uc_tcp_client_fail(client, status);
            return false;
        }
    }
    return true;
}

static void
lane_ready(struct uc_tcp_lane *lane)
{
    struct uc_tcp_client *client = lane->client;

    lane->state = UC_TCP_READY;
    client->ready_count++;
    if (lane == &client->lanes[0] && !dial_others(client)) {
        return;
    }
    if (client->ready_count < client->lane_count) {
        return;
    }

    uc_source_never_expire(&client->lanes[0].stream.source.base);
    client->base.state = UC_TCP_READY;
    for (uint32_t idx = 0; idx < client->lane_count; idx++) {
        uc_source_wake(&client->lanes[idx].stream.source.base);
    }
    client->on_state(client->context, &client->base, UC_OK);
}

static void
answered(struct uc_tcp_lane *lane, const uint8_t *bytes)
{
    enum uc_status status;

    if (uc_tcp_answer_get(bytes, &status) != UC_OK) {
        (void)uc_error(UC_ERR_UNHEALTHY,
                "tcp: connect: the peer is no ucm server; check the address and the fabric port");
        uc_tcp_client_fail(lane->client, UC_ERR_UNHEALTHY);
        return;
    }
    if (status != UC_OK) {
        (void)uc_error(status, "tcp: connect: refused by the server (%s)%s", uc_status_name(status),
                status == UC_ERR_UNSUPPORTED ? "; use the same release on both sides"
                                             : "; attach again for a fresh nonce");
        uc_tcp_client_fail(lane->client, status);
        return;
    }

    lane_ready(lane);
}

static void
receive_answer(struct uc_tcp_lane *lane)
{
    struct uc_tcp_stream *stream = &lane->stream;
    const uint8_t *bytes;

    while ((bytes = uc_tcp_stream_take(stream, UC_TCP_ANSWER_BYTES)) == NULL) {
        struct iovec iov = uc_tcp_stream_room(stream, UC_TCP_RX_LITTLE_BYTES);
        size_t done_bytes;

        switch (uc_tcp_source_receive(&stream->source, &iov, 1, iov.iov_len, &done_bytes)) {
        case UC_TCP_MOVED:
            stream->rx_end += done_bytes;
            break;
        case UC_TCP_BLOCKED:
            return;
        case UC_TCP_LOST:
            (void)uc_error(UC_ERR_UNHEALTHY,
                    "tcp: connect: the server closed the connection before it answered (%s)",
                    stream->source.lost_errno == 0 ? "end of stream"
                                                   : strerror(stream->source.lost_errno));
            uc_tcp_client_fail(lane->client, UC_ERR_UNHEALTHY);
            return;
        }
    }

    answered(lane, bytes);
}

static struct uc_tcp_lane *
lane_of(struct uc_source *source)
{
    return uc_list_entry(source, struct uc_tcp_lane, stream.source.base);
}

static void
on_expire(struct uc_source *source)
{
    (void)uc_error(UC_ERR_TIMEOUT,
            "tcp: connect: no answer in time; is the server up, and the port reachable from here?");
    uc_tcp_client_fail(lane_of(source)->client, UC_ERR_TIMEOUT);
}

static bool
on_turn(struct uc_source *source, size_t *budget)
{
    struct uc_tcp_lane *lane = lane_of(source);
    struct uc_tcp_client *client = lane->client;

    if (client->early_status != UC_OK && lane->state == UC_TCP_CONNECTING) {
        *budget -= 1;
        uc_tcp_client_fail(client, client->early_status);
        return false;
    }
    if (lane->state == UC_TCP_CONNECTING && !finish_connecting(lane)) {
        *budget -= lane->state == UC_TCP_CLOSED ? 1 : 0;
        return false;
    }
    if (lane->state == UC_TCP_GREETING) {
        receive_answer(lane);
        *budget -= lane->state != UC_TCP_GREETING ? 1 : 0;
    }
    if (client->base.state != UC_TCP_READY) {
        return false;
    }
    if (*budget == 0) {
        return true;
    }

    return uc_tcp_lane_transfer(lane, budget);
}

const struct uc_source_ops uc_tcp_lane_ops = {
        .event = uc_tcp_source_event,
        .turn = on_turn,
        .expire = on_expire,
};
