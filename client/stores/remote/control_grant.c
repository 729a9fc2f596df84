/* SPDX-License-Identifier: Apache-2.0 */

/* Pin and alloc: grants of all servers concerned become one token, or none stays. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/stores/remote/control_internal.h"

static enum uc_status
reserve_entries(struct uc_control *control, size_t count)
{
    if (count > control->entry_capacity) {
        struct uc_token_entry *entries = realloc(control->entries, count * sizeof(entries[0]));

        if (entries == NULL) {
            return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a token");
        }
        control->entries = entries;
        control->entry_capacity = count;
    }

    return UC_OK;
}

static void
note_node(struct uc_control_lane *lane, const struct uc_session_info *info, uint64_t grant)
{
    struct uc_control *control = lane->control;
    const char *name = control->config->servers.servers[lane->server].name;
    struct uc_token_node *node = &control->nodes[lane->node_idx];

    *node = (struct uc_token_node){
            .name = name,
            .name_bytes = strlen(name),
            .incarnation = info->hello.incarnation,
            .grant = grant,
            .kind = lane->kind,
    };
    memcpy(node->server_id, info->hello.server_id, sizeof(node->server_id));
    memcpy(node->attach_key, info->hello.attach_key, sizeof(node->attach_key));
    memcpy(control->mac_keys[lane->node_idx], info->hello.mac_key, UC_MAC_KEY_BYTES);
}

static void
note_entries(struct uc_control_lane *lane, const uint8_t *entries)
{
    struct uc_control *control = lane->control;
    const struct uc_share *share = &control->partition.shares[lane->server];

    for (size_t idx = 0; idx < share->count; idx++) {
        struct uc_entry entry;

        uc_entry_get(entries + idx * UC_ENTRY_BYTES, &entry);
        control->entries[uc_share_position(share, idx)] = (struct uc_token_entry){
                .node_idx = (uint32_t)lane->node_idx,
                .region_idx = entry.region_idx,
                .offset_bytes = entry.offset_bytes,
                .generation = entry.generation,
                .length_bytes = entry.length_bytes,
                .flags = entry.flags & (UC_ENTRY_PRESENT | UC_ENTRY_SHARED),
        };
    }
}

/* Blocks of a server that is out of reach: the token has them, their dump fails, the others are stored. */
static void
note_lost(struct uc_control *control, const struct uc_share *share)
{
    for (size_t idx = 0; idx < share->count; idx++) {
        control->entries[uc_share_position(share, idx)] =
                (struct uc_token_entry){.flags = UC_ENTRY_LOST};
    }
}

static enum uc_status
read_grant(void *context, const struct uc_session_info *info, struct uc_rpc_view result)
{
    struct uc_control_lane *lane = context;
    const struct uc_share *share = &lane->control->partition.shares[lane->server];
    struct uc_held_grant *held = lane->held;
    struct uc_grant_reply reply;
    enum uc_status status = uc_grant_reply_decode(result, &reply);

    if (status == UC_OK && reply.count != share->count) {
        status = UC_ERR_INVALID_PARAM;
    }
    if (status != UC_OK) {
        return uc_error(UC_ERR_UNHEALTHY, "server %s: the answer to a grant cannot be read",
                lane->control->config->servers.servers[lane->server].name);
    }

    lane->granted = true;
    held->server = lane->server;
    held->grant = reply.grant;
    held->epoch = info->epoch;
    held->kind = lane->kind;
    held->key_count = share->count;
    memcpy(held->attach_key, info->hello.attach_key, sizeof(held->attach_key));
    memcpy(held->mac_key, info->hello.mac_key, sizeof(held->mac_key));
    note_node(lane, info, reply.grant);
    note_entries(lane, reply.entries);
    return UC_OK;
}

static enum uc_status
mint_token(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        size_t node_count, struct uc_token **token_out)
{
    struct uc_token_content content = {
            .nodes = control->nodes,
            .mac_keys = (const uint8_t(*)[UC_TOKEN_KEY_BYTES])control->mac_keys,
            .node_count = node_count,
            .keys = ids,
            .key_count = count,
            .copies = 1,
            .entries = control->entries,
    };
    size_t payload_bytes = 0;
    enum uc_status status = uc_token_payload_bytes(&content, &payload_bytes);

    if (status != UC_OK) {
        return status;
    }
    if (!uc_control_reserve_bytes(&control->payload, &control->payload_capacity, payload_bytes)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a token");
    }
    status = uc_token_payload_encode(control->mac, &content, control->payload, payload_bytes);
    return status != UC_OK
                   ? status
                   : uc_token_create(ids, count, control->payload, payload_bytes, token_out);
}

/* Give back what some servers granted while others did not. */
static void
give_back(struct uc_control *control)
{
    uc_control_begin_calls(control);
    for (size_t server = 0; server < control->server_count; server++) {
        struct uc_control_lane *lane = &control->lanes[server];

        if (lane->held == NULL || !lane->granted) {
            continue;
        }
        if (lane->kind == UC_TOKEN_READ) {
            uc_control_send_unpin(control, lane->held);
        } else {
            uc_control_add_commit(control, lane->held, NULL, false);
        }
    }
    if (control->call_count > 0) {
        /* Where no answer comes, the session ends and the server gives it back. */
        (void)!uc_control_make_calls(control);
    }
}

static void
drop_held(struct uc_control *control)
{
    for (size_t server = 0; server < control->server_count; server++) {
        free(control->lanes[server].held);
        control->lanes[server].held = NULL;
    }
}

static void
keep_held(struct uc_control *control)
{
    for (size_t server = 0; server < control->server_count; server++) {
        struct uc_control_lane *lane = &control->lanes[server];

        if (lane->held != NULL) {
            uc_grants_add(&control->grants, lane->held);
            lane->held = NULL;
        }
    }
}

/* A key of a server that does not answer. */
static enum uc_status
out_of_reach(const struct uc_control *control, size_t server, enum uc_token_kind kind)
{
    const char *name = control->config->servers.servers[server].name;

    if (kind == UC_TOKEN_READ && uc_control_is_usable(control)) {
        return uc_error(UC_ERR_NOT_FOUND,
                "remote store: pin: server %s is out of reach, so its blocks are missing: look up "
                "again",
                name);
    }
    return uc_error(UC_ERR_UNHEALTHY,
            "remote store: %s: server %s is out of reach; reconnecting in the background",
            kind == UC_TOKEN_READ ? "pin" : "alloc", name);
}

/* Encode the call of a server's share. */
static void
encode_share(struct uc_control_lane *lane, const struct uc_alloc_request *alloc)
{
    const struct uc_share *share = &lane->control->partition.shares[lane->server];
    struct uc_keys_view keys = {.ids = share->ids, .count = share->count};

    uc_rpc_buffer_reset(&lane->params);
    if (lane->kind == UC_TOKEN_READ) {
        uc_keys_request_encode(&lane->params, keys);
    } else {
        struct uc_alloc_request request = *alloc;

        request.keys = keys;
        uc_alloc_request_encode(&lane->params, &request);
    }
}

static enum uc_status
prepare_call(struct uc_control_lane *lane, enum uc_token_kind kind,
        const struct uc_alloc_request *alloc, size_t node_idx)
{
    lane->kind = kind;
    lane->granted = false;
    lane->node_idx = node_idx;
    lane->held = calloc(1, sizeof(*lane->held));
    if (lane->held == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a grant");
    }

    encode_share(lane, alloc);
    uc_control_add_call(lane->control, lane->server, 0,
            kind == UC_TOKEN_READ ? UC_RPC_PIN : UC_RPC_ALLOC, read_grant);
    return UC_OK;
}

/*
 * Prepare the calls to all servers concerned. A pin fails if one of them is out of reach; an alloc goes on
 * with the others, since a dead server must not keep the living ones from being filled.
 */
static enum uc_status
prepare_calls(struct uc_control *control, enum uc_token_kind kind,
        const struct uc_alloc_request *alloc, size_t *node_count_out)
{
    size_t node_count = 0;
    size_t lost_server = 0;

    uc_control_begin_calls(control);
    for (size_t server = 0; server < control->server_count; server++) {
        const struct uc_share *share = &control->partition.shares[server];
        enum uc_status status = UC_OK;

        if (share->count == 0) {
            continue;
        }
        if (uc_control_reaches(control, server)) {
            status = prepare_call(&control->lanes[server], kind, alloc, node_count++);
        } else if (kind == UC_TOKEN_READ) {
            status = out_of_reach(control, server, kind);
        } else {
            lost_server = server;
            note_lost(control, share);
        }
        if (status != UC_OK) {
            return status;
        }
    }
    if (node_count == 0) {
        return out_of_reach(control, lost_server, kind);
    }

    *node_count_out = node_count;
    return UC_OK;
}

/* @return the server of a call that nobody answered */
static size_t
lost_server(const struct uc_control *control)
{
    for (size_t idx = 0; idx < control->call_count; idx++) {
        if (uc_control_is_lost(control->calls[idx].status)) {
            return ((const struct uc_control_lane *)control->calls[idx].context)->server;
        }
    }

    return 0;
}

static enum uc_status
acquire(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        enum uc_token_kind kind, const struct uc_alloc_request *alloc, struct uc_token **token_out)
{
    size_t node_count = 0;
    enum uc_status status;

    if (count == 0 || count > UC_KEYS_PER_CALL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: %zu blocks in one call; 1 to %d are possible", count,
                UC_KEYS_PER_CALL);
    }
    uc_control_settle_epochs(control);
    status = reserve_entries(control, count);
    if (status == UC_OK) {
        status = uc_partition_make(&control->partition, &control->config->servers.view, ids, count);
    }
    if (status == UC_OK) {
        status = prepare_calls(control, kind, alloc, &node_count);
    }
    if (status != UC_OK) {
        drop_held(control);
        return status;
    }

    status = uc_control_make_calls(control);
    if (uc_control_is_lost(status)) {
        status = out_of_reach(control, lost_server(control), kind);
    }
    if (status == UC_OK) {
        status = mint_token(control, ids, count, node_count, token_out);
    }
    if (status != UC_OK) {
        char reason[UC_SESSION_CALL_TEXT_BYTES];

        (void)snprintf(reason, sizeof(reason), "%s", uc_last_error());
        give_back(control);
        drop_held(control);
        return uc_error(status, "%s", reason);
    }

    keep_held(control);
    return UC_OK;
}

enum uc_status
uc_control_pin(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    return acquire(control, ids, count, UC_TOKEN_READ, NULL, token_out);
}

enum uc_status
uc_control_alloc(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct uc_alloc_request request = {.has_ttl = false};

    request.has_ttl = uc_request_ttl(context, &request.ttl_ms);
    return acquire(control, ids, count, UC_TOKEN_WRITE, &request, token_out);
}
