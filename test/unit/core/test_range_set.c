/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>

#include <check.h>

#include "core/base/range_set.h"
#include "test/fake/fake_alloc.h"

static struct uc_range_set set;

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_range_set_fini(&set);
}

static void
setup(void)
{
    set = (struct uc_range_set){0};
}

/* Pieces of [0, 100) in some order; ranges left and whether all of it is covered. */
static const struct {
    uint64_t pieces[4][2];
    size_t range_count;
    bool covers;
} add_cases[] = {
        {{{0, 100}}, 1, true},
        {{{0, 50}, {50, 50}}, 1, true},
        {{{50, 50}, {0, 50}}, 1, true},
        {{{0, 40}, {60, 40}, {40, 20}}, 1, true},
        {{{0, 40}, {60, 40}, {30, 40}}, 1, true},
        {{{0, 40}, {60, 40}, {41, 19}}, 2, false}, /* byte 40 is missing */
        {{{1, 99}}, 1, false},
        {{{0, 99}}, 1, false},
        {{{10, 10}, {30, 10}, {50, 10}, {0, 100}}, 1, true}, /* swallows all */
        {{{10, 10}, {30, 10}, {50, 10}, {70, 10}}, 4, false},
        {{{10, 10}, {10, 10}, {12, 2}}, 1, false},
};

START_TEST(pieces_join_where_they_touch)
{
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_int_eq(
                uc_range_set_add(&set, add_cases[_i].pieces[idx][0], add_cases[_i].pieces[idx][1]),
                UC_OK);
    }
    ck_assert_uint_eq(set.count, add_cases[_i].range_count);
    ck_assert_int_eq(uc_range_set_covers(&set, 100), add_cases[_i].covers);
}
END_TEST

START_TEST(nothing_covers_nothing)
{
    ck_assert(uc_range_set_covers(&set, 0));
    ck_assert(!uc_range_set_covers(&set, 1));
}
END_TEST

START_TEST(range_that_wraps_is_refused)
{
    ck_assert_int_eq(uc_range_set_add(&set, UINT64_MAX - 1, 1), UC_OK);
    ck_assert_int_eq(uc_range_set_add(&set, UINT64_MAX, 2), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(set.count, 1);
}
END_TEST

START_TEST(order_of_many_pieces_does_not_matter)
{
    for (uint64_t idx = 0; idx < 101; idx++) {
        uint64_t piece = idx * 37 % 101; /* every number once, since 101 is prime */

        ck_assert(!uc_range_set_covers(&set, 101 * 8));
        ck_assert_int_eq(uc_range_set_add(&set, piece * 8, 8), UC_OK);
    }
    ck_assert(uc_range_set_covers(&set, 101 * 8));
    ck_assert_uint_eq(set.count, 1);
}
END_TEST

START_TEST(failed_allocation_changes_nothing)
{
    enum uc_status status;

    uc_fake_alloc_fail_after(0);
    status = uc_range_set_add(&set, 0, 1);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_uint_eq(set.count, 0);
}
END_TEST

static Suite *
range_set_suite(void)
{
    Suite *suite = suite_create("range_set");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(
            tcase, pieces_join_where_they_touch, 0, sizeof(add_cases) / sizeof(add_cases[0]));
    tcase_add_test(tcase, nothing_covers_nothing);
    tcase_add_test(tcase, range_that_wraps_is_refused);
    tcase_add_test(tcase, order_of_many_pieces_does_not_matter);
    tcase_add_test(tcase, failed_allocation_changes_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(range_set_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
