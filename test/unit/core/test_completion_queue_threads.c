/* SPDX-License-Identifier: Apache-2.0 */

/* Backs the thread-safety promise in completion_queue.h; worth most under ThreadSanitizer. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <check.h>

#include "core/base/completion_queue.h"

enum {
    FINISHER_COUNT = 3,
    JOB_COUNT = 3000,
    BATCH = 30
};

static struct uc_completion_queue *queue;
static _Atomic uint64_t begun; /* jobs [0, begun) may be finished */

/* Ends every FINISHER_COUNT-th job, as soon as it was begun. */
static void *
finish_jobs(void *arg)
{
    const uint8_t blocks[] = {0x01};

    for (uint64_t job = *(const uint64_t *)arg; job < JOB_COUNT; job += FINISHER_COUNT) {
        while (atomic_load_explicit(&begun, memory_order_acquire) <= job) {
            (void)sched_yield();
        }
        uc_completion_queue_finish(queue, job, job % 5 == 0 ? UC_ERR_NOT_FOUND : UC_OK, blocks);
    }
    return NULL;
}

static void
check_results(struct uc_io_result *results, size_t count, uint8_t *seen)
{
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_uint_lt(results[idx].job_id, JOB_COUNT);
        ck_assert_uint_eq(seen[results[idx].job_id]++, 0);
        ck_assert_int_eq(results[idx].success, results[idx].job_id % 5 != 0);
        ck_assert(uc_io_result_block_ok(&results[idx], 0));
    }
    uc_io_results_release(results, count);
}

/* G4: every job exactly once, whoever ends it; odd batches are waited for, the others polled. */
START_TEST(each_job_of_several_finishers_arrives_once)
{
    static uint8_t seen[JOB_COUNT];
    struct uc_io_result results[BATCH];
    uint64_t first_jobs[FINISHER_COUNT];
    pthread_t threads[FINISHER_COUNT];
    uint64_t job_ids[BATCH];
    size_t count = 0;

    ck_assert_int_eq(uc_completion_queue_create(4, 0, &queue), UC_OK);
    ck_assert_int_ge(uc_completion_queue_event_fd(queue), 0);
    for (uint64_t idx = 0; idx < FINISHER_COUNT; idx++) {
        first_jobs[idx] = idx;
        ck_assert_int_eq(pthread_create(&threads[idx], NULL, finish_jobs, &first_jobs[idx]), 0);
    }

    for (uint64_t first = 0; first < JOB_COUNT; first += BATCH) {
        for (uint64_t idx = 0; idx < BATCH; idx++) {
            job_ids[idx] = first + idx;
            ck_assert_int_eq(uc_completion_queue_begin(queue, first + idx, 1), UC_OK);
        }
        atomic_store_explicit(&begun, first + BATCH, memory_order_release);
        if (first / BATCH % 2 == 1) {
            ck_assert_int_eq(
                    uc_completion_queue_wait(queue, job_ids, BATCH, -1, results, BATCH, &count),
                    UC_OK);
            ck_assert_uint_eq(count, BATCH);
            check_results(results, count, seen);
        } else {
            for (size_t total = 0; total < BATCH; total += count) {
                ck_assert_int_eq(
                        uc_completion_queue_get_finished(queue, results, BATCH, &count), UC_OK);
                check_results(results, count, seen);
            }
        }
    }

    for (size_t idx = 0; idx < FINISHER_COUNT; idx++) {
        ck_assert_int_eq(pthread_join(threads[idx], NULL), 0);
    }
    for (size_t job = 0; job < JOB_COUNT; job++) {
        ck_assert_uint_eq(seen[job], 1);
    }
    uc_completion_queue_destroy(queue);
}
END_TEST

static void *
finish_job_seven(void *arg)
{
    uc_completion_queue_finish(queue, 7, UC_OK, NULL);
    return arg;
}

START_TEST(waiter_with_a_limit_is_woken_before_it)
{
    struct uc_io_result result;
    uint64_t job_id = 7;
    pthread_t thread;
    size_t count = 0;

    ck_assert_int_eq(uc_completion_queue_create(0, 0, &queue), UC_OK);
    ck_assert_int_eq(uc_completion_queue_begin(queue, job_id, 1), UC_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, finish_job_seven, NULL), 0);
    /* Far above the test's own limit: a lost wake-up shows as a timeout of the suite. */
    ck_assert_int_eq(
            uc_completion_queue_wait(queue, &job_id, 1, 3600000, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    uc_completion_queue_destroy(queue);
}
END_TEST

static Suite *
completion_queue_threads_suite(void)
{
    Suite *suite = suite_create("completion_queue_threads");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, each_job_of_several_finishers_arrives_once);
    tcase_add_test(tcase, waiter_with_a_limit_is_woken_before_it);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(completion_queue_threads_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
