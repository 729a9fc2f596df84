/* SPDX-License-Identifier: Apache-2.0 */

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/base/completion_queue.h"
#include "test/fake/fake_alloc.h"

static struct uc_completion_queue *queue;
static struct uc_io_result results[16];
static size_t count;

static void
setup(void)
{
    count = 99;
    ck_assert_int_eq(uc_completion_queue_create(1, 0, &queue), UC_OK);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_completion_queue_destroy(queue);
    queue = NULL;
}

static void
begin(uint64_t job_id)
{
    ck_assert_int_eq(uc_completion_queue_begin(queue, job_id, 10), UC_OK);
}

static void
begin_and_finish(uint64_t job_id)
{
    begin(job_id);
    uc_completion_queue_finish(queue, job_id, UC_OK, NULL);
}

static enum uc_status
wait_for(const uint64_t *job_ids, size_t job_count, int64_t timeout_ms)
{
    return uc_completion_queue_wait(queue, job_ids, job_count, timeout_ms, results, 16, &count);
}

static void
collect(size_t want_count)
{
    ck_assert_int_eq(uc_completion_queue_get_finished(queue, results, 16, &count), UC_OK);
    ck_assert_uint_eq(count, want_count);
}

/* */
START_TEST(event_is_delivered_once)
{
    begin_and_finish(5);
    collect(1);
    ck_assert_uint_eq(results[0].job_id, 5);
    ck_assert(results[0].success);
    ck_assert_int_eq(results[0].code, UC_OK);
    ck_assert_ptr_null(results[0].blocks);
    ck_assert_uint_eq(results[0].block_count, 10);
    collect(0);
}
END_TEST

/* V-44 */
START_TEST(id_is_taken_until_the_event_is_consumed)
{
    uint64_t job_id = 1;

    begin(job_id);
    ck_assert_int_eq(uc_completion_queue_begin(queue, job_id, 1), UC_ERR_DUPLICATE_KEY);
    uc_completion_queue_finish(queue, job_id, UC_OK, NULL);
    ck_assert_int_eq(uc_completion_queue_begin(queue, job_id, 1), UC_ERR_DUPLICATE_KEY);
    ck_assert(uc_completion_queue_has(queue, job_id));
    collect(1);
    ck_assert(!uc_completion_queue_has(queue, job_id));
    ck_assert_int_eq(wait_for(&job_id, 1, -1), UC_OK);
    ck_assert_uint_eq(count, 0);
    begin(job_id);
}
END_TEST

/* */
START_TEST(dropped_job_gives_no_event_and_frees_its_id)
{
    begin(1);
    uc_completion_queue_drop(queue, 1);
    ck_assert_uint_eq(uc_completion_queue_unfinished(queue), 0);
    uc_completion_queue_drop(queue, 1);
    uc_completion_queue_finish(queue, 1, UC_OK, NULL);
    collect(0);
    begin_and_finish(1);
    uc_completion_queue_drop(queue, 1); /* too late: the event is there */
    collect(1);
}
END_TEST

START_TEST(second_finish_changes_nothing)
{
    begin_and_finish(1);
    uc_completion_queue_finish(queue, 1, UC_ERR_TIMEOUT, NULL);
    collect(1);
    ck_assert(results[0].success);
}
END_TEST

/* */
START_TEST(partial_failure_carries_the_bitmap)
{
    const uint8_t blocks[] = {0xfe, 0x03};

    begin(1);
    uc_completion_queue_finish(queue, 1, UC_ERR_NOT_FOUND, blocks);
    collect(1);
    ck_assert(!results[0].success);
    ck_assert_int_eq(results[0].code, UC_ERR_NOT_FOUND);
    ck_assert(!uc_io_result_block_ok(&results[0], 0));
    ck_assert(uc_io_result_block_ok(&results[0], 1));
    ck_assert(uc_io_result_block_ok(&results[0], 9));
    uc_io_results_release(results, count);
    ck_assert_ptr_null(results[0].blocks);
    uc_io_results_release(results, count);
    uc_io_results_release(NULL, 0);
}
END_TEST

START_TEST(bitmap_without_memory_fails_every_block)
{
    const uint8_t blocks[] = {0xfe, 0x03};

    begin(1);
    uc_fake_alloc_fail_after(0);
    uc_completion_queue_finish(queue, 1, UC_ERR_NOT_FOUND, blocks);
    uc_fake_alloc_reset();
    collect(1);
    ck_assert(!uc_io_result_block_ok(&results[0], 1));
}
END_TEST

START_TEST(bitmaps_nobody_collected_are_freed)
{
    const uint8_t blocks[] = {0x01, 0x00};

    begin(1);
    uc_completion_queue_finish(queue, 1, UC_ERR_NOT_FOUND, blocks);
}
END_TEST

/* */
START_TEST(get_finished_keeps_the_order_and_what_has_no_room)
{
    begin(1);
    begin(2);
    begin(3);
    uc_completion_queue_finish(queue, 2, UC_OK, NULL);
    uc_completion_queue_finish(queue, 3, UC_OK, NULL);
    uc_completion_queue_finish(queue, 1, UC_OK, NULL);
    ck_assert_int_eq(uc_completion_queue_get_finished(queue, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(results[0].job_id, 2);
    ck_assert_uint_eq(results[1].job_id, 3);
    collect(1);
    ck_assert_uint_eq(results[0].job_id, 1);
}
END_TEST

/* V-45 */
START_TEST(wait_ignores_unknown_and_repeated_ids)
{
    const uint64_t job_ids[] = {1, 7, 1};

    begin_and_finish(1);
    ck_assert_int_eq(wait_for(job_ids, 3, -1), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(results[0].job_id, 1);
}
END_TEST

/* */
START_TEST(wait_answers_in_the_order_of_its_argument)
{
    const uint64_t job_ids[] = {3, 1, 2};

    begin_and_finish(1);
    begin_and_finish(2);
    begin_and_finish(3);
    begin_and_finish(4);
    ck_assert_int_eq(wait_for(job_ids, 3, -1), UC_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(results[0].job_id, 3);
    ck_assert_uint_eq(results[1].job_id, 1);
    ck_assert_uint_eq(results[2].job_id, 2);
    collect(1); /* exactly the listed ones were consumed */
    ck_assert_uint_eq(results[0].job_id, 4);
}
END_TEST

/* the timeouts run out at once or after a moment, with the same answer */
START_TEST(wait_delivers_what_is_ready_when_time_runs_out)
{
    const uint64_t job_ids[] = {1, 2};

    begin(1);
    begin_and_finish(2);
    ck_assert_int_eq(wait_for(job_ids, 2, _i), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(results[0].job_id, 2);
    uc_completion_queue_finish(queue, 1, UC_ERR_TIMEOUT, NULL);
    ck_assert_int_eq(wait_for(job_ids, 2, 0), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(results[0].code, UC_ERR_TIMEOUT);
}
END_TEST

/* */
START_TEST(wait_refuses_too_little_room)
{
    const uint64_t job_ids[] = {1, 2, 1, 2, 3};

    begin_and_finish(1);
    begin_and_finish(2);
    begin_and_finish(3);
    ck_assert_int_eq(uc_completion_queue_wait(queue, job_ids, 5, -1, results, 2, &count),
            UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(count, 99);
    ck_assert_int_eq(uc_completion_queue_wait(queue, job_ids, 5, -1, results, 3, &count), UC_OK);
    ck_assert_uint_eq(count, 3);
}
END_TEST

START_TEST(wait_refuses_times_below_no_limit)
{
    uint64_t job_id = 1;

    begin(job_id);
    ck_assert_int_eq(wait_for(&job_id, 1, -2), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(wait_for(NULL, 0, -1), UC_OK);
    ck_assert_uint_eq(count, 0);
}
END_TEST

START_TEST(longest_timeout_does_not_overflow)
{
    uint64_t job_id = 1;

    begin_and_finish(job_id);
    ck_assert_int_eq(wait_for(&job_id, 1, INT64_MAX), UC_OK);
    ck_assert_uint_eq(count, 1);
}
END_TEST

static bool
is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN) != 0;
}

/* */
START_TEST(event_fd_is_readable_exactly_while_events_wait)
{
    uint64_t job_id = 2;
    int fd;

    begin_and_finish(1);
    fd = uc_completion_queue_event_fd(queue); /* made late: shows what is there already */
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(uc_completion_queue_event_fd(queue), fd);
    ck_assert(is_readable(fd));
    ck_assert(is_readable(fd)); /* level triggered */
    begin(job_id);
    uc_completion_queue_finish(queue, job_id, UC_OK, NULL);
    ck_assert_int_eq(wait_for(&job_id, 1, -1), UC_OK);
    ck_assert(is_readable(fd));
    collect(1);
    ck_assert(!is_readable(fd));
    begin(3);
    ck_assert(!is_readable(fd));
    uc_completion_queue_finish(queue, 3, UC_OK, NULL);
    ck_assert(is_readable(fd));
}
END_TEST

/* Ids that a bad hash would put in one bucket, and more of them than were prepared. */
static const uint64_t strides[] = {1, 64, UINT64_C(1) << 32, UINT64_MAX};

START_TEST(queue_grows_and_finds_all)
{
    for (uint64_t idx = 0; idx < 1000; idx++) {
        begin(idx * strides[_i]);
    }
    ck_assert_uint_eq(uc_completion_queue_unfinished(queue), 1000);
    for (uint64_t idx = 0; idx < 1000; idx++) {
        uint64_t job_id = idx * strides[_i];

        ck_assert(uc_completion_queue_has(queue, job_id));
        uc_completion_queue_finish(queue, job_id, UC_OK, NULL);
        ck_assert_int_eq(wait_for(&job_id, 1, 0), UC_OK);
        ck_assert_uint_eq(count, 1);
    }
    ck_assert_uint_eq(uc_completion_queue_unfinished(queue), 0);
}
END_TEST

START_TEST(prepared_queue_allocates_nothing_for_jobs_that_succeed)
{
    size_t consumed = 0;

    uc_completion_queue_destroy(queue);
    ck_assert_int_eq(uc_completion_queue_create(4, 0, &queue), UC_OK);
    uc_fake_alloc_fail_after(0); /* Check allocates too: no assertion until the reset */
    for (int round = 0; round < 10; round++) {
        for (uint64_t idx = 0; idx < 4; idx++) {
            if (uc_completion_queue_begin(queue, idx, 10) == UC_OK) {
                uc_completion_queue_finish(queue, idx, UC_OK, NULL);
            }
        }
        if (uc_completion_queue_get_finished(queue, results, 16, &count) == UC_OK) {
            consumed += count;
        }
    }
    uc_fake_alloc_reset();
    ck_assert_uint_eq(consumed, 40);
}
END_TEST

START_TEST(limit_asks_to_try_again)
{
    uc_completion_queue_destroy(queue);
    ck_assert_int_eq(uc_completion_queue_create(1, 2, &queue), UC_OK);
    begin(1);
    begin_and_finish(2);
    ck_assert_int_eq(uc_completion_queue_begin(queue, 3, 1), UC_ERR_RETRY);
    collect(1);
    begin(3);
}
END_TEST

START_TEST(begin_without_memory_leaves_no_job)
{
    enum uc_status status;

    begin(1); /* the prepared record */
    uc_fake_alloc_fail_after((size_t)_i);
    status = uc_completion_queue_begin(queue, 2, 1);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert(!uc_completion_queue_has(queue, 2));
    begin(2);
}
END_TEST

START_TEST(create_undoes_everything_when_an_allocation_fails)
{
    struct uc_completion_queue *none = NULL;
    enum uc_status status;

    uc_fake_alloc_fail_after((size_t)_i);
    status = uc_completion_queue_create(8, 0, &none);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_eq(uc_completion_queue_create(SIZE_MAX, 0, &none), UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(none);
    uc_completion_queue_destroy(NULL);
}
END_TEST

static Suite *
completion_queue_suite(void)
{
    Suite *suite = suite_create("completion_queue");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, event_is_delivered_once);
    tcase_add_test(tcase, id_is_taken_until_the_event_is_consumed);
    tcase_add_test(tcase, dropped_job_gives_no_event_and_frees_its_id);
    tcase_add_test(tcase, second_finish_changes_nothing);
    tcase_add_test(tcase, partial_failure_carries_the_bitmap);
    tcase_add_test(tcase, bitmap_without_memory_fails_every_block);
    tcase_add_test(tcase, bitmaps_nobody_collected_are_freed);
    tcase_add_test(tcase, get_finished_keeps_the_order_and_what_has_no_room);
    tcase_add_test(tcase, wait_ignores_unknown_and_repeated_ids);
    tcase_add_test(tcase, wait_answers_in_the_order_of_its_argument);
    tcase_add_loop_test(tcase, wait_delivers_what_is_ready_when_time_runs_out, 0, 2);
    tcase_add_test(tcase, wait_refuses_too_little_room);
    tcase_add_test(tcase, wait_refuses_times_below_no_limit);
    tcase_add_test(tcase, longest_timeout_does_not_overflow);
    tcase_add_test(tcase, event_fd_is_readable_exactly_while_events_wait);
    tcase_add_loop_test(tcase, queue_grows_and_finds_all, 0, sizeof(strides) / sizeof(strides[0]));
    tcase_add_test(tcase, prepared_queue_allocates_nothing_for_jobs_that_succeed);
    tcase_add_test(tcase, limit_asks_to_try_again);
    tcase_add_loop_test(tcase, begin_without_memory_leaves_no_job, 0, 2);
    tcase_add_loop_test(tcase, create_undoes_everything_when_an_allocation_fails, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(completion_queue_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
