/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/cache/ghost.h"
#include "test/fake/fake_alloc.h"

enum {
    IDS = 2000,
    SLACK = IDS / 256 + 1 /* one epoch is forgotten at once */
};

static struct uc_ghost *ghost;

static struct uc_block_id
id_of(uint64_t number)
{
    struct uc_block_id id;
    uint64_t words[2] = {number * 0x9e3779b97f4a7c15ull, number};

    memcpy(id.bytes, words, sizeof(words));
    return id;
}

static void
add(uint64_t number, unsigned seen)
{
    struct uc_block_id id = id_of(number);

    uc_ghost_add(ghost, &id, seen);
}

static unsigned
take(uint64_t number)
{
    struct uc_block_id id = id_of(number);

    return uc_ghost_take(ghost, &id);
}

static void
setup(void)
{
    ck_assert_int_eq(uc_ghost_create(IDS, &ghost), UC_OK);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_ghost_destroy(ghost);
    ghost = NULL;
}

START_TEST(block_is_forgotten_when_it_is_taken)
{
    ck_assert_uint_eq(take(1), 0);
    add(1, 1);
    ck_assert_uint_eq(take(1), 1);
    ck_assert_uint_eq(take(1), 0);
}
END_TEST

START_TEST(times_seen_are_the_latest_and_saturate)
{
    add(1, 1);
    add(1, 2);
    ck_assert_uint_eq(take(1), 2);
    add(1, 77);
    ck_assert_uint_eq(take(1), UC_GHOST_SEEN_MAX);
    ck_assert_uint_eq(take(1), 0);
}
END_TEST

/* All of the latest, none of the others: whole chains are known or not. */
START_TEST(latest_ids_are_remembered_and_no_others)
{
    const uint64_t total = 20 * IDS;
    size_t lost = 0;

    for (uint64_t number = 0; number < total; number++) {
        add(number, 1);
    }
    for (uint64_t number = 0; number < total - IDS; number++) {
        ck_assert_uint_eq(take(number), 0);
    }
    for (uint64_t number = total - IDS + SLACK; number < total; number++) {
        lost += take(number) == 0 ? 1 : 0;
    }
    ck_assert_uint_le(lost, IDS / 100); /* sets that overflow */
}
END_TEST

/* What was taken makes room, so that as many stay remembered as the ghost was made for. */
START_TEST(taken_ids_do_not_count)
{
    size_t lost = 0;

    for (uint64_t number = 0; number < IDS; number++) {
        add(number, 1);
    }
    for (uint64_t number = 1; number < IDS; number += 2) {
        (void)take(number);
    }
    for (uint64_t number = IDS; number < IDS + IDS / 2 - SLACK; number++) {
        add(number, 1);
    }
    for (uint64_t number = 0; number < IDS; number += 2) {
        lost += take(number) == 0 ? 1 : 0;
    }
    ck_assert_uint_le(lost, IDS / 100);
}
END_TEST

START_TEST(block_added_again_is_the_latest)
{
    add(0, 1);
    for (uint64_t number = 1; number < IDS - SLACK; number++) {
        add(number, 1);
    }
    add(0, 2);
    for (uint64_t number = IDS; number < IDS + IDS / 2; number++) {
        add(number, 1);
    }
    ck_assert_uint_eq(take(0), 2);
    ck_assert_uint_eq(take(1), 0);
}
END_TEST

/* However long it runs: numbers of epochs come round, what they named does not. */
START_TEST(forgotten_ids_never_come_back)
{
    for (uint64_t number = 0; number < 50 * IDS; number++) {
        add(number, 1);
        if (number >= IDS + IDS / 50 && number % 3 == 0) {
            ck_assert_uint_eq(take(number - IDS - IDS / 50), 0);
        }
        if (number >= 4 * IDS && number % 3 == 1) {
            ck_assert_uint_eq(take(number - 4 * IDS), 0);
        }
    }
}
END_TEST

START_TEST(smallest_ghost_remembers_one)
{
    teardown();
    ck_assert_int_eq(uc_ghost_create(1, &ghost), UC_OK);
    add(1, 1);
    add(2, 1);
    ck_assert_uint_eq(take(1), 0);
    ck_assert_uint_eq(take(2), 1);
    for (uint64_t number = 0; number < 5000; number++) {
        add(number, 1);
        ck_assert_uint_eq(take(number), 1);
    }
}
END_TEST

START_TEST(memory_is_eleven_bytes_per_id)
{
    ck_assert_uint_eq(uc_ghost_memory_bytes(NULL), 0);
    teardown();
    ck_assert_int_eq(uc_ghost_create(1000000, &ghost), UC_OK);
    ck_assert_uint_le(uc_ghost_memory_bytes(ghost), 11 * 1000000);
}
END_TEST

START_TEST(create_fails_without_memory)
{
    struct uc_ghost *none = NULL;

    for (size_t pass = 0; pass < 2; pass++) {
        enum uc_status status;

        uc_fake_alloc_fail_after(pass);
        status = uc_ghost_create(IDS, &none);
        uc_fake_alloc_reset();
        ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
        ck_assert_ptr_null(none);
    }
    ck_assert_int_eq(uc_ghost_create(SIZE_MAX, &none), UC_ERR_OUT_OF_MEMORY);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("ghost");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, block_is_forgotten_when_it_is_taken);
    tcase_add_test(tcase, times_seen_are_the_latest_and_saturate);
    tcase_add_test(tcase, latest_ids_are_remembered_and_no_others);
    tcase_add_test(tcase, taken_ids_do_not_count);
    tcase_add_test(tcase, block_added_again_is_the_latest);
    tcase_add_test(tcase, forgotten_ids_never_come_back);
    tcase_add_test(tcase, smallest_ghost_remembers_one);
    tcase_add_test(tcase, memory_is_eleven_bytes_per_id);
    tcase_add_test(tcase, create_fails_without_memory);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
