/* SPDX-License-Identifier: Apache-2.0 */

/* StorePipe over fake stores: section 11, R-14.15, R-14.17, V-59. */

#include <stdio.h>
#include <string.h>

#include "test/unit/client/proxy/tree_fixture.h"

static const char three[] =
        "{type: pipe, stores: [{store: fake, config: {tokened: true, prefetchable: true}}, {store: fake}, {store: fake}]}";

/* bottom-up, each with the instance below it. */
START_TEST(tiers_are_set_up_from_the_bottom)
{
    tree_start(three);
    ck_assert_str_eq(tree.trace, "+stores[2] +stores[1] +stores[0] ");
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(tree.stores[idx]->tiers_below, 2 - (int64_t)idx);
        ck_assert_str_eq(tree.stores[idx]->role, "both");
    }
    ck_assert_ptr_eq(tree.stores[0]->lower, &tree.stores[1]->base);
    ck_assert_ptr_eq(tree.stores[1]->lower, &tree.stores[2]->base);
    ck_assert_ptr_null(tree.stores[2]->lower);
    tree_stop();
}
END_TEST

/* V-59, R-11.4 */
START_TEST(destruction_goes_from_head_to_bottom)
{
    tree_start(three);
    tree.trace[0] = '\0';
    tree_stop();
    ck_assert_str_eq(tree.trace, "-stores[0] -stores[1] -stores[2] ");
}
END_TEST

/* what was built goes, head first; nothing above the failure is touched. */
static const struct {
    const char *yaml;
    const char *trace;
} failed_cases[] = {
        {"{type: pipe, stores: [{store: fake}, {store: fake}, {store: fake, config: {fail: true}}]}",
                "+stores[2] -stores[2] "},
        {"{type: pipe, stores: [{store: fake}, {store: fake, config: {fail: true}}, {store: fake}]}",
                "+stores[2] +stores[1] -stores[1] -stores[2] "},
        {"{type: pipe, stores: [{store: fake, config: {fail: true}}, {store: fake}, {store: fake}]}",
                "+stores[2] +stores[1] +stores[0] -stores[0] -stores[1] -stores[2] "},
        {"{type: peer, branches: [{type: pipe, stores: [{store: fake}, {store: fake}]}, {type: store, store: fake, config: {fail: true}}], routing: {strategy: ttl, config: {thresholds: [5]}}}",
                "+branches[0].stores[1] +branches[0].stores[0] +branches[1] -branches[1] "
                "-branches[0].stores[0] -branches[0].stores[1] "},
};

START_TEST(failed_assembly_takes_everything_down)
{
    struct uc_dict *config = tree_config(failed_cases[_i].yaml);
    struct uc_assembler *assembler = NULL;

    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_ERR_NO_SPACE);
    ck_assert_ptr_null(assembler);
    ck_assert_str_eq(tree.trace, failed_cases[_i].trace);
    uc_dict_destroy(config);
}
END_TEST

/* */
START_TEST(calls_go_to_the_head_alone)
{
    struct uc_token *token = NULL;
    uint8_t hits[2];
    bool signal = false;

    tree_start(three);
    tree_register("r", -1);
    ck_assert_int_eq(uc_scheduler_lookup(tree.scheduler, "r", tree_keys, 2, hits, &signal), UC_OK);
    ck_assert_int_eq(uc_scheduler_touch(tree.scheduler, "r", tree_keys, 2), UC_OK);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(tree.scheduler, "r", &token), UC_OK);
    ck_assert_int_eq(uc_worker_submit_prefetch(tree.worker, 1, token), UC_OK);
    uc_token_destroy(token);
    token = tree_get_token("r", 2);
    ck_assert_int_eq(tree_submit_get(2, token), UC_OK);
    uc_token_destroy(token);
    ck_assert_str_eq(tree.stores[0]->control.log, "setup facet_lookup touch prepare_prefetch pin ");
    ck_assert_str_eq(tree.stores[0]->data.log, "prefetch token_load ");
    for (size_t idx = 1; idx < 3; idx++) {
        ck_assert_str_eq(tree.stores[idx]->control.log, "setup ");
        ck_assert_str_eq(tree.stores[idx]->data.log, "");
    }
    tree_stop();
}
END_TEST

static uint8_t region[64];

/* G16 */
START_TEST(memory_is_registered_with_every_tier)
{
    uint32_t region_idx = 9;

    tree_start(three);
    for (uint32_t want = 0; want < 2; want++) {
        ck_assert_int_eq(uc_worker_register_memory(
                                 tree.worker, region, sizeof(region), UC_MEMORY_HOST, &region_idx),
                UC_OK);
        ck_assert_uint_eq(region_idx, want);
        for (size_t idx = 0; idx < 3; idx++) {
            ck_assert_uint_eq(tree.stores[idx]->data.region_idx, want);
        }
    }
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 0), UC_OK);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_uint_eq(tree.stores[idx]->calls[UC_FAKE_DEREGISTER_MEMORY], 1);
    }
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 0), UC_ERR_NOT_FOUND);
    tree_stop();
}
END_TEST

/* G1: whichever tier refuses. */
START_TEST(refused_registration_is_undone_in_all_tiers)
{
    uint32_t region_idx = 9;

    tree_start(three);
    tree.stores[_i]->answers[UC_FAKE_REGISTER_MEMORY] = UC_ERR_UNSUPPORTED;
    ck_assert_int_eq(uc_worker_register_memory(
                             tree.worker, region, sizeof(region), UC_MEMORY_CUDA, &region_idx),
            UC_ERR_UNSUPPORTED);
    ck_assert_uint_eq(region_idx, 9);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "told to fail"));
    for (int idx = 0; idx < 3; idx++) {
        ck_assert_uint_eq(tree.stores[idx]->calls[UC_FAKE_REGISTER_MEMORY], idx <= _i);
        ck_assert_uint_eq(tree.stores[idx]->calls[UC_FAKE_DEREGISTER_MEMORY], idx < _i);
    }
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 0), UC_ERR_NOT_FOUND);
    tree.stores[_i]->answers[UC_FAKE_REGISTER_MEMORY] = UC_OK;
    ck_assert_int_eq(uc_worker_register_memory(
                             tree.worker, region, sizeof(region), UC_MEMORY_CUDA, &region_idx),
            UC_OK);
    ck_assert_uint_eq(region_idx, 1); /* the first one is spent */
    tree_stop();
}
END_TEST

/* a tier that still uses the region keeps it registered everywhere. */
START_TEST(region_in_use_stays_with_all_tiers)
{
    uint32_t region_idx = 9;

    tree_start(three);
    ck_assert_int_eq(uc_worker_register_memory(
                             tree.worker, region, sizeof(region), UC_MEMORY_HOST, &region_idx),
            UC_OK);
    tree.stores[2]->answers[UC_FAKE_DEREGISTER_MEMORY] = UC_ERR_RETRY;
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 0), UC_ERR_RETRY);
    ck_assert_uint_eq(tree.stores[0]->calls[UC_FAKE_REGISTER_MEMORY], 2);
    ck_assert_uint_eq(tree.stores[1]->calls[UC_FAKE_REGISTER_MEMORY], 2);
    ck_assert_uint_eq(tree.stores[2]->calls[UC_FAKE_REGISTER_MEMORY], 1);
    tree.stores[2]->answers[UC_FAKE_DEREGISTER_MEMORY] = UC_OK;
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 0), UC_OK);
    tree_stop();
}
END_TEST

/* */
START_TEST(health_names_the_tier)
{
    char name[16];

    tree_start(three);
    ck_assert_int_eq(uc_scheduler_health(tree.scheduler), UC_OK);
    tree.stores[_i]->answers[UC_FAKE_HEALTH] = UC_ERR_UNHEALTHY;
    (void)snprintf(name, sizeof(name), "tier %d of 3", _i);
    ck_assert_int_eq(uc_scheduler_health(tree.scheduler), UC_ERR_UNHEALTHY);
    ck_assert_msg(strstr(uc_last_error(), name) != NULL, "%s", uc_last_error());
    ck_assert_int_eq(uc_worker_health(tree.worker), UC_ERR_UNHEALTHY);
    tree_stop();
}
END_TEST

/* */
START_TEST(description_lists_the_tiers)
{
    struct uc_dict *description = NULL;
    const struct uc_dict *tier = NULL;
    const char *name = NULL;
    size_t count = 0;
    bool flag = false;

    tree_start(three);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_scheduler_describe(tree.scheduler, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "name", &name), UC_OK);
    ck_assert_str_eq(name, "fake");
    ck_assert_int_eq(uc_dict_get_bool(description, "token_addressed", &flag), UC_OK);
    ck_assert(flag); /* the head's */
    ck_assert_int_eq(uc_dict_get_list_count(description, "tiers", &count), UC_OK);
    ck_assert_uint_eq(count, 3);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(uc_dict_get_dict_at(description, "tiers", idx, &tier), UC_OK);
        ck_assert_int_eq(uc_dict_get_bool(tier, "prefetchable", &flag), UC_OK);
        ck_assert_int_eq(flag, idx == 0);
    }
    uc_dict_destroy(description);
    tree_stop();
}
END_TEST

/* */
START_TEST(pipe_of_one_tier_is_that_store)
{
    struct uc_dict *description = NULL;
    struct uc_token *token;

    tree_start("{type: pipe, stores: [{type: store, store: fake, config: {tokened: true}}]}");
    ck_assert_int_eq(tree.stores[0]->tiers_below, 0);
    ck_assert_ptr_null(tree.stores[0]->lower);
    tree_register("r", -1);
    token = tree_get_token("r", 3);
    ck_assert_int_eq(tree_submit_get(1, token), UC_OK);
    uc_token_destroy(token);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_worker_describe(tree.worker, description), UC_OK);
    ck_assert(!uc_dict_has(description, "tiers"));
    uc_dict_destroy(description);
    tree_stop();
    ck_assert_str_eq(tree.trace, "+stores[0] -stores[0] ");
}
END_TEST

/* open windows are concluded in the head before anything goes. */
START_TEST(destruction_concludes_what_is_open)
{
    struct uc_token *token;

    tree_start(three);
    tree_register("r", -1);
    token = tree_get_token("r", 2);
    uc_token_destroy(token);
    token = tree_put_token("r", 2);
    uc_token_destroy(token);
    ck_assert_uint_eq(tree.stores[0]->pin_count, 1);
    ck_assert_uint_eq(tree.stores[0]->reservation_count, 1);
    tree.trace[0] = '\0';
    tree_stop();
    ck_assert_str_eq(tree.trace, "-stores[0] -stores[1] -stores[2] "); /* no '!': nothing held */
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipe");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, tree_reset, NULL);
    tcase_add_test(tcase, tiers_are_set_up_from_the_bottom);
    tcase_add_test(tcase, destruction_goes_from_head_to_bottom);
    tcase_add_loop_test(tcase, failed_assembly_takes_everything_down, 0,
            sizeof(failed_cases) / sizeof(failed_cases[0]));
    tcase_add_test(tcase, calls_go_to_the_head_alone);
    tcase_add_test(tcase, memory_is_registered_with_every_tier);
    tcase_add_loop_test(tcase, refused_registration_is_undone_in_all_tiers, 0, 3);
    tcase_add_test(tcase, region_in_use_stays_with_all_tiers);
    tcase_add_loop_test(tcase, health_names_the_tier, 0, 3);
    tcase_add_test(tcase, description_lists_the_tiers);
    tcase_add_test(tcase, pipe_of_one_tier_is_that_store);
    tcase_add_test(tcase, destruction_concludes_what_is_open);
    suite_add_tcase(suite, tcase);
    return tree_run(suite);
}
