/* SPDX-License-Identifier: Apache-2.0 */

/* Calls, notifications and answers on their way out. */

#include <assert.h>
#include <poll.h>
#include <string.h>

#include "net/rpc/connection_private.h"
#include "net/rpc/encode.h"

/* Messages that are small by construction: envelopes and errors. */
struct small {
    size_t length;
    uint8_t bytes[UC_RPC_ERROR_TEXT_MAX + 32];
};

static int
write_small(void *data, const char *bytes, size_t length)
{
    struct small *small = data;

    assert(length <= sizeof(small->bytes) - small->length);
    memcpy(small->bytes + small->length, bytes, length);
    small->length += length;
    return 0;
}

/* @p has_id: a request; otherwise a notification. */
static void
make_head(struct small *head, bool has_id, uint32_t message_id, enum uc_rpc_method method)
{
    const char *name = uc_rpc_method_name(method);
    msgpack_packer packer;

    msgpack_packer_init(&packer, head, write_small);
    (void)msgpack_pack_array(&packer, has_id ? 4 : 3);
    (void)msgpack_pack_uint32(
            &packer, has_id ? UC_RPC_MESSAGE_REQUEST : UC_RPC_MESSAGE_NOTIFICATION);
    if (has_id) {
        (void)msgpack_pack_uint32(&packer, message_id);
    }
    uc_encode_text(&packer, name, strlen(name));
}

enum uc_status
uc_rpc_call(struct uc_rpc_connection *connection, enum uc_rpc_method method,
        const struct uc_rpc_buffer *params, uint64_t timeout_ms, uc_rpc_reply_fn on_reply,
        void *context)
{
    struct uc_clock clock = uc_clock_monotonic();
    struct small head = {.length = 0};
    uint32_t message_id;
    enum uc_status status;

    if (connection->failure != UC_OK || connection->destroyed) {
        return uc_error(
                UC_ERR_UNHEALTHY, "rpc: %s: the connection is closed", uc_rpc_method_name(method));
    }
    if (params->failed) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "rpc: %s: no memory to encode the call",
                uc_rpc_method_name(method));
    }
    status = uc_rpc_pending_reserve(connection, &message_id);
    if (status != UC_OK) {
        return status;
    }

    make_head(&head, true, message_id, method);
    uc_rpc_connection_send(connection, head.bytes, head.length, params->bytes, params->length);
    if (connection->failure != UC_OK) {
        return uc_error(
                UC_ERR_UNHEALTHY, "rpc: %s: the connection is lost", uc_rpc_method_name(method));
    }

    uc_rpc_pending_add(
            connection, uc_time_add_ms(uc_clock_now_ms(&clock), timeout_ms), on_reply, context);
    return UC_OK;
}

struct wait {
    struct uc_rpc_connection *connection;
    bool done;
    enum uc_status status;
    struct uc_rpc_view result;
};

static void
on_wait_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct wait *wait = context;

    wait->done = true;
    wait->status = status;
    wait->result = result;
    wait->connection->keep_input = true; /* the result lies there */
}

/* Poll until something happens or the deadline; at most an hour at a time, poll() takes an int. */
static void
wait_for_socket(struct uc_rpc_connection *connection, uint64_t wait_ms)
{
    struct pollfd poll_fd = {
            .fd = connection->fd,
            .events = uc_rpc_connection_events(connection),
    };

    (void)poll(&poll_fd, 1, wait_ms > 3600000 ? 3600000 : (int)wait_ms);
}

enum uc_status
uc_rpc_call_wait(struct uc_rpc_connection *connection, enum uc_rpc_method method,
        const struct uc_rpc_buffer *params, uint64_t timeout_ms, struct uc_rpc_view *result_out)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t deadline_ms = uc_time_add_ms(uc_clock_now_ms(&clock), timeout_ms);
    struct wait wait = {.connection = connection};
    enum uc_status status;

    if (connection->in_progress) {
        return uc_error(UC_ERR_INVALID_PARAM, "rpc: %s: call_wait inside a callback",
                uc_rpc_method_name(method));
    }
    status = uc_rpc_call(connection, method, params, timeout_ms, on_wait_reply, &wait);
    if (status != UC_OK) {
        return status;
    }

    uc_rpc_connection_enter(connection);
    while (!wait.done && !connection->destroyed) {
        uint64_t now_ms = uc_clock_now_ms(&clock);

        if (now_ms >= deadline_ms) {
            (void)uc_rpc_connection_expire(connection, now_ms);
            continue;
        }
        wait_for_socket(connection, deadline_ms - now_ms);
        uc_rpc_connection_progress(connection);
    }
    if (!wait.done) {
        wait.status = uc_error(UC_ERR_UNHEALTHY, "rpc: %s: the connection was closed meanwhile",
                uc_rpc_method_name(method));
    }
    connection->keep_input = false;
    uc_rpc_connection_leave(connection);
    if (wait.status == UC_OK && result_out != NULL) {
        *result_out = wait.result;
    }
    return wait.status;
}

enum uc_status
uc_rpc_notify(struct uc_rpc_connection *connection, enum uc_rpc_method method,
        const struct uc_rpc_buffer *params)
{
    struct small head = {.length = 0};

    if (params->failed) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "rpc: %s: no memory to encode the message",
                uc_rpc_method_name(method));
    }
    if (connection->failure == UC_OK && !connection->destroyed) {
        make_head(&head, false, 0, method);
        uc_rpc_connection_send(connection, head.bytes, head.length, params->bytes, params->length);
    }
    if (connection->failure != UC_OK || connection->destroyed) {
        return uc_error(
                UC_ERR_UNHEALTHY, "rpc: %s: the connection is closed", uc_rpc_method_name(method));
    }

    return UC_OK;
}

static void
make_reply_head(struct small *head, uint32_t message_id)
{
    msgpack_packer packer;

    msgpack_packer_init(&packer, head, write_small);
    (void)msgpack_pack_array(&packer, 4);
    (void)msgpack_pack_uint32(&packer, UC_RPC_MESSAGE_RESPONSE);
    (void)msgpack_pack_uint32(&packer, message_id);
}

void
uc_rpc_reply(struct uc_rpc_connection *connection, uint32_t message_id,
        const struct uc_rpc_buffer *result)
{
    struct small head = {.length = 0};
    msgpack_packer packer;

    if (result != NULL && result->failed) {
        uc_rpc_reply_error(
                connection, message_id, UC_ERR_OUT_OF_MEMORY, "no memory for the answer");
        return;
    }

    make_reply_head(&head, message_id);
    msgpack_packer_init(&packer, &head, write_small);
    (void)msgpack_pack_nil(&packer);
    if (result == NULL) {
        (void)msgpack_pack_nil(&packer);
    }
    uc_rpc_connection_send(connection, head.bytes, head.length,
            result == NULL ? NULL : result->bytes, result == NULL ? 0 : result->length);
}

void
uc_rpc_reply_error(struct uc_rpc_connection *connection, uint32_t message_id, enum uc_status status,
        const char *message)
{
    const char *text = message == NULL ? uc_last_error() : message;
    struct small head = {.length = 0};
    struct small error = {.length = 0};
    msgpack_packer packer;

    make_reply_head(&head, message_id);
    msgpack_packer_init(&packer, &error, write_small);
    (void)msgpack_pack_array(&packer, 2);
    (void)msgpack_pack_int32(&packer, (int)status);
    uc_encode_text(&packer, text, strnlen(text, UC_RPC_ERROR_TEXT_MAX));
    (void)msgpack_pack_nil(&packer);
    uc_rpc_connection_send(connection, head.bytes, head.length, error.bytes, error.length);
}
