/* SPDX-License-Identifier: Apache-2.0 */

#include "server/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ucm/log.h>

#include "server/attachment.h"
#include "server/bracket.h"
#include "server/peer.h"
#include "server/secret.h"
#include "server/state.h"

enum {
    HELD_KEYS_BASE = 1 << 20
};

enum uc_status
uc_session_open(struct uc_server *server, struct uc_peer *peer,
        const struct uc_hello_request *hello, struct uc_session **session_out)
{
    struct uc_session *session = calloc(1, sizeof(*session));
    uint64_t seed;
    enum uc_status status;

    if (session == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a session");
    }
    status = uc_secret_random(session->attach_key, sizeof(session->attach_key));
    if (status == UC_OK) {
        status = uc_secret_random(session->mac_key, sizeof(session->mac_key));
    }
    if (status == UC_OK) {
        status = uc_secret_random(&seed, sizeof(seed));
    }
    if (status == UC_OK) {
        status = uc_id_map_init(&session->grants, seed);
    }
    if (status != UC_OK) {
        free(session);
        return status;
    }

    session->peer = peer;
    session->id = server->next_id++;
    session->access = hello->access;
    session->state = UC_SESSION_LIVE;
    uc_peer_copy_text(session->client, sizeof(session->client), hello->client);
    uc_list_init(&session->attachments);
    uc_list_add(&server->sessions, &session->node);
    server->counters.sessions++;
    uc_log_info(
            "session %" PRIu64 ": client '%s' at %s", session->id, session->client, peer->address);
    *session_out = session;
    return UC_OK;
}

/* Every endpoint of the group is destroyed: nothing can arrive any more. Release what it held. */
static void
release(struct uc_server *server, struct uc_session *session)
{
    static const struct uc_grant_verdict failure = {.success = false};
    struct uc_grant_scope scope = uc_server_scope(server);
    struct uc_id_node *node;

    while ((node = uc_id_map_any(&session->grants)) != NULL) {
        struct uc_grant *grant = uc_list_entry(node, struct uc_grant, node);

        uc_session_remove_grant(session, grant);
        if (grant->writes == NULL) {
            uc_grant_unpin(&scope, grant);
        } else {
            uc_bracket_detach_all(server->ns, grant);
            (void)uc_grant_conclude(&scope, grant, &failure);
        }
    }
    uc_log_info("session %" PRIu64 ": released", session->id);
    uc_list_remove(&session->node);
    server->counters.sessions--;
    uc_id_map_fini(&session->grants);
    free(session);
}

void
uc_session_end(struct uc_server *server, struct uc_session *session, const char *why)
{
    if (session->state == UC_SESSION_FENCING) {
        return;
    }

    uc_log_info("session %" PRIu64 ": ends: %s", session->id, why);
    session->state = UC_SESSION_FENCING;
    if (session->peer != NULL) {
        session->peer->session = NULL;
        uc_peer_close(session->peer);
        session->peer = NULL;
    }
    if (uc_list_is_empty(&session->attachments)) {
        release(server, session);
        return;
    }
    uc_list_for_each_safe (node, following, &session->attachments) {
        uc_attachment_end(server, uc_list_entry(node, struct uc_attachment, node), why);
    }
}

void
uc_session_attachment_gone(struct uc_server *server, struct uc_session *session)
{
    if (session->state == UC_SESSION_FENCING && uc_list_is_empty(&session->attachments)) {
        release(server, session);
    }
}

struct uc_session *
uc_session_find(struct uc_server *server, const uint8_t attach_key[UC_ATTACH_KEY_BYTES])
{
    struct uc_session *found = NULL;

    uc_list_for_each (node, &server->sessions) {
        struct uc_session *session = uc_list_entry(node, struct uc_session, node);

        if (uc_secret_equal(session->attach_key, attach_key, UC_ATTACH_KEY_BYTES) &&
                session->state == UC_SESSION_LIVE) {
            found = session;
        }
    }
    return found;
}

struct uc_grant *
uc_session_grant(const struct uc_session *session, uint64_t id)
{
    struct uc_id_node *node = uc_id_map_find(&session->grants, id);

    return node == NULL ? NULL : uc_list_entry(node, struct uc_grant, node);
}

enum uc_status
uc_session_check_room(
        const struct uc_server *server, const struct uc_session *session, size_t count)
{
    size_t limit = HELD_KEYS_BASE + 2 * (size_t)server->ns->layout.slot_count;

    if (session->grants.count >= UC_GRANTS_PER_SESSION) {
        return uc_error(UC_ERR_NO_SPACE,
                "session %" PRIu64 " holds %d grants, the most allowed; conclude some first",
                session->id, UC_GRANTS_PER_SESSION);
    }
    if (session->held_keys > limit || count > limit - session->held_keys) {
        return uc_error(UC_ERR_NO_SPACE,
                "session %" PRIu64 " holds %zu keys, %zu are allowed; conclude some grants first",
                session->id, session->held_keys, limit);
    }
    return UC_OK;
}

void
uc_session_add_grant(struct uc_session *session, struct uc_grant *grant)
{
    uc_id_map_add(&session->grants, &grant->node);
    session->held_keys += grant->count;
}

void
uc_session_remove_grant(struct uc_session *session, struct uc_grant *grant)
{
    uc_id_map_remove(&session->grants, &grant->node);
    session->held_keys -= grant->count;
}
