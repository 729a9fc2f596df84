/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include <ucm/clock.h>

#include "test/unit/net/rpc_side.h"

START_TEST(call_is_answered)
{
    right.answer = true;
    ck_assert_int_eq(side_call(&left, UC_RPC_STAT, LONG_MS), UC_OK);
    side_progress_both();
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
        ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    }
    for (int turn = 0; turn < 100 && left.reply_count < 1000; turn++) {
        side_progress_both();
    }
    ck_assert_uint_eq(right.request_count, 1000);
    ck_assert_uint_eq(left.reply_count, 1000);
}
END_TEST

START_TEST(answers_in_another_order_find_their_calls)
{
    struct uc_rpc_buffer result = {0};

    for (int idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    }
    side_progress_both();
    ck_assert_uint_eq(right.request_count, 3);
    for (size_t idx = 3; idx-- > 0;) {
        uint8_t number = (uint8_t)(10 + idx);

        uc_rpc_buffer_reset(&result);
        uc_rpc_buffer_append(&result, &number, 1);
        uc_rpc_reply(right.connection, right.ids[idx], &result);
    }
    uc_rpc_buffer_fini(&result);
    side_progress_both();
    ck_assert_uint_eq(left.reply_count, 3);
    ck_assert_uint_eq(left.reply_first[0], 12);
    ck_assert_uint_eq(left.reply_first[1], 11);
    ck_assert_uint_eq(left.reply_first[2], 10);
}
END_TEST

START_TEST(errors_carry_code_and_text)
{
    ck_assert_int_eq(side_call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    side_progress_both();
    uc_rpc_reply_error(right.connection, right.ids[0], UC_ERR_NO_SPACE, "full: add\nmemory");
    side_progress_both();
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

    side_pair(fds);
    uc_rpc_connection_destroy(left.connection);
    uc_rpc_connection_destroy(right.connection);
    side_open(&left, fds[0]);
    ck_assert_int_eq(
            uc_rpc_connection_create(fds[1], &failing, NULL, FRAME_MAX, &right.connection), UC_OK);
    ck_assert_int_eq(side_call(&left, UC_RPC_PIN, LONG_MS), UC_OK);
    side_progress_both();
    ck_assert_str_eq(left.reply_error, "pin: no such block");
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    side_progress_both();
    ck_assert_str_eq(left.reply_error, "NotFound");
}
END_TEST

START_TEST(notifications_arrive)
{
    struct uc_rpc_buffer params = {0};

    uc_grant_request_encode(&params, 7);
    ck_assert_int_eq(uc_rpc_notify(left.connection, UC_RPC_UNPIN, &params), UC_OK);
    uc_rpc_buffer_fini(&params);
    side_progress_both();
    ck_assert_uint_eq(right.notification_count, 1);
    ck_assert_int_eq(right.methods[0], UC_RPC_UNPIN);
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
                uc_rpc_call(left.connection, UC_RPC_LOOKUP, &params, LONG_MS, side_on_reply, &left),
                UC_OK);
    }
    ck_assert_int_ne(uc_rpc_connection_events(left.connection) & 4 /* POLLOUT */, 0);
    for (int turn = 0; turn < 1000 && left.reply_count < 5; turn++) {
        side_progress_both();
    }
    ck_assert_uint_eq(left.reply_count, 5);
    ck_assert_uint_eq(right.param_bytes[4], params.length);
    uc_rpc_buffer_fini(&params);
}
END_TEST

/* time is passed in. */
START_TEST(calls_time_out_and_late_answers_meet_no_other_call)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t now_ms = uc_clock_now_ms(&clock);
    uint64_t next_ms;

    ck_assert_int_eq(side_call(&left, UC_RPC_PING, 1000), UC_OK);
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, 500000), UC_OK);
    next_ms = uc_rpc_connection_expire(left.connection, now_ms);
    ck_assert_uint_ge(next_ms, now_ms + 1000);
    ck_assert_uint_eq(left.reply_count, 0);
    next_ms = uc_rpc_connection_expire(left.connection, now_ms + 100000);
    ck_assert_uint_eq(left.reply_count, 1);
    ck_assert_int_eq(left.reply_status[0], UC_ERR_TIMEOUT);
    ck_assert_uint_ge(next_ms, now_ms + 500000);

    /* The slot of the first call is used again; the answer to that one comes only now. */
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_OK);
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
    static const struct uc_rpc_handler none = {.on_closed = side_on_closed};
    struct uc_rpc_connection *connection;
    int fds[2];

    side_pair(fds);
    ck_assert_int_eq(uc_rpc_connection_create(fds[0], &none, &left, FRAME_MAX, &connection), UC_OK);
    uc_rpc_connection_destroy(right.connection);
    side_open(&right, fds[1]);
    ck_assert_int_eq(side_call(&right, UC_RPC_PING, LONG_MS), UC_OK);
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
            uc_rpc_call(left.connection, UC_RPC_LOOKUP, &params, LONG_MS, side_on_reply, &left),
            UC_OK);
    uc_rpc_buffer_fini(&params);
    for (int turn = 0; turn < 100 && left.reply_count < 1; turn++) {
        side_progress_both();
    }
    ck_assert_uint_eq(left.reply_count, 1);
    ck_assert_uint_eq(uc_rpc_connection_expire(right.connection, 1000), 2000);
    ck_assert_uint_eq(uc_rpc_connection_expire(right.connection, 1500), 2000);
    ck_assert_uint_eq(uc_rpc_connection_expire(right.connection, 2000), UC_TIME_NEVER_MS);
    /* It works on afterwards. */
    ck_assert_int_eq(side_call(&left, UC_RPC_PING, LONG_MS), UC_OK);
    side_progress_both();
    ck_assert_uint_eq(left.reply_count, 2);
}
END_TEST

static Suite *
rpc_connection_suite(void)
{
    Suite *suite = suite_create("rpc_connection");
    TCase *both = tcase_create("both");
    TCase *raw = tcase_create("raw");

    tcase_add_checked_fixture(both, side_setup_pair, side_teardown);
    tcase_set_timeout(both, 30);
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

    tcase_add_checked_fixture(raw, side_setup_raw, side_teardown);
    tcase_set_timeout(raw, 30);
    tcase_add_test(raw, calls_time_out_and_late_answers_meet_no_other_call);
    tcase_add_test(raw, expire_says_never_when_nothing_waits);
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
