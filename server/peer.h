/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file peer.h
 * One RPC connection: a stranger at first, then a session or an attachment. Control thread.
 */

#ifndef UC_SERVER_PEER_H
#define UC_SERVER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/rpc/buffer.h"
#include "net/rpc/connection.h"
#include "net/rpc/messages.h"
#include "net/rpc/method.h"

struct uc_attachment;
struct uc_server;
struct uc_session;

enum {
    UC_PEER_ADDRESS_BYTES = 64,
    UC_PEER_STRANGER_MS = 10000, /* until hello or attach */
};

struct uc_peer {
    struct uc_list node;
    struct uc_server *server;
    struct uc_rpc_connection *connection;
    struct uc_session *session;       /* control connection */
    struct uc_attachment *attachment; /* data connection */
    uint64_t heard_ms;                /* last message; of a stranger: when it connected */
    uint64_t reports_since_ms;        /* window of report checks, see the handler */
    uint32_t report_count;
    uint32_t polled_events; /* what epoll watches */
    bool closing;
    char address[UC_PEER_ADDRESS_BYTES]; /* for logs */
};

/** A message being handled. Borrows its bytes. */
struct uc_call {
    enum uc_rpc_method method;
    uint32_t message_id;
    bool is_notification; /* nobody waits for an answer */
    struct uc_rpc_view params;
};

/** Take over an accepted socket. On failure it is closed. */
void uc_peer_accept(struct uc_server *server, int fd, const char *address);

/** Stop listening to it; it is destroyed at the end of the loop's turn, its group is fenced. */
void uc_peer_close(struct uc_peer *peer);
/** Destroy what was closed during the turn. */
void uc_peer_reap(struct uc_server *server);

/** The socket is ready: read, dispatch, write. */
void uc_peer_progress(struct uc_peer *peer);
/** Answer outside of progress: @p text NULL = uc_last_error(). Ok answers nil. */
void uc_peer_answer(
        struct uc_peer *peer, uint32_t message_id, enum uc_status status, const char *text);

/** Answer a call: with server->reply, with nil, with an error (text from uc_last_error()). */
void uc_call_reply(struct uc_peer *peer, const struct uc_call *call);
void uc_call_done(struct uc_peer *peer, const struct uc_call *call);
void uc_call_fail(struct uc_peer *peer, const struct uc_call *call, enum uc_status status);

/** Copy a peer's text, cut and made printable, terminated. */
void uc_peer_copy_text(char *target, size_t target_bytes, struct uc_rpc_text text);

#endif /* UC_SERVER_PEER_H */
