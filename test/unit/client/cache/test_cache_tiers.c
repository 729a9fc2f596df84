/* SPDX-License-Identifier: Apache-2.0 */

/* A cache store above another tier: signals, plans, in-place loads. Section 7. */

#include <stdlib.h>

#include "test/fake/fake_store.h"
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

/* one round, then a concrete answer; nothing stays held */
START_TEST(block_is_lifted_from_a_tokened_tier)
{
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_uint_eq(hit, 9); /* */
    ck_assert_int_eq(env_run_round(store, true), UC_OK);
    ck_assert(!env_ask(store, 1, &hit));
    ck_assert_uint_eq(hit, 1);
    ck_assert(env_can_get(store, store, 1));
    ck_assert_int_eq(env_number(store, "reserved"), 0);
    ck_assert_int_eq(env_number(store, "pinned"), 0);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
}
END_TEST

/* the base version of a plain tier */
START_TEST(block_is_lifted_from_a_plain_tier)
{
    struct uc_store *plain = env_null_store();
    struct uc_block_id ids[3] = {env_id(1), env_id(2), env_id(3)};
    uint8_t memory[3][ENV_BLOCK_BYTES];
    void *pointers[3];
    uint64_t size = ENV_BLOCK_BYTES;
    struct uc_block_payload payloads[3] = {0};
    struct uc_job_descriptor job = {.block_ids = ids, .payloads = payloads, .count = 2};
    bool needed = false;
    int64_t last = -7;

    for (unsigned idx = 0; idx < 3; idx++) {
        env_fill(idx + 1, memory[idx]);
        pointers[idx] = memory[idx];
        payloads[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx], .sizes = &size, .pointer_count = 1};
    }
    ck_assert_int_eq(uc_store_dump(plain, 1, &job), UC_OK);
    ck_assert_int_eq(env_wait(plain, 1, NULL), UC_OK);
    start_over(plain);
    ck_assert_int_eq(ops->lookup_on_prefix(store, "r", ids, 3, &last, &needed), UC_OK);
    ck_assert(needed);
    ck_assert_int_eq(last, -7);
    ck_assert_int_eq(env_run_round(store, true), UC_OK);
    ck_assert_int_eq(ops->lookup_on_prefix(store, "r", ids, 3, &last, &needed), UC_OK);
    ck_assert(!needed);
    ck_assert_int_eq(last, 1);
    ck_assert(env_can_get(store, store, 2));
    uc_cache_store_destroy(store);
    uc_null_store_destroy(plain);
}
END_TEST

/* the source went away between signal and prepare; nothing is held */
START_TEST(lost_source_ends_the_query)
{
    struct uc_token *plan = NULL;
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(env_ask(store, 1, &hit));
    env_put(lower, lower, 2);
    env_put(lower, lower, 3);
    ck_assert_int_eq(ops->prepare_prefetch(store, "r", NULL, &plan), UC_ERR_NOT_FOUND);
    ck_assert_ptr_null(plan);
    ck_assert_int_eq(env_number(store, "reserved"), 0);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    ck_assert(!env_ask(store, 1, &hit));
    ck_assert_uint_eq(hit, 0);
}
END_TEST

/* a refused round leaves nothing, the next answer is concrete */
START_TEST(failed_round_leaves_nothing)
{
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(env_run_round(store, false), UC_OK);
    ck_assert(!env_ask(store, 1, &hit));
    ck_assert_uint_eq(hit, 0);
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
}
END_TEST

/* no room here gives the sources back */
START_TEST(full_tier_gives_the_sources_back)
{
    const struct uc_token_addressed_ops *tokens = uc_store_as_token_addressed(store);
    struct uc_block_id ids[ENV_BLOCKS];
    struct uc_token *plan = NULL;
    struct uc_token *full = NULL;
    uint8_t hit = 9;

    for (unsigned idx = 0; idx < ENV_BLOCKS; idx++) {
        ids[idx] = env_id(100 + idx);
    }
    env_put(lower, lower, 1);
    ck_assert_int_eq(tokens->alloc(store, ids, ENV_BLOCKS, NULL, &full), UC_OK);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(ops->prepare_prefetch(store, "r", NULL, &plan), UC_ERR_NO_SPACE);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    ck_assert_int_eq(tokens->commit(store, full, NULL, false), UC_OK);
    ck_assert_int_eq(env_run_round(store, true), UC_OK); /* retry */
    ck_assert(env_can_get(store, store, 1));
    uc_token_destroy(full);
}
END_TEST

/* G: a plan that nobody concludes is concluded by destruction at the latest */
START_TEST(forgotten_plan_is_given_back)
{
    struct uc_token *plan = NULL;
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(ops->prepare_prefetch(store, "r", NULL, &plan), UC_OK);
    ops->forget(store, "r");
    ck_assert_int_eq(env_number(lower, "pinned"), 1);
    uc_cache_store_destroy(store);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    uc_token_destroy(plan);
    store = NULL;
}
END_TEST

/* the lower tier's round is ours; two rounds lift a block by two tiers */
START_TEST(delegated_round_lifts_by_one_tier)
{
    struct uc_store *bottom = env_null_store();
    struct env_options middle_options = {.lower = bottom};
    struct uc_store *middle = env_store(&middle_options);
    uint8_t hit = 9;

    env_dump_plain(bottom, 1);
    start_over(middle);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(env_run_round(store, true), UC_OK);
    ck_assert(env_is_hit(middle, 1));
    ck_assert(!env_is_hit(store, 1));
    uc_cache_store_destroy(store);
    uc_cache_store_destroy(middle);
    uc_null_store_destroy(bottom);
}
END_TEST

/* the tier that owns eviction hears of it, with the same ids, whether or not they are here too. */
START_TEST(touch_reaches_the_lower_tier)
{
    struct uc_block_id ids[2] = {env_id(1), env_id(77)}; /* the second is nowhere */
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    if (_i == 1) {
        ck_assert(env_ask(store, 1, &hit));
        ck_assert_int_eq(env_run_round(store, true), UC_OK);
        ck_assert(env_is_hit(store, 1));
    }
    env_put(lower, lower, 2);
    ck_assert_int_eq(uc_store_touch(store, ids, 2, NULL), UC_OK);
    env_put(lower, lower, 3); /* two fit: the one that was not touched goes */
    ck_assert(env_is_hit(lower, 1));
    ck_assert(!env_is_hit(lower, 2));
}
END_TEST

/* with the request's facts; and whatever the tier below says, the answer is Ok. */
START_TEST(touch_goes_below_as_it_came)
{
    struct uc_fake_store *fake = uc_fake_store_create(true, false);
    struct uc_request_context facts = uc_request_context_init("r");
    struct uc_block_id ids[2] = {env_id(1), env_id(2)};

    ck_assert_ptr_nonnull(fake);
    fake->answers[UC_FAKE_TOUCH] = UC_ERR_UNHEALTHY;
    start_over(&fake->base);
    facts.present = UC_REQUEST_TTL;
    facts.ttl_ms = 12345;
    ck_assert_int_eq(uc_store_touch(store, ids, 2, &facts), UC_OK);
    ck_assert_uint_eq(fake->calls[UC_FAKE_TOUCH], 1);
    ck_assert_uint_eq(fake->control.count, 2);
    ck_assert_mem_eq(fake->control.ids, ids, sizeof(ids));
    ck_assert(fake->control.has_ttl);
    ck_assert_uint_eq(fake->control.ttl_ms, 12345);

    ck_assert_int_eq(uc_store_touch(store, ids, 1, NULL), UC_OK);
    ck_assert(!fake->control.has_ttl);
    uc_cache_store_destroy(store);
    uc_fake_store_destroy(&fake->base);
}
END_TEST

/* destinations inherit the TTL of the request. */
START_TEST(destination_inherits_the_ttl)
{
    struct uc_request_context facts = uc_request_context_init("r");
    struct uc_token *plan = NULL;
    uint8_t hit = 9;

    facts.present = UC_REQUEST_TTL; /* of 0 ms: expired at the commit */
    env_put(lower, lower, 1);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(ops->prepare_prefetch(store, "r", &facts, &plan), UC_OK);
    ck_assert_int_eq(ops->prefetch(store, 500, plan), UC_OK);
    ck_assert_int_eq(env_wait(store, 500, NULL), UC_OK);
    ck_assert_int_eq(ops->complete_prefetch(store, plan, true), UC_OK);
    uc_token_destroy(plan);
    ck_assert(!env_is_hit(store, 1));
    ck_assert(env_is_hit(lower, 1));
}
END_TEST

/* a destination that a put writes as well is an ordinary shared reservation; the round is one commit. */
START_TEST(destination_is_shared_with_a_put)
{
    static const struct {
        bool round;
        bool put;
        bool is_there;
    } cases[] = {
            {true, false, true}, {false, true, true}, {true, true, true}, {false, false, false}};
    const struct uc_token_addressed_ops *tokens = uc_store_as_token_addressed(store);
    struct uc_block_id id = env_id(1);
    struct uc_token *writer = NULL;
    uint8_t bytes[ENV_BLOCK_BYTES];
    uint8_t hit = 9;

    env_fill(1, bytes);
    env_put(lower, lower, 1);
    ck_assert_int_eq(tokens->alloc(store, &id, 1, NULL, &writer), UC_OK);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(env_run_round(store, cases[_i].round), UC_OK);
    ck_assert(!env_is_hit(store, 1)); /* until the last one has spoken */
    ck_assert_int_eq(env_number(store, "reserved"), 1);
    ck_assert_int_eq(env_move(store, false, writer, bytes, NULL), UC_OK);
    ck_assert_int_eq(tokens->commit(store, writer, NULL, cases[_i].put), UC_OK);
    ck_assert_int_eq(env_can_get(store, store, 1), cases[_i].is_there);
    ck_assert_int_eq(env_number(store, "reserved"), 0);
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS - (cases[_i].is_there ? 1 : 0));
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    uc_token_destroy(writer);
}
END_TEST

/* What moved is counted by the worker's side, before its event; what a round lifts is counted below. */
START_TEST(description_counts_what_moved)
{
    uint8_t hit = 9;

    ck_assert_int_eq(env_number(store, "blocks_loaded"), 0);
    ck_assert_int_eq(env_number(store, "blocks_dumped"), 0);
    env_put(store, store, 2);
    ck_assert_int_eq(env_number(store, "blocks_dumped"), 1);
    env_put(lower, lower, 1);
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(env_run_round(store, true), UC_OK);
    ck_assert_int_eq(env_number(lower, "blocks_loaded"), 1);
    ck_assert_int_eq(env_number(store, "blocks_loaded"), 0);
    ck_assert_int_eq(env_number(store, "blocks_dumped"), 1);
    ck_assert(env_can_get(store, store, 1));
    ck_assert(env_can_get(store, store, 2));
    ck_assert_int_eq(env_number(store, "blocks_loaded"), 2);
    ck_assert_int_eq(env_number(lower, "blocks_loaded"), 1);
}
END_TEST

/* A block that did not come is not counted. */
START_TEST(description_counts_no_misses)
{
    const struct uc_token_addressed_ops *tokens = uc_store_as_token_addressed(store);
    struct uc_block_id id = env_id(1);
    struct uc_token *token = NULL;
    uint8_t bytes[ENV_BLOCK_BYTES];

    env_fill(1, bytes);
    ck_assert_int_eq(tokens->alloc(store, &id, 1, NULL, &token), UC_OK);
    ck_assert_int_eq(env_move(store, true, token, bytes, NULL), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(tokens->commit(store, token, NULL, false), UC_OK);
    ck_assert_int_eq(env_move(store, false, token, bytes, NULL), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(env_number(store, "blocks_loaded"), 0);
    ck_assert_int_eq(env_number(store, "blocks_dumped"), 0);
    uc_token_destroy(token);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_tiers");
    TCase *tcase = tcase_create("tiers");
    TCase *alone = tcase_create("alone");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, start_over_cache, stop_over_cache);
    tcase_add_test(tcase, block_is_lifted_from_a_tokened_tier);
    tcase_add_test(tcase, lost_source_ends_the_query);
    tcase_add_test(tcase, failed_round_leaves_nothing);
    tcase_add_test(tcase, full_tier_gives_the_sources_back);
    tcase_add_test(tcase, forgotten_plan_is_given_back);
    tcase_add_loop_test(tcase, touch_reaches_the_lower_tier, 0, 2);
    tcase_add_test(tcase, destination_inherits_the_ttl);
    tcase_add_loop_test(tcase, destination_is_shared_with_a_put, 0, 4);
    tcase_add_test(tcase, description_counts_what_moved);
    tcase_add_test(tcase, description_counts_no_misses);
    tcase_add_test(alone, block_is_lifted_from_a_plain_tier);
    tcase_add_test(alone, touch_goes_below_as_it_came);
    tcase_add_test(alone, delegated_round_lifts_by_one_tier);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, alone);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
