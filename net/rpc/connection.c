/* SPDX-License-Identifier: Apache-2.0 */

/* The stream: bytes in, frames out and back. What frames mean is in call.c. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/bytes.h"
#include "net/rpc/connection_private.h"

static bool
queue_resize(struct uc_rpc_queue *queue, size_t capacity)
{
    uint8_t *bytes = realloc(queue->bytes, capacity);

    if (bytes == NULL) {
        return false;
    }

    queue->bytes = bytes;
    queue->capacity = capacity;
    return true;
}

/* Move the content to the front, so that all free room is behind it. */
static void
queue_compact(struct uc_rpc_queue *queue)
{
    if (queue->head > 0) {
        memmove(queue->bytes, queue->bytes + queue->head, queue->tail - queue->head);
        queue->tail -= queue->head;
        queue->head = 0;
    }
}

static bool
queue_append(struct uc_rpc_queue *queue, const uint8_t *bytes, size_t length)
{
    if (length == 0) {
        return true;
    }
    if (length > queue->capacity - queue->tail) {
        size_t capacity =
                queue->capacity < UC_RPC_QUEUE_BYTES_MIN ? UC_RPC_QUEUE_BYTES_MIN : queue->capacity;

        queue_compact(queue);
        while (capacity - queue->tail < length) {
            capacity *= 2; /* the caller bounds the content by UC_RPC_SEND_BYTES_MAX */
        }
        if (capacity != queue->capacity && !queue_resize(queue, capacity)) {
            return false;
        }
    }

    memcpy(queue->bytes + queue->tail, bytes, length);
    queue->tail += length;
    return true;
}

enum uc_status
uc_rpc_connection_create(int fd, const struct uc_rpc_handler *handler, void *context,
        size_t frame_bytes_max, struct uc_rpc_connection **connection_out)
{
    struct uc_rpc_connection *connection;
    int flags = fcntl(fd, F_GETFL);
    int on = 1;

    if (handler == NULL || frame_bytes_max == 0 || frame_bytes_max > UINT32_MAX) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "rpc: a handler and a frame cap below 4 GiB are needed");
    }
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return uc_log_errno(errno, "rpc: fcntl of descriptor %d", fd);
    }
    /* Fails on unix sockets, which do not delay. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

    connection = calloc(1, sizeof(*connection));
    if (connection == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "rpc: no memory for a connection");
    }

    if (!queue_resize(&connection->receive, UC_RPC_QUEUE_BYTES_MIN)) {
        goto err_free_connection;
    }

    connection->fd = fd;
    connection->handler = handler;
    connection->context = context;
    connection->frame_bytes_max = frame_bytes_max;
    connection->earliest_ms = UC_TIME_NEVER_MS;
    *connection_out = connection;
    return UC_OK;

err_free_connection:
    free(connection);
    return uc_error(UC_ERR_OUT_OF_MEMORY, "rpc: no memory for a connection's buffer");
}

static void
release(struct uc_rpc_connection *connection)
{
    /* The connection ends, even if a process forked from this one has the socket open as well. */
    (void)shutdown(connection->fd, SHUT_RDWR);
    (void)close(connection->fd);
    free(connection->receive.bytes);
    free(connection->send.bytes);
    free(connection->pending);
    free(connection);
}

void
uc_rpc_connection_destroy(struct uc_rpc_connection *connection)
{
    if (connection == NULL) {
        return;
    }

    connection->destroyed = true;
    if (connection->depth == 0) {
        release(connection);
    }
}

void
uc_rpc_connection_enter(struct uc_rpc_connection *connection)
{
    connection->depth++;
}

void
uc_rpc_connection_leave(struct uc_rpc_connection *connection)
{
    assert(connection->depth > 0);
    connection->depth--;
    if (connection->depth == 0 && connection->destroyed) {
        release(connection);
    }
}

int
uc_rpc_connection_fd(const struct uc_rpc_connection *connection)
{
    return connection->fd;
}

short
uc_rpc_connection_events(const struct uc_rpc_connection *connection)
{
    bool output = connection->send.tail > connection->send.head;

    return (short)(output && connection->failure == UC_OK ? POLLIN | POLLOUT : POLLIN);
}

void
uc_rpc_connection_fail(struct uc_rpc_connection *connection, enum uc_status reason)
{
    if (connection->failure != UC_OK) {
        return;
    }

    connection->failure = reason;
    /* Makes the descriptor readable, so that whoever polls it comes and is told. */
    (void)shutdown(connection->fd, SHUT_RDWR);
}

/* @return bytes the socket took; 0 if it is full or failed */
static size_t
send_parts(struct uc_rpc_connection *connection, struct iovec *parts, size_t part_count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = part_count};
    ssize_t sent;

    do {
        sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        return (size_t)sent;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
        uc_log_debug("rpc %d: send: errno %d", connection->fd, errno);
        uc_rpc_connection_fail(connection, UC_ERR_UNHEALTHY);
    }
    return 0;
}

static void
flush(struct uc_rpc_connection *connection)
{
    struct uc_rpc_queue *queue = &connection->send;

    while (queue->tail > queue->head && connection->failure == UC_OK) {
        struct iovec part = {
                .iov_base = queue->bytes + queue->head,
                .iov_len = queue->tail - queue->head,
        };
        size_t sent = send_parts(connection, &part, 1);

        queue->head += sent;
        if (sent < part.iov_len) {
            return; /* the socket is full */
        }
    }
    queue->head = 0;
    queue->tail = 0;
}

static void
queue_frame(struct uc_rpc_connection *connection, const uint8_t *bytes, size_t length)
{
    struct uc_rpc_queue *queue = &connection->send;

    if (length > UC_RPC_SEND_BYTES_MAX - (queue->tail - queue->head)) {
        uc_log_warn("rpc %d: the peer does not read: closed with %zu bytes queued", connection->fd,
                queue->tail - queue->head);
        uc_rpc_connection_fail(connection, UC_ERR_UNHEALTHY);
    } else if (!queue_append(queue, bytes, length)) {
        uc_log_warn("rpc %d: no memory to queue %zu bytes: closed", connection->fd, length);
        uc_rpc_connection_fail(connection, UC_ERR_OUT_OF_MEMORY);
    }
}

/* Queue what is left of two parts after the first @p sent bytes of both. */
static void
queue_rest(struct uc_rpc_connection *connection, const struct iovec *parts, size_t sent)
{
    for (size_t idx = 0; idx < 2 && connection->failure == UC_OK; idx++) {
        size_t skip = sent < parts[idx].iov_len ? sent : parts[idx].iov_len;

        sent -= skip;
        if (skip < parts[idx].iov_len) {
            queue_frame(connection, (const uint8_t *)parts[idx].iov_base + skip,
                    parts[idx].iov_len - skip);
        }
    }
}

void
uc_rpc_connection_send(struct uc_rpc_connection *connection, const uint8_t *head, size_t head_bytes,
        const uint8_t *body, size_t body_bytes)
{
    uint8_t start[UC_RPC_LENGTH_BYTES + UC_RPC_HEAD_BYTES];
    struct iovec parts[2];
    size_t sent = 0;

    assert(head_bytes <= UC_RPC_HEAD_BYTES);
    if (connection->failure != UC_OK) {
        return;
    }
    if (body_bytes > UC_RPC_SEND_BYTES_MAX) {
        uc_log_warn("rpc %d: message of %zu bytes is too long: closed", connection->fd, body_bytes);
        uc_rpc_connection_fail(connection, UC_ERR_INVALID_PARAM);
        return;
    }

    uc_put_le32(start, (uint32_t)(head_bytes + body_bytes));
    memcpy(start + UC_RPC_LENGTH_BYTES, head, head_bytes);
    parts[0] = (struct iovec){.iov_base = start, .iov_len = UC_RPC_LENGTH_BYTES + head_bytes};
    parts[1] = (struct iovec){.iov_len = body_bytes};
    /* struct iovec has no const; nothing writes through it. */
    memcpy(&parts[1].iov_base, &body, sizeof(body));

    /* While callbacks run answers are collected: a batch of requests costs one send. */
    if (!connection->in_progress && connection->send.tail == connection->send.head) {
        sent = send_parts(connection, parts, 2);
        if (sent == parts[0].iov_len + body_bytes || connection->failure != UC_OK) {
            return;
        }
        queue_rest(connection, parts, sent);
        return;
    }
    queue_rest(connection, parts, 0);
    if (!connection->in_progress ||
            connection->send.tail - connection->send.head >= UC_RPC_FLUSH_BYTES) {
        flush(connection);
    }
}

/* Room for more input: only here do received bytes move. @return false out of memory */
static bool
make_room(struct uc_rpc_connection *connection)
{
    struct uc_rpc_queue *queue = &connection->receive;
    size_t limit = connection->frame_bytes_max + UC_RPC_LENGTH_BYTES;
    size_t capacity;

    queue_compact(queue);
    if (queue->tail < queue->capacity) {
        return true;
    }

    /* A frame longer than the buffer. Doubling as its bytes arrive: a length alone costs nothing. */
    capacity = queue->capacity * 2;
    if (limit > queue->capacity && capacity > limit) {
        capacity = limit;
    }
    return queue_resize(queue, capacity);
}

/* @return whether there may be more to receive */
static bool
receive(struct uc_rpc_connection *connection)
{
    struct uc_rpc_queue *queue = &connection->receive;
    size_t room;
    ssize_t got;

    if (!make_room(connection)) {
        uc_log_warn("rpc %d: no memory for a frame: closed", connection->fd);
        uc_rpc_connection_fail(connection, UC_ERR_OUT_OF_MEMORY);
        return false;
    }

    room = queue->capacity - queue->tail;
    do {
        got = recv(connection->fd, queue->bytes + queue->tail, room, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
            uc_rpc_connection_fail(connection, UC_ERR_UNHEALTHY);
        }
        return false;
    }

    queue->tail += (size_t)got;
    connection->active = true;
    return (size_t)got == room;
}

static void
bad_frame(struct uc_rpc_connection *connection)
{
    uc_rpc_log_bad_peer(connection);
    uc_rpc_connection_fail(connection, UC_ERR_INVALID_PARAM);
}

static void
dispatch_frames(struct uc_rpc_connection *connection)
{
    struct uc_rpc_queue *queue = &connection->receive;

    while (queue->tail - queue->head >= UC_RPC_LENGTH_BYTES && connection->failure == UC_OK &&
            !connection->destroyed) {
        const uint8_t *frame = queue->bytes + queue->head + UC_RPC_LENGTH_BYTES;
        size_t length = uc_get_le32(queue->bytes + queue->head);

        if (length == 0 || length > connection->frame_bytes_max) {
            (void)uc_error(UC_ERR_INVALID_PARAM, "rpc: a frame of %zu bytes, allowed are 1 to %zu",
                    length, connection->frame_bytes_max);
            bad_frame(connection);
            return;
        }
        if (length > queue->tail - queue->head - UC_RPC_LENGTH_BYTES) {
            return;
        }
        queue->head += UC_RPC_LENGTH_BYTES + length;
        if (uc_rpc_scan(frame, length) != UC_OK) {
            bad_frame(connection);
            return;
        }
        uc_rpc_dispatch(connection, frame, length);
    }
}

/* More is coming than the buffer takes at once: fewer and longer receives from now on. */
static void
widen_when_busy(struct uc_rpc_connection *connection)
{
    struct uc_rpc_queue *queue = &connection->receive;

    if (queue->capacity < UC_RPC_QUEUE_BYTES_BUSY) {
        queue_compact(queue);
        (void)queue_resize(queue, queue->capacity * 2); /* goes on with the old one otherwise */
    }
}

static void
tell_closed(struct uc_rpc_connection *connection)
{
    if (connection->closed_told || connection->destroyed) {
        return;
    }

    connection->closed_told = true;
    uc_rpc_pending_fail_all(connection);
    if (!connection->destroyed && connection->handler->on_closed != NULL) {
        connection->handler->on_closed(connection->context, connection, connection->failure);
    }
}

void
uc_rpc_connection_progress(struct uc_rpc_connection *connection)
{
    bool more = true;

    if (connection->in_progress) {
        return; /* called by a callback: the outer call goes on anyway */
    }

    uc_rpc_connection_enter(connection);
    connection->in_progress = true;
    if (connection->failure == UC_OK) {
        flush(connection);
    }
    for (int turn = 0; turn < UC_RPC_RECEIVES_PER_TURN && more; turn++) {
        if (connection->failure != UC_OK || connection->destroyed || connection->keep_input) {
            break;
        }
        more = receive(connection);
        dispatch_frames(connection);
        if (more && !connection->keep_input && !connection->destroyed) {
            widen_when_busy(connection);
        }
    }
    if (connection->failure == UC_OK && !connection->destroyed) {
        flush(connection);
    }
    if (connection->failure != UC_OK) {
        tell_closed(connection);
    }
    connection->in_progress = false;
    uc_rpc_connection_leave(connection);
}
