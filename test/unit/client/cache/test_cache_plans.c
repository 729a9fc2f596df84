/* SPDX-License-Identifier: Apache-2.0 */

/* Plans of a prefetch that are not what they were when they were made. Section 7. */

#include <stdlib.h>
#include <string.h>

#include "test/unit/client/cache/cache_env.h"

static struct uc_store *lower;
static struct uc_store *store;
static const struct uc_prefetchable_ops *ops;

static void
start_over(struct uc_store *tier)
{
    struct env_options options = {.lower = tier};

    lower = tier;
    store = env_store(&options);
    ops = uc_store_as_prefetchable(store);
    ck_assert_ptr_nonnull(ops);
}

static void
start_over_cache(void)
{
    struct env_options options = {.capacity_blocks = 2};

    start_over(env_store(&options));
}

static void
stop_over_cache(void)
{
    uc_cache_store_destroy(store); /* head first */
    uc_cache_store_destroy(lower);
}

static struct uc_token *
prepare(struct uc_store *tier, unsigned number)
{
    const struct uc_prefetchable_ops *facet = uc_store_as_prefetchable(tier);
    struct uc_block_id id = env_id(number);
    struct uc_token *plan = NULL;
    bool needed = false;
    uint8_t hit;

    ck_assert_int_eq(facet->lookup(tier, "r", &id, 1, &hit, &needed), UC_OK);
    ck_assert(needed);
    ck_assert_msg(facet->prepare_prefetch(tier, "r", NULL, &plan) == UC_OK, "%s", uc_last_error());
    return plan;
}

/* The plan was not harmed by what was tried with its bytes. */
static void
finish_round(struct uc_token *plan, unsigned number)
{
    ck_assert_msg(ops->prefetch(store, 500, plan) == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(env_wait(store, 500, NULL), UC_OK);
    ck_assert_int_eq(ops->complete_prefetch(store, plan, true), UC_OK);
    uc_token_destroy(plan);
    ck_assert(env_can_get(store, store, number));
    ck_assert_int_eq(env_number(store, "reserved"), 0);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
}

/* a plan that was cut short, or lost its keys, starts nothing. */
START_TEST(plan_of_wrong_lengths_is_refused)
{
    struct uc_token *plan;
    struct uc_token bad;

    env_put(lower, lower, 1);
    plan = prepare(store, 1);
    for (size_t cut = 0; cut < plan->payload_bytes; cut++) {
        bad = *plan;
        bad.payload_bytes = cut;
        ck_assert_int_eq(ops->prefetch(store, 500, &bad), UC_ERR_INVALID_PARAM);
        ck_assert_int_eq(ops->complete_prefetch(store, &bad, true), UC_ERR_INVALID_PARAM);
    }
    bad = *plan;
    bad.key_count = 0;
    ck_assert_int_eq(ops->prefetch(store, 500, &bad), UC_ERR_INVALID_PARAM);
    finish_round(plan, 1);
}
END_TEST

/* whatever byte is wrong, the plan is refused or its job ends; nobody else's block is harmed. */
START_TEST(no_byte_of_a_plan_is_trusted)
{
    struct uc_token *plan;
    size_t refused = 0;

    env_put(store, store, 9);
    env_put(lower, lower, 1);
    plan = prepare(store, 1);
    for (size_t at = 0; at < plan->payload_bytes; at++) {
        uint8_t *payload = malloc(plan->payload_bytes);
        struct uc_token bad = *plan;

        ck_assert_ptr_nonnull(payload);
        memcpy(payload, plan->payload, plan->payload_bytes);
        payload[at] ^= 0xff;
        bad.payload = payload;
        if (ops->prefetch(store, 1000 + at, &bad) == UC_OK) {
            (void)env_wait(store, 1000 + at, NULL);
        } else {
            refused++;
        }
        free(payload);
    }
    ck_assert_uint_ge(refused, 16); /* the header's magic and lengths at least */
    ck_assert(env_can_get(store, store, 9));
    ck_assert_int_eq(ops->complete_prefetch(store, plan, true), UC_OK);
    ck_assert_int_eq(env_number(store, "reserved"), 0);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    uc_token_destroy(plan);
}
END_TEST

/* a plan of another tier: of a store over a plain tier, and of one that delegates to a tier below it. */
START_TEST(plan_of_another_kind_of_tier_is_refused)
{
    struct uc_store *bottom = env_null_store();
    struct env_options options = {.lower = bottom};
    struct uc_store *over_plain = env_store(&options);
    struct uc_store *over_two;
    struct uc_token *foreign;
    struct uc_token *plan;

    env_dump_plain(bottom, 1);
    options.lower = over_plain;
    over_two = env_store(&options);
    env_put(lower, lower, 1);
    plan = prepare(store, 1);

    foreign = prepare(over_two, 1);
    ck_assert_int_eq(ops->prefetch(store, 500, foreign), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "one configuration"));
    ck_assert_int_eq(
            uc_store_as_prefetchable(over_two)->complete_prefetch(over_two, foreign, false), UC_OK);
    uc_store_as_prefetchable(over_two)->forget(over_two, "r");
    uc_token_destroy(foreign);

    foreign = prepare(over_plain, 1);
    ck_assert_int_eq(ops->prefetch(store, 500, foreign), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_store_as_prefetchable(over_plain)->complete_prefetch(over_plain, foreign, false),
            UC_OK);
    uc_token_destroy(foreign);

    finish_round(plan, 1);
    uc_cache_store_destroy(over_two);
    uc_cache_store_destroy(over_plain);
    uc_null_store_destroy(bottom);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_plans");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, start_over_cache, stop_over_cache);
    tcase_add_test(tcase, plan_of_wrong_lengths_is_refused);
    tcase_add_test(tcase, no_byte_of_a_plan_is_trusted);
    tcase_add_test(tcase, plan_of_another_kind_of_tier_is_refused);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
