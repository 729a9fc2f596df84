/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs of a StoreEntry: table 4.3, R-9.18 to. */

#include "test/unit/client/proxy/entry_fixture.h"

/* */
START_TEST(submit_calls_what_the_store_has)
{
    fixture_start_windows(_i);
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    ck_assert_uint_eq(fx.fake->data.count, 3);
    ck_assert_mem_eq(fx.fake->data.ids, keys, 3 * sizeof(keys[0]));
    ck_assert_int_eq(fixture_submit(JOB_PUT, 2), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 3), UC_OK);
    ck_assert_str_eq(fx.fake->data.log, fx.is_tokened && fx.is_prefetchable
                                                ? "token_load token_dump prefetch "
                                        : fx.is_tokened      ? "token_load token_dump "
                                        : fx.is_prefetchable ? "load dump prefetch "
                                                             : "load dump ");
    fixture_stop();
}
END_TEST

/* V-42: one successful event and no store call; G4 */
START_TEST(prefetch_without_lower_tier_succeeds_at_once)
{
    struct uc_io_result result;
    size_t count = 0;
    uint64_t job_id = 9;

    fixture_start_windows(_i);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 9), UC_OK);
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 9), UC_ERR_DUPLICATE_KEY);
    ck_assert_int_eq(fixture_submit(JOB_GET, 9), UC_ERR_DUPLICATE_KEY);
    fixture_expect_event(9, UC_OK);
    fixture_expect_no_event();
    ck_assert_int_eq(fixture_submit(JOB_PREFETCH, 9), UC_OK);
    ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert(result.success);
    fixture_expect_no_event();
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_PREFETCH], 0);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_WAIT], 0);
    fixture_stop();
}
END_TEST

/* V-44: one id space, in use until the event was consumed. */
START_TEST(job_id_is_in_use_until_its_event_was_consumed)
{
    fixture_start_windows(KIND_BOTH);
    for (enum job_class first = 0; first < JOB_CLASS_COUNT; first++) {
        ck_assert_int_eq(fixture_submit(first, 1), UC_OK);
        for (enum job_class second = 0; second < JOB_CLASS_COUNT; second++) {
            ck_assert_int_eq(fixture_submit(second, 1), UC_ERR_DUPLICATE_KEY);
        }
        fixture_expect_event(1, UC_OK);
        fixture_expect_no_event();
    }
    fixture_stop();
}
END_TEST

/* refused by the store, so no event comes and the id is free. */
START_TEST(refused_job_frees_its_id)
{
    static const enum uc_fake_op ops[JOB_CLASS_COUNT] = {
            [JOB_GET] = UC_FAKE_TOKEN_LOAD,
            [JOB_PUT] = UC_FAKE_TOKEN_DUMP,
            [JOB_PREFETCH] = UC_FAKE_PREFETCH,
    };

    fixture_start_windows(KIND_BOTH);
    fx.fake->answers[ops[_i]] = UC_ERR_RETRY;
    ck_assert_int_eq(fixture_submit((enum job_class)_i, 1), UC_ERR_RETRY);
    fixture_expect_no_event();
    fx.fake->answers[ops[_i]] = UC_OK;
    ck_assert_int_eq(fixture_submit((enum job_class)_i, 1), UC_OK);
    fixture_expect_event(1, UC_OK);
    fixture_stop();
}
END_TEST

/* V-42: on a plain store a token has no payload. */
START_TEST(plain_store_refuses_token_with_payload)
{
    static const uint8_t byte = 1;
    struct uc_token token = {.keys = keys, .key_count = 1, .payload = &byte, .payload_bytes = 1};

    fixture_start_windows(_i);
    ck_assert_int_eq(uc_worker_submit_get(fx.worker, 1, payloads, 1, &token, NULL),
            fx.is_tokened ? UC_OK : UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_put(fx.worker, 2, payloads, 1, &token, NULL),
            fx.is_tokened ? UC_OK : UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_LOAD] + fx.fake->calls[UC_FAKE_DUMP], 0);
    fixture_stop();
}
END_TEST

/* with token, also if its payload is empty. */
START_TEST(tokened_store_sees_token_with_empty_payload)
{
    struct uc_token token = {.keys = keys, .key_count = 1};

    fixture_start_windows(KIND_TOKENED);
    ck_assert_int_eq(uc_worker_submit_get(fx.worker, 1, payloads, 1, &token, NULL), UC_OK);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_TOKEN_LOAD], 1);
    ck_assert_uint_eq(fx.fake->data.payload_bytes, 0);
    fixture_stop();
}
END_TEST

/* V-43, R-9.21: token of 3 keys */
static const struct {
    uint64_t first_key;
    uint64_t key_count;
    size_t payload_count;
    enum uc_status want;
} range_cases[] = {
        {0, 0, 3, UC_OK},                                  /* whole token */
        {0, 3, 3, UC_OK},                                  /* the same in numbers */
        {1, 0, 2, UC_OK},                                  /* from 1 on */
        {1, 1, 1, UC_OK},                                  /* the one in the middle */
        {2, 1, 1, UC_OK},                                  /* the last one */
        {0, 0, 2, UC_ERR_INVALID_PARAM},                   /* fewer payloads than keys */
        {0, 0, 4, UC_ERR_INVALID_PARAM},                   /* more payloads than keys */
        {0, 2, 3, UC_ERR_INVALID_PARAM},                   /* more payloads than the range */
        {3, 0, 0, UC_ERR_INVALID_PARAM},                   /* nothing left */
        {3, 1, 1, UC_ERR_INVALID_PARAM},                   /* behind the end */
        {2, 2, 2, UC_ERR_INVALID_PARAM},                   /* leaves the token */
        {UINT64_MAX, 0, 1, UC_ERR_INVALID_PARAM},          /* far behind the end */
        {1, UINT64_MAX, 2, UC_ERR_INVALID_PARAM},          /* sum wraps */
        {UINT64_MAX, UINT64_MAX, 3, UC_ERR_INVALID_PARAM}, /* both */
};

START_TEST(range_is_inside_the_token)
{
    struct uc_io_context io = {
            .first_key = range_cases[_i].first_key, .key_count = range_cases[_i].key_count};

    for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
        fixture_start_windows(kind);
        ck_assert_int_eq(uc_worker_submit_get(fx.worker, 1, payloads, range_cases[_i].payload_count,
                                 fx.get_token, &io),
                range_cases[_i].want);
        if (range_cases[_i].want == UC_OK) {
            ck_assert_uint_eq(fx.fake->data.count, range_cases[_i].payload_count);
            ck_assert_mem_eq(fx.fake->data.ids, &keys[range_cases[_i].first_key],
                    range_cases[_i].payload_count * sizeof(keys[0]));
            ck_assert_uint_eq(
                    fx.fake->data.first_key, fx.is_tokened ? range_cases[_i].first_key : 0);
            fixture_expect_event(1, UC_OK);
        } else {
            ck_assert_str_eq(fx.fake->data.log, "");
            ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK); /* the id is free */
            fixture_expect_event(1, UC_OK);
        }
        fixture_stop();
    }
}
END_TEST

/* deadline and prerequisite of a job go to the store. */
START_TEST(io_context_reaches_the_store)
{
    struct uc_io_context io = {.prerequisite_handle = 77, .timeout_ms = 1234};

    fixture_start_windows(_i);
    ck_assert_int_eq(uc_worker_submit_put(fx.worker, 1, payloads, 3, fx.put_token, &io), UC_OK);
    ck_assert_uint_eq(fx.fake->data.prerequisite_handle, 77);
    ck_assert_uint_eq(fx.fake->data.timeout_ms, 1234);
    fixture_stop();
}
END_TEST

/* many submits per window. */
START_TEST(one_window_takes_many_jobs)
{
    fixture_start_windows(KIND_TOKENED);
    for (uint64_t first = 0; first < 3; first++) {
        struct uc_io_context io = {.first_key = first, .key_count = 1};

        ck_assert_int_eq(
                uc_worker_submit_put(fx.worker, first, payloads, 1, fx.put_token, &io), UC_OK);
    }
    for (uint64_t first = 0; first < 3; first++) {
        fixture_expect_event(first, UC_OK);
    }
    fixture_stop();
}
END_TEST

/* G5: accepted is not succeeded. */
START_TEST(failure_is_in_the_event)
{
    fixture_start_windows(_i);
    fx.fake->hold_events = true;
    ck_assert_int_eq(fixture_submit(JOB_GET, 1), UC_OK);
    fixture_expect_no_event();
    uc_fake_store_finish(fx.fake, 1, UC_ERR_NOT_FOUND);
    fixture_expect_event(1, UC_ERR_NOT_FOUND);
    fixture_stop();
}
END_TEST

START_TEST(null_arguments_are_refused)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 0;
    struct uc_token no_keys = {.keys = NULL, .key_count = 3};

    fixture_start_windows(KIND_PLAIN);
    ck_assert_int_eq(
            uc_worker_submit_get(fx.worker, 1, payloads, 3, NULL, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_worker_submit_put(fx.worker, 1, NULL, 3, fx.put_token, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_worker_submit_get(fx.worker, 1, payloads, 3, &no_keys, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_prefetch(fx.worker, 1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_prefetch(NULL, 1, fx.plan), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, NULL, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_get_finished(fx.worker, &result, 1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_worker_wait(fx.worker, NULL, 1, 0, &result, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_worker_wait(fx.worker, &job_id, 1, -2, &result, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_wait(fx.worker, NULL, 0, -1, NULL, 0, &count), UC_OK);
    ck_assert_int_eq(uc_worker_describe(fx.worker, NULL), UC_ERR_INVALID_PARAM);
    fixture_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("entry_jobs");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, submit_calls_what_the_store_has, 0, KIND_COUNT);
    tcase_add_loop_test(
            tcase, prefetch_without_lower_tier_succeeds_at_once, KIND_PLAIN, KIND_TOKENED + 1);
    tcase_add_test(tcase, job_id_is_in_use_until_its_event_was_consumed);
    tcase_add_loop_test(tcase, refused_job_frees_its_id, 0, JOB_CLASS_COUNT);
    tcase_add_loop_test(tcase, plain_store_refuses_token_with_payload, 0, KIND_COUNT);
    tcase_add_test(tcase, tokened_store_sees_token_with_empty_payload);
    tcase_add_loop_test(
            tcase, range_is_inside_the_token, 0, sizeof(range_cases) / sizeof(range_cases[0]));
    tcase_add_loop_test(tcase, io_context_reaches_the_store, 0, KIND_COUNT);
    tcase_add_test(tcase, one_window_takes_many_jobs);
    tcase_add_loop_test(tcase, failure_is_in_the_event, 0, KIND_COUNT);
    tcase_add_test(tcase, null_arguments_are_refused);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
