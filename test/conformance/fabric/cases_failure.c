/* SPDX-License-Identifier: Apache-2.0 */

/* Connections that end with operations under way. */

#include <stdlib.h>
#include <string.h>

#include "test/conformance/fabric/harness.h"

enum {
    FLIGHT_COUNT = 64,
    FLIGHT_BYTES = 64 << 10,
};

static struct link link0;
static struct test_op op;
static struct test_op *flight;
static int flight_count;

static void
open_flight(void)
{
    both_open();
    flight_count = scaled(FLIGHT_COUNT) < 8 ? 8 : scaled(FLIGHT_COUNT);
    flight = calloc((size_t)flight_count, sizeof(*flight));
    ck_assert_ptr_nonnull(flight);
}

static void
close_flight(void)
{
    free(flight);
    flight = NULL;
    both_close();
}

/* Reads into and writes from the initiator's buffer, alternating, all in one list. */
static void
post_flight(void)
{
    for (int idx = 0; idx < flight_count; idx++) {
        size_t place = (size_t)idx * FLIGHT_BYTES;

        op_init(&flight[idx], idx % 2 == 0 ? UC_FABRIC_READ : UC_FABRIC_WRITE, place % REGION_BYTES,
                place, FLIGHT_BYTES);
        flight[idx].op.next = idx + 1 < flight_count ? &flight[idx + 1].op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &flight[0].op), UC_OK);
}

static int
flight_done(void)
{
    int count = 0;

    for (int idx = 0; idx < flight_count; idx++) {
        count += flight[idx].done_count;
    }
    return count;
}

/* Every operation completed exactly once, with Ok or as flushed. */
static void
assert_flight_over(void)
{
    ck_assert_int_eq(flight_done(), flight_count);
    for (int idx = 0; idx < flight_count; idx++) {
        ck_assert_int_eq(flight[idx].done_count, 1);
        ck_assert_msg(flight[idx].status == UC_OK || flight[idx].status == UC_ERR_UNHEALTHY,
                "operation %d: %s", idx, uc_status_name(flight[idx].status));
    }
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
    wait_until(flight_done() >= before[_i]);
    target_cut(link0.grant);
    target_resume();

    /* A NIC notices a peer that left at the next operation at the latest. */
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    if (initiator.ops->post(link0.endpoint, &op.op) == UC_OK) {
        wait_until(op.done_count > 0);
        ck_assert_int_eq(op.done_count, 1);
        ck_assert_int_eq(op.status, UC_ERR_UNHEALTHY);
    }
    wait_until(flight_done() == flight_count);
    wait_until(link0.failure_count > 0);
    assert_flight_over();
    if (_i == 0 && initiator.caps.checks_generation) { /* a target that serves had no chance to */
        ck_assert_int_eq(flight[0].status, UC_ERR_UNHEALTHY);
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
    wait_until(flight_done() >= before[_i]);

    initiator.ops->fence(link0.endpoint);
    assert_flight_over();
    memset(initiator.memory, 0xa5, LOCAL_BYTES);
    initiator.ops->fence(link0.endpoint); /* idempotent */
    assert_flight_over();

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
    assert_flight_over();
    wait_until(link0.grant->gone_count == 1);
}
END_TEST

/* Holds end with the endpoint, also those of a READ that nobody takes. */
START_TEST(every_hold_is_released_when_the_endpoint_breaks)
{
    for (int round = 0; round < 5; round++) {
        link_open(&link0, UC_FABRIC_READ_WRITE);
        post_flight();
        wait_until(flight_done() >= round);
        link_close(&link0);
        wait_until(link0.grant->gone_count == 1);
        ck_assert_int_eq(target.hold_count, target.release_count);
    }
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
    wait_until(flight_done() == flight_count);
    for (int idx = 0; idx < flight_count; idx++) {
        ck_assert_int_eq(flight[idx].status, UC_OK);
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
    tcase_add_test(tcase, fence_of_one_endpoint_spares_the_others);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
