/* SPDX-License-Identifier: Apache-2.0 */

#include "server/dispatch.h"

#include "server/attachment.h"
#include "server/handlers.h"
#include "server/session.h"
#include "server/state.h"

/* Bits: what the calling connection is. */
enum {
    STRANGER = 1u << 0,
    CONTROL = 1u << 1,
    DATA = 1u << 2,
    ANYONE = CONTROL | DATA,
};

struct method_row {
    void (*handle)(struct uc_peer *peer, const struct uc_call *call);
    unsigned who;
    bool writes;     /* refused to read-only sessions */
    bool may_notify; /* makes sense without an answer */
};

static const struct method_row rows[UC_RPC_METHOD_COUNT] = {
        [UC_RPC_HELLO] = {uc_handle_hello, STRANGER, false, false},
        [UC_RPC_ATTACH] = {uc_handle_attach, STRANGER | DATA, false, false},
        [UC_RPC_PING] = {uc_handle_ping, ANYONE, false, true},
        [UC_RPC_LOOKUP] = {uc_handle_lookup, CONTROL, false, false},
        [UC_RPC_PIN] = {uc_handle_pin, CONTROL, false, false},
        [UC_RPC_UNPIN] = {uc_handle_unpin, CONTROL, false, true},
        [UC_RPC_ALLOC] = {uc_handle_alloc, CONTROL, true, false},
        [UC_RPC_WRITE_BEGIN] = {uc_handle_write_begin, DATA, true, false},
        [UC_RPC_WRITE_END] = {uc_handle_write_end, DATA, true, true},
        [UC_RPC_COMMIT] = {uc_handle_commit, CONTROL, true, true},
        [UC_RPC_TOUCH] = {uc_handle_touch, CONTROL, false, true},
        [UC_RPC_REPORT] = {uc_handle_report, ANYONE, false, true},
        [UC_RPC_STAT] = {uc_handle_stat, ANYONE, false, false},
        [UC_RPC_DEBUG_FLIP] = {uc_handle_debug_flip, ANYONE, true, false},
};

static unsigned
who_calls(const struct uc_peer *peer)
{
    if (peer->session != NULL) {
        return CONTROL;
    }
    return peer->attachment != NULL ? DATA : STRANGER;
}

static enum uc_access
access_of(const struct uc_peer *peer)
{
    return peer->session != NULL ? peer->session->access : peer->attachment->session->access;
}

static enum uc_status
check_caller(const struct uc_peer *peer, const struct uc_call *call)
{
    const struct method_row *row = &rows[call->method];
    const char *name = uc_rpc_method_name(call->method);
    unsigned who = who_calls(peer);

    if (call->is_notification && !row->may_notify) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: needs a message id", name);
    }
    if ((row->who & who) == 0) {
        if (who == STRANGER) {
            return uc_error(UC_ERR_PERMISSION_DENIED,
                    "%s: this connection has said neither hello nor attach", name);
        }
        return uc_error(UC_ERR_INVALID_PARAM, "%s: not on a %s connection", name,
                who == CONTROL ? "control" : "data");
    }
    if (row->writes && access_of(peer) == UC_ACCESS_RO) {
        return uc_error(UC_ERR_PERMISSION_DENIED, "%s: the session is read-only (access ro)", name);
    }
    return UC_OK;
}

void
uc_dispatch(struct uc_peer *peer, const struct uc_call *call)
{
    enum uc_status status;

    if (peer->closing) {
        return; /* its group is being fenced: refuse everything by silence, the socket closes */
    }
    if (call->method >= UC_RPC_METHOD_COUNT) {
        uc_call_fail(peer, call,
                uc_error(UC_ERR_UNSUPPORTED, "this server knows no such method (protocol %d)",
                        UC_PROTOCOL_VERSION));
        return;
    }
    status = check_caller(peer, call);
    if (status != UC_OK) {
        uc_call_fail(peer, call, status);
        return;
    }

    if (who_calls(peer) != STRANGER) {
        peer->heard_ms = peer->server->now_ms;
    }
    rows[call->method].handle(peer, call);
}
