/* SPDX-License-Identifier: Apache-2.0 */

/* Coming and going. */

#include <string.h>

#include "test/conformance/fabric/harness.h"

enum {
    LINK_COUNT = 64,
};

static struct link link0;
static struct test_op op;

START_TEST(operations_posted_before_the_connection_is_ready_run)
{
    target_fill(0, 0, 6);
    link_start(&link0, grant_make(0, UC_FABRIC_READ_ONLY), 0, 20000);
    op_init(&op, UC_FABRIC_READ, 10, 0, 500);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    ck_assert_int_eq(initiator.memory[0], pattern(6, 10));
    ck_assert_int_eq(link0.ok_count, 1);
    link_close(&link0);
}
END_TEST

START_TEST(disconnect_while_connecting_flushes_and_tells_nothing_more)
{
    for (int polls = 0; polls < 4; polls++) {
        link_start(&link0, grant_make(0, UC_FABRIC_READ_ONLY), 0, 20000);
        op_init(&op, UC_FABRIC_READ, 0, 0, 500);
        ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_OK);
        for (int idx = 0; idx < polls; idx++) {
            (void)initiator.ops->poll(initiator.fabric, 1);
        }
        link_close(&link0);
        ck_assert_int_eq(op.done_count, 1);
        ck_assert_int_eq(link0.failure_count, 0);
    }

    link_open(&link0, UC_FABRIC_READ_ONLY); /* the target took no harm */
    link_close(&link0);
}
END_TEST

static void
close_listener(struct target *self, void *argument)
{
    (void)argument;
    self->ops->listener_close(self->listener);
    self->listener = NULL;
}

START_TEST(connect_to_a_closed_port_fails_in_time)
{
    struct grant *grant = grant_make(0, UC_FABRIC_READ_ONLY);
    double start_s = now_s();

    target_call(close_listener, NULL); /* its port is free now */
    link_start(&link0, grant, 0, 10000);
    op_init(&op, UC_FABRIC_READ, 0, 0, 1);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_OK);
    wait_until(link0.ok_count + link0.failure_count > 0);
    ck_assert_int_eq(link0.ok_count, 0);
    ck_assert_int_eq(op.done_count, 1);
    ck_assert_int_eq(op.status, UC_ERR_UNHEALTHY);
    ck_assert(now_s() - start_s < 10 + patience_s() / 2);
    link_close(&link0);
}
END_TEST

START_TEST(connect_to_a_silent_target_times_out)
{
    struct grant *grant = grant_make(0, UC_FABRIC_READ_ONLY);

    target_pause();
    link_start(&link0, grant, 0, 300);
    ck_assert_uint_ne(initiator.ops->next_deadline_ms(initiator.fabric), UINT64_MAX);
    wait_until(link0.ok_count + link0.failure_count > 0);
    ck_assert_int_eq(link0.failure, UC_ERR_TIMEOUT);
    link_close(&link0);
    target_resume();
}
END_TEST

START_TEST(endpoints_survive_their_listener)
{
    link_open(&link0, UC_FABRIC_READ_ONLY);
    target_call(close_listener, NULL);
    op_init(&op, UC_FABRIC_READ, 0, 0, 1000);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    link_close(&link0);
    wait_until(link0.grant->gone_count == 1);
}
END_TEST

START_TEST(target_hears_once_that_a_peer_is_gone)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    ck_assert_int_eq(write_and_flush(&link0, 0, 0, 5000), UC_OK);
    link_close(&link0);
    wait_until(link0.grant->gone_count > 0);
    for (int idx = 0; idx < 3; idx++) { /* whatever still happens, happens in these round trips */
        struct link again;

        link_open(&again, UC_FABRIC_READ_ONLY);
        link_close(&again);
        wait_until(again.grant->gone_count > 0);
    }
    ck_assert_int_eq(link0.grant->connected_count, 1);
    ck_assert_int_eq(link0.grant->gone_count, 1);
}
END_TEST

START_TEST(many_endpoints_transfer_at_once)
{
    static struct link links[LINK_COUNT];
    static struct test_op ops[LINK_COUNT];
    const size_t length = (size_t)64 << 10;

    target_fill(0, 0, 7);
    for (size_t idx = 0; idx < LINK_COUNT; idx++) {
        link_start(&links[idx], grant_make(0, UC_FABRIC_READ_ONLY), 0, 20000);
    }
    for (size_t idx = 0; idx < LINK_COUNT; idx++) {
        op_init(&ops[idx], UC_FABRIC_READ, idx * 1000, idx * length, length);
        ck_assert_int_eq(initiator.ops->post(links[idx].endpoint, &ops[idx].op), UC_OK);
    }
    for (size_t idx = 0; idx < LINK_COUNT; idx++) {
        wait_until(ops[idx].done_count > 0);
        ck_assert_int_eq(ops[idx].done_count, 1);
        ck_assert_int_eq(ops[idx].status, UC_OK);
        ck_assert_uint_eq(
                pattern_match(initiator.memory + idx * length, 7, idx * 1000, length), length);
    }
    for (size_t idx = 0; idx < LINK_COUNT; idx++) {
        link_close(&links[idx]);
    }
}
END_TEST

START_TEST(idle_fabric_lets_its_thread_sleep)
{
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    wait_until(
            initiator.ops->poll(initiator.fabric, 64) == 0 && initiator.ops->arm(initiator.fabric));
    ck_assert_uint_eq(initiator.ops->next_deadline_ms(initiator.fabric), UINT64_MAX);
    link_close(&link0);
}
END_TEST

TCase *
connection_cases(void)
{
    TCase *tcase = tcase_create("connection");

    tcase_add_checked_fixture(tcase, both_open, both_close);
    tcase_add_test(tcase, operations_posted_before_the_connection_is_ready_run);
    tcase_add_test(tcase, disconnect_while_connecting_flushes_and_tells_nothing_more);
    tcase_add_test(tcase, connect_to_a_closed_port_fails_in_time);
    tcase_add_test(tcase, connect_to_a_silent_target_times_out);
    tcase_add_test(tcase, endpoints_survive_their_listener);
    tcase_add_test(tcase, target_hears_once_that_a_peer_is_gone);
    tcase_add_test(tcase, many_endpoints_transfer_at_once);
    tcase_add_test(tcase, idle_fabric_lets_its_thread_sleep);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
