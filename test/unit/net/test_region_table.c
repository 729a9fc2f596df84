/* SPDX-License-Identifier: Apache-2.0 */

/* Ranges and operations that a peer or a caller got wrong. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/region_table.h"
#include "test/fake/fake_alloc.h"

static struct uc_region_table *table;
static uint8_t memory[4096];

static void
setup(void)
{
    ck_assert_int_eq(uc_region_table_create(&table), UC_OK);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_region_table_destroy(table);
}

static enum uc_status
add(uint32_t region_idx, uint64_t length_bytes)
{
    struct uc_region region = {
            .address = memory, .length_bytes = length_bytes, .access = UC_FABRIC_READ_ONLY};

    return uc_region_table_add(table, region_idx, &region);
}

START_TEST(find_returns_what_was_added)
{
    static const uint32_t indices[] = {0, 1, 255, 256, 300, UC_REGION_LIMIT - 1};

    for (size_t idx = 0; idx < sizeof(indices) / sizeof(indices[0]); idx++) {
        struct uc_region region;

        ck_assert_int_eq(uc_region_table_find(table, indices[idx], &region), UC_ERR_NOT_FOUND);
        ck_assert_int_eq(add(indices[idx], idx + 1), UC_OK);
        ck_assert_int_eq(uc_region_table_find(table, indices[idx], &region), UC_OK);
        ck_assert_ptr_eq(region.address, memory);
        ck_assert_uint_eq(region.length_bytes, idx + 1);
        ck_assert_int_eq(region.access, UC_FABRIC_READ_ONLY);
    }
}
END_TEST

START_TEST(find_survives_any_index)
{
    struct uc_region region = {.length_bytes = 42};

    ck_assert_int_eq(uc_region_table_find(table, UC_REGION_LIMIT, &region), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_region_table_find(table, UINT32_MAX, &region), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(region.length_bytes, 42); /* untouched on failure */
}
END_TEST

START_TEST(index_is_free_again_after_remove)
{
    struct uc_region region;

    ck_assert_int_eq(add(3, 10), UC_OK);
    ck_assert_int_eq(add(3, 10), UC_ERR_DUPLICATE_KEY);
    uc_region_table_remove(table, 3);
    uc_region_table_remove(table, 3);
    uc_region_table_remove(table, 4);
    uc_region_table_remove(table, UINT32_MAX);
    ck_assert_int_eq(uc_region_table_find(table, 3, &region), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(add(3, 20), UC_OK);
    ck_assert_int_eq(uc_region_table_find(table, 3, &region), UC_OK);
    ck_assert_uint_eq(region.length_bytes, 20);
}
END_TEST

START_TEST(add_refuses_what_is_no_memory_or_no_index)
{
    struct uc_region nowhere = {.length_bytes = 1};

    ck_assert_int_eq(uc_region_table_add(table, 0, &nowhere), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(add(0, 0), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(add(0, UINT64_MAX), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(add(UC_REGION_LIMIT, 1), UC_ERR_NO_SPACE);
    ck_assert_int_eq(add(UINT32_MAX, 1), UC_ERR_NO_SPACE);
}
END_TEST

START_TEST(failed_allocations_leave_nothing)
{
    struct uc_region_table *none = NULL;
    enum uc_status created;
    enum uc_status added;

    uc_fake_alloc_fail_after(0);
    created = uc_region_table_create(&none);
    added = add(0, 1);
    uc_fake_alloc_reset();
    ck_assert_int_eq(created, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(added, UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_eq(add(0, 1), UC_OK);
}
END_TEST

static const struct {
    uint64_t region_bytes;
    uint64_t offset;
    uint64_t length;
    bool fits;
} ranges[] = {
        {100, 0, 100, true},
        {100, 100, 0, true}, /* empty at the end */
        {100, 99, 1, true},
        {100, 99, 2, false},
        {100, 100, 1, false},
        {100, 101, 0, false},
        {100, 1, UINT64_MAX, false}, /* wraps to 0 */
        {100, UINT64_MAX, 2, false}, /* wraps to 1 */
        {UINT64_MAX, UINT64_MAX, 0, true},
        {UINT64_MAX, 1, UINT64_MAX, false},
};

START_TEST(range_is_compared_by_subtraction)
{
    ck_assert_int_eq(
            uc_region_range_fits(ranges[_i].region_bytes, ranges[_i].offset, ranges[_i].length),
            ranges[_i].fits);
}
END_TEST

START_TEST(piece_must_lie_inside_its_memory)
{
    struct uc_fabric_piece piece = {.address = memory + 10, .length_bytes = 10};

    ck_assert(uc_region_covers_piece(memory, sizeof(memory), &piece));
    ck_assert(uc_region_covers_piece(memory + 10, 10, &piece));
    ck_assert(!uc_region_covers_piece(memory + 11, 10, &piece));
    ck_assert(!uc_region_covers_piece(memory + 10, 9, &piece));
    piece.length_bytes = UINT64_MAX;
    ck_assert(!uc_region_covers_piece(memory, sizeof(memory), &piece));
}
END_TEST

static const struct {
    enum uc_fabric_opcode opcode;
    uint32_t region_idx;
    uint64_t offset;
    uint64_t lengths[2];
    size_t piece_count;
    enum uc_status want;
    uint64_t sum;
} op_cases[] = {
        {UC_FABRIC_READ, 0, 0, {60, 40}, 2, UC_OK, 100},
        {UC_FABRIC_WRITE, 0, 99, {1, 0}, 1, UC_OK, 1},
        {UC_FABRIC_READ, 0, 1, {60, 40}, 2, UC_ERR_INVALID_PARAM, 0},
        {UC_FABRIC_READ, 1, 0, {1, 0}, 1, UC_ERR_INVALID_PARAM, 0},          /* no such region */
        {UC_FABRIC_READ, 0, 0, {0, 0}, 0, UC_ERR_INVALID_PARAM, 0},          /* no pieces */
        {UC_FABRIC_READ, 0, 0, {1, 0}, 2, UC_ERR_INVALID_PARAM, 0},          /* an empty piece */
        {UC_FABRIC_READ, 0, 0, {1, 1}, 3, UC_ERR_INVALID_PARAM, 0},          /* too many pieces */
        {UC_FABRIC_READ, 0, 0, {UINT64_MAX, 1}, 2, UC_ERR_INVALID_PARAM, 0}, /* sum wraps */
        {UC_FABRIC_READ, 0, 0, {1000, 1}, 2, UC_ERR_INVALID_PARAM, 0},       /* too long */
        {UC_FABRIC_FLUSH, 0, 92, {0, 0}, 0, UC_OK, 8},
        {UC_FABRIC_FLUSH, 0, 93, {0, 0}, 0, UC_ERR_INVALID_PARAM, 0},
        {UC_FABRIC_FLUSH, 0, 0, {1, 0}, 1, UC_ERR_INVALID_PARAM, 0}, /* has pieces */
        {(enum uc_fabric_opcode)7, 0, 0, {1, 0}, 1, UC_ERR_INVALID_PARAM, 0},
};

START_TEST(operations_are_checked_before_they_are_posted)
{
    const struct uc_fabric_region_key key = {.length_bytes = 100};
    const struct uc_fabric_caps caps = {.max_piece_count = 2, .max_op_bytes = 1000};
    struct uc_fabric_piece pieces[3] = {
            {.address = memory, .length_bytes = op_cases[_i].lengths[0]},
            {.address = memory, .length_bytes = op_cases[_i].lengths[1]},
            {.address = memory, .length_bytes = 1},
    };
    struct uc_fabric_op op = {.opcode = op_cases[_i].opcode,
            .region_idx = op_cases[_i].region_idx,
            .offset_bytes = op_cases[_i].offset,
            .pieces = pieces,
            .piece_count = op_cases[_i].piece_count};
    uint64_t sum = 0;

    ck_assert_int_eq(uc_fabric_op_check(&op, &key, 1, &caps, &sum), op_cases[_i].want);
    ck_assert_uint_eq(sum, op_cases[_i].sum);
}
END_TEST

/* */
START_TEST(piece_must_lie_inside_a_region_of_its_domain)
{
    static char domains[2]; /* only compared */
    struct uc_fabric_domain *domain = (struct uc_fabric_domain *)&domains[0];
    struct uc_fabric_domain *other = (struct uc_fabric_domain *)&domains[1];
    struct uc_region_span span = {.domain = domain, .address = memory, .length_bytes = 100};
    struct uc_fabric_piece pieces[2] = {
            {.address = memory + 100, .length_bytes = 1}, /* names none */
            {.address = memory + 90, .length_bytes = 10},
    };
    struct uc_fabric_op op = {.opcode = UC_FABRIC_READ, .pieces = pieces, .piece_count = 2};

    pieces[1].region = (struct uc_fabric_region *)&span;
    ck_assert_int_eq(uc_fabric_pieces_check(&op, domain), UC_OK);
    ck_assert_int_eq(uc_fabric_pieces_check(&op, other), UC_ERR_INVALID_PARAM);
    pieces[1].length_bytes = 11;
    ck_assert_int_eq(uc_fabric_pieces_check(&op, domain), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "piece 1 of 2"));
}
END_TEST

static Suite *
region_table_suite(void)
{
    Suite *suite = suite_create("region_table");
    TCase *filled = tcase_create("table");
    TCase *pure = tcase_create("checks");

    tcase_add_checked_fixture(filled, setup, teardown);
    tcase_add_test(filled, find_returns_what_was_added);
    tcase_add_test(filled, find_survives_any_index);
    tcase_add_test(filled, index_is_free_again_after_remove);
    tcase_add_test(filled, add_refuses_what_is_no_memory_or_no_index);
    tcase_add_test(filled, failed_allocations_leave_nothing);
    suite_add_tcase(suite, filled);

    tcase_add_loop_test(
            pure, range_is_compared_by_subtraction, 0, sizeof(ranges) / sizeof(ranges[0]));
    tcase_add_test(pure, piece_must_lie_inside_its_memory);
    tcase_add_test(pure, piece_must_lie_inside_a_region_of_its_domain);
    tcase_add_loop_test(pure, operations_are_checked_before_they_are_posted, 0,
            sizeof(op_cases) / sizeof(op_cases[0]));
    suite_add_tcase(suite, pure);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(region_table_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
