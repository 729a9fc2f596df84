/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How engines use and misuse the interfaces,
 * G17, G18.
 */

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "test/conformance/store/suite.h"

/* What the tiers that count it still hold. */
static int64_t
held_of(const struct uc_dict *tier)
{
    static const char *const keys[] = {"reserved", "pinned", "draining"};
    int64_t held = 0;

    for (size_t idx = 0; idx < sizeof(keys) / sizeof(keys[0]); idx++) {
        int64_t value = 0;

        if (uc_dict_get_int(tier, keys[idx], &value) == UC_OK) {
            held += value;
        }
    }
    return held;
}

static int64_t
held_in_all_tiers(void)
{
    struct uc_dict *description = NULL;
    const struct uc_dict *branch;
    size_t count = 0;
    int64_t held;

    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_scheduler_describe(suite.scheduler, description), UC_OK);
    branch = suite_branch_of(description);
    held = held_of(branch);
    (void)!uc_dict_get_list_count(branch, "tiers", &count);
    for (size_t idx = 0; idx < count; idx++) {
        const struct uc_dict *tier = NULL;

        if (uc_dict_get_dict_at(branch, "tiers", idx, &tier) == UC_OK) {
            held += held_of(tier);
        }
    }
    uc_dict_destroy(description);
    return held;
}

/* A tier that writes behind the caller's back holds what it writes until then. */
static void
expect_nothing_held(void)
{
    uint64_t until_ns = uc_clock_now_ns() + SUITE_WAIT_MS * 1000000ull;

    while (held_in_all_tiers() != 0) {
        ck_assert_uint_lt(uc_clock_now_ns(), until_ns);
        (void)sched_yield();
    }
}

/* The event of a job whose window was concluded under it: it comes, however it ended. */
static void
expect_any_event(uint64_t job_id)
{
    struct uc_io_result result = {0};
    size_t count = 0;

    ck_assert_int_eq(
            uc_worker_wait(suite.worker, &job_id, 1, SUITE_WAIT_MS, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    uc_io_results_release(&result, 1);
}

static void
submit_put(uint64_t job_id, const struct uc_token *token, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        suite_fill(&token->keys[idx], 0, suite_block(idx), suite.block_bytes);
    }
    ck_assert_msg(uc_worker_submit_put(
                          suite.worker, job_id, suite_payloads(count), count, token, NULL) == UC_OK,
            "%s", uc_last_error());
}

/* */
START_TEST(every_job_id_is_legal)
{
    static const uint64_t job_ids[] = {0, UINT64_MAX, 1ull << 63, 1};
    struct uc_token *token;

    suite_put(suite.ids, 1);
    token = suite_prepare_get(suite.ids, 1);
    for (size_t idx = 0; idx < sizeof(job_ids) / sizeof(job_ids[0]); idx++) {
        ck_assert_msg(uc_worker_submit_get(suite.worker, job_ids[idx], suite_payloads(1), 1, token,
                              NULL) == UC_OK,
                "%s", uc_last_error());
        suite_expect(job_ids[idx], UC_OK);
    }
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
}
END_TEST

/* */
START_TEST(request_ids_have_a_longest_length)
{
    char request_id[UC_REQUEST_ID_MAX + 2] = "";
    struct uc_request_context context = suite_context(request_id);
    struct uc_token *token = NULL;

    memset(request_id, 'x', sizeof(request_id));
    request_id[UC_REQUEST_ID_MAX + 1] = '\0';
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_ERR_INVALID_PARAM);
    request_id[UC_REQUEST_ID_MAX] = '\0';
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
    ck_assert_msg(
            uc_scheduler_prepare_put(suite.scheduler, request_id, suite.ids, 1, &token) == UC_OK,
            "%s", uc_last_error());
    uc_token_destroy(token);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, request_id, false), UC_OK);
    ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, request_id), UC_OK);
}
END_TEST

/* */
START_TEST(many_requests_are_registered_at_once)
{
    enum {
        REQUEST_COUNT = 200
    };
    char request_id[16] = "";

    for (size_t round = 0; round < 2; round++) {
        for (size_t idx = 0; idx < REQUEST_COUNT; idx++) {
            struct uc_request_context context = suite_context(request_id);

            (void)snprintf(request_id, sizeof(request_id), "many-%zu", idx);
            ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
            ck_assert_int_eq(
                    uc_scheduler_on_new_request(suite.scheduler, &context), UC_ERR_DUPLICATE_KEY);
        }
        for (size_t idx = 0; idx < REQUEST_COUNT; idx++) {
            (void)snprintf(request_id, sizeof(request_id), "many-%zu", idx);
            ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, request_id), UC_OK);
        }
    }
}
END_TEST

/* facts of an engine that is newer than the store. */
START_TEST(unknown_facts_are_ignored)
{
    struct {
        struct uc_request_context known;
        uint64_t later[8];
    } context = {.known = suite_context("newer")};
    struct uc_token *token = NULL;

    context.known.struct_size = sizeof(context);
    context.known.present |= ~(UC_REQUEST_TTL | UC_REQUEST_TOTAL_BLOCK_COUNT);
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context.known), UC_OK);
    ck_assert_msg(uc_scheduler_prepare_put(suite.scheduler, "newer", suite.ids, 2, &token) == UC_OK,
            "%s", uc_last_error());
    submit_put(1, token, 2);
    suite_expect(1, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, "newer", true), UC_OK);
    ck_assert_int_eq(uc_scheduler_touch(suite.scheduler, "newer", suite.ids, 2), UC_OK);
    uc_token_destroy(token);
    suite_get_and_compare(suite.ids, 2);
    ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, "newer"), UC_OK);
}
END_TEST

/* windows of different classes overlap. */
START_TEST(windows_of_different_classes_overlap)
{
    struct uc_token *get_token;
    struct uc_token *put_token;
    struct uc_token *plan = NULL;

    suite_put(suite.ids, 2);
    get_token = suite_prepare_get(suite.ids, 2);
    put_token = suite_prepare_put(&suite.ids[2], 2);
    ck_assert_int_eq(
            uc_scheduler_prepare_prefetch(suite.scheduler, suite.request_id, &plan), UC_OK);
    ck_assert_int_eq(uc_worker_submit_prefetch(suite.worker, 1, plan), UC_OK);
    submit_put(2, put_token, 2);
    suite_expect(2, UC_OK);
    suite_expect(1, UC_OK);
    ck_assert_int_eq(
            uc_worker_submit_get(suite.worker, 3, suite_payloads(2), 2, get_token, NULL), UC_OK);
    suite_expect(3, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    ck_assert_int_eq(
            uc_scheduler_complete_prefetch(suite.scheduler, suite.request_id, true), UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(get_token);
    uc_token_destroy(put_token);
    uc_token_destroy(plan);
    suite_get_and_compare(suite.ids, 4);
}
END_TEST

/* many windows of a class, one after the other, each over other blocks. */
START_TEST(windows_follow_one_another)
{
    for (size_t idx = 0; idx < 16; idx++) {
        suite_put(&suite.ids[idx], 1);
        suite_get_and_compare(suite.ids, idx + 1);
    }
}
END_TEST

/* a mask of the wrong length leaves the window open, and nothing decided. */
START_TEST(wrong_mask_leaves_the_window_open)
{
    static const uint8_t mask[3] = {1, 1, 1};
    struct uc_token *token = suite_prepare_put(suite.ids, 2);

    submit_put(1, token, 2);
    suite_expect(1, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put_mask(suite.scheduler, suite.request_id, mask, 3),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_complete_put_mask(suite.scheduler, suite.request_id, mask, 1),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_complete_put_mask(suite.scheduler, suite.request_id, mask, 2), UC_OK);
    uc_token_destroy(token);
    suite_get_and_compare(suite.ids, 2);
}
END_TEST

/* V-40: a second completion takes nothing from another reader. */
START_TEST(double_completion_drops_nobody_elses_hold)
{
    struct uc_request_context context = suite_context("other");
    struct uc_token *mine;
    struct uc_token *other = NULL;

    suite_put(suite.ids, 2);
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
    ck_assert_int_eq(
            uc_scheduler_prepare_get(suite.scheduler, "other", suite.ids, 2, &other), UC_OK);
    mine = suite_prepare_get(suite.ids, 2);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    for (size_t attempt = 0; attempt < 3; attempt++) {
        ck_assert_int_eq(
                uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_ERR_INVALID_PARAM);
        ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, false),
                UC_ERR_INVALID_PARAM);
    }
    suite_wipe(suite.memory, 2 * suite.block_bytes);
    ck_assert_int_eq(
            uc_worker_submit_get(suite.worker, 1, suite_payloads(2), 2, other, NULL), UC_OK);
    suite_expect(1, UC_OK);
    ck_assert(suite_matches(&suite.ids[1], 0, suite_block(1), suite.block_bytes));
    ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, "other"), UC_OK);
    uc_token_destroy(mine);
    uc_token_destroy(other);
}
END_TEST

/* G17: completed before the event was consumed; whatever is visible then is whole. */
START_TEST(early_completion_shows_no_torn_block)
{
    struct uc_token *token;
    uint64_t job_id = 1;

    suite_put(&suite.ids[8], 4);
    token = suite_prepare_put(suite.ids, 4);
    submit_put(job_id, token, 4);
    (void)uc_scheduler_complete_put(
            suite.scheduler, suite.request_id, true); /* Ok or InvalidParam */
    expect_any_event(job_id);
    uc_token_destroy(token);
    for (size_t idx = 0; idx < 4; idx++) {
        if (suite_is_present(&suite.ids[idx])) {
            suite_get_and_compare(&suite.ids[idx], 1);
        }
    }
    suite_get_and_compare(&suite.ids[8], 4); /* and nobody else is harmed */
    suite_put(suite.ids, 4);
    suite_get_and_compare(suite.ids, 4);
}
END_TEST

/* G17: a request that ends while its write is in flight. */
START_TEST(request_may_end_under_its_jobs)
{
    struct uc_request_context context = suite_context(suite.request_id);
    struct uc_token *token;
    uint64_t job_id = 1;

    suite_put(&suite.ids[8], 2);
    token = suite_prepare_put(suite.ids, 2);
    submit_put(job_id, token, 2);
    (void)uc_scheduler_on_request_finished(suite.scheduler, suite.request_id);
    expect_any_event(job_id);
    uc_token_destroy(token);
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
    suite_get_and_compare(&suite.ids[8], 2);
    suite_put(suite.ids, 2);
    suite_get_and_compare(suite.ids, 2);
}
END_TEST

/* G17: a request ends, or its windows are concluded, under jobs of all classes. */
START_TEST(all_windows_may_end_under_their_jobs)
{
    struct uc_request_context context = suite_context(suite.request_id);
    struct uc_token *get_token;
    struct uc_token *put_token;
    struct uc_token *plan = NULL;

    suite_put(suite.ids, 4);
    get_token = suite_prepare_get(suite.ids, 4);
    put_token = suite_prepare_put(&suite.ids[4], 4);
    ck_assert_int_eq(
            uc_scheduler_prepare_prefetch(suite.scheduler, suite.request_id, &plan), UC_OK);
    submit_put(1, put_token, 4);
    ck_assert_int_eq(uc_worker_submit_prefetch(suite.worker, 2, plan), UC_OK);
    ck_assert_int_eq(uc_worker_submit_get(suite.worker, 3, &suite_payloads(SUITE_KEYS_MAX)[8], 4,
                             get_token, NULL),
            UC_OK);
    if (_i == 0) {
        (void)uc_scheduler_on_request_finished(suite.scheduler, suite.request_id);
        ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
    } else { /* Ok, or refused: either way the windows are closed, and once only */
        (void)uc_scheduler_complete_prefetch(suite.scheduler, suite.request_id, true);
        (void)uc_scheduler_complete_get(suite.scheduler, suite.request_id);
        (void)uc_scheduler_complete_put(suite.scheduler, suite.request_id, false);
        ck_assert_int_eq(uc_scheduler_complete_prefetch(suite.scheduler, suite.request_id, true),
                UC_ERR_INVALID_PARAM);
        ck_assert_int_eq(
                uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_ERR_INVALID_PARAM);
        ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, false),
                UC_ERR_INVALID_PARAM);
    }
    for (uint64_t job_id = 1; job_id <= 3; job_id++) {
        expect_any_event(job_id);
    }
    expect_nothing_held();
    uc_token_destroy(get_token);
    uc_token_destroy(put_token);
    uc_token_destroy(plan);
    suite_get_and_compare(suite.ids, 4); /* what was there is there */
    suite_put(&suite.ids[4], 4);
    suite_get_and_compare(suite.ids, 8);
    expect_nothing_held();
}
END_TEST

#ifndef NDEBUG
/* the buffers of a job in flight may still be written. */
START_TEST(destroying_with_jobs_in_flight_asserts)
{
    struct uc_token *token = suite_prepare_put(suite.ids, 4);

    submit_put(1, token, 4);
    uc_assembler_destroy(suite.assembler);
    _exit(EXIT_FAILURE);
}
END_TEST
#endif

/* payloads that contradict themselves never reach the store. */
START_TEST(contradictory_payloads_are_refused)
{
    static const uint64_t groups[2] = {1, 1};
    struct uc_block_payload payload = suite_payloads(1)[0];
    struct uc_token *token = suite_prepare_put(suite.ids, 1);

    switch (_i) {
    case 0:
        payload.pointer_count = 0;
        break;
    case 1:
        payload.pointers = NULL;
        break;
    case 2:
        payload.sizes = NULL;
        break;
    case 3:
        payload.group_sizes = groups; /* two pointers, but there is one */
        payload.group_count = 2;
        break;
    default:
        payload.memory_region_index_count = 2;
        break;
    }
    ck_assert_int_eq(
            uc_worker_submit_put(suite.worker, 1, &payload, 1, token, NULL), UC_ERR_INVALID_PARAM);
    submit_put(1, token, 1); /* the id is free, the window as it was */
    suite_expect(1, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    uc_token_destroy(token);
    suite_get_and_compare(suite.ids, 1);
}
END_TEST

/* G18: "look up, prefetch, look up again" ends, whether there is anything below or not. */
START_TEST(lookup_and_prefetch_come_to_an_end)
{
    enum {
        ROUNDS_MAX = 8
    };
    size_t rounds = 0;

    suite_put(suite.ids, 2);
    for (bool signal = true; signal; rounds++) {
        struct uc_token *plan = NULL;
        uint64_t job_id = 1000 + rounds;
        int64_t index = -9;

        ck_assert_uint_lt(rounds, ROUNDS_MAX);
        signal = false;
        ck_assert_int_eq(uc_scheduler_lookup_on_prefix(
                                 suite.scheduler, suite.request_id, suite.ids, 5, &index, &signal),
                UC_OK);
        if (!signal) {
            ck_assert_int_eq(index, 1);
            continue;
        }
        ck_assert_int_eq(
                uc_scheduler_prepare_prefetch(suite.scheduler, suite.request_id, &plan), UC_OK);
        ck_assert_int_eq(uc_worker_submit_prefetch(suite.worker, job_id, plan), UC_OK);
        suite_expect(job_id, UC_OK);
        ck_assert_int_eq(
                uc_scheduler_complete_prefetch(suite.scheduler, suite.request_id, true), UC_OK);
        uc_token_destroy(plan);
    }
}
END_TEST

/* scheduler and worker of one process describe the same. */
START_TEST(both_interfaces_describe_the_same)
{
    struct uc_dict *of_scheduler = NULL;
    struct uc_dict *of_worker = NULL;

    ck_assert_int_eq(uc_dict_create(&of_scheduler), UC_OK);
    ck_assert_int_eq(uc_dict_create(&of_worker), UC_OK);
    ck_assert_int_eq(uc_scheduler_describe(suite.scheduler, of_scheduler), UC_OK);
    ck_assert_int_eq(uc_worker_describe(suite.worker, of_worker), UC_OK);
    ck_assert_uint_eq(uc_dict_count(of_scheduler), uc_dict_count(of_worker));
    for (size_t idx = 0; idx < uc_dict_count(of_scheduler); idx++) {
        ck_assert(uc_dict_has(of_worker, uc_dict_key_at(of_scheduler, idx)));
    }
    uc_dict_destroy(of_scheduler);
    uc_dict_destroy(of_worker);
}
END_TEST

TCase *
suite_engine_cases(void)
{
    TCase *tcase = tcase_create("engine");

#ifndef NDEBUG
    /* The signal ends the process of the case; those that follow clean up after it. */
    if (getenv("CK_FORK") == NULL) {
        tcase_add_test_raise_signal(tcase, destroying_with_jobs_in_flight_asserts, SIGABRT);
    }
#endif
    tcase_add_test(tcase, every_job_id_is_legal);
    tcase_add_test(tcase, request_ids_have_a_longest_length);
    tcase_add_test(tcase, many_requests_are_registered_at_once);
    tcase_add_test(tcase, unknown_facts_are_ignored);
    tcase_add_test(tcase, windows_of_different_classes_overlap);
    tcase_add_test(tcase, windows_follow_one_another);
    tcase_add_test(tcase, wrong_mask_leaves_the_window_open);
    tcase_add_test(tcase, double_completion_drops_nobody_elses_hold);
    tcase_add_test(tcase, early_completion_shows_no_torn_block);
    tcase_add_test(tcase, request_may_end_under_its_jobs);
    tcase_add_loop_test(tcase, all_windows_may_end_under_their_jobs, 0, 2);
    tcase_add_loop_test(tcase, contradictory_payloads_are_refused, 0, 5);
    tcase_add_test(tcase, lookup_and_prefetch_come_to_an_end);
    tcase_add_test(tcase, both_interfaces_describe_the_same);
    return tcase;
}
