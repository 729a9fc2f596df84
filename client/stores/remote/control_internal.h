/* SPDX-License-Identifier: Apache-2.0 */

/** @file control_internal.h What the files of the control side share. Control thread. */

#ifndef UC_REMOTE_CONTROL_INTERNAL_H
#define UC_REMOTE_CONTROL_INTERNAL_H

#include <poll.h>

#include "client/cluster/server_set.h"
#include "client/stores/remote/control.h"
#include "client/stores/remote/grants.h"
#include "client/stores/remote/partition.h"
#include "net/token_payload.h"

/** What the control side keeps per server; context of the calls to it. */
struct uc_control_lane {
    struct uc_control *control;
    size_t server;
    uint64_t epoch;              /* of the session whose grants are in the table */
    struct uc_rpc_buffer params; /* of the call being made */
    uint8_t *hits;               /* of the lookup under way */
    enum uc_token_kind kind;     /* of the grant being asked for */
    struct uc_held_grant *held;  /* being asked for, or being concluded */
    bool granted;                /* the server holds something for us now */
    size_t node_idx;             /* of the token being made */
    uint8_t *bitmap;             /* of a commit */
    size_t bitmap_capacity;
};

struct uc_control {
    const struct uc_remote_config *config;
    struct uc_server_set set;
    struct uc_token_mac *mac;
    struct uc_grants grants;
    struct uc_partition partition;
    size_t server_count;
    struct uc_control_lane *lanes; /* one per server, like the four below */
    struct uc_session_call *calls;
    struct pollfd *fds;
    struct uc_token_node *nodes; /* of the token being made */
    uint8_t (*mac_keys)[UC_MAC_KEY_BYTES];
    size_t call_count;
    struct uc_token_entry *entries; /* of the token being made */
    size_t entry_capacity;
    uint8_t *payload;
    size_t payload_capacity;
};

/** Grow a buffer; its content is not kept. @return false without memory */
bool uc_control_reserve_bytes(uint8_t **bytes, size_t *capacity, size_t wanted);

/** Forget the calls of before. */
void uc_control_begin_calls(struct uc_control *control);

/** Add a call to a server, with the parameters in its lane; the lane is the context of on_reply. */
void uc_control_add_call(struct uc_control *control, size_t server, uint64_t epoch,
        enum uc_rpc_method method, uc_session_reply_fn on_reply);

/**
 * Make the calls that were added, all at once.
 *
 * @return Ok, or the status that counts most: what a server answered before what none answered; then
 *         InvalidParam, PermissionDenied, NoSpace, NotFound, Unsupported and others; then the order of the
 *         servers. Its text is in uc_last_error()
 */
UC_MUST_CHECK enum uc_status uc_control_make_calls(struct uc_control *control);

/** @return whether nobody answered: the server is out of reach, or its session has ended. */
static inline bool
uc_control_is_lost(enum uc_status status)
{
    return status == UC_ERR_UNHEALTHY || status == UC_ERR_STALE;
}

/** Forget grants of sessions that have ended: a new one holds nothing of the old (ARCHITECTURE.md §3). */
void uc_control_settle_epochs(struct uc_control *control);

/** Release a pin. One-way; losses are ignored, since the session ends with them. */
void uc_control_send_unpin(struct uc_control *control, const struct uc_held_grant *held);

/** Add the commit of a grant to the calls. @param[in] bitmap  NULL = all of them, as @p success says */
void uc_control_add_commit(struct uc_control *control, const struct uc_held_grant *held,
        const uint8_t *bitmap, bool success);

#endif /* UC_REMOTE_CONTROL_INTERNAL_H */
