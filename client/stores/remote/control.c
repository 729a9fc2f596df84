/* SPDX-License-Identifier: Apache-2.0 */

/* The control side: open, close, calls to several servers, lookups. Grants are in control_grant.c. */

#include "client/stores/remote/control.h"

#include <stdlib.h>
#include <string.h>

#include "client/stores/remote/control_internal.h"

struct uc_session_config
uc_control_session_config(const struct uc_remote_config *config)
{
    struct uc_session_config session_config = {
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

static enum uc_status
make_arrays(struct uc_control *control, size_t count)
{
    control->server_count = count;
    control->lanes = calloc(count, sizeof(control->lanes[0]));
    control->calls = calloc(count, sizeof(control->calls[0]));
    control->fds = calloc(count, sizeof(control->fds[0]));
    control->nodes = calloc(count, sizeof(control->nodes[0]));
    control->mac_keys = calloc(count, sizeof(control->mac_keys[0]));
    if (control->lanes == NULL || control->calls == NULL || control->fds == NULL ||
            control->nodes == NULL || control->mac_keys == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for %zu servers", count);
    }

    for (size_t server = 0; server < count; server++) {
        control->lanes[server].control = control;
        control->lanes[server].server = server;
    }
    return UC_OK;
}

enum uc_status
uc_control_create(const struct uc_remote_config *config, struct uc_control **control_out,
        struct uc_hello_reply *hello_out)
{
    struct uc_session_config session_config = uc_control_session_config(config);
    struct uc_control *control = calloc(1, sizeof(*control));
    enum uc_status status;

    if (control == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for the control side");
    }
    control->config = config;
    uc_grants_init(&control->grants);
    status = make_arrays(control, config->servers.count);
    if (status == UC_OK) {
        status = uc_token_mac_create(&control->mac);
    }
    if (status == UC_OK) {
        status = uc_server_set_open(&config->servers, &session_config, &control->set, hello_out);
    }
    if (status != UC_OK) {
        uc_control_destroy(control);
        return status;
    }

    *control_out = control;
    return UC_OK;
}

void
uc_control_destroy(struct uc_control *control)
{
    if (control == NULL) {
        return;
    }

    uc_server_set_close(&control->set);
    uc_grants_fini(&control->grants);
    uc_token_mac_destroy(control->mac);
    uc_partition_fini(&control->partition);
    for (size_t idx = 0; control->lanes != NULL && idx < control->server_count; idx++) {
        uc_rpc_buffer_fini(&control->lanes[idx].params);
        free(control->lanes[idx].bitmap);
    }
    free(control->lanes);
    free(control->calls);
    free(control->fds);
    free(control->nodes);
    free(control->mac_keys);
    free(control->entries);
    free(control->payload);
    free(control);
}

bool
uc_control_is_usable(const struct uc_control *control)
{
    return uc_server_set_is_usable(&control->set);
}

bool
uc_control_reaches(const struct uc_control *control, size_t server)
{
    return uc_session_is_usable(control->set.sessions[server]);
}

void
uc_control_info(struct uc_control *control, size_t server, struct uc_session_info *info_out)
{
    uc_session_info(control->set.sessions[server], info_out);
}

bool
uc_control_reserve_bytes(uint8_t **bytes, size_t *capacity, size_t wanted)
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

void
uc_control_begin_calls(struct uc_control *control)
{
    control->call_count = 0;
}

void
uc_control_add_call(struct uc_control *control, size_t server, uint64_t epoch,
        enum uc_rpc_method method, uc_session_reply_fn on_reply)
{
    size_t idx = control->call_count++;
    struct uc_session_call *call = &control->calls[idx];

    call->session = control->set.sessions[server];
    call->epoch = epoch;
    call->method = method;
    call->params = &control->lanes[server].params;
    call->on_reply = on_reply;
    call->context = &control->lanes[server];
}

/* Larger = tells more. */
static unsigned
weight_of(enum uc_status status)
{
    static const enum uc_status order[] = {
            UC_ERR_NOT_FOUND, UC_ERR_NO_SPACE, UC_ERR_PERMISSION_DENIED, UC_ERR_INVALID_PARAM};

    if (status == UC_OK) {
        return 0;
    }
    if (uc_control_is_lost(status)) {
        return 1;
    }
    for (unsigned idx = 0; idx < sizeof(order) / sizeof(order[0]); idx++) {
        if (order[idx] == status) {
            return idx + 3;
        }
    }
    return 2;
}

enum uc_status
uc_control_make_calls(struct uc_control *control)
{
    enum uc_status worst = UC_OK;
    const char *text = "";

    uc_session_call_all(control->calls, control->fds, control->call_count);
    for (size_t idx = 0; idx < control->call_count; idx++) {
        enum uc_status status = control->calls[idx].status;

        if (weight_of(status) > weight_of(worst)) {
            worst = status;
            text = control->calls[idx].text;
        }
    }
    return worst == UC_OK ? UC_OK : uc_error(worst, "%s", text);
}

void
uc_control_settle_epochs(struct uc_control *control)
{
    for (size_t server = 0; server < control->server_count; server++) {
        struct uc_session_info info;

        uc_session_info(control->set.sessions[server], &info);
        if (info.epoch != control->lanes[server].epoch) {
            uc_grants_forget_others(&control->grants, server, info.epoch);
            control->lanes[server].epoch = info.epoch;
        }
    }
}

static enum uc_status
read_lookup(void *context, const struct uc_session_info *info, struct uc_rpc_view result)
{
    const struct uc_control_lane *lane = context;
    const struct uc_share *share = &lane->control->partition.shares[lane->server];
    const uint8_t *bitmap;
    enum uc_status status = uc_bitmap_reply_decode(result, share->count, &bitmap);

    (void)info;
    if (status == UC_OK) {
        for (size_t idx = 0; idx < share->count; idx++) {
            lane->hits[uc_share_position(share, idx)] = bitmap[idx / 8] >> (idx % 8) & 1u;
        }
    }
    return status;
}

/* Keys of servers that do not answer stay absent; the others answer (R-5.29, G19). */
static enum uc_status
lookup_chunk(struct uc_control *control, const struct uc_block_id *ids, size_t count, uint8_t *hits)
{
    enum uc_status status =
            uc_partition_make(&control->partition, &control->config->servers.view, ids, count);

    if (status != UC_OK) {
        return status;
    }

    memset(hits, 0, count);
    uc_control_begin_calls(control);
    for (size_t server = 0; server < control->server_count; server++) {
        const struct uc_share *share = &control->partition.shares[server];
        struct uc_control_lane *lane = &control->lanes[server];
        struct uc_keys_view keys = {.ids = share->ids, .count = share->count};

        if (share->count > 0 && uc_control_reaches(control, server)) {
            lane->hits = hits;
            uc_rpc_buffer_reset(&lane->params);
            uc_keys_request_encode(&lane->params, keys);
            uc_control_add_call(control, server, 0, UC_RPC_LOOKUP, read_lookup);
        }
    }
    status = uc_control_make_calls(control);
    return uc_control_is_lost(status) ? UC_OK : status;
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
    return status;
}

static bool
touch_chunk(struct uc_control *control, struct uc_touch_request *request,
        const struct uc_block_id *ids, size_t count)
{
    if (uc_partition_make(&control->partition, &control->config->servers.view, ids, count) !=
            UC_OK) {
        return false;
    }

    for (size_t server = 0; server < control->server_count; server++) {
        const struct uc_share *share = &control->partition.shares[server];
        struct uc_rpc_buffer *params = &control->lanes[server].params;

        if (share->count > 0 && uc_control_reaches(control, server)) {
            request->keys.ids = share->ids;
            request->keys.count = share->count;
            uc_rpc_buffer_reset(params);
            uc_touch_request_encode(params, request);
            (void)!uc_session_notify(control->set.sessions[server], 0, UC_RPC_TOUCH, params);
        }
    }
    return true;
}

void
uc_control_touch(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct uc_touch_request request = {.has_ttl = false};
    bool sent = true;

    request.has_ttl = uc_request_ttl(context, &request.ttl_ms);
    for (size_t done = 0; done < count && sent; done += UC_KEYS_PER_CALL) {
        size_t left = count - done;

        sent = touch_chunk(control, &request, ids + done,
                left < UC_KEYS_PER_CALL ? left : (size_t)UC_KEYS_PER_CALL);
    }
}
