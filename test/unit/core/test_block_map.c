/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/base/block_map.h"

enum {
    CAPACITY = 1000
};

/* Ids apart by more than their size, as in the entries of a cache. */
static struct {
    struct uc_block_id id;
    uint64_t other;
} entries[CAPACITY];
static struct uc_block_map *map;

static void
setup(void)
{
    memset(entries, 0, sizeof(entries));
    ck_assert_int_eq(uc_block_map_create(CAPACITY, entries, sizeof(entries[0]), &map), UC_OK);
}

static void
teardown(void)
{
    uc_block_map_destroy(map);
}

static struct uc_block_id
numbered(uint64_t number)
{
    struct uc_block_id id = {{0}};

    memcpy(id.bytes, &number, sizeof(number));
    return id;
}

static void
add(uint32_t slot, uint64_t number)
{
    entries[slot].id = numbered(number);
    uc_block_map_add(map, slot);
}

static uint32_t
find(uint64_t number)
{
    struct uc_block_id id = numbered(number);

    return uc_block_map_find(map, &id);
}

START_TEST(find_knows_what_was_added_and_nothing_else)
{
    add(3, 7);
    ck_assert_uint_eq(find(7), 3);
    ck_assert_uint_eq(find(8), UC_BLOCK_MAP_NONE);
    ck_assert_uint_eq(uc_block_map_count(map), 1);
}
END_TEST

START_TEST(ids_that_differ_in_one_bit_are_different)
{
    add(0, 0);
    for (unsigned bit = 0; bit < 128; bit++) {
        struct uc_block_id id = numbered(0);

        id.bytes[bit / 8] = (uint8_t)(1u << bit % 8);
        ck_assert_uint_eq(uc_block_map_find(map, &id), UC_BLOCK_MAP_NONE);
    }
}
END_TEST

/* Runs of neighbours are removed from the middle, so that shifting back is exercised around the ring. */
START_TEST(a_full_map_survives_removal_in_any_order)
{
    for (uint32_t slot = 0; slot < CAPACITY; slot++) {
        add(slot, slot);
    }
    for (uint32_t round = 0; round < CAPACITY; round++) {
        uint32_t slot = round * 617 % CAPACITY; /* 617 and 1000 share no factor */

        uc_block_map_remove(map, slot);
        ck_assert_uint_eq(find(slot), UC_BLOCK_MAP_NONE);
        for (uint32_t later = round + 1; later < CAPACITY; later += 97) {
            ck_assert_uint_eq(find(later * 617 % CAPACITY), later * 617 % CAPACITY);
        }
    }
    ck_assert_uint_eq(uc_block_map_count(map), 0);
}
END_TEST

START_TEST(a_slot_may_be_used_again_under_another_id)
{
    for (uint64_t round = 0; round < 10000; round++) {
        uint32_t slot = (uint32_t)(round % CAPACITY);

        if (round >= CAPACITY) {
            uc_block_map_remove(map, slot);
            ck_assert_uint_eq(find(round - CAPACITY), UC_BLOCK_MAP_NONE);
        }
        add(slot, round);
    }
    ck_assert_uint_eq(uc_block_map_count(map), CAPACITY);
    ck_assert_uint_eq(find(9999), 999);
}
END_TEST

START_TEST(find_many_answers_like_find)
{
    struct uc_block_id ids[300];
    uint32_t slots[300];

    for (uint32_t slot = 0; slot < 100; slot++) {
        add(slot, 3 * slot);
    }
    for (uint64_t idx = 0; idx < 300; idx++) {
        ids[idx] = numbered(idx);
    }
    uc_block_map_find_many(map, ids, 300, slots);
    for (uint64_t idx = 0; idx < 300; idx++) {
        ck_assert_uint_eq(slots[idx], idx % 3 == 0 ? idx / 3 : UC_BLOCK_MAP_NONE);
    }
}
END_TEST

/* A peer that knows one map's hash learns nothing about another's. */
START_TEST(two_maps_hash_differently)
{
    struct uc_block_map *other;
    size_t equal = 0;

    ck_assert_int_eq(uc_block_map_create(CAPACITY, entries, sizeof(entries[0]), &other), UC_OK);
    for (uint64_t number = 0; number < 100; number++) {
        struct uc_block_id id = numbered(number);

        equal += uc_block_map_hash(map, &id) == uc_block_map_hash(other, &id) ? 1 : 0;
    }
    uc_block_map_destroy(other);
    ck_assert_uint_lt(equal, 3);
}
END_TEST

START_TEST(one_slot_is_enough)
{
    struct uc_block_map *small;
    struct uc_block_id id = numbered(5);

    ck_assert_int_eq(uc_block_map_create(1, &id, sizeof(id), &small), UC_OK);
    uc_block_map_add(small, 0);
    ck_assert_uint_eq(uc_block_map_find(small, &id), 0);
    uc_block_map_remove(small, 0);
    ck_assert_uint_eq(uc_block_map_find(small, &id), UC_BLOCK_MAP_NONE);
    uc_block_map_destroy(small);
}
END_TEST

START_TEST(create_rejects_capacities_it_cannot_serve)
{
    struct uc_block_map *none = NULL;

    ck_assert_int_eq(uc_block_map_create(0, entries, 16, &none), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_block_map_create(UC_BLOCK_MAP_CAPACITY_MAX + 1, entries, 16, &none),
            UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(none);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("block_map");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, find_knows_what_was_added_and_nothing_else);
    tcase_add_test(tcase, ids_that_differ_in_one_bit_are_different);
    tcase_add_test(tcase, a_full_map_survives_removal_in_any_order);
    tcase_add_test(tcase, a_slot_may_be_used_again_under_another_id);
    tcase_add_test(tcase, find_many_answers_like_find);
    tcase_add_test(tcase, two_maps_hash_differently);
    tcase_add_test(tcase, one_slot_is_enough);
    tcase_add_test(tcase, create_rejects_capacities_it_cannot_serve);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
