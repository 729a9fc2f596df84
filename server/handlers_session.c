/* SPDX-License-Identifier: Apache-2.0 */

/* hello, attach, ping: who is there. */

#include <string.h>

#include "server/attachment.h"
#include "server/handlers.h"
#include "server/secret.h"
#include "server/session.h"
#include "server/state.h"

static bool
text_equals(struct uc_rpc_text text, const char *expected)
{
    return text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0;
}

static enum uc_status
check_version(uint32_t version)
{
    if (version != UC_PROTOCOL_VERSION) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "protocol version %u; this server speaks %d: use client and server of one release",
                version, UC_PROTOCOL_VERSION);
    }
    return UC_OK;
}

static enum uc_status
check_credential(const struct uc_server *server, const struct uc_hello_request *hello)
{
    const char *secret = server->config->credential;
    size_t length = strlen(secret);

    if (length == 0) {
        if (hello->access == UC_ACCESS_ADMIN) {
            return uc_error(UC_ERR_PERMISSION_DENIED,
                    "access admin needs a server with the key credential set");
        }
        return UC_OK;
    }
    /* Its length may show, its bytes not. */
    if (hello->credential.length != length ||
            !uc_secret_equal(hello->credential.bytes, secret, length)) {
        return uc_error(UC_ERR_PERMISSION_DENIED, "the credential does not match the server's");
    }
    return UC_OK;
}

static enum uc_status
check_hello(const struct uc_server *server, const struct uc_hello_request *hello)
{
    enum uc_status status = check_version(hello->version);

    if (status == UC_OK) {
        status = check_credential(server, hello);
    }
    if (status != UC_OK) {
        return status;
    }
    if (server->phase != UC_SERVER_SERVING) {
        return uc_error(UC_ERR_DRAINING, "the server is stopping");
    }
    if (!text_equals(hello->name_space, server->ns->name)) {
        return uc_error(UC_ERR_NOT_FOUND, "namespace '%.*s' is not served here; '%s' is",
                (int)(hello->name_space.length > UC_NAME_MAX ? UC_NAME_MAX
                                                             : hello->name_space.length),
                hello->name_space.bytes == NULL ? "" : hello->name_space.bytes, server->ns->name);
    }
    return UC_OK;
}

void
uc_handle_hello(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_hello_request hello;
    struct uc_session *session = NULL;
    enum uc_status status = uc_hello_request_decode(call->params, &hello);

    if (status == UC_OK) {
        status = check_hello(server, &hello);
    }
    if (status == UC_OK) {
        status = uc_session_open(server, peer, &hello, &session);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    struct uc_hello_reply reply = {
            .incarnation = server->incarnation,
            .session = session->id,
            .lease_ms = server->config->lease_ms,
            .block_bytes = server->ns->layout.block_bytes,
            .slot_bytes = server->ns->layout.slot_stride,
    };

    peer->session = session;
    peer->heard_ms = server->now_ms;
    memcpy(reply.server_id, server->server_id, sizeof(reply.server_id));
    memcpy(reply.attach_key, session->attach_key, sizeof(reply.attach_key));
    memcpy(reply.mac_key, session->mac_key, sizeof(reply.mac_key));
    uc_rpc_buffer_reset(&server->reply);
    uc_hello_reply_encode(&server->reply, &reply);
    uc_call_reply(peer, call);
}

/* The session of an attach; Stale where client and server mean different lives. */
static enum uc_status
find_session(struct uc_peer *peer, const struct uc_attach_request *attach,
        struct uc_session **session_out)
{
    struct uc_server *server = peer->server;
    struct uc_session *session = NULL;
    enum uc_status status = check_version(attach->version);

    if (status != UC_OK) {
        return status;
    }
    if (attach->incarnation != server->incarnation) {
        return uc_error(UC_ERR_STALE, "the token is of an earlier life of this server");
    }
    session = uc_session_find(server, attach->attach_key);
    if (session == NULL) {
        return uc_error(UC_ERR_STALE, "no live session has this attach key");
    }
    if (peer->attachment != NULL && peer->attachment->session != session) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "this connection is attached to another session already");
    }

    *session_out = session;
    return UC_OK;
}

static void
reply_attach(struct uc_peer *peer, const struct uc_call *call,
        const uint8_t nonce[UC_FABRIC_NONCE_BYTES])
{
    struct uc_server *server = peer->server;
    const struct uc_session *session = peer->attachment->session;
    struct uc_attach_reply reply = {
            .attachment = peer->attachment->id,
            .incarnation = server->incarnation,
            .lease_ms = server->config->lease_ms,
            .block_bytes = server->ns->layout.block_bytes,
            .slot_bytes = server->ns->layout.slot_stride,
            .access = session->access,
            .region_count = server->ns->layout.region_count,
            .region_lengths = server->region_lengths,
    };

    memcpy(reply.mac_key, session->mac_key, sizeof(reply.mac_key));
    memcpy(reply.nonce, nonce, sizeof(reply.nonce));
    reply.fabric_count = uc_fabric_thread_describe(server->fabrics, reply.fabrics);
    uc_rpc_buffer_reset(&server->reply);
    uc_attach_reply_encode(&server->reply, &reply);
    uc_call_reply(peer, call);
}

void
uc_handle_attach(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    struct uc_attach_request attach;
    struct uc_session *session = NULL;
    enum uc_status status = uc_attach_request_decode(call->params, &attach);

    if (status == UC_OK) {
        status = find_session(peer, &attach, &session);
    }
    /* A connection that is attached already asks for one endpoint more, e.g. after a fence. */
    if (status == UC_OK && peer->attachment == NULL) {
        status = uc_attachment_open(server, peer, session, &peer->attachment);
    }
    if (status == UC_OK) {
        status = uc_attachment_expect(server, peer->attachment, nonce);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    peer->heard_ms = server->now_ms;
    reply_attach(peer, call, nonce);
}

void
uc_handle_ping(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_ping_reply reply = {
            .server_time_ms = server->now_ms,
            .session_count = server->counters.sessions,
    };
    enum uc_status status = uc_empty_request_decode(call->params);

    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    uc_rpc_buffer_reset(&server->reply);
    uc_ping_reply_encode(&server->reply, &reply);
    uc_call_reply(peer, call);
}
