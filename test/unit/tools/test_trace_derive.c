/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stdlib.h>

#include <check.h>

#include "tools/bench/trace_derive.h"
#include "tools/bench/trace_load.h"

static struct uc_trace trace;
static struct uc_trace derived;

/* Requests at 0, 10, 20, … of one id each: 100, 101, 102, … */
static void
make_trace(struct uc_trace *made, uint64_t first_id, size_t count, uint64_t start_ms)
{
    for (size_t idx = 0; idx < count; idx++) {
        struct uc_trace_request request = {.timestamp_ms = start_ms + 10 * idx};
        uint64_t id = first_id + idx;

        ck_assert_int_eq(uc_trace_add(made, &request, &id, 1), UC_OK);
    }
}

static void
setup(void)
{
    make_trace(&trace, 100, 7, 0);
}

static void
teardown(void)
{
    uc_trace_fini(&trace);
    uc_trace_fini(&derived);
}

static uint64_t
only_id(const struct uc_trace *of, size_t idx)
{
    ck_assert_uint_lt(idx, of->request_count);
    ck_assert_uint_eq(of->requests[idx].count, 1);
    return uc_trace_hash_ids(of, &of->requests[idx])[0];
}

START_TEST(picks_keep_ids_and_times)
{
    ck_assert_int_eq(uc_trace_pick(&trace, 1, 7, 3, &derived), UC_OK);
    ck_assert_uint_eq(derived.request_count, 2);
    ck_assert_uint_eq(only_id(&derived, 0), 101);
    ck_assert_uint_eq(only_id(&derived, 1), 104);
    ck_assert_uint_eq(derived.requests[1].timestamp_ms, 40);
    ck_assert_uint_eq(derived.hash_id_count, 2);
}
END_TEST

START_TEST(step_may_be_larger_than_the_trace)
{
    ck_assert_int_eq(uc_trace_pick(&trace, 0, 7, SIZE_MAX, &derived), UC_OK);
    ck_assert_uint_eq(derived.request_count, 1);
}
END_TEST

START_TEST(nothing_left_is_an_error)
{
    ck_assert_int_eq(uc_trace_pick(&trace, 3, 3, 1, &derived), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(mixed_traces_go_by_time_and_share_no_block)
{
    struct uc_trace second = {0};

    make_trace(&second, 100, 2, 10);
    ck_assert_int_eq(uc_trace_mix(&trace, &second, &derived), UC_OK);
    uc_trace_fini(&second);
    ck_assert_uint_eq(derived.request_count, 9);
    ck_assert_uint_eq(only_id(&derived, 0), 100);
    ck_assert_uint_eq(only_id(&derived, 1), 101);
    ck_assert_uint_eq(only_id(&derived, 2), 207); /* 107 ids are taken */
    ck_assert_uint_eq(only_id(&derived, 3), 102);
    ck_assert_uint_eq(only_id(&derived, 4), 208);
    ck_assert_uint_eq(derived.requests[4].timestamp_ms, 20);
    ck_assert_uint_eq(only_id(&derived, 8), 106);
}
END_TEST

START_TEST(times_are_multiplied)
{
    uc_trace_scale_time(&trace, 0.5);
    ck_assert_uint_eq(trace.requests[3].timestamp_ms, 15);
    trace.requests[3].timestamp_ms = UINT64_MAX;
    uc_trace_scale_time(&trace, 1000);
    ck_assert_uint_eq(trace.requests[3].timestamp_ms, INT64_MAX);
}
END_TEST

START_TEST(options_derive_what_they_say)
{
    static const struct {
        const char *half;
        uint64_t thin;
        size_t requests;
    } cases[] = {{"all", 1, 100}, {"first", 1, 50}, {"second", 1, 50}, {"all", 3, 34},
            {"second", 2, 25}};
    struct uc_replay_options options = {.generate = {.seed = 1, .requests = 100},
            .half = cases[_i].half,
            .thin = cases[_i].thin,
            .time_scale = 1};
    bool second = cases[_i].half[0] == 's';

    uc_trace_fini(&trace);
    ck_assert_int_eq(uc_trace_generate(1, 100, &trace), UC_OK);
    ck_assert_int_eq(uc_trace_load(&options, &derived), UC_OK);
    ck_assert_uint_eq(derived.request_count, cases[_i].requests);
    ck_assert_uint_eq(
            derived.requests[0].timestamp_ms, trace.requests[second ? 50 : 0].timestamp_ms);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("trace_derive");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, picks_keep_ids_and_times);
    tcase_add_test(tcase, step_may_be_larger_than_the_trace);
    tcase_add_test(tcase, nothing_left_is_an_error);
    tcase_add_test(tcase, mixed_traces_go_by_time_and_share_no_block);
    tcase_add_test(tcase, times_are_multiplied);
    tcase_add_loop_test(tcase, options_derive_what_they_say, 0, 5);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
