/* SPDX-License-Identifier: Apache-2.0 */

/* What a peer may do to a connection: odd bytes, odd cuts, silence, leaving. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include <ucm/clock.h>

#include "test/unit/net/rpc_side.h"

START_TEST(unknown_error_codes_are_general)
{
    ck_assert_int_eq(side_call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    RAW_SEND("\x94\x01\x00\x92\xd2\xff\xfe\x79\x60\xa1x\xc0"); /* -100000 */
    uc_rpc_connection_progress(left.connection);
    ck_assert_int_eq(left.reply_status[0], UC_ERR_GENERAL);

    ck_assert_int_eq(side_call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    /* The second call of the slot: sequence 1. A success cannot come as an error. */
    RAW_SEND("\x94\x01\xce\x00\x01\x00\x00\x92\x00\xa1x\xc0");
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.reply_count, 2);
    ck_assert_int_eq(left.reply_status[1], UC_ERR_GENERAL);
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
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_ERR_UNHEALTHY);
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

START_TEST(peer_that_leaves_fails_pending_calls_before_closing)
{
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_OK);
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
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_ERR_UNHEALTHY);
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

static Suite *
rpc_stream_suite(void)
{
    Suite *suite = suite_create("rpc_stream");
    TCase *raw = tcase_create("raw");

    tcase_add_checked_fixture(raw, side_setup_raw, side_teardown);
    tcase_set_timeout(raw, 30);
    tcase_add_test(raw, unknown_error_codes_are_general);
    tcase_add_test(raw, unknown_methods_are_unsupported_and_keep_the_connection);
    tcase_add_test(raw, frames_split_at_every_byte_are_put_together);
    tcase_add_test(raw, pipelined_frames_cut_anywhere_all_arrive);
    tcase_add_loop_test(
            raw, bad_streams_close_the_connection, 0, sizeof(bad_streams) / sizeof(bad_streams[0]));
    tcase_add_test(raw, answers_nobody_waits_for_are_ignored);
    tcase_add_test(raw, peer_that_leaves_fails_pending_calls_before_closing);
    tcase_add_test(raw, writing_to_a_peer_that_left_raises_no_signal);
    tcase_add_test(raw, peer_that_never_reads_is_closed);
    tcase_add_test(raw, connection_may_be_destroyed_by_its_own_callback);
    suite_add_tcase(suite, raw);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(rpc_stream_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
