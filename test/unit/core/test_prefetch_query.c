/* SPDX-License-Identifier: Apache-2.0 */

/* The table of section 7.2: one case per row, over every state where the row says "any". */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#include "core/store/prefetch_query.h"
#include "test/fake/fake_alloc.h"

enum {
    TIERS_BELOW = 2,
    LIST_COUNT = 3
};

static const char rid[] = "request";
static const struct uc_block_id list[LIST_COUNT] = {{.bytes = "a"}, {.bytes = "b"}, {.bytes = "c"}};
static const struct uc_block_id other_list[LIST_COUNT] = {
        {.bytes = "a"}, {.bytes = "b"}, {.bytes = "d"}};
static struct uc_prefetch_queries *queries;
static uint64_t plan_number;
static int plan_record;

static void
setup(void)
{
    ck_assert_int_eq(uc_prefetch_queries_create(TIERS_BELOW, &queries), UC_OK);
    plan_number = 0;
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    while ((plan_number = uc_prefetch_queries_any_plan(queries)) != 0) {
        uc_prefetch_queries_conclude(queries, plan_number, false);
    }
    uc_prefetch_queries_destroy(queries);
}

static enum uc_prefetch_state
state(void)
{
    return uc_prefetch_queries_state(queries, rid);
}

static bool
may_signal(const struct uc_block_id *ids)
{
    bool may = false;

    ck_assert_int_eq(uc_prefetch_queries_begin(queries, rid, ids, LIST_COUNT, &may), UC_OK);
    return may;
}

static enum uc_status
begin_status(const struct uc_block_id *ids, size_t count)
{
    bool may = false;

    return uc_prefetch_queries_begin(queries, rid, ids, count, &may);
}

/* A lookup that ends as a signal for the last two blocks. */
static void
signal_query(void)
{
    struct uc_prefetch_need need = {.ids = list + 1, .count = 2};

    ck_assert(may_signal(list));
    ck_assert_int_eq(uc_prefetch_queries_signal(queries, rid, list, LIST_COUNT, &need), UC_OK);
}

static void
prepare(void)
{
    struct uc_prefetch_need need;

    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
    plan_number = uc_prefetch_queries_prepared(queries, rid, &plan_record);
    ck_assert_uint_ne(plan_number, 0);
}

static void
reach(enum uc_prefetch_state want)
{
    switch (want) {
    case UC_PREFETCH_IDLE:
    case UC_PREFETCH_STATE_COUNT:
        break;
    case UC_PREFETCH_SIGNALLED:
        signal_query();
        break;
    case UC_PREFETCH_PREPARED:
        signal_query();
        prepare();
        break;
    case UC_PREFETCH_PROGRESSED:
    case UC_PREFETCH_FAILED:
        signal_query();
        prepare();
        uc_prefetch_queries_conclude(queries, plan_number, want == UC_PREFETCH_PROGRESSED);
        break;
    }
    ck_assert_int_eq(state(), want);
}

/* V-54 */
START_TEST(another_list_is_refused_while_a_query_is_under_way)
{
    reach(_i == 0 ? UC_PREFETCH_SIGNALLED : UC_PREFETCH_PREPARED);
    ck_assert_int_eq(begin_status(other_list, LIST_COUNT), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(begin_status(list, LIST_COUNT - 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(begin_status(NULL, 0), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(state(), _i == 0 ? UC_PREFETCH_SIGNALLED : UC_PREFETCH_PREPARED);
    ck_assert_int_eq(begin_status(list, LIST_COUNT), UC_OK);
}
END_TEST

/* a concrete answer leaves nothing behind. */
START_TEST(concrete_answers_keep_no_state)
{
    ck_assert(may_signal(list));
    uc_prefetch_queries_answer(queries, rid);
    ck_assert_int_eq(state(), UC_PREFETCH_IDLE);
    ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
}
END_TEST

/* */
START_TEST(something_to_fetch_signals)
{
    signal_query();
    ck_assert_int_eq(state(), UC_PREFETCH_SIGNALLED);
}
END_TEST

/* V-51 */
START_TEST(unused_signal_is_followed_by_a_concrete_answer)
{
    reach(UC_PREFETCH_SIGNALLED);
    ck_assert(!may_signal(list));
    uc_prefetch_queries_answer(queries, rid);
    ck_assert_int_eq(state(), UC_PREFETCH_IDLE);
    ck_assert(may_signal(other_list)); /* a new query may start */
}
END_TEST

/* the plan lifts what the signal was about. */
START_TEST(prepare_takes_the_blocks_of_the_signal)
{
    struct uc_prefetch_need need;
    void *plan = NULL;

    reach(UC_PREFETCH_SIGNALLED);
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
    ck_assert_uint_eq(need.count, 2);
    ck_assert_mem_eq(need.ids, list + 1, 2 * sizeof(list[0]));
    ck_assert(!need.is_delegated);
    plan_number = uc_prefetch_queries_prepared(queries, rid, &plan_record);
    ck_assert_int_eq(state(), UC_PREFETCH_PREPARED);
    ck_assert_int_eq(uc_prefetch_queries_find_plan(queries, plan_number, &plan), UC_OK);
    ck_assert_ptr_eq(plan, &plan_record);
}
END_TEST

/* */
START_TEST(failed_prepare_may_be_repeated)
{
    struct uc_prefetch_need need;

    reach(UC_PREFETCH_SIGNALLED);
    for (size_t attempt = 0; attempt < 2; attempt++) {
        ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
        ck_assert_uint_eq(need.count, 2);
        ck_assert_int_eq(state(), UC_PREFETCH_SIGNALLED);
    }
    ck_assert_uint_eq(uc_prefetch_queries_any_plan(queries), 0);
}
END_TEST

/* a store that finds nothing left takes an empty plan; the state is the same. */
START_TEST(round_without_progress_fails)
{
    reach(UC_PREFETCH_PREPARED);
    uc_prefetch_queries_conclude(queries, plan_number, false); /* */
    ck_assert_int_eq(state(), UC_PREFETCH_FAILED);
}
END_TEST

/* prepare without a signal is an empty plan, whose list is known or not. */
START_TEST(prepare_without_signal_is_an_empty_plan)
{
    static const enum uc_prefetch_state states[] = {
            UC_PREFETCH_IDLE, UC_PREFETCH_PROGRESSED, UC_PREFETCH_FAILED};
    struct uc_prefetch_need need = {.count = 9};

    reach(states[_i]);
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
    ck_assert_uint_eq(need.count, 0);
    ck_assert(!need.is_delegated);
    plan_number = uc_prefetch_queries_prepared(queries, rid, NULL);
    ck_assert_int_eq(state(), UC_PREFETCH_PREPARED);
    ck_assert_int_eq(begin_status(other_list, LIST_COUNT),
            states[_i] == UC_PREFETCH_IDLE ? UC_OK : UC_ERR_INVALID_PARAM);
    ck_assert(!may_signal(list));
    uc_prefetch_queries_answer(queries, rid);
    ck_assert_int_eq(state(), UC_PREFETCH_PREPARED);
    uc_prefetch_queries_conclude(queries, plan_number, false);
    ck_assert_int_eq(state(), UC_PREFETCH_FAILED);
}
END_TEST

/* */
START_TEST(second_prepare_is_refused)
{
    struct uc_prefetch_need need;

    reach(UC_PREFETCH_PREPARED);
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(state(), UC_PREFETCH_PREPARED);
}
END_TEST

/* */
START_TEST(lookups_are_concrete_while_a_plan_is_out)
{
    reach(UC_PREFETCH_PREPARED);
    for (size_t attempt = 0; attempt < 3; attempt++) {
        ck_assert(!may_signal(list));
        uc_prefetch_queries_answer(queries, rid);
        ck_assert_int_eq(state(), UC_PREFETCH_PREPARED);
    }
}
END_TEST

/* V-55: one signal per tier below, then a concrete answer. */
START_TEST(rounds_are_bounded_by_the_tiers_below)
{
    for (size_t round = 0; round < TIERS_BELOW; round++) {
        signal_query();
        ck_assert_int_eq(state(), UC_PREFETCH_SIGNALLED);
        prepare();
        uc_prefetch_queries_conclude(queries, plan_number, true);
        ck_assert_int_eq(state(), UC_PREFETCH_PROGRESSED);
    }
    ck_assert(!may_signal(list));
    uc_prefetch_queries_answer(queries, rid);
    ck_assert_int_eq(state(), UC_PREFETCH_IDLE);
    ck_assert(may_signal(list)); /* rounds count from 0 again */
}
END_TEST

/* V-53 */
START_TEST(failed_round_is_followed_by_a_concrete_answer)
{
    reach(UC_PREFETCH_FAILED);
    ck_assert(!may_signal(list));
    uc_prefetch_queries_answer(queries, rid);
    ck_assert_int_eq(state(), UC_PREFETCH_IDLE);
    ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
}
END_TEST

/* */
START_TEST(another_list_after_a_round_is_a_new_query)
{
    struct uc_prefetch_need need = {.ids = other_list, .count = 1};

    reach(_i == 0 ? UC_PREFETCH_PROGRESSED : UC_PREFETCH_FAILED);
    ck_assert(may_signal(other_list));
    ck_assert_int_eq(
            uc_prefetch_queries_signal(queries, rid, other_list, LIST_COUNT, &need), UC_OK);
    ck_assert_int_eq(state(), UC_PREFETCH_SIGNALLED);
    ck_assert_int_eq(begin_status(list, LIST_COUNT), UC_ERR_INVALID_PARAM);
}
END_TEST

/* any state; a plan still has to be concluded and may be. */
START_TEST(failed_lookup_ends_the_query)
{
    void *plan = NULL;

    reach((enum uc_prefetch_state)_i);
    uc_prefetch_queries_fail(queries, rid);
    ck_assert_int_eq(state(), UC_PREFETCH_IDLE);
    if (_i == UC_PREFETCH_PREPARED) {
        ck_assert_int_eq(uc_prefetch_queries_find_plan(queries, plan_number, &plan), UC_OK);
        ck_assert(may_signal(other_list));
        uc_prefetch_queries_answer(queries, rid);
        uc_prefetch_queries_conclude(queries, plan_number, true);
        ck_assert_int_eq(state(), UC_PREFETCH_IDLE);
    }
    ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
}
END_TEST

/* */
START_TEST(forget_ends_the_query_and_keeps_the_plan)
{
    struct uc_prefetch_need need;

    reach((enum uc_prefetch_state)_i);
    uc_prefetch_queries_forget(queries, rid);
    ck_assert_int_eq(state(), UC_PREFETCH_IDLE);
    ck_assert(may_signal(other_list));
    if (_i == UC_PREFETCH_PREPARED) {
        ck_assert_int_eq(
                uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_ERR_INVALID_PARAM);
        ck_assert_uint_eq(uc_prefetch_queries_any_plan(queries), plan_number);
        uc_prefetch_queries_conclude(queries, plan_number, false);
    }
    uc_prefetch_queries_forget(queries, rid); /* unknown by now */
    ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
}
END_TEST

/* A signal that comes while a plan of a failed lookup is out keeps its blocks through the plan's end. */
START_TEST(late_conclusion_leaves_a_new_query_alone)
{
    reach(UC_PREFETCH_PREPARED);
    uc_prefetch_queries_fail(queries, rid);
    signal_query();
    uc_prefetch_queries_conclude(queries, plan_number, true);
    ck_assert_int_eq(state(), UC_PREFETCH_SIGNALLED);
    prepare();
    ck_assert_int_eq(state(), UC_PREFETCH_PREPARED);
}
END_TEST

/* a plan is concluded once, and numbers are not reused. */
START_TEST(plans_are_found_until_they_are_concluded)
{
    uint64_t first;
    void *plan = NULL;

    reach(UC_PREFETCH_PREPARED);
    first = plan_number;
    uc_prefetch_queries_conclude(queries, first, true);
    ck_assert_int_eq(uc_prefetch_queries_find_plan(queries, first, &plan), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_prefetch_queries_find_plan(queries, 0, &plan), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_prefetch_queries_find_plan(queries, 77, &plan), UC_ERR_INVALID_PARAM);
    prepare();
    ck_assert_uint_gt(plan_number, first);
    uc_prefetch_queries_conclude(queries, first, true); /* nothing */
    ck_assert_int_eq(state(), UC_PREFETCH_PREPARED);
}
END_TEST

/* */
START_TEST(delegated_rounds_say_so)
{
    struct uc_prefetch_need need = {.is_delegated = true};

    ck_assert(may_signal(list));
    ck_assert_int_eq(uc_prefetch_queries_signal(queries, rid, list, LIST_COUNT, &need), UC_OK);
    need = (struct uc_prefetch_need){0};
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_OK);
    ck_assert(need.is_delegated);
    ck_assert_uint_eq(need.count, 0);
}
END_TEST

/* A bottom tier has nothing to signal about. */
START_TEST(nothing_below_means_no_signal)
{
    struct uc_prefetch_queries *bottom = NULL;
    bool may = true;

    ck_assert_int_eq(uc_prefetch_queries_create(0, &bottom), UC_OK);
    ck_assert_int_eq(uc_prefetch_queries_begin(bottom, rid, list, LIST_COUNT, &may), UC_OK);
    ck_assert(!may);
    uc_prefetch_queries_destroy(bottom);
    uc_prefetch_queries_destroy(NULL);
}
END_TEST

START_TEST(many_requests_are_kept_apart)
{
    enum {
        REQUEST_COUNT = 500
    };
    struct uc_prefetch_need need = {.ids = list, .count = 1};
    char name[16];

    for (size_t idx = 0; idx < REQUEST_COUNT; idx++) {
        (void)snprintf(name, sizeof(name), "r%zu", idx);
        ck_assert_int_eq(uc_prefetch_queries_signal(
                                 queries, name, list, idx % 2 == 0 ? 1 : LIST_COUNT, &need),
                UC_OK);
    }
    ck_assert_uint_eq(uc_prefetch_queries_count(queries), REQUEST_COUNT);
    for (size_t idx = 0; idx < REQUEST_COUNT; idx++) {
        bool may = false;

        (void)snprintf(name, sizeof(name), "r%zu", idx);
        ck_assert_int_eq(uc_prefetch_queries_begin(queries, name, list, LIST_COUNT, &may),
                idx % 2 == 0 ? UC_ERR_INVALID_PARAM : UC_OK);
        uc_prefetch_queries_forget(queries, name);
    }
    ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
}
END_TEST

/* without memory the lookup fails and nothing stays. */
START_TEST(failed_allocations_end_the_query)
{
    struct uc_prefetch_need need = {.ids = list, .count = 1};
    struct uc_prefetch_queries *none = NULL;

    for (size_t fail_at = 0; fail_at < 2; fail_at++) {
        uc_fake_alloc_fail_once(fail_at);
        ck_assert_int_eq(uc_prefetch_queries_signal(queries, rid, list, LIST_COUNT, &need),
                UC_ERR_OUT_OF_MEMORY);
        uc_fake_alloc_reset();
        ck_assert_uint_eq(uc_prefetch_queries_count(queries), 0);
    }
    uc_fake_alloc_fail_once(0);
    ck_assert_int_eq(uc_prefetch_queries_create(1, &none), UC_ERR_OUT_OF_MEMORY);
    uc_fake_alloc_reset();
    uc_fake_alloc_fail_once(0);
    ck_assert_int_eq(uc_prefetch_queries_begin_prepare(queries, rid, &need), UC_ERR_OUT_OF_MEMORY);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("prefetch_query");
    TCase *tcase = tcase_create("states");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, another_list_is_refused_while_a_query_is_under_way, 0, 2);
    tcase_add_test(tcase, concrete_answers_keep_no_state);
    tcase_add_test(tcase, something_to_fetch_signals);
    tcase_add_test(tcase, unused_signal_is_followed_by_a_concrete_answer);
    tcase_add_test(tcase, prepare_takes_the_blocks_of_the_signal);
    tcase_add_test(tcase, failed_prepare_may_be_repeated);
    tcase_add_test(tcase, round_without_progress_fails);
    tcase_add_loop_test(tcase, prepare_without_signal_is_an_empty_plan, 0, 3);
    tcase_add_test(tcase, second_prepare_is_refused);
    tcase_add_test(tcase, lookups_are_concrete_while_a_plan_is_out);
    tcase_add_test(tcase, rounds_are_bounded_by_the_tiers_below);
    tcase_add_test(tcase, failed_round_is_followed_by_a_concrete_answer);
    tcase_add_loop_test(tcase, another_list_after_a_round_is_a_new_query, 0, 2);
    tcase_add_loop_test(tcase, failed_lookup_ends_the_query, 0, UC_PREFETCH_STATE_COUNT);
    tcase_add_loop_test(
            tcase, forget_ends_the_query_and_keeps_the_plan, 0, UC_PREFETCH_STATE_COUNT);
    tcase_add_test(tcase, late_conclusion_leaves_a_new_query_alone);
    tcase_add_test(tcase, plans_are_found_until_they_are_concluded);
    tcase_add_test(tcase, delegated_rounds_say_so);
    tcase_add_test(tcase, nothing_below_means_no_signal);
    tcase_add_test(tcase, many_requests_are_kept_apart);
    tcase_add_test(tcase, failed_allocations_end_the_query);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
