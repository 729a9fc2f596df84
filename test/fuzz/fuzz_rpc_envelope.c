/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One frame's content, as the connection sees it: scan, envelope, dispatch. Two calls wait for answers.
 * Nothing is sent: output is collected as it is while callbacks run.
 */

#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "net/rpc/connection_private.h"
#include "test/fuzz/fuzz.h"

static void
on_request(void *context, struct uc_rpc_connection *connection, uint32_t message_id,
        enum uc_rpc_method method, struct uc_rpc_view params)
{
    (void)context;
    if (method >= UC_RPC_METHOD_COUNT || uc_rpc_scan(params.bytes, params.length) != UC_OK) {
        abort(); /* params are one object, the last one of the frame */
    }
    uc_rpc_reply_error(connection, message_id, UC_ERR_NOT_FOUND, NULL);
}

static void
on_notification(void *context, struct uc_rpc_connection *connection, enum uc_rpc_method method,
        struct uc_rpc_view params)
{
    (void)context;
    (void)connection;
    if (method >= UC_RPC_METHOD_COUNT || uc_rpc_scan(params.bytes, params.length) != UC_OK) {
        abort();
    }
}

static void
on_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    (void)context;
    if (status == UC_OK && uc_rpc_scan(result.bytes, result.length) != UC_OK) {
        abort();
    }
    if (status != UC_OK && uc_last_error()[0] == '\0') {
        abort();
    }
}

static const struct uc_rpc_handler handler = {
        .on_request = on_request,
        .on_notification = on_notification,
};

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct uc_rpc_connection connection = {
            .fd = -1,
            .handler = &handler,
            .frame_bytes_max = SIZE_MAX,
            .earliest_ms = UC_TIME_NEVER_MS,
            .in_progress = true,
    };
    uint32_t message_id;

    uc_log_set_level(UC_LOG_ERROR);
    for (int idx = 0; idx < 2; idx++) {
        if (uc_rpc_pending_reserve(&connection, &message_id) == UC_OK) {
            uc_rpc_pending_add(&connection, 1, on_reply, NULL);
        }
    }
    if (uc_rpc_scan(bytes, length) == UC_OK) {
        uc_rpc_dispatch(&connection, bytes, length);
    }
    free(connection.pending);
    free(connection.send.bytes);
    return 0;
}
