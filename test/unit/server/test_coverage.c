/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>

#include <check.h>

#include "server/coverage.h"

static struct uc_coverage coverage;

static void
setup(void)
{
    coverage = (struct uc_coverage){0};
}

static void
teardown(void)
{
    uc_coverage_fini(&coverage);
}

static void
add(uint64_t begin, uint64_t end)
{
    ck_assert_int_eq(uc_coverage_add(&coverage, begin, end), UC_OK);
}

START_TEST(nothing_written_is_never_complete)
{
    ck_assert(!uc_coverage_is_complete(&coverage, 0));
    ck_assert(!uc_coverage_is_complete(&coverage, 1));
    add(5, 5); /* an empty range changes nothing */
    ck_assert_uint_eq(coverage.count, 0);
}
END_TEST

START_TEST(one_piece_covers_exactly_what_it_says)
{
    add(0, 100);
    ck_assert(uc_coverage_is_complete(&coverage, 100));
    ck_assert(uc_coverage_is_complete(&coverage, 99));
    ck_assert(!uc_coverage_is_complete(&coverage, 101));
    ck_assert_ptr_null(coverage.intervals); /* the usual case costs no memory */
}
END_TEST

START_TEST(gap_is_a_hole_until_it_is_filled)
{
    add(0, 10);
    add(20, 30);
    ck_assert_uint_eq(coverage.count, 2);
    ck_assert(!uc_coverage_is_complete(&coverage, 30));
    add(10, 20); /* touches both */
    ck_assert_uint_eq(coverage.count, 1);
    ck_assert(uc_coverage_is_complete(&coverage, 30));
}
END_TEST

START_TEST(pieces_in_reverse_order_merge)
{
    for (uint64_t piece = 64; piece > 0; piece--) {
        add((piece - 1) * 8, piece * 8);
    }
    ck_assert_uint_eq(coverage.count, 1);
    ck_assert(uc_coverage_is_complete(&coverage, 512));
}
END_TEST

START_TEST(even_pieces_then_odd_pieces_merge)
{
    for (uint64_t piece = 0; piece < 64; piece += 2) {
        add(piece * 8, piece * 8 + 8);
    }
    ck_assert_uint_eq(coverage.count, 32);
    for (uint64_t piece = 1; piece < 64; piece += 2) {
        add(piece * 8, piece * 8 + 8);
    }
    ck_assert_uint_eq(coverage.count, 1);
    ck_assert(uc_coverage_is_complete(&coverage, 512));
}
END_TEST

START_TEST(overlap_swallows_what_is_inside)
{
    add(10, 20);
    add(30, 40);
    add(50, 60);
    add(15, 55);
    ck_assert_uint_eq(coverage.count, 1);
    add(0, 10);
    ck_assert(uc_coverage_is_complete(&coverage, 60));
}
END_TEST

START_TEST(too_many_pieces_are_refused_and_change_nothing)
{
    for (uint64_t piece = 0; piece < UC_COVERAGE_INTERVALS_MAX; piece++) {
        add(piece * 2, piece * 2 + 1);
    }
    ck_assert_int_eq(uc_coverage_add(&coverage, 1 << 20, (1 << 20) + 1), UC_ERR_NO_SPACE);
    ck_assert_uint_eq(coverage.count, UC_COVERAGE_INTERVALS_MAX);
    add(1, 2); /* one that merges still fits */
    ck_assert_uint_eq(coverage.count, UC_COVERAGE_INTERVALS_MAX - 1);
}
END_TEST

START_TEST(random_pieces_agree_with_a_byte_map)
{
    uint8_t map[256] = {0};
    unsigned seed = 7;

    for (int step = 0; step < 400; step++) {
        uint64_t begin = (uint64_t)rand_r(&seed) % 256;
        uint64_t end = begin + (uint64_t)rand_r(&seed) % 12;
        uint64_t prefix = 0;

        end = end > 256 ? 256 : end;
        add(begin, end);
        for (uint64_t idx = begin; idx < end; idx++) {
            map[idx] = 1;
        }
        while (prefix < 256 && map[prefix] != 0) {
            prefix++;
        }
        ck_assert_int_eq(uc_coverage_is_complete(&coverage, prefix), prefix > 0);
        ck_assert(!uc_coverage_is_complete(&coverage, prefix + 1));
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("server/coverage");
    TCase *tcase = tcase_create("intervals");
    SRunner *runner;
    int failed_count;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, nothing_written_is_never_complete);
    tcase_add_test(tcase, one_piece_covers_exactly_what_it_says);
    tcase_add_test(tcase, gap_is_a_hole_until_it_is_filled);
    tcase_add_test(tcase, pieces_in_reverse_order_merge);
    tcase_add_test(tcase, even_pieces_then_odd_pieces_merge);
    tcase_add_test(tcase, overlap_swallows_what_is_inside);
    tcase_add_test(tcase, too_many_pieces_are_refused_and_change_nothing);
    tcase_add_test(tcase, random_pieces_agree_with_a_byte_map);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
