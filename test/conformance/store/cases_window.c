/* SPDX-License-Identifier: Apache-2.0 */

/* Windows, visibility, verdicts: tables 4.2, 4.5, R-6.x, R-9.7 to, V-40 to V-42, V-47, V-48. */

#include <string.h>

#include "test/conformance/store/suite.h"

/* Dump the first keys of an open put window, without concluding it. */
static void
dump(const struct uc_token *token, size_t count)
{
    uint64_t job_id = suite.next_job_id++;

    for (size_t idx = 0; idx < count; idx++) {
        suite_fill(&token->keys[idx], 0, suite_block(idx), suite.block_bytes);
    }
    ck_assert_msg(uc_worker_submit_put(
                          suite.worker, job_id, suite_payloads(count), count, token, NULL) == UC_OK,
            "%s", uc_last_error());
    suite_expect(job_id, UC_OK);
}

/* V-40 */
START_TEST(windows_open_once_and_close_once)
{
    struct uc_token *other = NULL;
    struct uc_token *token;

    suite_put(suite.ids, 2);
    token = suite_prepare_get(suite.ids, 2);
    ck_assert_int_eq(
            uc_scheduler_prepare_get(suite.scheduler, suite.request_id, suite.ids, 1, &other),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    ck_assert_int_eq(
            uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_ERR_INVALID_PARAM);
    uc_token_destroy(token);

    token = suite_prepare_put(&suite.ids[2], 2);
    ck_assert_int_eq(
            uc_scheduler_prepare_put(suite.scheduler, suite.request_id, &suite.ids[4], 1, &other),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, false), UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, false),
            UC_ERR_INVALID_PARAM);
    uc_token_destroy(token);
    ck_assert_ptr_null(other);
}
END_TEST

/* V-41, R-6.1, R-6.6, G1: all or nothing, and the window stays closed */
START_TEST(absent_block_refuses_the_whole_read_of_a_tokened_store)
{
    struct uc_token *token = NULL;

    if (!suite.is_tokened) {
        return;
    }
    suite_put(suite.ids, 2);
    ck_assert_int_eq(
            uc_scheduler_prepare_get(suite.scheduler, suite.request_id, suite.ids, 3, &token),
            UC_ERR_NOT_FOUND);
    ck_assert_ptr_null(token);
    ck_assert_int_eq(
            uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_ERR_INVALID_PARAM);
    suite_get_and_compare(suite.ids, 2);
}
END_TEST

/* */
START_TEST(empty_and_double_lists_are_refused)
{
    struct uc_block_id twice[2] = {suite.ids[0], suite.ids[0]};
    struct uc_token *token = NULL;

    ck_assert_int_eq(
            uc_scheduler_prepare_get(suite.scheduler, suite.request_id, suite.ids, 0, &token),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_prepare_put(suite.scheduler, suite.request_id, suite.ids, 0, &token),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_prepare_put(suite.scheduler, suite.request_id, twice, 2, &token),
            UC_ERR_INVALID_PARAM);
}
END_TEST

/* G2, R-6.10, R-6.16 for tokened stores; for plain ones */
START_TEST(block_is_invisible_until_it_is_committed)
{
    struct uc_token *reader = NULL;
    struct uc_token *token = suite_prepare_put(suite.ids, 2);

    ck_assert(!suite_is_present(&suite.ids[0]));
    dump(token, 2);
    ck_assert_int_eq(suite_is_present(&suite.ids[0]), !suite.is_tokened);
    if (suite.is_tokened) {
        ck_assert_int_eq(
                uc_scheduler_prepare_get(suite.scheduler, suite.request_id, suite.ids, 1, &reader),
                UC_ERR_NOT_FOUND);
    }
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    ck_assert(suite_is_present(&suite.ids[0]));
    ck_assert(suite_is_present(&suite.ids[1]));
    uc_token_destroy(token);
    suite_get_and_compare(suite.ids, 2);
}
END_TEST

/* released without trace; the room can be used again. */
START_TEST(failed_put_leaves_nothing_in_a_tokened_store)
{
    struct uc_token *token;

    if (!suite.is_tokened) {
        return;
    }
    token = suite_prepare_put(suite.ids, 2);
    dump(token, 2);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, false), UC_OK);
    ck_assert(!suite_is_present(&suite.ids[0]));
    ck_assert(!suite_is_present(&suite.ids[1]));
    uc_token_destroy(token);
    suite_put(suite.ids, 2);
    suite_get_and_compare(suite.ids, 2);
}
END_TEST

/* */
START_TEST(mask_keeps_the_good_part_of_a_put)
{
    static const uint8_t mask[4] = {1, 0, 0, 1};
    struct uc_token *token = suite_prepare_put(suite.ids, 4);

    dump(token, 4);
    ck_assert_int_eq(uc_scheduler_complete_put_mask(suite.scheduler, suite.request_id, mask, 3),
            UC_ERR_INVALID_PARAM); /* the window stays open */
    ck_assert_msg(
            uc_scheduler_complete_put_mask(suite.scheduler, suite.request_id, mask, 4) == UC_OK,
            "%s", uc_last_error());
    uc_token_destroy(token);
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_int_eq(suite_is_present(&suite.ids[idx]), !suite.is_tokened || mask[idx] != 0);
    }
    suite_get_and_compare(&suite.ids[0], 1);
    suite_get_and_compare(&suite.ids[3], 1);
}
END_TEST

/* a readmission with a bad verdict does not drop what is there. */
START_TEST(failed_readmission_keeps_the_block)
{
    struct uc_token *token;

    suite_put(suite.ids, 1);
    token = suite_prepare_put(suite.ids, 1);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, false), UC_OK);
    uc_token_destroy(token);
    ck_assert(suite_is_present(&suite.ids[0]));
    suite_get_and_compare(suite.ids, 1);
}
END_TEST

/* V-47, R-9.13 */
START_TEST(finished_request_leaves_nothing_behind)
{
    struct uc_request_context context = suite_context(suite.request_id);
    struct uc_token *get_token;
    struct uc_token *put_token;

    suite_put(suite.ids, 1);
    get_token = suite_prepare_get(suite.ids, 1);
    put_token = suite_prepare_put(&suite.ids[1], 2);
    ck_assert_msg(uc_scheduler_on_request_finished(suite.scheduler, suite.request_id) == UC_OK,
            "%s", uc_last_error());
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
    ck_assert(suite_is_present(&suite.ids[0]));
    ck_assert(!suite_is_present(&suite.ids[1]));
    suite_put(&suite.ids[1], 2);
    suite_get_and_compare(suite.ids, 3);
    uc_token_destroy(get_token);
    uc_token_destroy(put_token);
}
END_TEST

/* V-19: two requests write one block; it is visible when both concluded. */
START_TEST(two_requests_write_the_same_block)
{
    struct uc_request_context context = suite_context("sharer");
    struct uc_token *second = NULL;
    struct uc_token *first;

    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
    first = suite_prepare_put(suite.ids, 1);
    ck_assert_msg(
            uc_scheduler_prepare_put(suite.scheduler, "sharer", suite.ids, 1, &second) == UC_OK,
            "%s", uc_last_error());
    dump(first, 1);
    dump(second, 1);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, "sharer", true), UC_OK);
    ck_assert(suite_is_present(&suite.ids[0]));
    suite_get_and_compare(suite.ids, 1);
    uc_token_destroy(first);
    uc_token_destroy(second);
    ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, "sharer"), UC_OK);
}
END_TEST

/* V-34: two requests read one block at a time. */
START_TEST(two_requests_read_the_same_block)
{
    struct uc_request_context context = suite_context("reader");
    struct uc_token *other = NULL;
    struct uc_token *token;

    suite_put(suite.ids, 1);
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
    token = suite_prepare_get(suite.ids, 1);
    ck_assert_int_eq(
            uc_scheduler_prepare_get(suite.scheduler, "reader", suite.ids, 1, &other), UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    ck_assert_int_eq(
            uc_worker_submit_get(suite.worker, 100, suite_payloads(1), 1, other, NULL), UC_OK);
    suite_expect(100, UC_OK);
    ck_assert(suite_matches(&suite.ids[0], 0, suite_block(0), suite.block_bytes));
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, "reader"), UC_OK);
    uc_token_destroy(token);
    uc_token_destroy(other);
    ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, "reader"), UC_OK);
}
END_TEST

/* V-48, R-4.38 */
START_TEST(unknown_request_is_not_found)
{
    struct uc_token *token = NULL;
    bool signal = false;
    uint8_t hit = 9;

    ck_assert_int_eq(uc_scheduler_lookup(suite.scheduler, "nobody", suite.ids, 1, &hit, &signal),
            UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_prepare_get(suite.scheduler, "nobody", suite.ids, 1, &token),
            UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_prepare_put(suite.scheduler, "nobody", suite.ids, 1, &token),
            UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, "nobody", true), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, "nobody"), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(hit, 9);
}
END_TEST

/* V-42, R-10.3 to: nothing to prefetch, and the sequence still works. */
START_TEST(prefetch_sequence_works_with_nothing_to_prefetch)
{
    struct uc_token *plan = NULL;
    struct uc_token *other = NULL;

    ck_assert_int_eq(
            uc_scheduler_prepare_prefetch(suite.scheduler, suite.request_id, &plan), UC_OK);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(suite.scheduler, suite.request_id, &other),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_prefetch(suite.worker, 100, plan), UC_OK);
    suite_expect(100, UC_OK);
    ck_assert_int_eq(
            uc_scheduler_complete_prefetch(suite.scheduler, suite.request_id, true), UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_prefetch(suite.scheduler, suite.request_id, true),
            UC_ERR_INVALID_PARAM);
    uc_token_destroy(plan);
}
END_TEST

TCase *
suite_window_cases(void)
{
    TCase *tcase = tcase_create("window");

    tcase_add_test(tcase, windows_open_once_and_close_once);
    tcase_add_test(tcase, absent_block_refuses_the_whole_read_of_a_tokened_store);
    tcase_add_test(tcase, empty_and_double_lists_are_refused);
    tcase_add_test(tcase, block_is_invisible_until_it_is_committed);
    tcase_add_test(tcase, failed_put_leaves_nothing_in_a_tokened_store);
    tcase_add_test(tcase, mask_keeps_the_good_part_of_a_put);
    tcase_add_test(tcase, failed_readmission_keeps_the_block);
    tcase_add_test(tcase, finished_request_leaves_nothing_behind);
    tcase_add_test(tcase, two_requests_write_the_same_block);
    tcase_add_test(tcase, two_requests_read_the_same_block);
    tcase_add_test(tcase, unknown_request_is_not_found);
    tcase_add_test(tcase, prefetch_sequence_works_with_nothing_to_prefetch);
    return tcase;
}
