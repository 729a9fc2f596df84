/* SPDX-License-Identifier: Apache-2.0 */

/* report, stat, debug_flip: looking after what is stored. */

#include <inttypes.h>

#include <ucm/log.h>

#include "server/handlers.h"
#include "server/state.h"

enum {
    /* A check reads a whole block on the control thread: a peer gets this many per window. */
    REPORTS_PER_WINDOW = 64,
    REPORT_WINDOW_MS = 1000,
};

static bool
may_report(struct uc_peer *peer)
{
    if (peer->server->now_ms - peer->reports_since_ms >= REPORT_WINDOW_MS) {
        peer->reports_since_ms = peer->server->now_ms;
        peer->report_count = 0;
    }
    return peer->report_count++ < REPORTS_PER_WINDOW;
}

/* Drop a block only if we find it damaged ourselves: a bad reader must not empty the cache. */
static void
check_block(struct uc_peer *peer, const struct uc_report_request *report)
{
    struct uc_server *server = peer->server;
    struct uc_cache_info info = uc_cache_buffer_peek(server->ns->index, &report->key);
    char what[UC_NAME_MAX + 1];

    if (info.state != UC_CACHE_VISIBLE || info.generation != report->generation) {
        return; /* gone since, or replaced: nothing to withdraw */
    }

    uc_peer_copy_text(what, sizeof(what), report->what);
    if (!uc_namespace_is_damaged(server->ns, info.slot, info.generation, &report->key)) {
        /* Once per window: a reader that is wrong is wrong often. */
        uc_log_at_(peer->report_count == 1 ? UC_LOG_WARN : UC_LOG_DEBUG,
                "peer %s: reports a block in slot %" PRIu32 " (%s) that is intact here",
                peer->address, info.slot, what);
        return;
    }
    uc_log_warn("namespace %s: block in slot %" PRIu32 " is damaged (%s) and was withdrawn",
            server->ns->name, info.slot, what);
    if (uc_cache_buffer_revoke(server->ns->index, &report->key, report->generation) == UC_OK) {
        server->counters.revoked_blocks++;
    }
}

void
uc_handle_report(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_report_request report;
    enum uc_status status = uc_report_request_decode(call->params, &report);

    if (status == UC_OK && !may_report(peer)) {
        status = uc_error(UC_ERR_RETRY, "report: more than %d in %d ms; report again later",
                REPORTS_PER_WINDOW, REPORT_WINDOW_MS);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    peer->server->counters.reports++;
    check_block(peer, &report);
    uc_call_done(peer, call);
}

void
uc_handle_stat(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_server *server = peer->server;
    struct uc_stat_reply reply;
    enum uc_status status = uc_empty_request_decode(call->params);

    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    uc_stats_fill(server, &reply);
    uc_rpc_buffer_reset(&server->reply);
    uc_stat_reply_encode(&server->reply, &reply);
    uc_call_reply(peer, call);
}

static enum uc_status
flip(struct uc_server *server, const struct uc_debug_flip_request *request)
{
    struct uc_cache_info info = uc_cache_buffer_peek(server->ns->index, &request->key);

    if (!server->config->debug_calls) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "debug_flip: start the server with debug_calls: true to allow it");
    }
    if (info.state != UC_CACHE_VISIBLE) {
        return uc_error(UC_ERR_NOT_FOUND, "debug_flip: no such block");
    }
    if (request->offset_bytes >= server->ns->slots[info.slot].length_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "debug_flip: offset %" PRIu64 " of a block of %" PRIu64 " bytes",
                request->offset_bytes, server->ns->slots[info.slot].length_bytes);
    }

    uc_arena_slot(server->ns->arena, info.slot)[request->offset_bytes] ^= 0xff;
    return UC_OK;
}

void
uc_handle_debug_flip(struct uc_peer *peer, const struct uc_call *call)
{
    struct uc_debug_flip_request request;
    enum uc_status status = uc_debug_flip_request_decode(call->params, &request);

    if (status == UC_OK) {
        status = flip(peer->server, &request);
    }
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    uc_call_done(peer, call);
}
