/* SPDX-License-Identifier: Apache-2.0 */

/* Lookups, touch, health, V-8, V-9. */

#include <stdlib.h>
#include <string.h>

#include "test/conformance/store/suite.h"

/* Lookup of a list whose answer is concrete. */
static void
look_up(const struct uc_block_id *ids, size_t count, uint8_t *hits, int64_t *prefix,
        int64_t *reverse)
{
    bool signal = true;

    ck_assert_int_eq(
            uc_scheduler_lookup(suite.scheduler, suite.request_id, ids, count, hits, &signal),
            UC_OK);
    ck_assert(!signal);
    ck_assert_int_eq(uc_scheduler_lookup_on_prefix(
                             suite.scheduler, suite.request_id, ids, count, prefix, &signal),
            UC_OK);
    ck_assert(!signal);
    ck_assert_int_eq(uc_scheduler_lookup_on_reverse(
                             suite.scheduler, suite.request_id, ids, count, reverse, &signal),
            UC_OK);
    ck_assert(!signal);
}

/* Puts those of ids[0..count) whose flag is set. */
static void
put_flagged(const struct uc_block_id *ids, const uint8_t *flags, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        if (flags[idx] != 0) {
            suite_put(&ids[idx], 1);
        }
    }
}

static const struct {
    size_t count;
    uint8_t presence[5];
    int64_t prefix;
    int64_t reverse;
} presence_cases[] = {
        {5, {1, 1, 0, 1, 0}, 1, 3}, /* V-8 */
        {3, {0, 1, 1}, -1, 2},      /* V-9 */
        {3, {0, 0, 0}, -1, -1},     /* V-9 */
        {0, {0}, -1, -1},           /* V-9: no ids */
        {4, {1, 1, 1, 1}, 3, 3},    /* all */
        {1, {1}, 0, 0},             /* an index, never a count */
};

/* */
START_TEST(lookups_answer_by_position)
{
    uint8_t hits[5] = {9, 9, 9, 9, 9};
    int64_t prefix = 9;
    int64_t reverse = 9;

    put_flagged(suite.ids, presence_cases[_i].presence, presence_cases[_i].count);
    look_up(suite.ids, presence_cases[_i].count, hits, &prefix, &reverse);
    for (size_t idx = 0; idx < presence_cases[_i].count; idx++) {
        ck_assert_int_eq(hits[idx] != 0, presence_cases[_i].presence[idx] != 0);
    }
    ck_assert_int_eq(prefix, presence_cases[_i].prefix);
    ck_assert_int_eq(reverse, presence_cases[_i].reverse);
}
END_TEST

/* */
START_TEST(repeated_ids_are_answered_per_position)
{
    struct uc_block_id ids[5];
    uint8_t hits[5];
    int64_t prefix;
    int64_t reverse;

    suite_put(suite.ids, 1);
    for (size_t idx = 0; idx < 5; idx++) {
        ids[idx] = suite.ids[idx == 3 ? 1 : 0]; /* present, but for the fourth */
    }
    look_up(ids, 5, hits, &prefix, &reverse);
    for (size_t idx = 0; idx < 5; idx++) {
        ck_assert_int_eq(hits[idx] != 0, idx != 3);
    }
    ck_assert_int_eq(prefix, 2);
    ck_assert_int_eq(reverse, 4);
}
END_TEST

START_TEST(long_lists_are_looked_up_whole)
{
    enum {
        COUNT = 3000
    };
    struct uc_block_id *ids = calloc(COUNT, sizeof(ids[0]));
    uint8_t *hits = calloc(COUNT, 1);
    int64_t prefix = 9;
    int64_t reverse = 9;

    ck_assert_ptr_nonnull(ids);
    ck_assert_ptr_nonnull(hits);
    suite_fresh_ids(ids, COUNT);
    suite_put(&ids[0], 1);
    suite_put(&ids[COUNT - 1], 1);
    look_up(ids, COUNT, hits, &prefix, &reverse);
    for (size_t idx = 0; idx < COUNT; idx++) {
        ck_assert_int_eq(hits[idx] != 0, idx == 0 || idx == COUNT - 1);
    }
    ck_assert_int_eq(prefix, 0);
    ck_assert_int_eq(reverse, COUNT - 1);
    free(hits);
    free(ids);
}
END_TEST

/* a hint, for known and unknown blocks alike. */
START_TEST(touch_always_answers_ok_and_revives_nothing)
{
    suite_put(suite.ids, 2);
    ck_assert_int_eq(uc_scheduler_touch(suite.scheduler, suite.request_id, suite.ids, 4), UC_OK);
    ck_assert_int_eq(uc_scheduler_touch(suite.scheduler, suite.request_id, NULL, 0), UC_OK);
    ck_assert(suite_is_present(&suite.ids[1]));
    ck_assert(!suite_is_present(&suite.ids[2]));
    suite_get_and_compare(suite.ids, 2);
}
END_TEST

/* */
START_TEST(store_is_healthy_and_describes_itself)
{
    struct uc_dict *description = NULL;
    const char *text = NULL;
    int64_t number = 0;

    ck_assert_msg(uc_scheduler_health(suite.scheduler) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(uc_worker_health(suite.worker) == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_worker_describe(suite.worker, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "name", &text), UC_OK);
    ck_assert_str_ne(text, "");
    ck_assert_int_eq(uc_dict_get_string(description, "version", &text), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(description, "abi_version", &number), UC_OK);
    ck_assert_int_eq(number, 1);
    ck_assert_int_eq(uc_dict_get_string(description, "node_path", &text), UC_OK);
    ck_assert_str_eq(text, suite_is_pipe() ? "stores[0]" : "root"); /* the head's */
    uc_dict_destroy(description);
}
END_TEST

TCase *
suite_lookup_cases(void)
{
    TCase *tcase = tcase_create("lookup");

    tcase_add_loop_test(tcase, lookups_answer_by_position, 0,
            sizeof(presence_cases) / sizeof(presence_cases[0]));
    tcase_add_test(tcase, repeated_ids_are_answered_per_position);
    tcase_add_test(tcase, long_lists_are_looked_up_whole);
    tcase_add_test(tcase, touch_always_answers_ok_and_revives_nothing);
    tcase_add_test(tcase, store_is_healthy_and_describes_itself);
    return tcase;
}
