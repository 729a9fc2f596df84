/* SPDX-License-Identifier: Apache-2.0 */

/* ucm-bench index: its options, that what it measures is what it says, and what it reports. */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tools/bench/index.h"
#include "tools/bench/index_cache.h"
#include "tools/bench/index_yardstick.h"

START_TEST(options_have_defaults)
{
    struct uc_index_options options;

    ck_assert_int_eq(uc_index_options_parse(0, NULL, &options), UC_OK);
    ck_assert_str_eq(options.policy, "lru");
    ck_assert_uint_eq(options.size_count, 2);
    ck_assert_uint_eq(options.blocks[0], 1000000);
    ck_assert_uint_eq(options.blocks[1], 16000000);
    ck_assert(!options.json && !options.help);
}
END_TEST

START_TEST(options_are_read_in_both_forms)
{
    char *argv[] = {"--policy=clock", "--blocks", "64,1000,2000", "--rounds", "2", "--round-ms=1",
            "--json"};
    struct uc_index_options options;

    ck_assert_int_eq(uc_index_options_parse(7, argv, &options), UC_OK);
    ck_assert_str_eq(options.policy, "clock");
    ck_assert_uint_eq(options.size_count, 3);
    ck_assert_uint_eq(options.blocks[2], 2000);
    ck_assert_uint_eq(options.rounds, 2);
    ck_assert_uint_eq(options.round_ms, 1);
    ck_assert(options.json);
}
END_TEST

static const struct {
    char *word;
    const char *in_text;
} bad_options[] = {
        {"--blocks=", "--blocks"},
        {"--blocks=63", "64 to"},
        {"--blocks=100,", "--blocks"},
        {"--blocks=100;200", "commas"},
        {"--blocks=-100", "--blocks"},
        {"--blocks=99999999999999999999", "--blocks"},
        {"--blocks=64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64", "more than 16"},
        {"--rounds=0", "--rounds"},
        {"--rounds=2x", "--rounds"},
        {"--round-ms=60001", "--round-ms"},
        {"--policies=lru", "--policies=lru"},
        {"blocks", "blocks"},
};

START_TEST(bad_options_are_refused_by_name)
{
    char *argv[] = {bad_options[_i].word};
    struct uc_index_options options;

    ck_assert_int_eq(uc_index_options_parse(1, argv, &options), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), bad_options[_i].in_text) != NULL, "%s: %s",
            bad_options[_i].word, uc_last_error());
}
END_TEST

static const struct {
    uc_index_measure_fn measure;
    size_t batch;
} measurements[] = {
        {uc_index_lookup_hit, 1},
        {uc_index_lookup_hit, 256},
        {uc_index_lookup_miss, 32},
        {uc_index_alloc_commit, 64},
        {uc_index_alloc_commit_evict, 64},
        {uc_index_pin_unpin, 64},
};

/* Each checks its own answers; here, in any order and again and again, also where batches do not fit evenly. */
START_TEST(measurements_leave_a_full_cache)
{
    const size_t kinds = sizeof(measurements) / sizeof(measurements[0]);
    struct uc_index_cache *cache;

    ck_assert_int_eq(uc_index_cache_create("lru", 1000, &cache), UC_OK);
    for (size_t round = 0; round < 5 * kinds; round++) {
        uint64_t count = 0;
        uint64_t ns = 0;
        size_t kind = round * 5 % kinds;

        ck_assert_int_eq(
                measurements[kind].measure(cache, measurements[kind].batch, &ns, &count), UC_OK);
        ck_assert_uint_eq(count, 1000);
    }
    uc_index_cache_destroy(cache);
}
END_TEST

START_TEST(unknown_policy_is_refused)
{
    struct uc_index_cache *cache;

    ck_assert_int_eq(uc_index_cache_create("nosuch", 1000, &cache), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(yardstick_reads_any_footprint)
{
    struct uc_yardstick *yardstick;

    ck_assert_int_eq(uc_yardstick_create((size_t)_i * 100, &yardstick), UC_OK);
    ck_assert_uint_gt(uc_yardstick_independent_ns(yardstick, 1000), 0);
    ck_assert_uint_gt(uc_yardstick_dependent_ns(yardstick, 1000), 0);
    uc_yardstick_destroy(yardstick);
}
END_TEST

static json_t *
report_of(const struct uc_index_options *options)
{
    static struct uc_index_report report;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    json_t *root;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(uc_index_run(options, &report), UC_OK);
    uc_index_report_print(options, &report, file);
    ck_assert_int_eq(fclose(file), 0);
    root = json_loads(text, 0, NULL);
    free(text);
    ck_assert_ptr_nonnull(root);
    return root;
}

/* The keys that scripts rely on. */
START_TEST(json_holds_the_first_size_and_a_list_of_all_runs)
{
    static const char *const keys[] = {"lookups_per_s", "alloc_commit_per_s", "pin_unpin_per_s",
            "bytes_per_block", "random_reads_per_s"};
    struct uc_index_options options = {
            .policy = "lru",
            .blocks = {2000, 3000},
            .size_count = 2,
            .rounds = 2,
            .round_ms = 1,
            .json = true,
    };
    json_t *root = report_of(&options);
    json_t *runs = json_object_get(root, "runs");

    for (size_t idx = 0; idx < sizeof(keys) / sizeof(keys[0]); idx++) {
        ck_assert_msg(json_real_value(json_object_get(root, keys[idx])) > 0, "%s", keys[idx]);
    }
    ck_assert_int_eq(json_integer_value(json_object_get(root, "blocks")), 2000);
    ck_assert_uint_eq(json_array_size(runs), 2 * 11);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(runs, 11), "blocks")), 3000);
    json_decref(root);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("index");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 30);
    tcase_add_test(tcase, options_have_defaults);
    tcase_add_test(tcase, options_are_read_in_both_forms);
    tcase_add_loop_test(tcase, bad_options_are_refused_by_name, 0,
            sizeof(bad_options) / sizeof(bad_options[0]));
    tcase_add_test(tcase, measurements_leave_a_full_cache);
    tcase_add_test(tcase, unknown_policy_is_refused);
    tcase_add_loop_test(tcase, yardstick_reads_any_footprint, 0, 3);
    tcase_add_test(tcase, json_holds_the_first_size_and_a_list_of_all_runs);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
