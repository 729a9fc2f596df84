/* SPDX-License-Identifier: Apache-2.0 */

/* Unpin and commit: a token concludes the grants of all servers that it names. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/stores/remote/control_internal.h"

void
uc_control_send_unpin(struct uc_control *control, const struct uc_held_grant *held)
{
    struct uc_rpc_buffer *params = &control->lanes[held->server].params;

    uc_rpc_buffer_reset(params);
    uc_grant_request_encode(params, held->grant);
    (void)!uc_session_notify(
            control->set.sessions[held->server], held->epoch, UC_RPC_UNPIN, params);
}

void
uc_control_add_commit(struct uc_control *control, const struct uc_held_grant *held,
        const uint8_t *bitmap, bool success)
{
    struct uc_rpc_buffer *params = &control->lanes[held->server].params;
    struct uc_commit_request request = {
            .grant = held->grant,
            .has_bitmap = bitmap != NULL,
            .success = success,
            .bitmap = bitmap,
            .bitmap_bytes = bitmap == NULL ? 0 : (held->key_count + 7) / 8,
    };

    uc_rpc_buffer_reset(params);
    uc_commit_request_encode(params, &request);
    uc_control_add_call(control, held->server, held->epoch, UC_RPC_COMMIT, NULL);
}

/* @return whether a key was granted by this node */
static bool
is_of_node(const struct uc_token_view *view, size_t key_idx, size_t node_idx)
{
    struct uc_token_entry entry;

    uc_token_payload_entry(view, key_idx, 0, &entry);
    return entry.node_idx == node_idx && (entry.flags & UC_ENTRY_LOST) == 0;
}

/* @return whether a key that no server has granted is to become visible */
static bool
commits_lost(const struct uc_token_view *view, const uint8_t *mask, bool success)
{
    for (size_t idx = 0; idx < view->key_count; idx++) {
        struct uc_token_entry entry;

        uc_token_payload_entry(view, idx, 0, &entry);
        if ((entry.flags & UC_ENTRY_LOST) != 0 && (mask == NULL ? success : mask[idx] != 0)) {
            return true;
        }
    }

    return false;
}

static size_t
count_keys(const struct uc_token_view *view, size_t node_idx)
{
    size_t count = 0;

    for (size_t idx = 0; idx < view->key_count; idx++) {
        count += is_of_node(view, idx, node_idx) ? 1 : 0;
    }
    return count;
}

/* Put back what was taken: the token was changed on the way, the grants stay for the one that was minted. */
static void
put_back(struct uc_control *control)
{
    for (size_t server = 0; server < control->server_count; server++) {
        struct uc_control_lane *lane = &control->lanes[server];

        if (lane->held != NULL) {
            uc_grants_add(&control->grants, lane->held);
            lane->held = NULL;
        }
    }
}

/*
 * Take the record of a node's grant into its server's lane, if this process minted and has not concluded it.
 *
 * @return false if the token is not the one that was minted
 */
static bool
take_grant(struct uc_control *control, const struct uc_token *token,
        const struct uc_token_view *view, size_t node_idx, enum uc_token_kind kind, size_t *missing)
{
    struct uc_token_node node;
    struct uc_held_grant *held;
    struct uc_control_lane *lane;

    uc_token_payload_node(view, node_idx, &node);
    held = uc_grants_take(&control->grants, &node, kind, count_keys(view, node_idx));
    if (held == NULL) {
        ++*missing;
        return true;
    }

    lane = &control->lanes[held->server];
    if (lane->held != NULL || uc_token_payload_verify(control->mac, view, token->keys, node_idx,
                                      held->mac_key) != UC_OK) {
        uc_grants_add(&control->grants, held);
        return false;
    }
    lane->held = held;
    lane->node_idx = node_idx;
    return true;
}

/* Take a token's grants into the lanes. @return how many of its nodes have none; SIZE_MAX = not ours */
static size_t
take_grants(struct uc_control *control, const struct uc_token *token, enum uc_token_kind kind,
        struct uc_token_view *view_out)
{
    size_t missing = 0;

    uc_control_settle_epochs(control);
    if (token->key_count == 0 || token->payload_bytes == 0 ||
            uc_token_payload_parse(
                    token->payload, token->payload_bytes, token->key_count, view_out) != UC_OK ||
            view_out->copies != 1) {
        return SIZE_MAX;
    }

    for (size_t node_idx = 0; node_idx < view_out->node_count; node_idx++) {
        if (!take_grant(control, token, view_out, node_idx, kind, &missing)) {
            put_back(control);
            return SIZE_MAX;
        }
    }
    return missing;
}

void
uc_control_unpin(struct uc_control *control, const struct uc_token *token)
{
    struct uc_token_view view;

    (void)take_grants(control, token, UC_TOKEN_READ, &view);
    for (size_t server = 0; server < control->server_count; server++) {
        struct uc_control_lane *lane = &control->lanes[server];

        if (lane->held != NULL) {
            uc_control_send_unpin(control, lane->held);
            free(lane->held);
            lane->held = NULL;
        }
    }
}

/* The part of the mask that a server's grant is about, as its bitmap. */
static void
fill_bitmap(struct uc_control_lane *lane, const struct uc_token_view *view, const uint8_t *mask)
{
    size_t at = 0;

    memset(lane->bitmap, 0, lane->bitmap_capacity);
    for (size_t idx = 0; idx < view->key_count; idx++) {
        if (is_of_node(view, idx, lane->node_idx)) {
            lane->bitmap[at / 8] |= (uint8_t)((mask[idx] != 0) << (at % 8));
            at++;
        }
    }
}

/* Room for the masks before anything is taken: a grant that was taken must be concluded. */
static bool
reserve_bitmaps(struct uc_control *control, size_t key_count)
{
    for (size_t server = 0; server < control->server_count; server++) {
        struct uc_control_lane *lane = &control->lanes[server];

        if (!uc_control_reserve_bytes(&lane->bitmap, &lane->bitmap_capacity, (key_count + 7) / 8)) {
            return false;
        }
    }

    return true;
}

static enum uc_status
make_commits(struct uc_control *control, const struct uc_token_view *view, const uint8_t *mask,
        bool success)
{
    enum uc_status status;

    uc_control_begin_calls(control);
    for (size_t server = 0; server < control->server_count; server++) {
        struct uc_control_lane *lane = &control->lanes[server];

        if (lane->held == NULL) {
            continue;
        }
        if (mask != NULL) {
            fill_bitmap(lane, view, mask);
        }
        uc_control_add_commit(control, lane->held, mask == NULL ? NULL : lane->bitmap, success);
    }
    status = uc_control_make_calls(control);
    for (size_t server = 0; server < control->server_count; server++) {
        free(control->lanes[server].held);
        control->lanes[server].held = NULL;
    }
    return status;
}

enum uc_status
uc_control_commit(
        struct uc_control *control, const struct uc_token *token, const uint8_t *mask, bool success)
{
    struct uc_token_view view;
    enum uc_status status;
    size_t missing;

    if (mask != NULL && !reserve_bitmaps(control, token->key_count)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a commit");
    }
    missing = take_grants(control, token, UC_TOKEN_WRITE, &view);
    status = missing == SIZE_MAX ? UC_OK : make_commits(control, &view, mask, success);
    if (uc_control_is_lost(status)) {
        char reason[UC_SESSION_CALL_TEXT_BYTES];

        (void)snprintf(reason, sizeof(reason), "%s", uc_last_error());
        return uc_error(UC_ERR_NOT_FOUND,
                "remote store: commit: %s; what it had reserved is released", reason);
    }
    if (missing > 0 && (status == UC_OK || status == UC_ERR_NOT_FOUND)) {
        status = uc_error(UC_ERR_NOT_FOUND,
                "remote store: commit: the token's grant is concluded, of "
                "an ended session, or not of this process");
    }
    if (status == UC_OK && commits_lost(&view, mask, success)) {
        status = uc_error(UC_ERR_NOT_FOUND,
                "remote store: commit: blocks whose server was out of reach at alloc are not stored");
    }
    return status;
}
