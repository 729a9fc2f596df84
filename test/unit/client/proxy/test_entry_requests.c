/* SPDX-License-Identifier: Apache-2.0 */

/* Requests and lookups of a StoreEntry: sections 4.4, 9.1, 10. */

#include <string.h>

#include "test/unit/client/proxy/entry_fixture.h"

static bool signal_out;

static enum uc_status
register_request(const char *request_id)
{
    struct uc_request_context context = uc_request_context_init(request_id);

    return uc_scheduler_on_new_request(fx.scheduler, &context);
}

/* */
START_TEST(request_id_is_unique_until_it_is_finished)
{
    fixture_start(_i);
    ck_assert_int_eq(register_request("r"), UC_OK);
    ck_assert_int_eq(register_request("r"), UC_ERR_DUPLICATE_KEY);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "r is registered"));
    ck_assert_int_eq(register_request("other"), UC_OK);
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_OK);
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(register_request("r"), UC_OK);
    fixture_stop();
}
END_TEST

/* */
START_TEST(request_id_has_1_to_1023_bytes)
{
    char longest[UC_REQUEST_ID_MAX + 2];
    struct uc_token *token;

    fixture_start(KIND_PLAIN);
    memset(longest, 'x', sizeof(longest));
    longest[UC_REQUEST_ID_MAX + 1] = '\0';
    ck_assert_int_eq(register_request(longest), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_prepare_prefetch(fx.scheduler, longest, &token), UC_ERR_INVALID_PARAM);
    longest[UC_REQUEST_ID_MAX] = '\0';
    ck_assert_int_eq(register_request(longest), UC_OK);
    ck_assert_int_eq(register_request(""), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(register_request(NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_complete_get(fx.scheduler, ""), UC_ERR_INVALID_PARAM);
    fixture_stop();
}
END_TEST

/* V-48, R-4.38 */
START_TEST(every_method_answers_not_found_for_an_unknown_request)
{
    struct uc_token *token = NULL;
    uint8_t hits[2] = {7, 7};
    int64_t index = 7;
    uint8_t mask[2] = {1, 1};

    fixture_start(_i);
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(
            uc_scheduler_lookup(fx.scheduler, "r", keys, 2, hits, &signal_out), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_lookup_on_prefix(fx.scheduler, "r", keys, 2, &index, &signal_out),
            UC_ERR_NOT_FOUND);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(fx.scheduler, "r", keys, 2, &index, &signal_out),
            UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_touch(fx.scheduler, "r", keys, 2), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(fx.scheduler, "r", &token), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_complete_prefetch(fx.scheduler, "r", true), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(
            uc_scheduler_prepare_get(fx.scheduler, "r", keys, 2, &token), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_complete_get(fx.scheduler, "r"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(
            uc_scheduler_prepare_put(fx.scheduler, "r", keys, 2, &token), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_complete_put(fx.scheduler, "r", true), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_scheduler_complete_put_mask(fx.scheduler, "r", mask, 2), UC_ERR_NOT_FOUND);
    ck_assert_str_eq(fx.fake->control.log, ""); /* the store was never asked */
    ck_assert_uint_eq(hits[0], 7);
    ck_assert_int_eq(index, 7);
    ck_assert_ptr_null(token);
    fixture_stop();
}
END_TEST

/* facts are copied and reach touch, alloc and prefetch. */
START_TEST(facts_of_a_request_reach_the_store)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_token *token = NULL;

    fixture_start(KIND_BOTH);
    context.present = UC_REQUEST_TTL;
    context.ttl_ms = 500;
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &context), UC_OK);
    context.ttl_ms = 1; /* the caller's struct is not referred to any more */

    ck_assert_int_eq(uc_scheduler_touch(fx.scheduler, "r", keys, 3), UC_OK);
    ck_assert(fx.fake->control.has_ttl);
    ck_assert_uint_eq(fx.fake->control.ttl_ms, 500);
    ck_assert_uint_eq(fx.fake->control.count, 3);
    ck_assert_str_eq(fx.fake->control.request_id, "r");

    fx.fake->control.has_ttl = false;
    token = fixture_put_token(2);
    ck_assert(fx.fake->control.has_ttl);
    uc_token_destroy(token);

    fx.fake->control.has_ttl = false;
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(fx.scheduler, "r", &token), UC_OK);
    ck_assert(fx.fake->control.has_ttl);
    uc_token_destroy(token);
    fixture_stop();
}
END_TEST

/* bits of members that an older caller's struct is too short for do not count. */
START_TEST(facts_beyond_the_callers_struct_are_absent)
{
    struct uc_request_context context = uc_request_context_init("r");

    fixture_start(KIND_PLAIN);
    context.present = UC_REQUEST_TTL;
    context.ttl_ms = 500;
    context.struct_size = offsetof(struct uc_request_context, ttl_ms);
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &context), UC_OK);
    ck_assert_int_eq(uc_scheduler_touch(fx.scheduler, "r", keys, 1), UC_OK);
    ck_assert(!fx.fake->control.has_ttl);

    context.struct_size = offsetof(struct uc_request_context, request_id);
    context.request_id = "s";
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &context), UC_ERR_INVALID_PARAM);
    context.struct_size = UINT32_MAX;
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &context), UC_ERR_INVALID_PARAM);
    fixture_stop();
}
END_TEST

/* what this build does not know is carried all the same. */
START_TEST(facts_of_a_newer_caller_are_accepted)
{
    struct {
        struct uc_request_context known;
        uint64_t priority;
    } newer = {.known = uc_request_context_init("r"), .priority = 9};

    fixture_start(KIND_PLAIN);
    newer.known.struct_size = sizeof(newer);
    newer.known.present = UC_REQUEST_TTL | 1ull << 40;
    newer.known.ttl_ms = 3;
    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &newer.known), UC_OK);
    ck_assert_int_eq(uc_scheduler_touch(fx.scheduler, "r", keys, 1), UC_OK);
    ck_assert_uint_eq(fx.fake->control.ttl_ms, 3);
    fixture_stop();
}
END_TEST

/* base without signal, facet with it. */
START_TEST(lookups_go_to_the_facet_where_there_is_one)
{
    uint8_t hits[3] = {0};
    int64_t index = -7;

    fixture_start(_i);
    fixture_register();
    signal_out = true;
    ck_assert_int_eq(uc_scheduler_lookup(fx.scheduler, "r", keys, 3, hits, &signal_out), UC_OK);
    ck_assert(!signal_out);
    ck_assert_uint_eq(hits[2], 1);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_prefix(fx.scheduler, "r", keys, 3, &index, &signal_out), UC_OK);
    ck_assert_int_eq(index, 2);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(fx.scheduler, "r", keys, 2, &index, &signal_out), UC_OK);
    ck_assert_int_eq(index, 1);
    ck_assert_str_eq(fx.fake->control.log, fx.is_prefetchable
                                                   ? "facet_lookup facet_prefix facet_reverse "
                                                   : "lookup prefix reverse ");
    fixture_stop();
}
END_TEST

/* */
START_TEST(signal_leaves_the_other_outputs_alone)
{
    uint8_t hits[2] = {7, 7};
    int64_t index = 7;

    fixture_start(KIND_PREFETCHABLE);
    fixture_register();
    fx.fake->signal = true;
    signal_out = false;
    ck_assert_int_eq(uc_scheduler_lookup(fx.scheduler, "r", keys, 2, hits, &signal_out), UC_OK);
    ck_assert(signal_out);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_prefix(fx.scheduler, "r", keys, 2, &index, &signal_out), UC_OK);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(fx.scheduler, "r", keys, 2, &index, &signal_out), UC_OK);
    ck_assert(signal_out);
    ck_assert_uint_eq(hits[0], 7);
    ck_assert_int_eq(index, 7);
    fixture_stop();
}
END_TEST

/* G7: an error is an error, and writes nothing. */
START_TEST(failing_lookup_writes_nothing)
{
    uint8_t hits[2] = {7, 7};
    int64_t index = 7;

    fixture_start(_i);
    fixture_register();
    for (size_t op = 0; op < UC_FAKE_OP_COUNT; op++) {
        fx.fake->answers[op] = UC_ERR_GENERAL;
    }
    signal_out = true;
    ck_assert_int_eq(
            uc_scheduler_lookup(fx.scheduler, "r", keys, 2, hits, &signal_out), UC_ERR_GENERAL);
    ck_assert_int_eq(uc_scheduler_lookup_on_prefix(fx.scheduler, "r", keys, 2, &index, &signal_out),
            UC_ERR_GENERAL);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(fx.scheduler, "r", keys, 2, &index, &signal_out),
            UC_ERR_GENERAL);
    ck_assert(signal_out);
    ck_assert_uint_eq(hits[0], 7);
    ck_assert_int_eq(index, 7);
    fixture_stop();
}
END_TEST

/* */
START_TEST(null_outputs_and_lists_are_refused)
{
    uint8_t hits[2];
    int64_t index;
    struct uc_token *token;

    fixture_start(KIND_TOKENED);
    fixture_register();
    ck_assert_int_eq(
            uc_scheduler_lookup(fx.scheduler, "r", keys, 2, hits, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_lookup(fx.scheduler, "r", keys, 2, NULL, &signal_out),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_lookup(fx.scheduler, "r", NULL, 2, hits, &signal_out),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_lookup_on_prefix(fx.scheduler, "r", keys, 2, &index, NULL),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_lookup_on_reverse(fx.scheduler, "r", keys, 2, NULL, &signal_out),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_touch(fx.scheduler, "r", NULL, 2), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_prepare_get(fx.scheduler, "r", keys, 2, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_prepare_get(fx.scheduler, "r", NULL, 2, &token), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(fx.scheduler, "r", NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_scheduler_complete_put_mask(fx.scheduler, "r", NULL, 2), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_describe(fx.scheduler, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_health(NULL), UC_ERR_INVALID_PARAM);
    ck_assert_str_eq(fx.fake->control.log, "");
    fixture_stop();
}
END_TEST

/* no ids, no hits. */
START_TEST(empty_lookup_is_legal)
{
    int64_t index = 7;

    fixture_start(KIND_PLAIN);
    fixture_register();
    ck_assert_int_eq(uc_scheduler_lookup(fx.scheduler, "r", NULL, 0, NULL, &signal_out), UC_OK);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_prefix(fx.scheduler, "r", NULL, 0, &index, &signal_out), UC_OK);
    ck_assert_int_eq(index, -1);
    fixture_stop();
}
END_TEST

/* */
START_TEST(health_and_description_come_from_the_store)
{
    struct uc_dict *description = NULL;
    const char *name = NULL;
    bool flag = false;

    fixture_start(_i);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_scheduler_health(fx.scheduler), UC_OK);
    fx.fake->answers[UC_FAKE_HEALTH] = UC_ERR_UNHEALTHY;
    ck_assert_int_eq(uc_scheduler_health(fx.scheduler), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(uc_worker_health(fx.worker), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(uc_scheduler_describe(fx.scheduler, description), UC_OK);
    ck_assert_int_eq(uc_worker_describe(fx.worker, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "name", &name), UC_OK);
    ck_assert_str_eq(name, "fake");
    ck_assert_int_eq(uc_dict_get_bool(description, "token_addressed", &flag), UC_OK);
    ck_assert_int_eq(flag, fx.is_tokened);
    ck_assert_int_eq(uc_dict_get_bool(description, "prefetchable", &flag), UC_OK);
    ck_assert_int_eq(flag, fx.is_prefetchable);
    uc_dict_destroy(description);
    fixture_stop();
}
END_TEST

/* Section 10, R-8.11: asked for once, at construction. */
START_TEST(facets_are_asked_for_once)
{
    fixture_start(_i);
    fixture_register();
    uc_token_destroy(fixture_get_token(1));
    uc_token_destroy(fixture_put_token(1));
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_AS_TOKEN_ADDRESSED], 1);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_AS_PREFETCHABLE], 1);
    fixture_stop();
}
END_TEST

/* */
START_TEST(finished_request_is_forgotten_by_a_prefetchable_store)
{
    fixture_start(_i);
    fixture_register();
    ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "r"), UC_OK);
    ck_assert_str_eq(fx.fake->control.log, fx.is_prefetchable ? "forget " : "");
    fixture_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("entry_requests");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, request_id_is_unique_until_it_is_finished, 0, KIND_COUNT);
    tcase_add_test(tcase, request_id_has_1_to_1023_bytes);
    tcase_add_loop_test(
            tcase, every_method_answers_not_found_for_an_unknown_request, 0, KIND_COUNT);
    tcase_add_test(tcase, facts_of_a_request_reach_the_store);
    tcase_add_test(tcase, facts_beyond_the_callers_struct_are_absent);
    tcase_add_test(tcase, facts_of_a_newer_caller_are_accepted);
    tcase_add_loop_test(tcase, lookups_go_to_the_facet_where_there_is_one, 0, KIND_COUNT);
    tcase_add_test(tcase, signal_leaves_the_other_outputs_alone);
    tcase_add_loop_test(tcase, failing_lookup_writes_nothing, 0, KIND_COUNT);
    tcase_add_test(tcase, null_outputs_and_lists_are_refused);
    tcase_add_test(tcase, empty_lookup_is_legal);
    tcase_add_loop_test(tcase, health_and_description_come_from_the_store, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, facets_are_asked_for_once, 0, KIND_COUNT);
    tcase_add_loop_test(
            tcase, finished_request_is_forgotten_by_a_prefetchable_store, 0, KIND_COUNT);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
