/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file session.h
 * One control connection that has said hello, what it holds, and its group (the attachments made with its
 * attach key). Control thread.
 */

#ifndef UC_SERVER_SESSION_H
#define UC_SERVER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/rpc/messages.h"
#include "server/grant.h"
#include "server/id_map.h"

struct uc_peer;
struct uc_server;

enum {
    UC_GRANTS_PER_SESSION = 65536
};

enum uc_session_state {
    UC_SESSION_LIVE,
    UC_SESSION_FENCING, /* refuses everything; freed when its attachments are fenced */
};

struct uc_session {
    struct uc_list node;
    struct uc_peer *peer; /* NULL once the connection is closed */
    uint64_t id;
    enum uc_access access;
    enum uc_session_state state;
    uint8_t attach_key[UC_ATTACH_KEY_BYTES];
    uint8_t mac_key[UC_MAC_KEY_BYTES];
    char client[UC_NAME_MAX + 1];
    struct uc_id_map grants;
    size_t held_keys;           /* of all its grants */
    struct uc_list attachments; /* struct uc_attachment */
};

/** Make a session of a peer that has said hello. */
UC_MUST_CHECK enum uc_status uc_session_open(struct uc_server *server, struct uc_peer *peer,
        const struct uc_hello_request *hello, struct uc_session **session_out);

/** Fence the group, then release what it held, then free it. Idempotent; never fails. */
void uc_session_end(struct uc_server *server, struct uc_session *session, const char *why);

/** An attachment is fenced and gone. Frees the session when it was the last of an ended one. */
void uc_session_attachment_gone(struct uc_server *server, struct uc_session *session);

/** Find a live session by its attach key, in the same time for every key. @return NULL if there is none */
struct uc_session *uc_session_find(
        struct uc_server *server, const uint8_t attach_key[UC_ATTACH_KEY_BYTES]);

/** @return the grant of that id, or NULL. */
struct uc_grant *uc_session_grant(const struct uc_session *session, uint64_t id);

/** Whether the session may hold @p count keys more. @retval UC_ERR_NO_SPACE with the limit in the text */
UC_MUST_CHECK enum uc_status uc_session_check_room(
        const struct uc_server *server, const struct uc_session *session, size_t count);
void uc_session_add_grant(struct uc_session *session, struct uc_grant *grant);
/** Take it off the session, before it is concluded. */
void uc_session_remove_grant(struct uc_session *session, struct uc_grant *grant);

#endif /* UC_SERVER_SESSION_H */
