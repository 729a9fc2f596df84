/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/core/policy_fixture.h"

static const struct uc_policy_hints unknown;

static void
setup(void)
{
    make_policy("fifo", 4, NULL);
    fill_policy();
}

/* */
START_TEST(touch_changes_nothing)
{
    touch_slot(0, unknown);
    touch_slot(1, unknown);
    for (uint32_t want = 0; want < 4; want++) {
        ck_assert_uint_eq(acquire(), want);
    }
}
END_TEST

/* */
START_TEST(oldest_evictable_goes_first)
{
    ck_assert_int_eq(uc_policy_pin_slot(policy, 0), UC_OK);
    ck_assert_int_eq(uc_policy_transfer_begin(policy, 1, 1), UC_OK);
    ck_assert_uint_eq(acquire(), 2);
    ck_assert_int_eq(uc_policy_unpin_slot(policy, 0), UC_OK);
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_uint_eq(acquire(), 3);
    ck_assert_uint_eq(acquire(), UC_SLOT_NONE);
    uc_policy_transfer_end(policy, 1);
    ck_assert_uint_eq(acquire(), 1);
}
END_TEST

/* a restored slot stands behind all others. */
START_TEST(released_slot_leaves_the_list_and_a_restored_one_comes_back)
{
    ck_assert_int_eq(uc_policy_release_slot(policy, 1), UC_OK);
    ck_assert_uint_eq(acquire(), 1); /* from the free list */
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_int_eq(uc_policy_restore_slot(policy, 0, 1), UC_OK);
    ck_assert_uint_eq(acquire(), 2);
    ck_assert_uint_eq(acquire(), 3);
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_uint_eq(acquire(), UC_SLOT_NONE);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_fifo");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, drop_policy);
    tcase_add_test(tcase, touch_changes_nothing);
    tcase_add_test(tcase, oldest_evictable_goes_first);
    tcase_add_test(tcase, released_slot_leaves_the_list_and_a_restored_one_comes_back);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
