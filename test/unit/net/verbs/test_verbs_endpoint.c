/* SPDX-License-Identifier: Apache-2.0 */

/* Posting, completing, arming and breaking on a device that is played by the test. */

#include <stdlib.h>

#include <check.h>

#include "test/unit/net/verbs/played_device.h"

static struct device *const device = &devices[0];

START_TEST(operations_complete_once_in_order_within_the_send_queue)
{
    ck_assert_int_eq(post_ops(0, OP_COUNT, UC_FABRIC_READ), UC_OK);
    ck_assert_uint_eq(device->posted_count, DEPTH);
    ck_assert_uint_eq(done_count, 0); /* never inside post */
    while (done_count < OP_COUNT) {
        device->allow_count += 7;
        (void)uc_verbs_fabric_poll(fabric, 64);
    }
    expect_each_once(OP_COUNT);
    for (size_t idx = 0; idx < OP_COUNT; idx++) {
        ck_assert_uint_eq(ops[idx].order, idx);
        ck_assert_int_eq(ops[idx].status, UC_OK);
    }
    ck_assert_uint_le(device->in_flight_max, DEPTH);
    teardown();
}
END_TEST

START_TEST(the_last_request_of_every_chain_reports)
{
    size_t signalled = 0;

    ck_assert_int_eq(post_ops(0, DEPTH, UC_FABRIC_READ), UC_OK);
    for (size_t idx = 0; idx < DEPTH; idx++) {
        signalled += device->signalled[idx];
    }
    ck_assert_uint_eq(signalled, DEPTH / UC_VERBS_CHAIN_MAX);
    ck_assert(device->signalled[UC_VERBS_CHAIN_MAX - 1]);
    ck_assert(device->signalled[DEPTH - 1]);
    teardown();
}
END_TEST

START_TEST(poll_keeps_to_its_budget)
{
    ck_assert_int_eq(post_ops(0, 32, UC_FABRIC_READ), UC_OK);
    device->allow_count = 32;
    ck_assert_uint_eq(uc_verbs_fabric_poll(fabric, 5), 5);
    ck_assert_uint_eq(done_count, 5);
    ck_assert(!uc_verbs_fabric_arm(fabric)); /* there is more */
    ck_assert_uint_eq(uc_verbs_fabric_poll(fabric, 100), 27);
    teardown();
}
END_TEST

/* Only what a good completion confirmed is Ok; the culprit says why; the rest is unknown. */
START_TEST(an_error_breaks_the_endpoint_and_flushes_everything)
{
    ck_assert_int_eq(post_ops(0, 100, UC_FABRIC_WRITE), UC_OK);
    device->allow_count = DEPTH;
    device->fail_idx = 40;
    device->fail_status = IBV_WC_REM_ACCESS_ERR;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(100);
    ck_assert_int_eq(ops[31].status, UC_OK);
    ck_assert_int_eq(ops[32].status, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops[39].status, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops[40].status, UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(ops[41].status, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops[99].status, UC_ERR_UNHEALTHY);
    ck_assert_uint_eq(told, 1);
    ck_assert_int_eq(told_status, UC_ERR_UNHEALTHY);
    ck_assert(device->destroyed);
    ck_assert_int_eq(post_ops(0, 1, UC_FABRIC_READ), UC_ERR_UNHEALTHY);
    teardown();
}
END_TEST

START_TEST(a_device_that_refuses_work_breaks_the_endpoint_outside_post)
{
    device->refuse_idx = 10;
    ck_assert_int_eq(post_ops(0, 20, UC_FABRIC_READ), UC_OK);
    ck_assert_uint_eq(done_count, 0);
    ck_assert(!uc_verbs_fabric_arm(fabric));
    ck_assert_uint_le(uc_verbs_fabric_next_deadline_ms(fabric), uc_verbs_now_ms());
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(20);
    ck_assert_uint_eq(told, 1);
    teardown();
}
END_TEST

START_TEST(a_completion_of_foreign_work_breaks_the_endpoint)
{
    ck_assert_int_eq(post_ops(0, 1, UC_FABRIC_READ), UC_OK);
    device->posted[0] += 1000 * UC_VERBS_PAIRS_MAX;
    device->allow_count = 1;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(1);
    ck_assert_int_eq(ops[0].status, UC_ERR_UNHEALTHY);
    ck_assert_uint_eq(told, 1);
    teardown();
}
END_TEST

START_TEST(arming_asks_once_and_looks_again)
{
    ck_assert(uc_verbs_fabric_arm(fabric)); /* nothing to wait for */
    ck_assert_uint_eq(notify_count, 0);

    ck_assert_int_eq(post_ops(0, 2, UC_FABRIC_READ), UC_OK);
    ck_assert(uc_verbs_fabric_arm(fabric));
    ck_assert(uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(notify_count, 1);
    endpoint->armed = false; /* what reading the event does */
    ck_assert(uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(notify_count, 2);
    teardown();
}
END_TEST

/* A completion between the last poll and arming raises no event: arm has to find it. */
START_TEST(what_completes_before_arming_is_not_lost)
{
    ck_assert_int_eq(post_ops(0, 2, UC_FABRIC_READ), UC_OK);
    device->complete_on_notify = 2;
    ck_assert(!uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(done_count, 0); /* callbacks run in poll only */
    ck_assert(!uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(uc_verbs_fabric_poll(fabric, 10), 2);
    expect_each_once(2);
    ck_assert(uc_verbs_fabric_arm(fabric));
    teardown();
}
END_TEST

START_TEST(fence_drains_then_destroys_then_flushes)
{
    ck_assert_int_eq(post_ops(0, 100, UC_FABRIC_READ), UC_OK);
    device->allow_count = 32; /* these are through, nobody has looked yet */
    uc_verbs_endpoint_fence(endpoint);
    ck_assert_uint_eq(device->report_count, device->posted_count);
    ck_assert(device->destroyed);
    expect_each_once(100);
    ck_assert_int_eq(ops[31].status, UC_OK);
    ck_assert_int_eq(ops[32].status, UC_ERR_UNHEALTHY);
    uc_verbs_endpoint_fence(endpoint);
    expect_each_once(100);
    ck_assert_uint_eq(told, 0);
    teardown();
}
END_TEST

START_TEST(what_arm_found_survives_a_fence)
{
    ck_assert_int_eq(post_ops(0, 2, UC_FABRIC_READ), UC_OK);
    device->complete_on_notify = 2;
    ck_assert(!uc_verbs_fabric_arm(fabric));
    uc_verbs_endpoint_fence(endpoint);
    expect_each_once(2);
    ck_assert_int_eq(ops[1].status, UC_OK);
    ck_assert_ptr_null(fabric->stash_owner);
    teardown();
}
END_TEST

static void
disconnect_now(void)
{
    in_callback = NULL;
    uc_verbs_endpoint_disconnect(endpoint);
}

/* The endpoint is freed when the last call that may touch it has returned (a sanitizer looks on). */
START_TEST(a_callback_may_disconnect_its_endpoint)
{
    ck_assert_int_eq(post_ops(0, 100, UC_FABRIC_READ), UC_OK);
    device->allow_count = 32;
    in_callback = disconnect_now;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(100);
    ck_assert_uint_eq(told, 0);
    endpoint = NULL;
    teardown();
}
END_TEST

START_TEST(a_flush_of_a_broken_endpoint_may_disconnect_it)
{
    ck_assert_int_eq(post_ops(0, 50, UC_FABRIC_READ), UC_OK);
    uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "test");
    in_callback = disconnect_now;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(50);
    ck_assert_uint_eq(told, 0);
    endpoint = NULL;
    teardown();
}
END_TEST

START_TEST(post_refuses_all_or_nothing)
{
    ck_assert_int_eq(post_ops(0, 3, UC_FABRIC_READ), UC_OK);
    ck_assert_int_eq(device->posted_count, 3);
    for (size_t idx = 3; idx < 6; idx++) {
        prepare_op(idx, UC_FABRIC_READ, BLOCK_BYTES);
        ops[idx].op.next = idx < 5 ? &ops[idx + 1].op : NULL;
    }
    ops[5].piece.region = NULL;
    ck_assert_int_eq(uc_verbs_post(endpoint, &ops[3].op), UC_ERR_INVALID_PARAM);
    ops[5].piece.region = &region;
    ops[5].piece.length_bytes = sizeof(memory) + 1;
    ck_assert_int_eq(uc_verbs_post(endpoint, &ops[3].op), UC_ERR_INVALID_PARAM);
    ops[5].piece.length_bytes = BLOCK_BYTES;
    ops[5].op.region_idx = 1;
    ck_assert_int_eq(uc_verbs_post(endpoint, &ops[3].op), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(device->posted_count, 3);
    device->allow_count = 3;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(done_count, 3);
    teardown();
}
END_TEST

/* Data may overtake the last message of the handshake, and also the refusal of a queue pair that is up already. */
START_TEST(data_before_the_handshake_ended_is_told_to_rdma_cm_while_there_is_an_id)
{
    struct rdma_cm_id id;

    async_event = (struct ibv_async_event){
            .event_type = IBV_EVENT_COMM_EST, .element.qp = endpoint->pairs[0].qp};
    async_event_count = 1;
    endpoint->pairs[0].id = &id;
    ck_assert_uint_eq(uc_verbs_async_poll(fabric), 1);
    ck_assert_ptr_eq(notified_id, &id);

    async_event_count = 1;
    notified_id = NULL;
    endpoint->pairs[0].id = NULL;
    ck_assert_uint_eq(uc_verbs_async_poll(fabric), 1);
    ck_assert_ptr_null(notified_id);
    teardown();
}
END_TEST

START_TEST(a_device_event_on_a_queue_pair_breaks_its_endpoint)
{
    ck_assert_int_eq(post_ops(0, 3, UC_FABRIC_READ), UC_OK);
    async_event = (struct ibv_async_event){
            .event_type = IBV_EVENT_QP_FATAL, .element.qp = endpoint->pairs[0].qp};
    async_event_count = 1;
    ck_assert_uint_eq(uc_verbs_async_poll(fabric), 1);
    ck_assert_uint_eq(told, 0); /* poll tells */
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(told, 1);
    ck_assert_int_eq(told_status, UC_ERR_UNHEALTHY);
    expect_each_once(3);
    ck_assert(device->destroyed);
    teardown();
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("endpoint");
    Suite *suite = suite_create("verbs_endpoint");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, operations_complete_once_in_order_within_the_send_queue);
    tcase_add_test(cases, the_last_request_of_every_chain_reports);
    tcase_add_test(cases, poll_keeps_to_its_budget);
    tcase_add_test(cases, an_error_breaks_the_endpoint_and_flushes_everything);
    tcase_add_test(cases, a_device_that_refuses_work_breaks_the_endpoint_outside_post);
    tcase_add_test(cases, a_completion_of_foreign_work_breaks_the_endpoint);
    tcase_add_test(cases, arming_asks_once_and_looks_again);
    tcase_add_test(cases, what_completes_before_arming_is_not_lost);
    tcase_add_test(cases, fence_drains_then_destroys_then_flushes);
    tcase_add_test(cases, what_arm_found_survives_a_fence);
    tcase_add_test(cases, a_callback_may_disconnect_its_endpoint);
    tcase_add_test(cases, a_flush_of_a_broken_endpoint_may_disconnect_it);
    tcase_add_test(cases, post_refuses_all_or_nothing);
    tcase_add_test(cases, data_before_the_handshake_ended_is_told_to_rdma_cm_while_there_is_an_id);
    tcase_add_test(cases, a_device_event_on_a_queue_pair_breaks_its_endpoint);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
