/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/net/rpc_side.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include <ucm/log.h>

#include "core/base/bytes.h"

struct side left;
struct side right;
int raw_fd;

static void
on_request(void *context, struct uc_rpc_connection *connection, uint32_t message_id,
        enum uc_rpc_method method, struct uc_rpc_view params)
{
    struct side *side = context;

    if (side->request_count < SEEN_MAX) {
        side->methods[side->request_count] = method;
        side->ids[side->request_count] = message_id;
        side->param_bytes[side->request_count] = params.length;
    }
    side->request_count++;
    if (side->answer) {
        uc_rpc_reply(connection, message_id, NULL);
    }
    if (side->destroy_in_call) {
        side->connection = NULL;
        uc_rpc_connection_destroy(connection);
    }
}

static void
on_notification(void *context, struct uc_rpc_connection *connection, enum uc_rpc_method method,
        struct uc_rpc_view params)
{
    struct side *side = context;

    (void)connection;
    (void)params;
    side->methods[side->notification_count % SEEN_MAX] = method;
    side->notification_count++;
}

void
side_on_closed(void *context, struct uc_rpc_connection *connection, enum uc_status reason)
{
    struct side *side = context;

    (void)connection;
    side->closed_count++;
    side->closed_reason = reason;
}

void
side_on_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct side *side = context;

    side->reply_status[side->reply_count % SEEN_MAX] = status;
    side->reply_first[side->reply_count % SEEN_MAX] = result.length > 0 ? result.bytes[0] : 0;
    if (status != UC_OK) {
        strncpy(side->reply_error, uc_last_error(), sizeof(side->reply_error) - 1);
    }
    side->reply_count++;
}

const struct uc_rpc_handler side_handler = {
        .on_request = on_request,
        .on_notification = on_notification,
        .on_closed = side_on_closed,
};

void
side_pair(int fds[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

void
side_open(struct side *side, int fd)
{
    memset(side, 0, sizeof(*side));
    ck_assert_int_eq(
            uc_rpc_connection_create(fd, &side_handler, side, FRAME_MAX, &side->connection), UC_OK);
}

void
side_setup_pair(void)
{
    int fds[2];

    uc_log_set_level(UC_LOG_ERROR);
    side_pair(fds);
    side_open(&left, fds[0]);
    side_open(&right, fds[1]);
    raw_fd = -1;
}

void
side_setup_raw(void)
{
    int fds[2];

    uc_log_set_level(UC_LOG_ERROR);
    side_pair(fds);
    side_open(&left, fds[0]);
    memset(&right, 0, sizeof(right));
    raw_fd = fds[1];
}

void
side_teardown(void)
{
    uc_rpc_connection_destroy(left.connection);
    uc_rpc_connection_destroy(right.connection);
    if (raw_fd >= 0) {
        (void)close(raw_fd);
    }
}

void
side_progress_both(void)
{
    for (int turn = 0; turn < 4; turn++) {
        uc_rpc_connection_progress(left.connection);
        uc_rpc_connection_progress(right.connection);
    }
}

enum uc_status
side_call(struct side *side, enum uc_rpc_method method, uint64_t timeout_ms)
{
    struct uc_rpc_buffer params = {0};
    enum uc_status status;

    uc_empty_request_encode(&params);
    status = uc_rpc_call(side->connection, method, &params, timeout_ms, side_on_reply, side);
    uc_rpc_buffer_fini(&params);
    return status;
}

/* Write a frame with its length to the raw end. */
void
side_raw_send(const void *bytes, size_t length)
{
    uint8_t head[4];

    uc_put_le32(head, (uint32_t)length);
    ck_assert_int_eq(write(raw_fd, head, 4), 4);
    ck_assert_int_eq(write(raw_fd, bytes, length), (ssize_t)length);
}
