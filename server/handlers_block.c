/* SPDX-License-Identifier: Apache-2.0 */

/* lookup, pin, unpin, alloc, commit, touch: what a session does with blocks. */

#include <inttypes.h>
#include <string.h>

#include "server/bracket.h"
#include "server/handlers.h"
#include "server/session.h"
#include "server/state.h"

/* The session owns the grant from now on. Its entries are in the scratch. */
static void
give_grant(struct uc_peer *peer, const struct uc_call *call, struct uc_grant *grant)
{
    struct uc_server *server = peer->server;
    struct uc_grant_reply reply = {
            .grant = grant->node.id,
            .entries = server->scratch.entries,
            .count = grant->count,
    };

    server->next_id++;
    uc_session_add_grant(peer->session, grant);
    uc_rpc_buffer_reset(&server->reply);
    uc_grant_reply_encode(&server->reply, &reply);
    uc_call_reply(peer, call);
}

void
uc_handle_lookup(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_keys_view keys;
    size_t hit_count = 0;
    uint8_t *bitmap;
    enum uc_status status = uc_keys_request_decode(call->params, &keys);

    if (status == UC_OK) {
        status = uc_scratch_reserve(&server->scratch, keys.count);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    bitmap = server->scratch.entries; /* has 32 bytes per key; the bitmap takes an eighth of one */
    if (keys.count > 0) {
        uint8_t *hits = server->scratch.bytes;

        uc_cache_buffer_lookup(server->ns->index, keys.ids, keys.count, hits);
        memset(bitmap, 0, (keys.count + 7) / 8);
        for (size_t idx = 0; idx < keys.count; idx++) {
            bitmap[idx / 8] = (uint8_t)(bitmap[idx / 8] | (hits[idx] & 1u) << (idx % 8));
            hit_count += hits[idx] & 1u;
        }
    }
    server->counters.lookup_keys += keys.count;
    server->counters.lookup_hits += hit_count;
    uc_rpc_buffer_reset(&server->reply);
    uc_bitmap_reply_encode(&server->reply, bitmap, keys.count);
    uc_call_reply(peer, call);
}

void
uc_handle_pin(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_grant_scope scope = uc_server_scope(server);
    struct uc_keys_view keys;
    struct uc_grant *grant = NULL;
    enum uc_status status = uc_keys_request_decode(call->params, &keys);

    if (status == UC_OK) {
        status = uc_session_check_room(server, peer->session, keys.count);
    }
    if (status == UC_OK) {
        status = uc_grant_pin(&scope, server->next_id, keys.ids, keys.count, &grant);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    give_grant(peer, call, grant);
}

void
uc_handle_unpin(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_grant_scope scope = uc_server_scope(peer->server);
    struct uc_grant *grant = NULL;
    uint64_t id;
    enum uc_status status = uc_grant_request_decode(call->params, &id);

    if (status == UC_OK) {
        grant = uc_session_grant(peer->session, id);
        if (grant != NULL && grant->writes != NULL) {
            status = uc_error(UC_ERR_INVALID_PARAM,
                    "unpin: grant %" PRIu64 " is of an alloc; conclude it with commit", id);
        }
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    /* A grant that is gone already changes nothing. */
    if (grant != NULL) {
        uc_session_remove_grant(peer->session, grant);
        uc_grant_unpin(&scope, grant);
    }
    uc_call_done(peer, call);
}

void
uc_handle_alloc(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_grant_scope scope = uc_server_scope(server);
    struct uc_alloc_request request;
    struct uc_grant *grant = NULL;
    enum uc_status status = uc_alloc_request_decode(call->params, &request);

    if (status == UC_OK && server->phase != UC_SERVER_SERVING) {
        status = uc_error(UC_ERR_DRAINING, "alloc: the server is stopping");
    }
    if (status == UC_OK) {
        status = uc_session_check_room(server, peer->session, request.keys.count);
    }
    if (status == UC_OK) {
        status = uc_grant_alloc(&scope, server->next_id, request.keys.ids, request.keys.count,
                request.has_ttl ? &request.ttl_ms : NULL, &grant);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    give_grant(peer, call, grant);
}

static enum uc_status
find_write_grant(
        const struct uc_peer *peer, const struct uc_commit_request *request, struct uc_grant **out)
{
    struct uc_grant *grant = uc_session_grant(peer->session, request->grant);

    if (grant == NULL) {
        return uc_error(UC_ERR_NOT_FOUND,
                "commit: the session holds no grant %" PRIu64 "; it was concluded, or is another's",
                request->grant);
    }
    if (grant->writes == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "commit: grant %" PRIu64 " is of a pin; conclude it with unpin", request->grant);
    }
    if (request->has_bitmap && request->bitmap_bytes != (grant->count + 7) / 8) {
        return uc_error(UC_ERR_INVALID_PARAM, "commit: a bitmap of %zu bytes for %zu keys",
                request->bitmap_bytes, grant->count);
    }

    *out = grant;
    return UC_OK;
}

void
uc_handle_commit(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_grant_scope scope = uc_server_scope(server);
    struct uc_commit_request request;
    struct uc_grant_verdict verdict;
    struct uc_grant *grant = NULL;
    enum uc_status status = uc_commit_request_decode(call->params, &request);

    if (status == UC_OK) {
        status = find_write_grant(peer, &request, &grant);
    }
    if (status == UC_OK) {
        verdict.success = request.success;
        verdict.bitmap = request.has_bitmap ? request.bitmap : NULL;
        uc_session_remove_grant(peer->session, grant);
        uc_bracket_detach_all(server->ns, grant);
        status = uc_grant_conclude(&scope, grant, &verdict);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    uc_call_done(peer, call);
}

void
uc_handle_touch(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_request_context context = uc_request_context_init("");
    struct uc_touch_request request;
    enum uc_status status = uc_touch_request_decode(call->params, &request);

    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    if (request.has_ttl) {
        context.present |= UC_REQUEST_TTL;
        context.ttl_ms = request.ttl_ms;
    }
    if (request.keys.count > 0) {
        uc_cache_buffer_touch(
                peer->server->ns->index, request.keys.ids, request.keys.count, &context);
    }
    uc_call_done(peer, call);
}
