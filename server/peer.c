/* SPDX-License-Identifier: Apache-2.0 */

#include "server/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ucm/log.h>

#include "server/attachment.h"
#include "server/dispatch.h"
#include "server/session.h"
#include "server/state.h"

static void
on_request(void *context, struct uc_rpc_connection *connection, uint32_t message_id,
        enum uc_rpc_method method, struct uc_rpc_view params)
{
    struct uc_call call = {.method = method, .message_id = message_id, .params = params};

    (void)connection;
    uc_dispatch(context, &call);
}

static void
on_notification(void *context, struct uc_rpc_connection *connection, enum uc_rpc_method method,
        struct uc_rpc_view params)
{
    struct uc_call call = {.method = method, .is_notification = true, .params = params};

    (void)connection;
    uc_dispatch(context, &call);
}

static void
on_closed(void *context, struct uc_rpc_connection *connection, enum uc_status reason)
{
    struct uc_peer *peer = context;

    (void)connection;
    uc_log_debug("peer %s: connection ended (%s)", peer->address, uc_status_name(reason));
    uc_peer_close(peer);
}

static const struct uc_rpc_handler peer_handler = {
        .on_request = on_request,
        .on_notification = on_notification,
        .on_closed = on_closed,
};

/* Watch what the connection wants to be woken for now. */
static void
update_events(struct uc_peer *peer)
{
    short wanted = uc_rpc_connection_events(peer->connection);
    struct epoll_event event = {.data.ptr = peer};

    if (peer->closing) {
        return;
    }
    event.events =
            ((wanted & POLLIN) != 0 ? EPOLLIN : 0u) | ((wanted & POLLOUT) != 0 ? EPOLLOUT : 0u);
    if (event.events == peer->polled_events) {
        return;
    }
    if (epoll_ctl(peer->server->epoll_fd, EPOLL_CTL_MOD, uc_rpc_connection_fd(peer->connection),
                &event) != 0) {
        (void)uc_log_errno(errno, "peer %s: epoll_ctl", peer->address);
        uc_peer_close(peer);
        return;
    }
    peer->polled_events = event.events;
}

void
uc_peer_accept(struct uc_server *server, int fd, const char *address)
{
    struct uc_peer *peer = calloc(1, sizeof(*peer));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

    if (peer == NULL) {
        uc_log_warn("peer %s: refused: no memory", address);
        (void)close(fd);
        return;
    }

    peer->server = server;
    peer->heard_ms = server->now_ms;
    peer->polled_events = EPOLLIN;
    (void)snprintf(peer->address, sizeof(peer->address), "%s", address);
    if (uc_rpc_connection_create(
                fd, &peer_handler, peer, UC_RPC_FRAME_BYTES_DEFAULT, &peer->connection) != UC_OK) {
        uc_log_warn("peer %s: refused: %s", address, uc_last_error());
        (void)close(fd);
        free(peer);
        return;
    }
    uc_list_add(&server->peers, &peer->node);
    server->peer_count++;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        (void)uc_log_errno(errno, "peer %s: epoll_ctl", address);
        uc_peer_close(peer);
    }
}

void
uc_peer_close(struct uc_peer *peer)
{
    if (peer->closing) {
        return;
    }

    peer->closing = true;
    uc_list_remove(&peer->node);
    uc_list_add(&peer->server->closing, &peer->node);
}

void
uc_peer_reap(struct uc_server *server)
{
    struct uc_list *node;

    while ((node = uc_list_take(&server->closing)) != NULL) {
        struct uc_peer *peer = uc_list_entry(node, struct uc_peer, node);

        if (peer->session != NULL) {
            uc_session_end(server, peer->session, "its connection closed");
        }
        if (peer->attachment != NULL) {
            uc_attachment_end(server, peer->attachment, "its connection closed");
        }
        uc_rpc_connection_destroy(peer->connection); /* closing the socket leaves the epoll set */
        server->peer_count--;
        free(peer);
    }
}

void
uc_peer_progress(struct uc_peer *peer)
{
    if (peer->closing) {
        return;
    }

    uc_rpc_connection_progress(peer->connection);
    update_events(peer);
}

void
uc_peer_answer(struct uc_peer *peer, uint32_t message_id, enum uc_status status, const char *text)
{
    if (peer->closing) {
        return;
    }

    if (status == UC_OK) {
        uc_rpc_reply(peer->connection, message_id, NULL);
    } else {
        uc_rpc_reply_error(peer->connection, message_id, status, text);
    }
    update_events(peer);
}

void
uc_call_reply(struct uc_peer *peer, const struct uc_call *call)
{
    const struct uc_rpc_buffer *reply = &peer->server->reply;

    if (call->is_notification) {
        return;
    }
    if (reply->failed) {
        uc_rpc_reply_error(peer->connection, call->message_id, UC_ERR_OUT_OF_MEMORY,
                "the server has no memory for the answer");
        return;
    }
    uc_rpc_reply(peer->connection, call->message_id, reply);
}

void
uc_call_done(struct uc_peer *peer, const struct uc_call *call)
{
    if (!call->is_notification) {
        uc_rpc_reply(peer->connection, call->message_id, NULL);
    }
}

void
uc_call_fail(struct uc_peer *peer, const struct uc_call *call, enum uc_status status)
{
    if (!call->is_notification) {
        uc_rpc_reply_error(peer->connection, call->message_id, status, NULL);
    }
}

void
uc_peer_copy_text(char *target, size_t target_bytes, struct uc_rpc_text text)
{
    size_t length = text.length < target_bytes - 1 ? text.length : target_bytes - 1;

    for (size_t idx = 0; idx < length; idx++) {
        char byte = text.bytes[idx];

        target[idx] = byte >= 0x20 && byte < 0x7f ? byte : '?';
    }
    target[length] = '\0';
}
