/* SPDX-License-Identifier: Apache-2.0 */

/* A target whose peers have several streams; the peers are bare sockets. */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tcp/tcp_wire.h"
#include "test/fake/fake_alloc.h"
#include "test/unit/net/tcp/rig.h"

enum {
    STREAM_COUNT = 3,
};

static int streams[STREAM_COUNT];

/* Say hello as one of several streams. @return the socket; *status_out is the answer */
static int
knock_as(uint32_t idx, uint32_t count, uint8_t nonce, enum uc_status *status_out)
{
    struct uc_tcp_hello hello = {.nonce = {nonce}, .lane_idx = idx, .lane_count = count};
    uint8_t bytes[UC_TCP_HELLO_BYTES];
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    int fd = peer_connect();

    uc_tcp_hello_put(bytes, &hello);
    peer_send(fd, bytes, sizeof(bytes));
    ck_assert(peer_receive(fd, answer, sizeof(answer)));
    ck_assert_int_eq(uc_tcp_answer_get(answer, status_out), UC_OK);
    return fd;
}

static int
join_as(uint32_t idx, uint32_t count, uint8_t nonce)
{
    enum uc_status status;
    int fd = knock_as(idx, count, nonce, &status);

    ck_assert_int_eq(status, UC_OK);
    return fd;
}

static void
expect_refused(uint32_t idx, uint32_t count, uint8_t nonce)
{
    enum uc_status status;
    int fd = knock_as(idx, count, nonce, &status);

    ck_assert_int_eq(status, UC_ERR_PERMISSION_DENIED);
    rig_until(peer_is_closed(fd));
    (void)close(fd);
}

static void
open_group(void)
{
    for (uint32_t idx = 0; idx < STREAM_COUNT; idx++) {
        streams[idx] = join_as(idx, STREAM_COUNT, 1);
    }
}

static void
close_streams(void)
{
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        (void)close(streams[idx]);
    }
}

/* The owner hears of one peer, whatever it is made of. */
START_TEST(one_nonce_admits_every_stream)
{
    open_group();
    ck_assert_int_eq(rig.admit_count, 1);
    ck_assert_int_eq(rig.connected_count, 1);
    for (uint32_t idx = 0; idx < STREAM_COUNT; idx++) {
        peer_send_request(streams[idx], UC_FABRIC_READ, 0, 64, 100, 7);
        peer_expect(streams[idx], 7, UC_OK, 100);
    }
    close_streams();
    rig_until(rig.gone_count == 1);
    rig_until(rig.fabric->endpoint_count == 0);
    ck_assert_int_eq(rig.gone_count, 1);
}
END_TEST

START_TEST(streams_may_join_in_any_order_after_the_first)
{
    streams[0] = join_as(0, 3, 1);
    streams[2] = join_as(2, 3, 1);
    streams[1] = join_as(1, 3, 1);
    ck_assert_uint_eq(rig.ops->next_deadline_ms(rig.fabric), UC_TIME_NEVER_MS);
    rig.now_ms += UC_TCP_JOIN_MS;
    rig_settle();
    ck_assert_int_eq(rig.gone_count, 0);
    close_streams();
}
END_TEST

/* The nonce is spent (the owner says so), and what is no part of the group stays out. */
START_TEST(stream_that_does_not_fit_its_group_is_refused)
{
    int fd = join_as(0, 3, 1);

    rig.admit_status = UC_ERR_PERMISSION_DENIED;
    expect_refused(0, 3, 1); /* there already */
    expect_refused(1, 2, 1); /* another count */
    expect_refused(0, 1, 1);
    expect_refused(1, 3, 2); /* another nonce */
    ck_assert_int_eq(rig.gone_count, 0);
    streams[1] = join_as(1, 3, 1);
    streams[2] = join_as(2, 3, 1);
    expect_refused(2, 3, 1); /* complete */
    ck_assert_int_eq(rig.connected_count, 1);
    (void)close(fd);
    (void)close(streams[1]);
    (void)close(streams[2]);
}
END_TEST

START_TEST(first_stream_must_be_there_first)
{
    expect_refused(1, 2, 1);
    ck_assert_int_eq(rig.admit_count, 0); /* the nonce is not spent */
    open_group();
    close_streams();
}
END_TEST

START_TEST(group_that_stays_incomplete_is_dropped)
{
    int first = join_as(0, 3, 1);
    int second = join_as(1, 3, 1);

    ck_assert_uint_eq(rig.ops->next_deadline_ms(rig.fabric), rig.now_ms + UC_TCP_JOIN_MS);
    rig.now_ms += UC_TCP_JOIN_MS;
    rig_until(peer_is_closed(first));
    rig_until(peer_is_closed(second));
    ck_assert_int_eq(rig.gone_count, 1);
    rig.admit_status = UC_ERR_PERMISSION_DENIED;
    expect_refused(2, 3, 1); /* too late */
    (void)close(first);
    (void)close(second);
}
END_TEST

/* However a stream ends, the others end with it and the owner hears of it once. */
START_TEST(lost_stream_ends_the_group)
{
    uint8_t junk[UC_TCP_REQUEST_BYTES] = {0};

    open_group();
    peer_send_request(streams[0], UC_FABRIC_WRITE, 0, 0, 1000, 1);
    peer_send(streams[0], junk, 10);
    rig_until(rig.hold_count == 1);
    if (_i == 0) {
        (void)shutdown(streams[2], SHUT_RDWR);
    } else {
        peer_send(streams[2], junk, sizeof(junk));
    }
    rig_until(rig.gone_count == 1);
    ck_assert_int_eq(rig.release_count, 1); /* the WRITE of the first stream */
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        rig_until(peer_is_closed(streams[idx]));
    }
    ck_assert_int_eq(rig.gone_count, 1);
    close_streams();
}
END_TEST

START_TEST(fence_closes_every_stream_and_nothing_lands_afterwards)
{
    uint8_t data[1000];

    memset(data, 'z', sizeof(data));
    open_group();
    for (uint32_t idx = 0; idx < STREAM_COUNT; idx++) {
        peer_send_request(streams[idx], UC_FABRIC_WRITE, 0, idx * 4096, sizeof(data), 1);
        peer_send(streams[idx], data, 500);
        rig_until(rig.memory[idx * 4096 + 499] == 'z');
    }
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        ck_assert_int_eq(send(streams[idx], data, 500, MSG_NOSIGNAL), 500); /* not polled */
    }
    rig.ops->fence(rig.last);
    ck_assert_int_eq(rig.release_count, STREAM_COUNT);
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        rig_until(peer_is_closed(streams[idx]));
        ck_assert_int_eq(rig.memory[idx * 4096 + 500], 0);
    }
    ck_assert_int_eq(rig.gone_count, 0); /* the target did it */
    rig.ops->disconnect(rig.last);
    close_streams();
}
END_TEST

/* A fence between two hellos: the late stream finds nothing to join. */
START_TEST(fenced_group_takes_no_further_stream)
{
    int first = join_as(0, 2, 1);

    rig.ops->fence(rig.last);
    rig.admit_status = UC_ERR_PERMISSION_DENIED;
    expect_refused(1, 2, 1);
    rig.ops->disconnect(rig.last);
    (void)close(first);
}
END_TEST

START_TEST(admission_without_memory_is_refused_and_spends_no_nonce)
{
    for (size_t pass_count = 0; pass_count < 2; pass_count++) {
        struct uc_tcp_hello hello = {.nonce = {1}, .lane_count = 2};
        uint8_t bytes[UC_TCP_HELLO_BYTES];
        uint8_t answer[UC_TCP_ANSWER_BYTES];
        enum uc_status status;
        int fd = peer_connect();

        uc_tcp_hello_put(bytes, &hello);
        uc_fake_alloc_fail_after(pass_count);
        peer_send(fd, bytes, sizeof(bytes));
        rig_until(rig.fabric->endpoint_count == 0);
        uc_fake_alloc_reset();
        ck_assert(peer_receive(fd, answer, sizeof(answer)));
        ck_assert_int_eq(uc_tcp_answer_get(answer, &status), UC_OK);
        ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
        (void)close(fd);
    }
    ck_assert_int_eq(rig.admit_count, 0);
}
END_TEST

static Suite *
tcp_group_suite(void)
{
    Suite *suite = suite_create("tcp_group");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, rig_open, rig_close);
    tcase_add_test(tcase, one_nonce_admits_every_stream);
    tcase_add_test(tcase, streams_may_join_in_any_order_after_the_first);
    tcase_add_test(tcase, stream_that_does_not_fit_its_group_is_refused);
    tcase_add_test(tcase, first_stream_must_be_there_first);
    tcase_add_test(tcase, group_that_stays_incomplete_is_dropped);
    tcase_add_loop_test(tcase, lost_stream_ends_the_group, 0, 2);
    tcase_add_test(tcase, fence_closes_every_stream_and_nothing_lands_afterwards);
    tcase_add_test(tcase, fenced_group_takes_no_further_stream);
    tcase_add_test(tcase, admission_without_memory_is_refused_and_spends_no_nonce);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(tcp_group_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
