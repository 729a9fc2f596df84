/* SPDX-License-Identifier: Apache-2.0 */

/* Events of a StoreEntry. */

#include <poll.h>

#include "test/unit/client/proxy/entry_fixture.h"

/* V-46, R-5.20, R-4.29, R-4.30 */
START_TEST(wait_runs_out_of_time_and_the_event_comes_later)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 99;

    fixture_start_windows(_i);
    fx.fake->hold_events = true;
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, 0, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_ERR_DUPLICATE_KEY);
    uc_fake_store_finish(fx.fake, 1, UC_ERR_TIMEOUT);
    ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, 0, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(result.code, UC_ERR_TIMEOUT);
    uc_io_results_release(&result, 1);
    fixture_stop();
}
END_TEST

/* what was ready is delivered and consumed all the same. */
START_TEST(timed_out_wait_delivers_what_is_ready)
{
    static const uint64_t job_ids[] = {1, 2, 3};
    struct uc_io_result results[3];
    size_t count = 99;

    fixture_start_windows(KIND_PLAIN);
    fx.fake->hold_events = true;
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PUT, 2), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 3), UC_OK); /* synthetic, ready at once */
    uc_fake_store_finish(fx.fake, 2, UC_OK);
    ck_assert_int_eq(uc_worker_wait(fx.worker, job_ids, 3, 0, results, 3, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(results[0].job_id, 2);
    ck_assert_uint_eq(results[1].job_id, 3);
    fixture_expect_no_event();
    uc_fake_store_finish(fx.fake, 1, UC_OK);
    fixture_expect_event(1, UC_OK);
    fixture_stop();
}
END_TEST

/* V-44, V-45, R-5.19: unknown and consumed ids are ignored, repeated ones count once. */
START_TEST(wait_ignores_unknown_and_repeated_ids)
{
    static const uint64_t job_ids[] = {1, 7, 1};
    struct uc_io_result results[3];
    size_t count = 99;

    fixture_start_windows(_i);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    ck_assert_int_eq(uc_worker_wait(fx.worker, job_ids, 3, -1, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(results[0].job_id, 1);
    ck_assert_int_eq(uc_worker_wait(fx.worker, job_ids, 3, -1, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    fixture_expect_event(1, UC_OK);
    fixture_stop();
}
END_TEST

/* */
START_TEST(wait_with_too_little_room_consumes_nothing)
{
    static const uint64_t job_ids[] = {1, 2, 1};
    struct uc_io_result results[2];
    size_t count = 99;

    fixture_start_windows(_i);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 2), UC_OK);
    ck_assert_int_eq(
            uc_worker_wait(fx.worker, job_ids, 3, -1, results, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(count, 99);
    ck_assert_int_eq(uc_worker_wait(fx.worker, job_ids, 3, -1, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    fixture_stop();
}
END_TEST

/* synthetic and store events together, in the order of the argument. */
START_TEST(wait_returns_results_in_the_order_of_the_list)
{
    static const uint64_t job_ids[] = {5, 4, 99, 3, 2, 5, 1};
    static const uint64_t want[] = {5, 4, 3, 2, 1};
    struct uc_io_result results[7];
    size_t count = 0;

    fixture_start_windows(_i);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 2), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PUT, 3), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 4), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_GET, 5), UC_OK);
    ck_assert_int_eq(uc_worker_wait(fx.worker, job_ids, 7, -1, results, 7, &count), UC_OK);
    ck_assert_uint_eq(count, 5);
    for (size_t idx = 0; idx < 5; idx++) {
        ck_assert_uint_eq(results[idx].job_id, want[idx]);
    }
    fixture_expect_no_event();
    fixture_stop();
}
END_TEST

/* */
START_TEST(get_finished_delivers_up_to_capacity)
{
    struct uc_io_result results[3];
    size_t count = 99;

    fixture_start_windows(_i);
    for (uint64_t job_id = 0; job_id < 4; job_id++) {
        ck_assert_int_eq(fixture_submit((enum job_class)(job_id % JOB_CLASS_COUNT), job_id), UC_OK);
    }
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, NULL, 0, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, results, 3, &count), UC_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, results, 3, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, results, 3, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
    fixture_stop();
}
END_TEST

/* strays are dropped, and a short array still means that there is no more. */
START_TEST(event_of_an_unknown_job_is_dropped)
{
    struct uc_io_result results[2];
    size_t count = 99;

    fixture_start_windows(_i);
    uc_fake_store_deliver_stray(fx.fake, 50);
    uc_fake_store_deliver_stray(fx.fake, 51);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(results[0].job_id, 1);
    fixture_stop();
}
END_TEST

/* a store's stray does not end a synthetic job of the same id. */
START_TEST(stray_does_not_take_the_place_of_a_synthetic_event)
{
    struct uc_io_result results[4];
    size_t count = 99;

    fixture_start_windows(KIND_PLAIN);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 50), UC_OK);
    uc_fake_store_deliver_stray(fx.fake, 50);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, results, 4, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    fixture_stop();
}
END_TEST

/* V-60: collecting works while the rest fails; an error of the store is passed on. */
START_TEST(wait_passes_a_store_error_on)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 99;

    fixture_start_windows(_i);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    fx.fake->answers[UC_FAKE_WAIT] = UC_ERR_GENERAL;
    fx.fake->answers[UC_FAKE_GET_FINISHED] = UC_ERR_GENERAL;
    ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, -1, &result, 1, &count), UC_ERR_GENERAL);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, &result, 1, &count), UC_ERR_GENERAL);
    ck_assert_uint_eq(count, 99);
    fx.fake->answers[UC_FAKE_WAIT] = UC_OK;
    ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    fixture_stop();
}
END_TEST

static bool
is_readable(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};

    return poll(&entry, 1, 0) == 1;
}

/* level triggered, over synthetic and store events. */
START_TEST(event_fd_is_readable_while_events_wait)
{
    fixture_start_windows(_i);
    int fd = uc_worker_event_fd(fx.worker);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(uc_worker_event_fd(fx.worker), fd);
    ck_assert(!is_readable(fd));
    for (enum job_class job_class = 0; job_class < JOB_CLASS_COUNT; job_class++) {
        ck_assert_int_eq(fixture_submit(job_class, 1), UC_OK);
        ck_assert_int_eq(fixture_submit(job_class, 2), UC_OK);
        ck_assert(is_readable(fd));
        fixture_expect_event(1, UC_OK);
        ck_assert(is_readable(fd));
        fixture_expect_event(2, UC_OK);
        ck_assert(!is_readable(fd));
    }
    fixture_stop();
}
END_TEST

/* events from before the first call count; a wait takes them away. */
START_TEST(event_fd_made_late_shows_what_is_ready)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count;

    fixture_start_windows(_i);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 1), UC_OK);
    int fd = uc_worker_event_fd(fx.worker);

    ck_assert(is_readable(fd));
    ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert(!is_readable(fd));
    fixture_stop();
}
END_TEST

START_TEST(store_without_event_fd_has_none)
{
    fixture_start_windows(_i);
    fx.fake->no_event_fd = true;
    ck_assert_int_eq(uc_worker_event_fd(fx.worker), -1);
    ck_assert_int_eq(uc_worker_event_fd(NULL), -1);
    fixture_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("entry_events");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, wait_runs_out_of_time_and_the_event_comes_later, 0, KIND_COUNT);
    tcase_add_test(tcase, timed_out_wait_delivers_what_is_ready);
    tcase_add_loop_test(tcase, wait_ignores_unknown_and_repeated_ids, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, wait_with_too_little_room_consumes_nothing, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, wait_returns_results_in_the_order_of_the_list, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, get_finished_delivers_up_to_capacity, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, event_of_an_unknown_job_is_dropped, 0, KIND_COUNT);
    tcase_add_test(tcase, stray_does_not_take_the_place_of_a_synthetic_event);
    tcase_add_loop_test(tcase, wait_passes_a_store_error_on, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, event_fd_is_readable_while_events_wait, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, event_fd_made_late_shows_what_is_ready, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, store_without_event_fd_has_none, 0, KIND_COUNT);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
