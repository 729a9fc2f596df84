/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens from mint to conclusion (table 4.6), jobs from Ok to their event (table 4.3), and lookups as methods. */

#include <string.h>

#include "test/unit/client/proxy/entry_fixture.h"

enum token_class {
    READ_TOKEN,
    WRITE_TOKEN,
    PLAN_TOKEN,
    TOKEN_CLASS_COUNT,
};

static struct uc_token *token;

static void
start(enum kind kind)
{
    fixture_start(kind);
    fixture_register();
    token = NULL;
}

static void
stop(void)
{
    uc_token_destroy(token);
    fixture_stop();
}

static void
mint(enum token_class token_class)
{
    switch (token_class) {
    case READ_TOKEN:
        token = fixture_get_token(2);
        break;
    case WRITE_TOKEN:
        token = fixture_put_token(2);
        break;
    default:
        ck_assert_int_eq(uc_scheduler_prepare_prefetch(fx.scheduler, "r", &token), UC_OK);
        break;
    }
}

static enum uc_status
submit(enum token_class token_class, uint64_t job_id)
{
    switch (token_class) {
    case READ_TOKEN:
        return uc_worker_submit_get(fx.worker, job_id, payloads, 2, token, NULL);
    case WRITE_TOKEN:
        return uc_worker_submit_put(fx.worker, job_id, payloads, 2, token, NULL);
    default:
        return uc_worker_submit_prefetch(fx.worker, job_id, token);
    }
}

static enum uc_status
conclude(enum token_class token_class)
{
    switch (token_class) {
    case READ_TOKEN:
        return uc_scheduler_complete_get(fx.scheduler, "r");
    case WRITE_TOKEN:
        return uc_scheduler_complete_put(fx.scheduler, "r", true);
    default:
        return uc_scheduler_complete_prefetch(fx.scheduler, "r", true);
    }
}

static size_t
held(enum token_class token_class)
{
    return token_class == READ_TOKEN    ? fx.fake->pin_count
           : token_class == WRITE_TOKEN ? fx.fake->reservation_count
                                        : fx.fake->plan_count;
}

/* what mints a token, what consumes it and what concludes it. */
START_TEST(token_goes_from_its_prepare_to_its_conclusion)
{
    static const struct {
        const char *control;
        const char *data;
        enum uc_fake_op conclusion;
        char payload_kind;
    } wants[TOKEN_CLASS_COUNT] = {
            {"pin unpin ", "token_load ", UC_FAKE_UNPIN, 'R'},
            {"alloc commit ", "token_dump ", UC_FAKE_COMMIT, 'W'},
            {"prepare_prefetch complete_prefetch ", "prefetch ", UC_FAKE_COMPLETE_PREFETCH, 'P'},
    };
    enum token_class token_class = (enum token_class)_i;

    start(KIND_BOTH);
    mint(token_class);
    ck_assert_uint_eq(token->payload[1], wants[_i].payload_kind);
    ck_assert_int_eq(submit(token_class, 1), UC_OK);
    ck_assert_str_eq(fx.fake->data.log, wants[_i].data);
    ck_assert_mem_eq(fx.fake->data.payload, token->payload, token->payload_bytes);
    fixture_expect_event(1, UC_OK);
    ck_assert_int_eq(conclude(token_class), UC_OK);
    ck_assert_str_eq(fx.fake->control.log, wants[_i].control);
    ck_assert_mem_eq(fx.fake->control.payload, token->payload, token->payload_bytes);
    ck_assert_uint_eq(fx.fake->calls[wants[_i].conclusion], 1);
    stop();
}
END_TEST

/* on a plain store the read and write tokens are keys and nothing else. */
START_TEST(plain_tokens_are_keys_only)
{
    enum token_class token_class = (enum token_class)_i;

    start(KIND_PLAIN);
    mint(token_class);
    ck_assert_uint_eq(token->key_count, 2);
    ck_assert_mem_eq(token->keys, keys, 2 * sizeof(keys[0]));
    ck_assert_uint_eq(token->payload_bytes, 0);
    ck_assert_int_eq(submit(token_class, 1), UC_OK);
    ck_assert_str_eq(fx.fake->data.log, token_class == READ_TOKEN ? "load " : "dump ");
    fixture_expect_event(1, UC_OK);
    ck_assert_int_eq(conclude(token_class), UC_OK);
    ck_assert_str_eq(fx.fake->control.log, "");
    stop();
}
END_TEST

/* the hold is in force from the mint on, through any number of jobs. */
START_TEST(token_holds_through_any_number_of_jobs)
{
    enum token_class token_class = (enum token_class)_i;

    start(KIND_BOTH);
    mint(token_class);
    ck_assert_uint_eq(held(token_class), 1);
    for (uint64_t job_id = 1; job_id <= 5; job_id++) {
        ck_assert_int_eq(submit(token_class, job_id), UC_OK);
        fixture_expect_event(job_id, UC_OK);
        ck_assert_uint_eq(held(token_class), 1);
    }
    ck_assert_int_eq(conclude(token_class), UC_OK);
    ck_assert_uint_eq(held(token_class), 0);
    stop();
}
END_TEST

/* G6: after the events the token is concluded exactly once, by the window or by the safety net. */
START_TEST(token_is_concluded_exactly_once)
{
    enum token_class token_class = (enum token_class)_i;

    start(KIND_BOTH);
    mint(token_class);
    ck_assert_int_eq(submit(token_class, 1), UC_OK);
    fixture_expect_event(1, UC_OK);
    ck_assert_int_eq(conclude(token_class), UC_OK);
    ck_assert_int_eq(conclude(token_class), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_OK);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_UNPIN] + fx.fake->calls[UC_FAKE_COMMIT] +
                              fx.fake->calls[UC_FAKE_COMPLETE_PREFETCH],
            1);
    stop();
}
END_TEST

/* too early is the caller's fault, yet the token is concluded and the event still comes. */
START_TEST(early_conclusion_loses_no_event)
{
    enum token_class token_class = (enum token_class)_i;

    start(KIND_BOTH);
    fx.fake->hold_events = true;
    mint(token_class);
    ck_assert_int_eq(submit(token_class, 1), UC_OK);
    ck_assert_int_eq(conclude(token_class), UC_OK);
    ck_assert_uint_eq(held(token_class), 0);
    fixture_expect_no_event();
    ck_assert_int_eq(submit(token_class, 1), UC_ERR_DUPLICATE_KEY);
    uc_fake_store_finish(fx.fake, 1, UC_ERR_NOT_FOUND);
    fixture_expect_event(1, UC_ERR_NOT_FOUND);
    fixture_expect_no_event();
    stop();
}
END_TEST

/* the verdict waits in the entry until the caller gives it; nothing is released while the Dump runs. */
START_TEST(nothing_is_released_before_the_caller_says_so)
{
    start(KIND_BOTH);
    fx.fake->hold_events = true;
    mint(WRITE_TOKEN);
    ck_assert_int_eq(submit(WRITE_TOKEN, 1), UC_OK);
    uc_fake_store_finish(fx.fake, 1, UC_ERR_OS_API);
    ck_assert_uint_eq(held(WRITE_TOKEN), 1);
    fixture_expect_event(
            1, UC_ERR_OS_API); /* consumed, and still reserved: no verdict of its own */
    ck_assert_uint_eq(held(WRITE_TOKEN), 1);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_COMMIT], 0);
    ck_assert_int_eq(uc_scheduler_complete_put(fx.scheduler, "r", false), UC_OK);
    ck_assert(!fx.fake->control.success);
    stop();
}
END_TEST

/* Ok takes the id, the event comes when the transfer ends, consuming it frees the id. */
START_TEST(accepted_job_is_in_flight_until_its_event_was_consumed)
{
    struct uc_io_context io = {.timeout_ms = 1234};
    struct uc_io_result result;
    uint64_t job_id = 7;
    size_t count = 0;

    start(KIND_TOKENED);
    fx.fake->hold_events = true;
    mint(READ_TOKEN);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(uc_worker_submit_get(fx.worker, 7, payloads, 2, token, &io), UC_OK);
        ck_assert_uint_eq(fx.fake->data.timeout_ms, 1234); /* the deadline is armed by the store */
        ck_assert_int_eq(submit(READ_TOKEN, 7), UC_ERR_DUPLICATE_KEY);
        fixture_expect_no_event();
        uc_fake_store_finish(fx.fake, 7, UC_OK);
        ck_assert_int_eq(submit(READ_TOKEN, 7), UC_ERR_DUPLICATE_KEY); /* finished, not consumed */
        if (round % 2 == 0) {
            fixture_expect_event(7, UC_OK);
        } else {
            ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
            ck_assert_uint_eq(count, 1);
            ck_assert_uint_eq(result.job_id, 7);
        }
        fixture_expect_no_event();
    }
    stop();
}
END_TEST

/* G5: what a load answers at once is the store's answer, and no promise about the bytes. */
START_TEST(load_passes_the_answer_of_the_store_on)
{
    static const enum uc_status answers[] = {UC_ERR_DUPLICATE_KEY, UC_ERR_INVALID_PARAM,
            UC_ERR_RETRY, UC_ERR_UNHEALTHY, UC_ERR_UNSUPPORTED};

    start(KIND_PLAIN);
    mint(READ_TOKEN);
    for (size_t idx = 0; idx < sizeof(answers) / sizeof(answers[0]); idx++) {
        fx.fake->answers[UC_FAKE_LOAD] = answers[idx];
        ck_assert_int_eq(submit(READ_TOKEN, 1), answers[idx]);
        fixture_expect_no_event();
    }
    fx.fake->answers[UC_FAKE_LOAD] = UC_OK;
    fx.fake->hold_events = true;
    ck_assert_int_eq(submit(READ_TOKEN, 1), UC_OK);
    uc_fake_store_finish(fx.fake, 1, UC_ERR_NOT_FOUND);
    fixture_expect_event(1, UC_ERR_NOT_FOUND);
    stop();
}
END_TEST

/* waits for what is listed and consumes exactly those events. */
START_TEST(wait_consumes_exactly_the_listed_events)
{
    static const uint64_t listed[] = {3, 1};
    struct uc_io_result results[2];
    size_t count = 0;

    start(KIND_BOTH);
    mint(READ_TOKEN);
    for (uint64_t job_id = 1; job_id <= 3; job_id++) {
        ck_assert_int_eq(submit(READ_TOKEN, job_id), UC_OK);
    }
    ck_assert_int_eq(uc_worker_wait(fx.worker, listed, 2, -1, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(results[0].job_id, 3);
    ck_assert_uint_eq(results[1].job_id, 1);
    ck_assert_int_eq(submit(READ_TOKEN, 3), UC_OK); /* consumed */
    ck_assert_int_eq(submit(READ_TOKEN, 2), UC_ERR_DUPLICATE_KEY);
    stop();
}
END_TEST

/* the list reaches base or facet as it is; store errors come back as they are. */
START_TEST(each_lookup_asks_its_own_operation)
{
    static const enum uc_fake_op base[] = {
            UC_FAKE_LOOKUP, UC_FAKE_LOOKUP_ON_PREFIX, UC_FAKE_LOOKUP_ON_REVERSE};
    static const enum uc_fake_op facet[] = {
            UC_FAKE_FACET_LOOKUP, UC_FAKE_FACET_LOOKUP_ON_PREFIX, UC_FAKE_FACET_LOOKUP_ON_REVERSE};

    start((enum kind)_i);
    for (int lookup = 0; lookup < 3; lookup++) {
        enum uc_fake_op op = fx.is_prefetchable ? facet[lookup] : base[lookup];

        for (int round = 0; round < 2; round++) {
            enum uc_status want = round == 0 ? UC_OK : UC_ERR_OS_API;
            uint8_t hits[3] = {9, 9, 9};
            int64_t index = -9;
            bool signal = true;
            enum uc_status status;

            fx.fake->answers[op] = want;
            status = lookup == 0   ? uc_scheduler_lookup(fx.scheduler, "r", keys, 3, hits, &signal)
                     : lookup == 1 ? uc_scheduler_lookup_on_prefix(
                                             fx.scheduler, "r", keys, 3, &index, &signal)
                                   : uc_scheduler_lookup_on_reverse(
                                             fx.scheduler, "r", keys, 3, &index, &signal);
            ck_assert_int_eq(status, want);
            ck_assert_uint_eq(fx.fake->calls[op], (size_t)round + 1);
            ck_assert_uint_eq(hits[2], lookup == 0 && round == 0 ? 1 : 9);
            ck_assert_int_eq(index, lookup != 0 && round == 0 ? 2 : -9);
        }
    }
    stop();
}
END_TEST

/* every kind of store is touched by its base operation, with ids and facts of the request. */
START_TEST(touch_goes_to_the_base_operation)
{
    struct uc_request_context context = uc_request_context_init("t");

    start((enum kind)_i);
    context.present = UC_REQUEST_TTL;
    context.ttl_ms = 77;
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &context), UC_OK);
    ck_assert_int_eq(uc_scheduler_touch(fx.scheduler, "t", keys, 3), UC_OK);
    ck_assert_str_eq(fx.fake->control.log, "touch ");
    ck_assert_uint_eq(fx.fake->control.count, 3);
    ck_assert_mem_eq(fx.fake->control.ids, keys, 3 * sizeof(keys[0]));
    ck_assert(fx.fake->control.has_ttl);
    ck_assert_uint_eq(fx.fake->control.ttl_ms, 77);
    ck_assert_int_eq(uc_scheduler_touch(fx.scheduler, "r", keys, 1), UC_OK);
    ck_assert(!fx.fake->control.has_ttl);
    stop();
}
END_TEST

/* found, then gone; nothing is pinned, and a shorter list may be tried at once. */
START_TEST(block_may_be_gone_between_lookup_and_prepare)
{
    bool signal = false;
    int64_t index = -9;

    start(KIND_TOKENED);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_prefix(fx.scheduler, "r", keys, 3, &index, &signal), UC_OK);
    ck_assert_int_eq(index, 2);
    fx.fake->answers[UC_FAKE_PIN] = UC_ERR_NOT_FOUND;
    ck_assert_int_eq(
            uc_scheduler_prepare_get(fx.scheduler, "r", keys, 3, &token), UC_ERR_NOT_FOUND);
    ck_assert_ptr_null(token);
    ck_assert_uint_eq(fx.fake->pin_count, 0);
    ck_assert_int_eq(uc_scheduler_complete_get(fx.scheduler, "r"), UC_ERR_INVALID_PARAM);
    fx.fake->answers[UC_FAKE_PIN] = UC_OK;
    ck_assert_int_eq(uc_scheduler_prepare_get(fx.scheduler, "r", keys, 2, &token), UC_OK);
    ck_assert_uint_eq(token->key_count, 2);
    ck_assert_uint_eq(fx.fake->pin_count, 1);
    ck_assert_int_eq(uc_scheduler_complete_get(fx.scheduler, "r"), UC_OK);
    stop();
}
END_TEST

/* an Unhealthy answer passes through both interfaces; a store without the slots is healthy and empty. */
START_TEST(health_and_description_are_optional)
{
    struct uc_dict *description = NULL;
    struct uc_store_ops ops;

    start(KIND_PLAIN);
    fx.fake->answers[UC_FAKE_HEALTH] = UC_ERR_UNHEALTHY;
    ck_assert_int_eq(uc_scheduler_health(fx.scheduler), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(uc_worker_health(fx.worker), UC_ERR_UNHEALTHY);

    ops = *fx.fake->base.ops;
    ops.health = NULL;
    ops.describe = NULL;
    fx.fake->base.ops = &ops;
    ck_assert_int_eq(uc_store_health(&fx.fake->base), UC_OK);
    ck_assert_int_eq(uc_scheduler_health(fx.scheduler), UC_OK);
    ck_assert_int_eq(uc_worker_health(fx.worker), UC_OK);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(&fx.fake->base, description), UC_OK);
    ck_assert(!uc_dict_has(description, "name"));
    uc_dict_destroy(description);
    stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("entry_tokens");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, token_goes_from_its_prepare_to_its_conclusion, 0, TOKEN_CLASS_COUNT);
    tcase_add_loop_test(tcase, plain_tokens_are_keys_only, READ_TOKEN, PLAN_TOKEN);
    tcase_add_loop_test(tcase, token_holds_through_any_number_of_jobs, 0, TOKEN_CLASS_COUNT);
    tcase_add_loop_test(tcase, token_is_concluded_exactly_once, 0, TOKEN_CLASS_COUNT);
    tcase_add_loop_test(tcase, early_conclusion_loses_no_event, 0, TOKEN_CLASS_COUNT);
    tcase_add_test(tcase, nothing_is_released_before_the_caller_says_so);
    tcase_add_test(tcase, accepted_job_is_in_flight_until_its_event_was_consumed);
    tcase_add_test(tcase, load_passes_the_answer_of_the_store_on);
    tcase_add_test(tcase, wait_consumes_exactly_the_listed_events);
    tcase_add_loop_test(tcase, each_lookup_asks_its_own_operation, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, touch_goes_to_the_base_operation, 0, KIND_COUNT);
    tcase_add_test(tcase, block_may_be_gone_between_lookup_and_prepare);
    tcase_add_test(tcase, health_and_description_are_optional);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
