/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/control.h"

#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "client/stores/remote/grants.h"
#include "net/token_payload.h"

struct uc_control {
    const struct uc_remote_config *config;
    struct uc_session *session;
    struct uc_token_mac *mac;
    struct uc_grants grants;
    uint64_t epoch;              /* of the session whose grants are in the table */
    struct uc_rpc_buffer params; /* of the call being made */
    struct uc_token_entry *entries;
    size_t entry_capacity;
    uint8_t *payload; /* also the bitmap of a commit */
    size_t payload_capacity;
};

struct uc_session_config
uc_control_session_config(const struct uc_remote_config *config)
{
    struct uc_session_config session_config = {
            .server = &config->servers.servers[0],
            .name_space = config->name_space,
            .credential = config->credential,
            .client = config->client_name,
            .access = config->access,
            .connect_timeout_ms = config->connect_timeout_ms,
            .rpc_timeout_ms = config->rpc_timeout_ms,
            .block_bytes = config->block_bytes,
            .clock = uc_clock_monotonic(),
    };

    return session_config;
}

enum uc_status
uc_control_create(const struct uc_remote_config *config, struct uc_control **control_out)
{
    struct uc_session_config session_config = uc_control_session_config(config);
    struct uc_control *control = calloc(1, sizeof(*control));
    enum uc_status status;

    if (control == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for the control side");
    }
    control->config = config;
    uc_grants_init(&control->grants);
    status = uc_token_mac_create(&control->mac);
    if (status != UC_OK) {
        goto err_free;
    }
    status = uc_session_create(&session_config, &control->session);
    if (status != UC_OK) {
        goto err_destroy_mac;
    }

    *control_out = control;
    return UC_OK;

err_destroy_mac:
    uc_token_mac_destroy(control->mac);
err_free:
    free(control);
    return status;
}

void
uc_control_destroy(struct uc_control *control)
{
    if (control == NULL) {
        return;
    }

    uc_session_destroy(control->session);
    uc_grants_fini(&control->grants);
    uc_token_mac_destroy(control->mac);
    uc_rpc_buffer_fini(&control->params);
    free(control->entries);
    free(control->payload);
    free(control);
}

bool
uc_control_is_usable(const struct uc_control *control)
{
    return uc_session_is_usable(control->session);
}

void
uc_control_info(struct uc_control *control, struct uc_session_info *info_out)
{
    uc_session_info(control->session, info_out);
}

/* The reply to a lookup, and where its answers go. */
struct lookup {
    size_t count;
    uint8_t *hits;
};

static enum uc_status
read_lookup(void *context, const struct uc_session_info *info, struct uc_rpc_view result)
{
    struct lookup *lookup = context;
    const uint8_t *bitmap;
    enum uc_status status = uc_bitmap_reply_decode(result, lookup->count, &bitmap);

    (void)info;
    if (status == UC_OK) {
        for (size_t idx = 0; idx < lookup->count; idx++) {
            lookup->hits[idx] = bitmap[idx / 8] >> (idx % 8) & 1u;
        }
    }
    return status;
}

static enum uc_status
lookup_chunk(struct uc_control *control, const struct uc_block_id *ids, size_t count, uint8_t *hits)
{
    struct uc_keys_view keys = {.ids = ids, .count = count};
    struct lookup lookup = {.count = count, .hits = hits};

    uc_rpc_buffer_reset(&control->params);
    uc_keys_request_encode(&control->params, keys);
    return uc_session_call(
            control->session, 0, UC_RPC_LOOKUP, &control->params, read_lookup, &lookup);
}

enum uc_status
uc_control_lookup(
        struct uc_control *control, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    enum uc_status status = UC_OK;

    for (size_t done = 0; done < count && status == UC_OK; done += UC_KEYS_PER_CALL) {
        size_t left = count - done;

        status = lookup_chunk(control, ids + done,
                left < UC_KEYS_PER_CALL ? left : (size_t)UC_KEYS_PER_CALL, hits_out + done);
    }
    if (status == UC_ERR_UNHEALTHY || status == UC_ERR_STALE) {
        memset(hits_out, 0, count);
        status = UC_OK;
    }
    return status;
}

void
uc_control_touch(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct uc_touch_request request = {.has_ttl = false};

    request.has_ttl = uc_request_ttl(context, &request.ttl_ms);
    for (size_t done = 0; done < count; done += UC_KEYS_PER_CALL) {
        size_t left = count - done;

        request.keys.ids = ids + done;
        request.keys.count = left < UC_KEYS_PER_CALL ? left : (size_t)UC_KEYS_PER_CALL;
        uc_rpc_buffer_reset(&control->params);
        uc_touch_request_encode(&control->params, &request);
        if (uc_session_notify(control->session, 0, UC_RPC_TOUCH, &control->params) != UC_OK) {
            return;
        }
    }
}

/* A pin or an alloc under way: the answer becomes a token and a record of the grant. */
struct grant_call {
    struct uc_control *control;
    const struct uc_block_id *ids;
    size_t count;
    enum uc_token_kind kind;
    struct uc_held_grant *held;
    struct uc_token *token;
    bool granted; /* the server holds something for us now */
};

static bool
reserve_bytes(uint8_t **bytes, size_t *capacity, size_t wanted)
{
    uint8_t *fresh;

    if (wanted <= *capacity) {
        return true;
    }
    fresh = realloc(*bytes, wanted);
    if (fresh == NULL) {
        return false;
    }

    *bytes = fresh;
    *capacity = wanted;
    return true;
}

static enum uc_status
copy_entries(struct uc_control *control, const struct uc_grant_reply *reply)
{
    if (reply->count > control->entry_capacity) {
        struct uc_token_entry *entries =
                realloc(control->entries, reply->count * sizeof(entries[0]));

        if (entries == NULL) {
            return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a token");
        }
        control->entries = entries;
        control->entry_capacity = reply->count;
    }

    for (size_t idx = 0; idx < reply->count; idx++) {
        struct uc_entry entry;

        uc_entry_get(reply->entries + idx * UC_ENTRY_BYTES, &entry);
        control->entries[idx] = (struct uc_token_entry){
                .node_idx = 0,
                .region_idx = entry.region_idx,
                .offset_bytes = entry.offset_bytes,
                .generation = entry.generation,
                .length_bytes = entry.length_bytes,
                .flags = entry.flags,
        };
    }
    return UC_OK;
}

static enum uc_status
mint_token(struct grant_call *call, const struct uc_session_info *info,
        const struct uc_grant_reply *reply)
{
    struct uc_control *control = call->control;
    const struct uc_server_address *server = &control->config->servers.servers[0];
    struct uc_token_node node = {
            .name = server->name,
            .name_bytes = strlen(server->name),
            .incarnation = info->hello.incarnation,
            .grant = reply->grant,
            .kind = call->kind,
    };
    struct uc_token_content content = {
            .nodes = &node,
            .mac_keys = &info->hello.mac_key,
            .node_count = 1,
            .keys = call->ids,
            .key_count = call->count,
            .copies = 1,
    };
    size_t payload_bytes = 0;
    enum uc_status status = copy_entries(control, reply);

    memcpy(node.server_id, info->hello.server_id, sizeof(node.server_id));
    memcpy(node.attach_key, info->hello.attach_key, sizeof(node.attach_key));
    content.entries = control->entries;
    if (status == UC_OK) {
        status = uc_token_payload_bytes(&content, &payload_bytes);
    }
    if (status != UC_OK) {
        return status;
    }
    if (!reserve_bytes(&control->payload, &control->payload_capacity, payload_bytes)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a token");
    }
    status = uc_token_payload_encode(control->mac, &content, control->payload, payload_bytes);
    if (status != UC_OK) {
        return status;
    }

    return uc_token_create(call->ids, call->count, control->payload, payload_bytes, &call->token);
}

static enum uc_status
read_grant(void *context, const struct uc_session_info *info, struct uc_rpc_view result)
{
    struct grant_call *call = context;
    struct uc_held_grant *held = call->held;
    struct uc_grant_reply reply;
    enum uc_status status = uc_grant_reply_decode(result, &reply);

    if (status == UC_OK && reply.count != call->count) {
        status = UC_ERR_INVALID_PARAM;
    }
    if (status != UC_OK) {
        return uc_error(UC_ERR_UNHEALTHY, "server %s: the answer to a grant cannot be read",
                call->control->config->servers.servers[0].name);
    }

    call->granted = true;
    held->grant = reply.grant;
    held->epoch = info->epoch;
    held->kind = call->kind;
    held->key_count = call->count;
    memcpy(held->attach_key, info->hello.attach_key, sizeof(held->attach_key));
    memcpy(held->mac_key, info->hello.mac_key, sizeof(held->mac_key));
    return mint_token(call, info, &reply);
}

static void
send_unpin(struct uc_control *control, const struct uc_held_grant *held)
{
    uc_rpc_buffer_reset(&control->params);
    uc_grant_request_encode(&control->params, held->grant);
    (void)!uc_session_notify(control->session, held->epoch, UC_RPC_UNPIN, &control->params);
}

static enum uc_status
send_commit(struct uc_control *control, const struct uc_held_grant *held, const uint8_t *bitmap,
        bool success)
{
    struct uc_commit_request request = {
            .grant = held->grant,
            .has_bitmap = bitmap != NULL,
            .success = success,
            .bitmap = bitmap,
            .bitmap_bytes = bitmap == NULL ? 0 : (held->key_count + 7) / 8,
    };

    uc_rpc_buffer_reset(&control->params);
    uc_commit_request_encode(&control->params, &request);
    return uc_session_call(
            control->session, held->epoch, UC_RPC_COMMIT, &control->params, NULL, NULL);
}

/* A new session holds nothing of the old ones (ARCHITECTURE.md §3). */
static void
settle_epoch(struct uc_control *control)
{
    struct uc_session_info info;

    uc_session_info(control->session, &info);
    if (info.epoch != control->epoch) {
        uc_grants_forget_others(&control->grants, info.epoch);
        control->epoch = info.epoch;
    }
}

static enum uc_status
call_for_grant(struct grant_call *call, enum uc_rpc_method method, struct uc_token **token_out)
{
    struct uc_control *control = call->control;
    enum uc_status status;

    settle_epoch(control);
    call->held = calloc(1, sizeof(*call->held));
    if (call->held == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a grant");
    }

    status = uc_session_call(control->session, 0, method, &control->params, read_grant, call);
    if (status == UC_OK) {
        uc_grants_add(&control->grants, call->held);
        *token_out = call->token;
        return UC_OK;
    }

    if (call->granted && call->kind == UC_TOKEN_READ) {
        send_unpin(control, call->held);
    } else if (call->granted) {
        (void)!send_commit(control, call->held, NULL, false);
    }
    free(call->held);
    return status == UC_ERR_STALE ? UC_ERR_UNHEALTHY : status;
}

static enum uc_status
check_count(size_t count)
{
    if (count == 0 || count > UC_KEYS_PER_CALL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: %zu blocks in one call; 1 to %d are possible", count,
                UC_KEYS_PER_CALL);
    }

    return UC_OK;
}

enum uc_status
uc_control_pin(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    struct grant_call call = {
            .control = control,
            .ids = ids,
            .count = count,
            .kind = UC_TOKEN_READ,
    };
    struct uc_keys_view keys = {.ids = ids, .count = count};
    enum uc_status status = check_count(count);

    if (status != UC_OK) {
        return status;
    }

    uc_rpc_buffer_reset(&control->params);
    uc_keys_request_encode(&control->params, keys);
    return call_for_grant(&call, UC_RPC_PIN, token_out);
}

enum uc_status
uc_control_alloc(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct grant_call call = {
            .control = control,
            .ids = ids,
            .count = count,
            .kind = UC_TOKEN_WRITE,
    };
    struct uc_alloc_request request = {.keys = {.ids = ids, .count = count}};
    enum uc_status status = check_count(count);

    if (status != UC_OK) {
        return status;
    }

    request.has_ttl = uc_request_ttl(context, &request.ttl_ms);
    uc_rpc_buffer_reset(&control->params);
    uc_alloc_request_encode(&control->params, &request);
    return call_for_grant(&call, UC_RPC_ALLOC, token_out);
}

/* @return the record of a token that this process minted and has not concluded, or NULL */
static struct uc_held_grant *
take_grant(struct uc_control *control, const struct uc_token *token, enum uc_token_kind kind)
{
    struct uc_token_view view;
    struct uc_token_node node;
    struct uc_held_grant *held;

    settle_epoch(control);
    if (token->key_count == 0 || token->payload_bytes == 0 ||
            uc_token_payload_parse(token->payload, token->payload_bytes, token->key_count, &view) !=
                    UC_OK ||
            view.node_count != 1) {
        return NULL;
    }

    uc_token_payload_node(&view, 0, &node);
    held = uc_grants_take(&control->grants, &node, kind, token->key_count);
    if (held != NULL &&
            uc_token_payload_verify(control->mac, &view, token->keys, 0, held->mac_key) != UC_OK) {
        /* Changed on the way: the grant stays outstanding for the token that was minted. */
        uc_grants_add(&control->grants, held);
        held = NULL;
    }
    return held;
}

void
uc_control_unpin(struct uc_control *control, const struct uc_token *token)
{
    struct uc_held_grant *held = take_grant(control, token, UC_TOKEN_READ);

    if (held != NULL) {
        send_unpin(control, held);
        free(held);
    }
}

enum uc_status
uc_control_commit(
        struct uc_control *control, const struct uc_token *token, const uint8_t *mask, bool success)
{
    size_t bitmap_bytes = (token->key_count + 7) / 8;
    struct uc_held_grant *held;
    enum uc_status status;

    if (mask != NULL &&
            !reserve_bytes(&control->payload, &control->payload_capacity, bitmap_bytes)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a commit");
    }
    held = take_grant(control, token, UC_TOKEN_WRITE);
    if (held == NULL) {
        return uc_error(UC_ERR_NOT_FOUND,
                "remote store: commit: the token's grant is concluded, of "
                "an ended session, or not of this process");
    }

    if (mask != NULL) {
        memset(control->payload, 0, bitmap_bytes);
        for (size_t idx = 0; idx < token->key_count; idx++) {
            control->payload[idx / 8] |= (uint8_t)((mask[idx] != 0) << (idx % 8));
        }
    }
    status = send_commit(control, held, mask == NULL ? NULL : control->payload, success);
    free(held);
    if (status == UC_ERR_UNHEALTHY || status == UC_ERR_STALE) {
        status = uc_error(UC_ERR_NOT_FOUND,
                "remote store: commit: the session with server %s has ended; what it had reserved "
                "is released",
                control->config->servers.servers[0].name);
    }
    return status;
}
