/* SPDX-License-Identifier: Apache-2.0 */

/* Acquiring, pinning and transfers of single slots: the counting rows of table 4.1. */

#include <stdlib.h>

#include <check.h>

#include "core/cache/policy.h"

enum {
    CAPACITY = 3
};

static const struct uc_policy_hints unknown;
static struct uc_policy *policy;

static void
setup(void)
{
    ck_assert_int_eq(uc_policy_create(uc_policy_find("lru"), CAPACITY, NULL, NULL, &policy), UC_OK);
}

static void
teardown(void)
{
    uc_policy_destroy(policy);
}

static uint32_t
acquire(bool *evicted_out)
{
    uint64_t generation = 0;
    uint32_t slot = UC_SLOT_NONE;

    ck_assert_int_eq(uc_policy_acquire_slot(policy, &slot, &generation, evicted_out), UC_OK);
    ck_assert_uint_lt(slot, CAPACITY);
    ck_assert_uint_eq(generation, uc_policy_generation(policy, slot));
    return slot;
}

static uint32_t
acquire_committed(void)
{
    bool evicted;
    uint32_t slot = acquire(&evicted);

    ck_assert_int_eq(uc_policy_commit_slot(policy, slot, &unknown), UC_OK);
    return slot;
}

/* an acquired slot has left the free list, is nobody's victim, and is handed out once. */
START_TEST(acquired_slot_has_left_the_free_list)
{
    bool seen[CAPACITY] = {false};
    uint64_t generation = 77;
    uint32_t slot = 77;
    bool evicted = true;

    for (size_t idx = 0; idx < CAPACITY; idx++) {
        uint32_t one = acquire(&evicted);

        ck_assert(!evicted);
        ck_assert(!seen[one]);
        seen[one] = true;
        ck_assert_uint_eq(uc_policy_free_count(policy), CAPACITY - 1 - idx);
        ck_assert(!uc_policy_is_evictable(policy, one));
    }
    ck_assert_int_eq(uc_policy_acquire_slot(policy, &slot, &generation, &evicted), UC_ERR_NO_SPACE);
    ck_assert_uint_eq(slot, 77); /* */
    ck_assert_uint_eq(generation, 77);
}
END_TEST

/* as many unpins as pins; one too many is refused; the slot stays COMMITTED all the time. */
START_TEST(pins_are_counted)
{
    uint32_t slot = acquire_committed();
    uint64_t generation = uc_policy_generation(policy, slot);

    for (int idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(uc_policy_pin_slot(policy, slot), UC_OK);
    }
    for (int idx = 0; idx < 3; idx++) {
        ck_assert(!uc_policy_is_evictable(policy, slot));
        ck_assert_int_eq(uc_policy_release_slot(policy, slot), UC_ERR_INVALID_PARAM);
        ck_assert_int_eq(uc_policy_unpin_slot(policy, slot), UC_OK);
    }
    ck_assert(uc_policy_is_evictable(policy, slot));
    ck_assert_int_eq(uc_policy_unpin_slot(policy, slot), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(uc_policy_generation(policy, slot), generation);
    ck_assert_int_eq(uc_policy_release_slot(policy, slot), UC_OK);
}
END_TEST

/* each begin counts one, each end one less; state, pins and generation stay. */
START_TEST(transfers_are_counted)
{
    bool evicted;
    uint32_t slot = _i == 0 ? acquire(&evicted) : acquire_committed();
    uint64_t generation = uc_policy_generation(policy, slot);

    for (uint32_t count = 1; count <= 3; count++) {
        ck_assert_int_eq(uc_policy_transfer_begin(policy, slot, generation), UC_OK);
        ck_assert_uint_eq(uc_policy_transfer_count(policy, slot), count);
        ck_assert(!uc_policy_is_evictable(policy, slot));
    }
    for (uint32_t count = 3; count-- > 0;) {
        uc_policy_transfer_end(policy, slot);
        ck_assert_uint_eq(uc_policy_transfer_count(policy, slot), count);
        ck_assert_int_eq(uc_policy_is_evictable(policy, slot), _i == 1 && count == 0);
    }
    ck_assert_uint_eq(uc_policy_generation(policy, slot), generation);
    ck_assert_uint_eq(uc_policy_free_count(policy), CAPACITY - 1); /* not drained: still owned */
    ck_assert_int_eq(uc_policy_transfer_begin(policy, slot, generation), UC_OK);
    uc_policy_transfer_end(policy, slot);
}
END_TEST

/* a committed slot is a victim again once its transfer has ended. */
START_TEST(slot_is_a_victim_again_after_its_transfer)
{
    uint32_t committed[CAPACITY];
    bool evicted = false;

    for (size_t idx = 0; idx < CAPACITY; idx++) {
        committed[idx] = acquire_committed();
    }
    ck_assert_int_eq(uc_policy_transfer_begin(
                             policy, committed[0], uc_policy_generation(policy, committed[0])),
            UC_OK);
    ck_assert_uint_eq(acquire(&evicted), committed[1]);
    ck_assert(evicted);
    uc_policy_transfer_end(policy, committed[0]);
    ck_assert_uint_eq(acquire(&evicted), committed[0]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_slots");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, acquired_slot_has_left_the_free_list);
    tcase_add_test(tcase, pins_are_counted);
    tcase_add_loop_test(tcase, transfers_are_counted, 0, 2);
    tcase_add_test(tcase, slot_is_a_victim_again_after_its_transfer);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
