/* SPDX-License-Identifier: Apache-2.0 */

/* Several queue pairs of one endpoint: spreading, order, flushing and breaking as one. */

#include <stdlib.h>

#include <check.h>

#include "test/unit/net/verbs/played_device.h"

START_TEST(a_group_shares_the_work_and_completes_it_in_order)
{
    set_pair_count(4);
    ck_assert_int_eq(post_ops(0, 64, UC_FABRIC_READ), UC_OK);
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_uint_eq(devices[idx].posted_count, 16);
        ck_assert_uint_eq(devices[idx].chain_count, 1); /* one doorbell each */
    }
    for (size_t idx = 1; idx < 4; idx++) {
        devices[idx].allow_count = 16;
    }
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(done_count, 0); /* the first READ is not done */
    ck_assert(uc_verbs_fabric_arm(fabric));
    devices[0].allow_count = 16;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(64);
    for (size_t idx = 0; idx < 64; idx++) {
        ck_assert_uint_eq(ops[idx].order, idx);
    }
    teardown();
}
END_TEST

START_TEST(work_goes_where_the_fewest_bytes_are_in_flight)
{
    set_pair_count(2);
    prepare_op(0, UC_FABRIC_READ, 16 * BLOCK_BYTES);
    for (size_t idx = 1; idx < 9; idx++) {
        prepare_op(idx, UC_FABRIC_READ, BLOCK_BYTES);
    }
    ck_assert_int_eq(post_list(0, 9), UC_OK);
    ck_assert_uint_eq(devices[0].posted_count, 1);
    ck_assert_uint_eq(devices[1].posted_count, 8);

    devices[1].allow_count = 8; /* it is empty although nothing could be told yet */
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(done_count, 0);
    ck_assert_int_eq(post_ops(9, 4, UC_FABRIC_READ), UC_OK);
    ck_assert_uint_eq(devices[0].posted_count, 1);
    ck_assert_uint_eq(devices[1].posted_count, 12);
    teardown();
}
END_TEST

START_TEST(what_follows_another_goes_the_same_way)
{
    set_pair_count(4);
    for (size_t idx = 0; idx < 12; idx++) {
        prepare_op(idx, UC_FABRIC_READ, BLOCK_BYTES);
        ops[idx].op.offset_bytes = idx * BLOCK_BYTES;
        ops[idx].op.follows = idx % 3 != 0;
    }
    ck_assert_int_eq(post_list(0, 12), UC_OK);
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_uint_eq(devices[idx].posted_count, 3);
        ck_assert_uint_eq(devices[idx].addresses[1] - devices[idx].addresses[0], BLOCK_BYTES);
        ck_assert_uint_eq(devices[idx].addresses[2] - devices[idx].addresses[1], BLOCK_BYTES);
    }
    teardown();
}
END_TEST

/* A READ behind the WRITEs of each queue pair that carried any; only all of them together are a FLUSH. */
START_TEST(flush_waits_for_every_queue_pair_that_wrote)
{
    set_pair_count(4);
    ck_assert_int_eq(post_ops(0, 3, UC_FABRIC_WRITE), UC_OK);
    prepare_op(3, UC_FABRIC_FLUSH, 0);
    ops[3].op.offset_bytes = 4096;
    ck_assert_int_eq(post_list(3, 1), UC_OK);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_uint_eq(devices[idx].posted_count, 2);
        ck_assert_int_eq(devices[idx].opcodes[1], IBV_WR_RDMA_READ);
        ck_assert_uint_eq(devices[idx].addresses[1], 4096);
    }
    ck_assert_uint_eq(devices[3].posted_count, 0);

    devices[0].allow_count = 2;
    devices[2].allow_count = 2;
    devices[1].allow_count = 1; /* the WRITE, not the READ behind it */
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(done_count, 3);
    devices[1].allow_count = 2;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(done_count, 4);
    ck_assert_int_eq(ops[3].status, UC_OK);
    teardown();
}
END_TEST

START_TEST(flush_without_writes_goes_one_way)
{
    size_t posted = 0;

    set_pair_count(4);
    for (size_t idx = 0; idx < 2; idx++) {
        prepare_op(idx, UC_FABRIC_FLUSH, 0);
    }
    ck_assert_int_eq(post_list(0, 2), UC_OK);
    for (size_t idx = 0; idx < 4; idx++) {
        posted += devices[idx].posted_count;
        devices[idx].allow_count = 2;
    }
    ck_assert_uint_eq(posted, 2);
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(2);
    teardown();
}
END_TEST

/* Send queues full of WRITEs: the FLUSH gets its READs one by one, and is not done before the last. */
START_TEST(flush_finds_its_way_through_full_send_queues)
{
    set_pair_count(2);
    ck_assert_int_eq(post_ops(0, 2 * DEPTH, UC_FABRIC_WRITE), UC_OK);
    prepare_op(2 * DEPTH, UC_FABRIC_FLUSH, 0);
    ck_assert_int_eq(post_list(2 * DEPTH, 1), UC_OK);
    devices[0].allow_count = DEPTH + 1;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(devices[0].posted_count, DEPTH + 1);
    ck_assert_uint_eq(devices[1].posted_count, DEPTH);
    ck_assert_uint_lt(done_count, 2 * DEPTH);
    devices[1].allow_count = DEPTH;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(done_count, 2 * DEPTH);
    ck_assert_uint_eq(devices[1].posted_count, DEPTH + 1);
    devices[1].allow_count = DEPTH + 1;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(2 * DEPTH + 1);
    teardown();
}
END_TEST

START_TEST(an_error_on_one_queue_pair_breaks_the_group)
{
    set_pair_count(2);
    ck_assert_int_eq(post_ops(0, 64, UC_FABRIC_WRITE), UC_OK);
    prepare_op(64, UC_FABRIC_FLUSH, 0);
    ck_assert_int_eq(post_list(64, 1), UC_OK);
    devices[0].allow_count = 33;
    devices[1].allow_count = 33;
    devices[1].fail_idx = 5;
    devices[1].fail_status = IBV_WC_REM_ACCESS_ERR;
    while (told == 0) {
        (void)uc_verbs_fabric_poll(fabric, 1000);
    }
    expect_each_once(65);
    ck_assert(devices[0].destroyed && devices[1].destroyed);
    ck_assert_int_eq(ops[0].status, UC_OK); /* the device confirmed it */
    ck_assert_int_eq(ops[11].status, UC_ERR_PERMISSION_DENIED);
    for (size_t idx = 12; idx < 65; idx++) { /* also those that the other queue pair confirmed */
        ck_assert_int_eq(ops[idx].status, UC_ERR_UNHEALTHY);
    }
    ck_assert_uint_eq(told, 1);
    teardown();
}
END_TEST

START_TEST(fence_destroys_every_queue_pair_of_the_group)
{
    set_pair_count(4);
    ck_assert_int_eq(post_ops(0, 1000, UC_FABRIC_READ), UC_OK);
    uc_verbs_endpoint_fence(endpoint);
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert(devices[idx].destroyed);
        ck_assert_uint_eq(devices[idx].report_count, devices[idx].posted_count);
    }
    expect_each_once(1000);
    teardown();
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("group");
    Suite *suite = suite_create("verbs_group");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, a_group_shares_the_work_and_completes_it_in_order);
    tcase_add_test(cases, work_goes_where_the_fewest_bytes_are_in_flight);
    tcase_add_test(cases, what_follows_another_goes_the_same_way);
    tcase_add_test(cases, flush_waits_for_every_queue_pair_that_wrote);
    tcase_add_test(cases, flush_without_writes_goes_one_way);
    tcase_add_test(cases, flush_finds_its_way_through_full_send_queues);
    tcase_add_test(cases, an_error_on_one_queue_pair_breaks_the_group);
    tcase_add_test(cases, fence_destroys_every_queue_pair_of_the_group);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
