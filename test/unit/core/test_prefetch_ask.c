/* SPDX-License-Identifier: Apache-2.0 */

/* The lookups over a lower tier that answers as the case says. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/store/prefetch_ask.h"
#include "test/fake/fake_alloc.h"
#include "test/fake/fake_store.h"

enum {
    LIST_COUNT = 4
};

static const char rid[] = "request";
static const struct uc_block_id list[LIST_COUNT] = {
        {.bytes = "a"}, {.bytes = "b"}, {.bytes = "c"}, {.bytes = "d"}};
static struct uc_prefetch_queries *queries;
static struct uc_fake_store *fake; /* everything is present in it */
static struct uc_prefetch_lower lower;

static void
start(bool lower_prefetches)
{
    fake = uc_fake_store_create(false, lower_prefetches);
    ck_assert_ptr_nonnull(fake);
    lower = (struct uc_prefetch_lower){
            .store = &fake->base, .facet = uc_store_as_prefetchable(&fake->base)};
    ck_assert_int_eq(uc_prefetch_queries_create(2, &queries), UC_OK);
}

static void
setup(void)
{
    start(false);
}

static void
setup_prefetching(void)
{
    start(true);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_prefetch_queries_destroy(queries);
    uc_fake_store_destroy(&fake->base);
}

static enum uc_status
ask(enum uc_prefetch_lookup kind, const uint8_t *hits, bool *signal)
{
    return uc_prefetch_ask(queries, &lower, kind, rid, list, LIST_COUNT, hits, signal);
}

/* What is asked below: the blocks that could change the answer, and what the round lifts then. */
static const struct {
    enum uc_prefetch_lookup kind;
    uint8_t hits[LIST_COUNT];
    bool signal;
    const char *asked;  /* ids, in order; NULL = the lower tier is not asked */
    const char *lifted; /* all that is below */
} ask_cases[] = {
        {UC_PREFETCH_LOOKUP, {1, 1, 1, 1}, false, NULL, NULL},
        {UC_PREFETCH_LOOKUP, {0, 1, 0, 1}, true, "ac", "ac"},
        {UC_PREFETCH_ON_PREFIX, {1, 1, 1, 1}, false, NULL, NULL},
        {UC_PREFETCH_ON_PREFIX, {1, 0, 1, 0}, true, "bd", "bd"},
        {UC_PREFETCH_ON_REVERSE, {0, 0, 0, 1}, false, NULL, NULL},
        {UC_PREFETCH_ON_REVERSE, {0, 1, 0, 0}, true, "cd", "d"},
        {UC_PREFETCH_ON_REVERSE, {0, 0, 0, 0}, true, "abcd", "d"},
};

START_TEST(lower_tier_is_asked_what_could_change_the_answer)
{
    const char *asked = ask_cases[_i].asked;
    struct uc_prefetch_need need;
    bool signal = !ask_cases[_i].signal;

    ck_assert_int_eq(ask(ask_cases[_i].kind, ask_cases[_i].hits, &signal), UC_OK);
    ck_assert_int_eq(signal, ask_cases[_i].signal);
    ck_assert_uint_eq(fake->control.count, asked == NULL ? 0 : strlen(asked));
    for (size_t idx = 0; asked != NULL && idx < strlen(asked); idx++) {
        ck_assert_int_eq(fake->control.ids[idx].bytes[0], asked[idx]);
    }
    if (!ask_cases[_i].signal) {
        ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
        return;
    }
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
    ck_assert_uint_eq(need.count, strlen(ask_cases[_i].lifted));
    for (size_t idx = 0; idx < need.count; idx++) {
        ck_assert_int_eq(need.ids[idx].bytes[0], ask_cases[_i].lifted[idx]);
    }
}
END_TEST

/* the lower tier's error is the answer, and the query is over. */
START_TEST(error_of_the_lower_tier_ends_the_query)
{
    static const enum uc_fake_op ops[] = {
            UC_FAKE_LOOKUP, UC_FAKE_LOOKUP_ON_PREFIX, UC_FAKE_LOOKUP_ON_REVERSE};
    static const uint8_t hits[LIST_COUNT] = {0};
    bool signal = false;

    fake->answers[ops[_i]] = UC_ERR_OS_API;
    ck_assert_int_eq(ask((enum uc_prefetch_lookup)_i, hits, &signal), UC_ERR_OS_API);
    ck_assert(!signal);
    ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
    fake->answers[ops[_i]] = UC_OK;
    ck_assert_int_eq(ask((enum uc_prefetch_lookup)_i, hits, &signal), UC_OK);
    ck_assert(signal);
}
END_TEST

/* its signal is ours, and its round will be.: what is over here is forgotten there. */
START_TEST(signal_of_the_lower_tier_delegates_the_round)
{
    static const uint8_t hits[LIST_COUNT] = {1, 0, 0, 0};
    struct uc_prefetch_need need;
    bool signal = false;

    fake->signal = true;
    ck_assert_int_eq(ask((enum uc_prefetch_lookup)_i, hits, &signal), UC_OK);
    ck_assert(signal);
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
    ck_assert(need.is_delegated);
    ck_assert_uint_eq(fake->calls[UC_FAKE_FORGET], 0);
    ck_assert_int_eq(ask((enum uc_prefetch_lookup)_i, hits, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert_uint_eq(fake->calls[UC_FAKE_FORGET], 1);
    ck_assert_str_eq(fake->control.request_id, rid);
    uc_prefetch_forget(queries, &lower, rid);
    ck_assert_uint_eq(fake->calls[UC_FAKE_FORGET], 2);
}
END_TEST

/* while a plan is out nobody below is asked, and nothing below is forgotten. */
START_TEST(lower_tier_is_left_alone_while_a_plan_is_out)
{
    static const uint8_t hits[LIST_COUNT] = {0};
    struct uc_prefetch_need need;
    uint64_t number;
    bool signal = false;

    fake->signal = true;
    ck_assert_int_eq(ask(UC_PREFETCH_LOOKUP, hits, &signal), UC_OK);
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
    number = uc_prefetch_queries_prepared(queries, rid, NULL);
    ck_assert_int_eq(ask(UC_PREFETCH_LOOKUP, hits, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert_uint_eq(fake->calls[UC_FAKE_FACET_LOOKUP], 1);
    ck_assert_uint_eq(fake->calls[UC_FAKE_FORGET], 0);
    uc_prefetch_queries_conclude(queries, number, true);
    ck_assert_int_eq(ask(UC_PREFETCH_LOOKUP, hits, &signal), UC_OK); /* the second of two rounds */
    ck_assert(signal);
}
END_TEST

START_TEST(lookup_without_memory_fails_and_ends_the_query)
{
    static const uint8_t hits[LIST_COUNT] = {0};
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    bool signal = false;
    size_t passed = 0;

    while (status == UC_ERR_OUT_OF_MEMORY) {
        uc_fake_alloc_fail_once(passed++);
        status = ask(UC_PREFETCH_LOOKUP, hits, &signal);
        uc_fake_alloc_reset();
        ck_assert_uint_lt(passed, 20);
        ck_assert_uint_eq(uc_prefetch_queries_count(queries), status == UC_OK);
    }
    ck_assert_uint_eq(passed, 6); /* places, ids, flags; query, lists; and the one that passes */
    ck_assert(signal);
}
END_TEST

/* */
START_TEST(answers_follow_from_the_flags)
{
    static const uint8_t some[LIST_COUNT] = {1, 1, 0, 1};

    ck_assert_int_eq(uc_prefetch_last_of_prefix(some, LIST_COUNT), 1);
    ck_assert_int_eq(uc_prefetch_last_of_any(some, LIST_COUNT), 3);
    ck_assert_int_eq(uc_prefetch_last_of_prefix(some + 2, 1), -1);
    ck_assert_int_eq(uc_prefetch_last_of_any(some + 2, 1), -1);
    ck_assert_int_eq(uc_prefetch_last_of_prefix(NULL, 0), -1);
    ck_assert_int_eq(uc_prefetch_last_of_any(NULL, 0), -1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("prefetch_ask");
    TCase *plain = tcase_create("plain tier below");
    TCase *prefetching = tcase_create("prefetching tier below");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(plain, setup, teardown);
    tcase_add_loop_test(plain, lower_tier_is_asked_what_could_change_the_answer, 0,
            sizeof(ask_cases) / sizeof(ask_cases[0]));
    tcase_add_loop_test(plain, error_of_the_lower_tier_ends_the_query, 0, 3);
    tcase_add_test(plain, lookup_without_memory_fails_and_ends_the_query);
    tcase_add_test(plain, answers_follow_from_the_flags);
    tcase_add_checked_fixture(prefetching, setup_prefetching, teardown);
    tcase_add_loop_test(prefetching, signal_of_the_lower_tier_delegates_the_round, 0, 3);
    tcase_add_test(prefetching, lower_tier_is_left_alone_while_a_plan_is_out);
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, prefetching);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
