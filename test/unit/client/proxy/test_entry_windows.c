/* SPDX-License-Identifier: Apache-2.0 */

/* Windows of a StoreEntry: tables 4.2 and 4.6, R-9.7 to. */

#include <string.h>

#include "test/unit/client/proxy/entry_fixture.h"

enum window {
    PREFETCH,
    GET,
    PUT,
    WINDOW_COUNT,
};

static enum uc_status
prepare(enum window window, struct uc_token **token_out)
{
    switch (window) {
    case PREFETCH:
        return uc_scheduler_prepare_prefetch(fx.scheduler, "r", token_out);
    case GET:
        return uc_scheduler_prepare_get(fx.scheduler, "r", keys, 2, token_out);
    default:
        return uc_scheduler_prepare_put(fx.scheduler, "r", keys, 2, token_out);
    }
}

static enum uc_status
complete(enum window window)
{
    switch (window) {
    case PREFETCH:
        return uc_scheduler_complete_prefetch(fx.scheduler, "r", true);
    case GET:
        return uc_scheduler_complete_get(fx.scheduler, "r");
    default:
        return uc_scheduler_complete_put(fx.scheduler, "r", true);
    }
}

/* What the store is asked when a window of this kind opens. */
static enum uc_fake_op
prepare_op(enum window window)
{
    return window == PREFETCH ? UC_FAKE_PREPARE_PREFETCH
           : window == GET    ? UC_FAKE_PIN
                              : UC_FAKE_ALLOC;
}

static bool
store_takes_part(enum window window)
{
    return window == PREFETCH ? fx.is_prefetchable : fx.is_tokened;
}

static size_t
held_count(void)
{
    return fx.fake->pin_count + fx.fake->reservation_count + fx.fake->plan_count;
}

/* V-40, in each class and on each kind of store */
START_TEST(window_opens_once_and_closes_once)
{
    struct uc_token *untouched = NULL;

    fixture_start(_i / WINDOW_COUNT);
    fixture_register();
    for (int round = 0; round < 2; round++) { /* many windows one after the other */
        enum window window = _i % WINDOW_COUNT;
        struct uc_token *token = NULL;

        ck_assert_int_eq(complete(window), UC_ERR_INVALID_PARAM);
        ck_assert_int_eq(prepare(window, &token), UC_OK);
        ck_assert_uint_eq(held_count(), store_takes_part(window) ? 1 : 0);
        ck_assert_int_eq(prepare(window, &untouched), UC_ERR_INVALID_PARAM);
        ck_assert_ptr_null(untouched);
        ck_assert_uint_eq(held_count(), store_takes_part(window) ? 1 : 0);
        ck_assert_int_eq(complete(window), UC_OK);
        ck_assert_int_eq(complete(window), UC_ERR_INVALID_PARAM);
        ck_assert_uint_eq(held_count(), 0);
        uc_token_destroy(token);
    }
    fixture_stop();
}
END_TEST

/* V-41 */
START_TEST(refused_prepare_leaves_the_window_closed)
{
    enum window window = _i;
    struct uc_token *token = NULL;

    fixture_start(KIND_BOTH);
    fixture_register();
    fx.fake->answers[prepare_op(window)] = window == GET ? UC_ERR_NOT_FOUND : UC_ERR_NO_SPACE;
    ck_assert_int_eq(prepare(window, &token), window == GET ? UC_ERR_NOT_FOUND : UC_ERR_NO_SPACE);
    ck_assert_ptr_null(token);
    ck_assert_int_eq(complete(window), UC_ERR_INVALID_PARAM);
    fx.fake->answers[prepare_op(window)] = UC_OK;
    ck_assert_int_eq(prepare(window, &token), UC_OK);
    ck_assert_int_eq(complete(window), UC_OK);
    uc_token_destroy(token);
    fixture_stop();
}
END_TEST

/* windows of different classes, and of different requests, are independent. */
START_TEST(windows_of_different_classes_and_requests_overlap)
{
    struct uc_request_context other = uc_request_context_init("other");
    struct uc_token *tokens[WINDOW_COUNT + 1] = {NULL};

    fixture_start(_i);
    fixture_register();
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &other), UC_OK);
    for (enum window window = 0; window < WINDOW_COUNT; window++) {
        ck_assert_int_eq(prepare(window, &tokens[window]), UC_OK);
    }
    ck_assert_int_eq(uc_scheduler_prepare_get(fx.scheduler, "other", keys, 2, &tokens[3]), UC_OK);
    for (enum window window = 0; window < WINDOW_COUNT; window++) {
        ck_assert_int_eq(complete(window), UC_OK);
    }
    ck_assert_int_eq(uc_scheduler_complete_get(fx.scheduler, "other"), UC_OK);
    ck_assert_uint_eq(held_count(), 0);
    for (size_t idx = 0; idx < WINDOW_COUNT + 1; idx++) {
        uc_token_destroy(tokens[idx]);
    }
    fixture_stop();
}
END_TEST

/* V-42: keys only, and the store is not asked. */
START_TEST(plain_store_gets_tokens_with_keys_only)
{
    struct uc_token *token = NULL;

    fixture_start(KIND_PLAIN);
    fixture_register();
    token = fixture_get_token(2);
    ck_assert_uint_eq(token->key_count, 2);
    ck_assert_mem_eq(token->keys, keys, 2 * sizeof(keys[0]));
    ck_assert_uint_eq(token->payload_bytes, 0);
    uc_token_destroy(token);
    token = fixture_put_token(3);
    ck_assert_uint_eq(token->key_count, 3);
    ck_assert_uint_eq(token->payload_bytes, 0);
    uc_token_destroy(token);
    ck_assert_int_eq(prepare(PREFETCH, &token), UC_OK);
    ck_assert_uint_eq(token->key_count, 0);
    ck_assert_uint_eq(token->payload_bytes, 0);
    uc_token_destroy(token);
    for (enum window window = 0; window < WINDOW_COUNT; window++) {
        ck_assert_int_eq(complete(window), UC_OK);
    }
    ck_assert_str_eq(fx.fake->control.log, "");
    fixture_stop();
}
END_TEST

/* what was minted comes back, whatever the caller did to its token. */
START_TEST(conclusions_name_the_recorded_token)
{
    static const char *const logs[WINDOW_COUNT] = {
            [PREFETCH] = "prepare_prefetch complete_prefetch ",
            [GET] = "pin unpin ",
            [PUT] = "alloc commit ",
    };
    enum window window = _i;
    struct uc_token *token = NULL;
    uint8_t payload[6];

    fixture_start(KIND_BOTH);
    fixture_register();
    ck_assert_int_eq(prepare(window, &token), UC_OK);
    ck_assert_uint_eq(token->payload_bytes, sizeof(payload));
    memcpy(payload, token->payload, sizeof(payload));
    uc_token_destroy(token);
    ck_assert_int_eq(complete(window), UC_OK);
    ck_assert_str_eq(fx.fake->control.log, logs[window]);
    ck_assert_uint_eq(fx.fake->control.payload_bytes, sizeof(payload));
    ck_assert_mem_eq(fx.fake->control.payload, payload, sizeof(payload));
    fixture_stop();
}
END_TEST

/* */
START_TEST(prepare_refuses_empty_lists_and_duplicate_ids)
{
    struct uc_token *token = NULL;
    struct uc_block_id twice[3];

    fixture_start(_i);
    fixture_register();
    twice[0] = keys[0];
    twice[1] = keys[1];
    twice[2] = keys[0];
    ck_assert_int_eq(
            uc_scheduler_prepare_get(fx.scheduler, "r", keys, 0, &token), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_prepare_put(fx.scheduler, "r", keys, 0, &token), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_prepare_put(fx.scheduler, "r", twice, 3, &token), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "0 and 2"));
    ck_assert_str_eq(fx.fake->control.log, "");
    /* Reading a block twice is fine. */
    ck_assert_int_eq(uc_scheduler_prepare_get(fx.scheduler, "r", twice, 3, &token), UC_OK);
    uc_token_destroy(token);
    fixture_stop();
}
END_TEST

/* */
START_TEST(mask_gives_one_verdict_per_key)
{
    static const uint8_t mask[3] = {1, 0, 1};

    fixture_start(KIND_TOKENED);
    fixture_register();
    uc_token_destroy(fixture_put_token(3));
    ck_assert_int_eq(uc_scheduler_complete_put_mask(fx.scheduler, "r", mask, 3), UC_OK);
    ck_assert(fx.fake->control.has_mask);
    ck_assert_mem_eq(fx.fake->control.mask, mask, 3);
    ck_assert_uint_eq(fx.fake->reservation_count, 0);
    ck_assert_int_eq(
            uc_scheduler_complete_put_mask(fx.scheduler, "r", mask, 3), UC_ERR_INVALID_PARAM);
    fixture_stop();
}
END_TEST

/* wrong length, window stays open, plain stores included. */
START_TEST(mask_of_wrong_length_leaves_the_window_open)
{
    static const uint8_t mask[3] = {1, 1, 1};

    fixture_start(_i);
    fixture_register();
    uc_token_destroy(fixture_put_token(2));
    ck_assert_int_eq(
            uc_scheduler_complete_put_mask(fx.scheduler, "r", mask, 3), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_complete_put_mask(fx.scheduler, "r", mask, 0), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_complete_put_mask(fx.scheduler, "r", mask, 2), UC_OK);
    fixture_stop();
}
END_TEST

/* without mask */
START_TEST(verdict_reaches_the_store)
{
    fixture_start(KIND_TOKENED);
    fixture_register();
    uc_token_destroy(fixture_put_token(2));
    ck_assert_int_eq(uc_scheduler_complete_put(fx.scheduler, "r", true), UC_OK);
    ck_assert(!fx.fake->control.has_mask);
    ck_assert(fx.fake->control.success);
    uc_token_destroy(fixture_put_token(2));
    ck_assert_int_eq(uc_scheduler_complete_put(fx.scheduler, "r", false), UC_OK);
    ck_assert(!fx.fake->control.success);
    fixture_stop();
}
END_TEST

/* closed in every case. */
START_TEST(store_error_at_complete_closes_the_window)
{
    struct uc_token *token = NULL;

    fixture_start(KIND_BOTH);
    fixture_register();
    fx.fake->answers[UC_FAKE_COMMIT] = UC_ERR_NOT_FOUND;
    fx.fake->answers[UC_FAKE_COMPLETE_PREFETCH] = UC_ERR_INVALID_PARAM;
    uc_token_destroy(fixture_put_token(2));
    ck_assert_int_eq(complete(PUT), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(complete(PUT), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_COMMIT], 1);
    ck_assert_int_eq(prepare(PREFETCH, &token), UC_OK);
    uc_token_destroy(token);
    ck_assert_int_eq(complete(PREFETCH), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(complete(PREFETCH), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_COMPLETE_PREFETCH], 1);
    fixture_stop();
}
END_TEST

/* V-47: order, failure verdicts, rid reusable */
START_TEST(finished_request_concludes_open_windows_in_order)
{
    struct uc_token *token = NULL;

    fixture_start(_i);
    fixture_register();
    uc_token_destroy(fixture_put_token(2));
    uc_token_destroy(fixture_get_token(2));
    ck_assert_int_eq(prepare(PREFETCH, &token), UC_OK);
    uc_token_destroy(token);
    fx.fake->control.log[0] = '\0';
    fx.fake->control.success = true;
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_OK);
    ck_assert_str_eq(fx.fake->control.log, fx.is_tokened && fx.is_prefetchable
                                                   ? "complete_prefetch unpin commit forget "
                                           : fx.is_tokened      ? "unpin commit "
                                           : fx.is_prefetchable ? "complete_prefetch forget "
                                                                : "");
    ck_assert_int_eq(fx.fake->control.success, !fx.is_tokened && !fx.is_prefetchable);
    ck_assert_uint_eq(held_count(), 0);
    fixture_register();
    fixture_stop();
}
END_TEST

/* goes on after an error, first error and its text win, state is erased. */
START_TEST(failing_conclusions_do_not_stop_the_safety_net)
{
    struct uc_token *token = NULL;

    fixture_start(KIND_BOTH);
    fixture_register();
    uc_token_destroy(fixture_put_token(2));
    uc_token_destroy(fixture_get_token(2));
    ck_assert_int_eq(prepare(PREFETCH, &token), UC_OK);
    uc_token_destroy(token);
    fx.fake->answers[UC_FAKE_COMPLETE_PREFETCH] = UC_ERR_UNHEALTHY;
    fx.fake->answers[UC_FAKE_COMMIT] = UC_ERR_NOT_FOUND;
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_ERR_UNHEALTHY);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "complete_prefetch"));
    ck_assert_uint_eq(held_count(), 0);
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_ERR_NOT_FOUND);
    fixture_stop();
}
END_TEST

/* what is registered when the tree goes is dropped the same way. */
START_TEST(destroyed_entry_concludes_open_windows)
{
    struct uc_fake_store *fake;

    fixture_start(KIND_TOKENED);
    fixture_register();
    uc_token_destroy(fixture_put_token(2));
    uc_token_destroy(fixture_get_token(2));
    fake = fx.fake;
    uc_entry_destroy(fx.entry);
    fx.entry = NULL;
    ck_assert_uint_eq(fake->pin_count, 0);
    ck_assert_uint_eq(fake->reservation_count, 0);
    ck_assert(!fake->control.success);
    fixture_stop();
}
END_TEST

/* A store that breaks its contract opens no window and leaves nothing held. */
START_TEST(token_that_does_not_fit_is_refused)
{
    struct uc_token *token = NULL;

    fixture_start(KIND_BOTH);
    fixture_register();
    fx.fake->no_token = true;
    for (enum window window = 0; window < WINDOW_COUNT; window++) {
        ck_assert_int_eq(prepare(window, &token), UC_ERR_GENERAL);
        ck_assert_int_eq(complete(window), UC_ERR_INVALID_PARAM);
    }
    fx.fake->no_token = false;
    fx.fake->short_token = true;
    ck_assert_int_eq(prepare(GET, &token), UC_ERR_GENERAL);
    ck_assert_int_eq(prepare(PUT, &token), UC_ERR_GENERAL);
    ck_assert_uint_eq(held_count(), 0);
    ck_assert_ptr_null(token);
    fixture_stop();
}
END_TEST

/* V-60, R-5.31: a window that is open when the store turns Unhealthy closes as usual. */
START_TEST(window_of_an_unhealthy_store_closes)
{
    struct uc_token *token = NULL;

    fixture_start(KIND_TOKENED);
    fixture_register();
    uc_token_destroy(fixture_put_token(2));
    uc_token_destroy(fixture_get_token(2));
    fx.fake->answers[UC_FAKE_PIN] = UC_ERR_UNHEALTHY;
    fx.fake->answers[UC_FAKE_ALLOC] = UC_ERR_UNHEALTHY;
    ck_assert_int_eq(complete(GET), UC_OK);
    ck_assert_int_eq(complete(PUT), UC_OK);
    ck_assert_int_eq(prepare(GET, &token), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(prepare(PUT, &token), UC_ERR_UNHEALTHY);
    fixture_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("entry_windows");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(
            tcase, window_opens_once_and_closes_once, 0, (int)KIND_COUNT * WINDOW_COUNT);
    tcase_add_loop_test(tcase, refused_prepare_leaves_the_window_closed, 0, WINDOW_COUNT);
    tcase_add_loop_test(tcase, windows_of_different_classes_and_requests_overlap, 0, KIND_COUNT);
    tcase_add_test(tcase, plain_store_gets_tokens_with_keys_only);
    tcase_add_loop_test(tcase, conclusions_name_the_recorded_token, 0, WINDOW_COUNT);
    tcase_add_loop_test(tcase, prepare_refuses_empty_lists_and_duplicate_ids, 0, KIND_COUNT);
    tcase_add_test(tcase, mask_gives_one_verdict_per_key);
    tcase_add_loop_test(tcase, mask_of_wrong_length_leaves_the_window_open, 0, KIND_COUNT);
    tcase_add_test(tcase, verdict_reaches_the_store);
    tcase_add_test(tcase, store_error_at_complete_closes_the_window);
    tcase_add_loop_test(tcase, finished_request_concludes_open_windows_in_order, 0, KIND_COUNT);
    tcase_add_test(tcase, failing_conclusions_do_not_stop_the_safety_net);
    tcase_add_test(tcase, destroyed_entry_concludes_open_windows);
    tcase_add_test(tcase, token_that_does_not_fit_is_refused);
    tcase_add_test(tcase, window_of_an_unhealthy_store_closes);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
