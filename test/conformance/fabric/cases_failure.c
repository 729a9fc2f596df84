/* SPDX-License-Identifier: Apache-2.0 */

/* Connections that end with operations under way. */

#include <string.h>

#include "test/conformance/fabric/harness.h"

static struct link link0;
static struct test_op op;
static struct flight flight;

static void
open_flight(void)
{
    both_open();
    flight = flight_make();
}

static void
close_flight(void)
{
    flight_free(&flight);
    both_close();
}

/* Reads into and writes from the initiator's buffer, all in one list. */
static void
post_flight(void)
{
    flight_post(&flight, &link0, UC_FABRIC_READ, UC_FABRIC_WRITE);
}

/* _i operations complete, then the target fences the endpoint. */
START_TEST(fence_of_the_target_fails_what_is_in_flight)
{
    static const int before[] = {0, 1, 5};

    link_open(&link0, UC_FABRIC_READ_WRITE);
    if (_i == 0) {
        target_pause();
    }
    post_flight();
    initiator_step();
    wait_until(flight_done(&flight) >= before[_i]);
    target_cut(link0.grant);
    target_resume();

    /* A NIC notices a peer that left at the next operation at the latest. */
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    if (initiator.ops->post(link0.endpoint, &op.op) == UC_OK) {
        wait_until(op.done_count > 0);
        ck_assert_int_eq(op.done_count, 1);
        ck_assert_int_eq(op.status, UC_ERR_UNHEALTHY);
    }
    wait_until(flight_done(&flight) == flight.count);
    wait_until(link0.failure_count > 0);
    flight_assert_over(&flight);
    if (_i == 0 && initiator.caps.checks_generation) { /* a target that serves had no chance to */
        ck_assert_int_eq(flight.ops[initiator.caps.reads_locally ? 1 : 0].status, UC_ERR_UNHEALTHY);
    }
    ck_assert_int_eq(link0.ok_count, 1);
    ck_assert_int_eq(link0.failure_count, 1);
    ck_assert_int_eq(link0.grant->gone_count, 0); /* the target knows */
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_UNHEALTHY);
    link_close(&link0);
}
END_TEST

/* After a fence nothing touches the buffers, whatever the wire still brings. */
START_TEST(fence_of_the_initiator_flushes_and_leaves_buffers_quiet)
{
    static const int before[] = {0, 1, 7};
    static struct link link1;

    target_fill(0, 0, 1);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    link_open(&link1, UC_FABRIC_READ_ONLY);
    post_flight();
    for (int step = 0; step < 3; step++) {
        (void)initiator.ops->poll(initiator.fabric, 1);
    }
    wait_until(flight_done(&flight) >= before[_i]);

    initiator.ops->fence(link0.endpoint);
    flight_assert_over(&flight);
    memset(initiator.memory, 0xa5, LOCAL_BYTES);
    initiator.ops->fence(link0.endpoint); /* idempotent */
    flight_assert_over(&flight);

    /* A round trip of another endpoint: what was under way has arrived by now. */
    for (int round = 0; round < 20; round++) {
        op_init(&op, UC_FABRIC_READ, 0, LOCAL_BYTES - 4096, 4096);
        ck_assert_int_eq(op_run(&link1, &op), UC_OK);
    }
    ck_assert_uint_eq(value_match(initiator.memory, 0xa5, LOCAL_BYTES - 4096), LOCAL_BYTES - 4096);
    ck_assert_int_eq(link0.failure_count, 0); /* whoever fences knows */
    wait_until(link0.grant->gone_count == 1);
    link_close(&link0);
    link_close(&link1);
}
END_TEST

START_TEST(fenced_endpoint_refuses_operations)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    initiator.ops->fence(link0.endpoint);
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(op.done_count, 0);
    link_close(&link0);
}
END_TEST

START_TEST(disconnect_flushes_what_is_in_flight)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    post_flight();
    link_close(&link0);
    flight_assert_over(&flight);
    wait_until(link0.grant->gone_count == 1);
}
END_TEST

/* Holds end with the endpoint, also those of a READ that nobody takes. */
START_TEST(every_hold_is_released_when_the_endpoint_breaks)
{
    for (int round = 0; round < 5; round++) {
        link_open(&link0, UC_FABRIC_READ_WRITE);
        post_flight();
        wait_until(flight_done(&flight) >= round);
        link_close(&link0);
        wait_until(link0.grant->gone_count == 1);
        ck_assert_int_eq(target.hold_count, target.release_count);
    }
}
END_TEST

/*
 * An operation that the target refuses, in the middle of a list. Where the provider names the refusal, the
 * others do not suffer; where it breaks the endpoint, what followed is flushed. Each ends exactly once.
 */
START_TEST(refused_operation_in_a_list_ends_once_like_the_others)
{
    int middle = flight.count / 2;

    link_open(&link0, UC_FABRIC_READ_ONLY);
    for (int idx = 0; idx < flight.count; idx++) {
        op_init(&flight.ops[idx], idx == middle ? UC_FABRIC_WRITE : UC_FABRIC_READ, 0,
                (size_t)idx * 100, 100);
        flight.ops[idx].op.next = idx + 1 < flight.count ? &flight.ops[idx + 1].op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &flight.ops[0].op), UC_OK);
    wait_until(flight_done(&flight) >= flight.count);
    for (int idx = 0; idx < flight.count; idx++) {
        ck_assert_int_eq(flight.ops[idx].done_count, 1);
        if (initiator.caps.checks_generation) {
            ck_assert_int_eq(
                    flight.ops[idx].status, idx == middle ? UC_ERR_PERMISSION_DENIED : UC_OK);
        } else if (idx >= middle) {
            ck_assert_int_ne(flight.ops[idx].status, UC_OK);
        }
    }
    link_close(&link0);
}
END_TEST

/* One endpoint's failure is not another's. */
START_TEST(fence_of_one_endpoint_spares_the_others)
{
    static struct link link1;

    link_open(&link0, UC_FABRIC_READ_WRITE);
    link_open(&link1, UC_FABRIC_READ_WRITE);
    target_cut(link1.grant);
    post_flight();
    wait_until(flight_done(&flight) == flight.count);
    for (int idx = 0; idx < flight.count; idx++) {
        ck_assert_int_eq(flight.ops[idx].status, UC_OK);
    }
    link_close(&link0);
    link_close(&link1);
}
END_TEST

TCase *
failure_cases(void)
{
    TCase *tcase = tcase_create("failure");

    tcase_add_checked_fixture(tcase, open_flight, close_flight);
    tcase_add_loop_test(tcase, fence_of_the_target_fails_what_is_in_flight, 0, 3);
    tcase_add_loop_test(tcase, fence_of_the_initiator_flushes_and_leaves_buffers_quiet, 0, 3);
    tcase_add_test(tcase, fenced_endpoint_refuses_operations);
    tcase_add_test(tcase, disconnect_flushes_what_is_in_flight);
    tcase_add_test(tcase, every_hold_is_released_when_the_endpoint_breaks);
    tcase_add_test(tcase, refused_operation_in_a_list_ends_once_like_the_others);
    tcase_add_test(tcase, fence_of_one_endpoint_spares_the_others);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
