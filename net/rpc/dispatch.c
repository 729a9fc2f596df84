/* SPDX-License-Identifier: Apache-2.0 */

/* What received frames mean: requests, notifications, and answers to pending calls. */

#include <stdatomic.h>
#include <string.h>

#include <ucm/log.h>

#include "net/rpc/connection_private.h"
#include "net/rpc/item.h"
#include "net/wire_status.h"

enum {
    BAD_PEER_LOG_MS = 1000,
};

void
uc_rpc_log_bad_peer(const struct uc_rpc_connection *connection)
{
    /* Part of the log sink's state: a peer that reconnects and misbehaves must not fill the disk. */
    static _Atomic uint64_t next_ms;
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t now_ms = uc_clock_now_ms(&clock);
    uint64_t due_ms = atomic_load_explicit(&next_ms, memory_order_relaxed);

    /* Relaxed: only the number itself is shared. */
    if (now_ms >= due_ms &&
            atomic_compare_exchange_strong_explicit(&next_ms, &due_ms, now_ms + BAD_PEER_LOG_MS,
                    memory_order_relaxed, memory_order_relaxed)) {
        uc_log_warn("rpc %d: closed: %s", connection->fd, uc_last_error());
    }
}

/* A peer's text goes to logs and terminals: no control characters. */
static void
set_peer_error(enum uc_status status, const struct uc_rpc_item *text)
{
    char copy[UC_RPC_ERROR_TEXT_MAX + 1];
    size_t length = text->value < UC_RPC_ERROR_TEXT_MAX ? text->value : UC_RPC_ERROR_TEXT_MAX;

    memcpy(copy, text->bytes, length);
    copy[length] = '\0';
    for (size_t idx = 0; idx < length; idx++) {
        if ((unsigned char)copy[idx] < 0x20 || copy[idx] == 0x7f) {
            copy[idx] = '?';
        }
    }
    (void)uc_error(status, "%s", length > 0 ? copy : uc_status_name(status));
}

/* Numbers of a newer peer are General here; so is a success that comes as an error. */
static enum uc_status
status_from_code(uint64_t code)
{
    int64_t number = (int64_t)code;
    enum uc_status status = UC_OK;

    if (number >= 0 || number < INT32_MIN) {
        return UC_ERR_GENERAL;
    }
    return uc_wire_status((int32_t)number, &status) ? status : UC_ERR_GENERAL;
}

/* The error member of a response. @return false if it is malformed */
static bool
read_error(struct uc_reader *reader, enum uc_status *status_out)
{
    struct uc_rpc_item error = uc_rpc_item_read(reader);
    struct uc_rpc_item code;
    struct uc_rpc_item text;

    if (error.kind == UC_RPC_KIND_NIL) {
        *status_out = UC_OK;
        return true;
    }
    if (error.kind != UC_RPC_KIND_ARRAY || error.value != 2) {
        return false;
    }
    code = uc_rpc_item_read(reader);
    text = uc_rpc_item_read(reader);
    if ((code.kind != UC_RPC_KIND_NEGATIVE && code.kind != UC_RPC_KIND_UINT) ||
            text.kind != UC_RPC_KIND_TEXT) {
        return false;
    }

    *status_out = status_from_code(code.value);
    set_peer_error(*status_out, &text);
    return true;
}

static bool
dispatch_response(
        struct uc_rpc_connection *connection, struct uc_reader *reader, uint32_t message_id)
{
    enum uc_status status;
    struct uc_rpc_pending call;
    struct uc_rpc_view result = {0};

    if (!read_error(reader, &status)) {
        return false;
    }
    if (!uc_rpc_pending_take(connection, message_id, &call)) {
        return true; /* the call timed out before */
    }

    if (status == UC_OK) {
        result = (struct uc_rpc_view){.bytes = reader->bytes, .length = reader->left};
    }
    call.on_reply(call.context, status, result);
    return true;
}

/* Requests and notifications: from the method on. */
static bool
dispatch_to_handler(struct uc_rpc_connection *connection, struct uc_reader *reader, bool has_id,
        uint32_t message_id)
{
    const struct uc_rpc_handler *handler = connection->handler;
    struct uc_rpc_item name = uc_rpc_item_read(reader);
    struct uc_rpc_view params = {.bytes = reader->bytes, .length = reader->left};
    enum uc_rpc_method method;

    if (name.kind != UC_RPC_KIND_TEXT || uc_rpc_item_read(reader).kind != UC_RPC_KIND_ARRAY) {
        return false;
    }
    method = uc_rpc_method_find((const char *)name.bytes, name.value);
    if (uc_last_error()[0] != '\0') {
        /* So that an answer without text cannot quote the failure of another request. */
        (void)uc_error(UC_OK, "%s", "");
    }
    if (has_id && (method == UC_RPC_METHOD_COUNT || handler->on_request == NULL)) {
        uc_rpc_reply_error(connection, message_id, UC_ERR_UNSUPPORTED,
                "this side does not know the method; compare protocol versions");
    } else if (has_id) {
        handler->on_request(connection->context, connection, message_id, method, params);
    } else if (method != UC_RPC_METHOD_COUNT && handler->on_notification != NULL) {
        handler->on_notification(connection->context, connection, method, params);
    }
    return true;
}

static bool
dispatch_message(struct uc_rpc_connection *connection, struct uc_reader *reader)
{
    struct uc_rpc_item envelope = uc_rpc_item_read(reader);
    struct uc_rpc_item type = uc_rpc_item_read(reader);
    struct uc_rpc_item message_id = {.kind = UC_RPC_KIND_UINT};

    if (envelope.kind != UC_RPC_KIND_ARRAY || type.kind != UC_RPC_KIND_UINT ||
            envelope.value != (type.value == UC_RPC_MESSAGE_NOTIFICATION ? 3u : 4u)) {
        return false;
    }
    if (type.value == UC_RPC_MESSAGE_REQUEST || type.value == UC_RPC_MESSAGE_RESPONSE) {
        message_id = uc_rpc_item_read(reader);
    }
    if (message_id.kind != UC_RPC_KIND_UINT || message_id.value > UINT32_MAX) {
        return false;
    }

    switch (type.value) {
    case UC_RPC_MESSAGE_REQUEST:
        return dispatch_to_handler(connection, reader, true, (uint32_t)message_id.value);
    case UC_RPC_MESSAGE_RESPONSE:
        return dispatch_response(connection, reader, (uint32_t)message_id.value);
    case UC_RPC_MESSAGE_NOTIFICATION:
        return dispatch_to_handler(connection, reader, false, 0);
    default:
        return false;
    }
}

void
uc_rpc_dispatch(struct uc_rpc_connection *connection, const uint8_t *bytes, size_t length)
{
    struct uc_reader reader = uc_reader_init(bytes, length);

    if (!dispatch_message(connection, &reader)) {
        (void)uc_error(UC_ERR_INVALID_PARAM, "rpc: a message that is no request, response or "
                                             "notification with its members");
        uc_rpc_log_bad_peer(connection);
        uc_rpc_connection_fail(connection, UC_ERR_INVALID_PARAM);
    }
}
