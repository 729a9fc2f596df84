/* SPDX-License-Identifier: Apache-2.0 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "core/base/bytes.h"
#include "net/rpc/connection.h"
#include "net/rpc/messages.h"

enum {
    FRAME_MAX = 1 << 20,
    SEEN_MAX = 64,
    LONG_MS = 60000,
};

/* What one side was told. */
struct side {
    struct uc_rpc_connection *connection;
    size_t request_count;
    size_t notification_count;
    size_t closed_count;
    enum uc_status closed_reason;
    enum uc_rpc_method methods[SEEN_MAX];
    uint32_t ids[SEEN_MAX];
    size_t param_bytes[SEEN_MAX];
    bool answer;          /* answer at once, with nil */
    bool destroy_in_call; /* destroy the connection from the callback */
    size_t reply_count;
    enum uc_status reply_status[SEEN_MAX];
    uint8_t reply_first[SEEN_MAX];
    char reply_error[256];
};

static struct side left;
static struct side right;
static int raw_fd; /* the other end of left, where right is not used */

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

static void
on_closed(void *context, struct uc_rpc_connection *connection, enum uc_status reason)
{
    struct side *side = context;

    (void)connection;
    side->closed_count++;
    side->closed_reason = reason;
}

static void
on_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct side *side = context;

    side->reply_status[side->reply_count % SEEN_MAX] = status;
    side->reply_first[side->reply_count % SEEN_MAX] = result.length > 0 ? result.bytes[0] : 0;
    if (status != UC_OK) {
        strncpy(side->reply_error, uc_last_error(), sizeof(side->reply_error) - 1);
    }
    side->reply_count++;
}

static const struct uc_rpc_handler handler = {
        .on_request = on_request,
        .on_notification = on_notification,
        .on_closed = on_closed,
};

static void
pair(int fds[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static void
open_side(struct side *side, int fd)
{
    memset(side, 0, sizeof(*side));
    ck_assert_int_eq(
            uc_rpc_connection_create(fd, &handler, side, FRAME_MAX, &side->connection), UC_OK);
}

static void
setup_pair(void)
{
    int fds[2];

    uc_log_set_level(UC_LOG_ERROR);
    pair(fds);
    open_side(&left, fds[0]);
    open_side(&right, fds[1]);
    raw_fd = -1;
}

static void
setup_raw(void)
{
    int fds[2];

    uc_log_set_level(UC_LOG_ERROR);
    pair(fds);
    open_side(&left, fds[0]);
    memset(&right, 0, sizeof(right));
    raw_fd = fds[1];
}

static void
teardown(void)
{
    uc_rpc_connection_destroy(left.connection);
    uc_rpc_connection_destroy(right.connection);
    if (raw_fd >= 0) {
        (void)close(raw_fd);
    }
}

static void
progress_both(void)
{
    for (int turn = 0; turn < 4; turn++) {
        uc_rpc_connection_progress(left.connection);
        uc_rpc_connection_progress(right.connection);
    }
}

static enum uc_status
call(struct side *side, enum uc_rpc_method method, uint64_t timeout_ms)
{
    struct uc_rpc_buffer params = {0};
    enum uc_status status;

    uc_empty_request_encode(&params);
    status = uc_rpc_call(side->connection, method, &params, timeout_ms, on_reply, side);
    uc_rpc_buffer_fini(&params);
    return status;
}

/* Write a frame with its length to the raw end. */
static void
raw_send(const void *bytes, size_t length)
{
    uint8_t head[4];

    uc_put_le32(head, (uint32_t)length);
    ck_assert_int_eq(write(raw_fd, head, 4), 4);
    ck_assert_int_eq(write(raw_fd, bytes, length), (ssize_t)length);
}
#define RAW_SEND(literal) raw_send((literal), sizeof(literal) - 1)

START_TEST(call_is_answered)
{
    right.answer = true;
    ck_assert_int_eq(call(&left, UC_RPC_STAT, LONG_MS), UC_OK);
    progress_both();
    ck_assert_uint_eq(right.request_count, 1);
    ck_assert_int_eq(right.methods[0], UC_RPC_STAT);
    ck_assert_uint_eq(left.reply_count, 1);
    ck_assert_int_eq(left.reply_status[0], UC_OK);
    ck_assert_uint_eq(left.reply_first[0], 0xc0);
}
END_TEST

START_TEST(many_calls_are_pending_at_once)
{
    right.answer = true;
    for (int idx = 0; idx < 1000; idx++) {
        ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    }
    for (int turn = 0; turn < 100 && left.reply_count < 1000; turn++) {
        progress_both();
    }
    ck_assert_uint_eq(right.request_count, 1000);
    ck_assert_uint_eq(left.reply_count, 1000);
}
END_TEST

START_TEST(answers_in_another_order_find_their_calls)
{
    struct uc_rpc_buffer result = {0};

    for (int idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    }
    progress_both();
    ck_assert_uint_eq(right.request_count, 3);
    for (size_t idx = 3; idx-- > 0;) {
        uint8_t number = (uint8_t)(10 + idx);

        uc_rpc_buffer_reset(&result);
        uc_rpc_buffer_append(&result, &number, 1);
        uc_rpc_reply(right.connection, right.ids[idx], &result);
    }
    uc_rpc_buffer_fini(&result);
    progress_both();
    ck_assert_uint_eq(left.reply_count, 3);
    ck_assert_uint_eq(left.reply_first[0], 12);
    ck_assert_uint_eq(left.reply_first[1], 11);
    ck_assert_uint_eq(left.reply_first[2], 10);
}
END_TEST

START_TEST(errors_carry_code_and_text)
{
    ck_assert_int_eq(call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    progress_both();
    uc_rpc_reply_error(right.connection, right.ids[0], UC_ERR_NO_SPACE, "full: add\nmemory");
    progress_both();
    ck_assert_int_eq(left.reply_status[0], UC_ERR_NO_SPACE);
    /* A peer's text cannot forge lines of a log. */
    ck_assert_str_eq(left.reply_error, "full: add?memory");
}
END_TEST

static void
on_request_that_fails(void *context, struct uc_rpc_connection *connection, uint32_t message_id,
        enum uc_rpc_method method, struct uc_rpc_view params)
{
    (void)context;
    (void)params;
    uc_rpc_reply_error(connection, message_id,
            method == UC_RPC_PIN ? uc_error(UC_ERR_NOT_FOUND, "pin: no such block")
                                 : UC_ERR_NOT_FOUND,
            NULL);
}

START_TEST(an_answer_quotes_only_its_own_failure)
{
    static const struct uc_rpc_handler failing = {.on_request = on_request_that_fails};
    int fds[2];

    pair(fds);
    uc_rpc_connection_destroy(left.connection);
    uc_rpc_connection_destroy(right.connection);
    open_side(&left, fds[0]);
    ck_assert_int_eq(
            uc_rpc_connection_create(fds[1], &failing, NULL, FRAME_MAX, &right.connection), UC_OK);
    ck_assert_int_eq(call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    progress_both();
    ck_assert_str_eq(left.reply_error, "pin: no such block");
    ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    progress_both();
    ck_assert_str_eq(left.reply_error, "NotFound");
}
END_TEST

START_TEST(unknown_error_codes_are_general)
{
    ck_assert_int_eq(call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    RAW_SEND("\x94\x01\x00\x92\xd2\xff\xfe\x79\x60\xa1x\xc0"); /* -100000 */
    uc_rpc_connection_progress(left.connection);
    ck_assert_int_eq(left.reply_status[0], UC_ERR_GENERAL);

    ck_assert_int_eq(call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    /* The second call of the slot: sequence 1. A success cannot come as an error. */
    RAW_SEND("\x94\x01\xce\x00\x01\x00\x00\x92\x00\xa1x\xc0");
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.reply_count, 2);
    ck_assert_int_eq(left.reply_status[1], UC_ERR_GENERAL);
}
END_TEST

START_TEST(notifications_arrive)
{
    struct uc_rpc_buffer params = {0};

    uc_grant_request_encode(&params, 7);
    ck_assert_int_eq(uc_rpc_notify(left.connection, UC_RPC_UNPIN, &params), UC_OK);
    uc_rpc_buffer_fini(&params);
    progress_both();
    ck_assert_uint_eq(right.notification_count, 1);
    ck_assert_int_eq(right.methods[0], UC_RPC_UNPIN);
}
END_TEST

START_TEST(unknown_methods_are_unsupported_and_keep_the_connection)
{
    uint8_t answer[256];
    ssize_t got;

    RAW_SEND("\x94\x00\x07\xa4nope\x90");
    RAW_SEND("\x93\x02\xa4nope\x90");
    RAW_SEND("\x94\x00\x08\xa4ping\x90");
    left.answer = true;
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.request_count, 1);
    ck_assert_uint_eq(left.notification_count, 0);
    ck_assert_uint_eq(left.closed_count, 0);
    got = read(raw_fd, answer, sizeof(answer));
    ck_assert_int_gt(got, 14);
    /* [1, 7, [-50008, … */
    ck_assert_mem_eq(answer + 4, "\x94\x01\x07\x92\xd2\xff\xff\x3c\xa8", 9);
}
END_TEST

START_TEST(frames_split_at_every_byte_are_put_together)
{
    static const char frame[] = "\x0b\x00\x00\x00\x94\x00\x05\xa6lookup\x90";
    size_t length = sizeof(frame) - 1;

    for (size_t idx = 0; idx < length; idx++) {
        ck_assert_uint_eq(left.request_count, 0);
        ck_assert_int_eq(write(raw_fd, frame + idx, 1), 1);
        uc_rpc_connection_progress(left.connection);
    }
    ck_assert_uint_eq(left.request_count, 1);
    ck_assert_uint_eq(left.ids[0], 5);
    ck_assert_int_eq(left.methods[0], UC_RPC_LOOKUP);
}
END_TEST

START_TEST(pipelined_frames_cut_anywhere_all_arrive)
{
    static const char frame[] = "\x0b\x00\x00\x00\x94\x00\x05\xa6lookup\x90";
    size_t length = sizeof(frame) - 1;
    char stream[10 * (sizeof(frame) - 1)];

    for (size_t idx = 0; idx < sizeof(stream); idx++) {
        stream[idx] = frame[idx % length];
    }
    for (size_t cut = 0; cut <= sizeof(stream); cut++) {
        left.request_count = 0;
        ck_assert_int_eq(write(raw_fd, stream, cut), (ssize_t)cut);
        uc_rpc_connection_progress(left.connection);
        ck_assert_uint_eq(left.request_count, cut / length);
        ck_assert_int_eq(
                write(raw_fd, stream + cut, sizeof(stream) - cut), (ssize_t)(sizeof(stream) - cut));
        uc_rpc_connection_progress(left.connection);
        ck_assert_uint_eq(left.request_count, 10);
    }
}
END_TEST

START_TEST(long_frames_cross_both_ways)
{
    static struct uc_block_id ids[20000];
    struct uc_rpc_buffer params = {0};

    right.answer = true;
    uc_keys_request_encode(&params, (struct uc_keys_view){.ids = ids, .count = 20000});
    for (int idx = 0; idx < 5; idx++) {
        ck_assert_int_eq(
                uc_rpc_call(left.connection, UC_RPC_LOOKUP, &params, LONG_MS, on_reply, &left),
                UC_OK);
    }
    ck_assert_int_ne(uc_rpc_connection_events(left.connection) & 4 /* POLLOUT */, 0);
    for (int turn = 0; turn < 1000 && left.reply_count < 5; turn++) {
        progress_both();
    }
    ck_assert_uint_eq(left.reply_count, 5);
    ck_assert_uint_eq(right.param_bytes[4], params.length);
    uc_rpc_buffer_fini(&params);
}
END_TEST

static const struct {
    const char *bytes;
    size_t length;
} bad_streams[] = {
        {"\x00\x00\x00\x00", 4},                              /* empty frame */
        {"\xff\xff\xff\xff", 4},                              /* 4 GiB */
        {"\x01\x00\x10\x00", 4},                              /* one byte above the cap */
        {"\x01\x00\x00\x00\xc1", 5},                          /* not msgpack */
        {"\x05\x00\x00\x00\xdd\xff\xff\xff\xff", 9},          /* a count that lies */
        {"\x01\x00\x00\x00\x90", 5},                          /* no members */
        {"\x01\x00\x00\x00\xc0", 5},                          /* no array */
        {"\x02\x00\x00\x00\x91\x00", 6},                      /* type alone */
        {"\x09\x00\x00\x00\x94\x03\x01\xa4ping\x90", 13},     /* type 3 */
        {"\x09\x00\x00\x00\x94\x00\xff\xa4ping\x90", 13},     /* negative id */
        {"\x09\x00\x00\x00\x94\x00\x01\xa4ping\xc0", 13},     /* params no array */
        {"\x05\x00\x00\x00\x94\x00\x01\x01\x90", 9},          /* method no text */
        {"\x08\x00\x00\x00\x93\x00\xa4ping\x90", 12},         /* request with three members */
        {"\x05\x00\x00\x00\x94\x01\x01\x01\xc0", 9},          /* error no array */
        {"\x06\x00\x00\x00\x94\x01\x01\x91\x01\xc0", 10},     /* error with one member */
        {"\x07\x00\x00\x00\x94\x01\x01\x92\x01\x01\xc0", 11}, /* error text no text */
};

START_TEST(bad_streams_close_the_connection)
{
    ck_assert_int_eq(write(raw_fd, bad_streams[_i].bytes, bad_streams[_i].length),
            (ssize_t)bad_streams[_i].length);
    uc_rpc_connection_progress(left.connection);
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.closed_count, 1);
    ck_assert_int_eq(left.closed_reason, UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(left.request_count, 0);
    ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_ERR_UNHEALTHY);
}
END_TEST

START_TEST(answers_nobody_waits_for_are_ignored)
{
    RAW_SEND("\x94\x01\x00\xc0\xc0");
    RAW_SEND("\x94\x01\xce\xff\xff\xff\xff\xc0\xc0");
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.closed_count, 0);
    ck_assert_uint_eq(left.reply_count, 0);
}
END_TEST

/* time is passed in. */
START_TEST(calls_time_out_and_late_answers_meet_no_other_call)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t now_ms = uc_clock_now_ms(&clock);
    uint64_t next_ms;

    ck_assert_int_eq(call(&left, UC_RPC_PING, 1000), UC_OK);
    ck_assert_int_eq(call(&left, UC_RPC_PING, 500000), UC_OK);
    next_ms = uc_rpc_connection_expire(left.connection, now_ms);
    ck_assert_uint_ge(next_ms, now_ms + 1000);
    ck_assert_uint_eq(left.reply_count, 0);
    next_ms = uc_rpc_connection_expire(left.connection, now_ms + 100000);
    ck_assert_uint_eq(left.reply_count, 1);
    ck_assert_int_eq(left.reply_status[0], UC_ERR_TIMEOUT);
    ck_assert_uint_ge(next_ms, now_ms + 500000);

    /* The slot of the first call is used again; the answer to that one comes only now. */
    ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    RAW_SEND("\x94\x01\x00\xc0\x2a");
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.reply_count, 1);
    RAW_SEND("\x94\x01\xce\x00\x01\x00\x00\xc0\x2b");
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.reply_count, 2);
    ck_assert_uint_eq(left.reply_first[1], 0x2b);
}
END_TEST

START_TEST(expire_says_never_when_nothing_waits)
{
    ck_assert_uint_eq(uc_rpc_connection_expire(left.connection, 5), UC_TIME_NEVER_MS);
}
END_TEST

START_TEST(peer_that_leaves_fails_pending_calls_before_closing)
{
    ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    (void)close(raw_fd);
    raw_fd = -1;
    uc_rpc_connection_progress(left.connection);
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.reply_count, 2);
    ck_assert_int_eq(left.reply_status[0], UC_ERR_UNHEALTHY);
    ck_assert_int_eq(left.reply_status[1], UC_ERR_UNHEALTHY);
    ck_assert_uint_eq(left.closed_count, 1);
    ck_assert_int_eq(left.closed_reason, UC_ERR_UNHEALTHY);
}
END_TEST

START_TEST(writing_to_a_peer_that_left_raises_no_signal)
{
    (void)close(raw_fd);
    raw_fd = -1;
    /* SIGPIPE would end this process. */
    ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_ERR_UNHEALTHY);
    ck_assert_uint_eq(left.closed_count, 0); /* not from inside the call */
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.closed_count, 1);
    ck_assert_uint_eq(left.reply_count, 0);
}
END_TEST

START_TEST(peer_that_never_reads_is_closed)
{
    static const uint8_t chunk[1 << 20];
    struct uc_rpc_buffer result = {0};
    int rounds;

    uc_rpc_buffer_append(&result, chunk, sizeof(chunk));
    for (rounds = 0; rounds < 200 && left.closed_count == 0; rounds++) {
        uc_rpc_reply(left.connection, 1, &result);
        uc_rpc_connection_progress(left.connection);
    }
    uc_rpc_buffer_fini(&result);
    ck_assert_uint_eq(left.closed_count, 1);
    ck_assert_int_ge(rounds, 63);
    ck_assert_int_le(rounds, 70);
}
END_TEST

START_TEST(connection_may_be_destroyed_by_its_own_callback)
{
    RAW_SEND("\x94\x00\x01\xa4ping\x90");
    RAW_SEND("\x94\x00\x02\xa4ping\x90");
    left.destroy_in_call = true;
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.request_count, 1); /* the second is not delivered any more */
    ck_assert_ptr_null(left.connection);
    ck_assert_uint_eq(left.closed_count, 0);
}
END_TEST

START_TEST(call_wait_gives_the_result)
{
    struct uc_rpc_buffer params = {0};
    struct uc_rpc_view result = {0};

    uc_empty_request_encode(&params);
    /* The answer is there before the question: the socket keeps both. */
    RAW_SEND("\x94\x00\x09\xa4ping\x90");
    RAW_SEND("\x94\x01\x00\xc0\xc4\x03xyz");
    RAW_SEND("\x94\x00\x0a\xa4ping\x90");
    ck_assert_int_eq(
            uc_rpc_call_wait(left.connection, UC_RPC_STAT, &params, LONG_MS, &result), UC_OK);
    ck_assert_uint_eq(result.length, 5);
    ck_assert_mem_eq(result.bytes, "\xc4\x03xyz", 5);
    ck_assert_uint_eq(left.request_count, 2); /* what came along was delivered */
    uc_rpc_buffer_fini(&params);
}
END_TEST

START_TEST(call_wait_times_out_and_sees_a_lost_peer)
{
    struct uc_rpc_buffer params = {0};
    struct uc_rpc_view result = {0};

    uc_empty_request_encode(&params);
    ck_assert_int_eq(
            uc_rpc_call_wait(left.connection, UC_RPC_STAT, &params, 5, &result), UC_ERR_TIMEOUT);
    ck_assert_int_eq(shutdown(raw_fd, SHUT_RDWR), 0);
    ck_assert_int_eq(uc_rpc_call_wait(left.connection, UC_RPC_STAT, &params, LONG_MS, &result),
            UC_ERR_UNHEALTHY);
    ck_assert_ptr_null(result.bytes);
    uc_rpc_buffer_fini(&params);
}
END_TEST

START_TEST(call_wait_hands_errors_on)
{
    struct uc_rpc_buffer params = {0};

    uc_empty_request_encode(&params);
    RAW_SEND("\x94\x01\x00\x92\xd2\xff\xff\x3c\xab\xa4gone\xc0");
    ck_assert_int_eq(uc_rpc_call_wait(left.connection, UC_RPC_STAT, &params, LONG_MS, NULL),
            UC_ERR_NOT_FOUND);
    ck_assert_str_eq(uc_last_error(), "gone");
    uc_rpc_buffer_fini(&params);
}
END_TEST

START_TEST(side_without_request_handler_answers_unsupported)
{
    static const struct uc_rpc_handler none = {.on_closed = on_closed};
    struct uc_rpc_connection *connection;
    int fds[2];

    pair(fds);
    ck_assert_int_eq(uc_rpc_connection_create(fds[0], &none, &left, FRAME_MAX, &connection), UC_OK);
    uc_rpc_connection_destroy(right.connection);
    open_side(&right, fds[1]);
    ck_assert_int_eq(call(&right, UC_RPC_PING, LONG_MS), UC_OK);
    uc_rpc_connection_progress(connection);
    uc_rpc_connection_progress(right.connection);
    ck_assert_int_eq(right.reply_status[0], UC_ERR_UNSUPPORTED);
    uc_rpc_connection_destroy(connection);
}
END_TEST

START_TEST(memory_of_a_burst_is_given_back_when_idle)
{
    static struct uc_block_id ids[20000];
    struct uc_rpc_buffer params = {0};

    right.answer = true;
    uc_keys_request_encode(&params, (struct uc_keys_view){.ids = ids, .count = 20000});
    ck_assert_int_eq(
            uc_rpc_call(left.connection, UC_RPC_LOOKUP, &params, LONG_MS, on_reply, &left), UC_OK);
    uc_rpc_buffer_fini(&params);
    for (int turn = 0; turn < 100 && left.reply_count < 1; turn++) {
        progress_both();
    }
    ck_assert_uint_eq(left.reply_count, 1);
    ck_assert_uint_eq(uc_rpc_connection_expire(right.connection, 1000), 2000);
    ck_assert_uint_eq(uc_rpc_connection_expire(right.connection, 1500), 2000);
    ck_assert_uint_eq(uc_rpc_connection_expire(right.connection, 2000), UC_TIME_NEVER_MS);
    /* It works on afterwards. */
    ck_assert_int_eq(call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    progress_both();
    ck_assert_uint_eq(left.reply_count, 2);
}
END_TEST

static Suite *
rpc_connection_suite(void)
{
    Suite *suite = suite_create("rpc_connection");
    TCase *both = tcase_create("pair");
    TCase *raw = tcase_create("raw");

    tcase_add_checked_fixture(both, setup_pair, teardown);
    tcase_add_test(both, call_is_answered);
    tcase_add_test(both, many_calls_are_pending_at_once);
    tcase_add_test(both, answers_in_another_order_find_their_calls);
    tcase_add_test(both, errors_carry_code_and_text);
    tcase_add_test(both, an_answer_quotes_only_its_own_failure);
    tcase_add_test(both, notifications_arrive);
    tcase_add_test(both, long_frames_cross_both_ways);
    tcase_add_test(both, side_without_request_handler_answers_unsupported);
    tcase_add_test(both, memory_of_a_burst_is_given_back_when_idle);
    suite_add_tcase(suite, both);

    tcase_add_checked_fixture(raw, setup_raw, teardown);
    tcase_set_timeout(raw, 30);
    tcase_add_test(raw, unknown_error_codes_are_general);
    tcase_add_test(raw, unknown_methods_are_unsupported_and_keep_the_connection);
    tcase_add_test(raw, frames_split_at_every_byte_are_put_together);
    tcase_add_test(raw, pipelined_frames_cut_anywhere_all_arrive);
    tcase_add_loop_test(
            raw, bad_streams_close_the_connection, 0, sizeof(bad_streams) / sizeof(bad_streams[0]));
    tcase_add_test(raw, answers_nobody_waits_for_are_ignored);
    tcase_add_test(raw, calls_time_out_and_late_answers_meet_no_other_call);
    tcase_add_test(raw, expire_says_never_when_nothing_waits);
    tcase_add_test(raw, peer_that_leaves_fails_pending_calls_before_closing);
    tcase_add_test(raw, writing_to_a_peer_that_left_raises_no_signal);
    tcase_add_test(raw, peer_that_never_reads_is_closed);
    tcase_add_test(raw, connection_may_be_destroyed_by_its_own_callback);
    tcase_add_test(raw, call_wait_gives_the_result);
    tcase_add_test(raw, call_wait_times_out_and_sees_a_lost_peer);
    tcase_add_test(raw, call_wait_hands_errors_on);
    suite_add_tcase(suite, raw);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(rpc_connection_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
