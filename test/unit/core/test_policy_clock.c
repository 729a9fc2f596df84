/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/core/policy_fixture.h"

enum {
    CAPACITY = 130 /* the bits of three words */
};

static const struct uc_policy_hints unknown;

static void
setup(void)
{
    make_policy("clock", 4, NULL);
    fill_policy();
}

/* all bits are set, so the first turn only clears them. */
START_TEST(first_victim_is_where_the_hand_began)
{
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_uint_eq(acquire(), 1);
}
END_TEST

/* the hand has passed slots 1 to 3 once; a touch saves for one more turn. */
START_TEST(touched_slot_is_passed_once)
{
    ck_assert_uint_eq(acquire(), 0);
    touch_slot(1, unknown);
    ck_assert_uint_eq(acquire(), 2);
    ck_assert_uint_eq(acquire(), 3);
    ck_assert_uint_eq(acquire(), 1);
    ck_assert_uint_eq(acquire(), UC_SLOT_NONE);
}
END_TEST

/* the hand stops behind its victim, which comes last once it is admitted again. */
START_TEST(hand_stops_behind_the_victim)
{
    ck_assert_uint_eq(acquire(), 0);
    commit_slot(0, unknown);
    ck_assert_uint_eq(acquire(), 1);
    ck_assert_uint_eq(acquire(), 2);
    ck_assert_uint_eq(acquire(), 3);
    ck_assert_uint_eq(acquire(), 0);
}
END_TEST

/* */
START_TEST(slot_in_use_is_skipped_and_keeps_its_bit)
{
    ck_assert_int_eq(uc_policy_pin_slot(policy, 0), UC_OK);
    ck_assert_int_eq(uc_policy_transfer_begin(policy, 1, 1), UC_OK);
    ck_assert_uint_eq(acquire(), 2);
    ck_assert_int_eq(uc_policy_unpin_slot(policy, 0), UC_OK);
    uc_policy_transfer_end(policy, 1);
    ck_assert_uint_eq(acquire(), 3); /* its bit was cleared on the way to 2 */
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_uint_eq(acquire(), 1);
}
END_TEST

/* a slot that was released has no bit left over; admission sets it anew. */
START_TEST(released_slot_is_no_victim)
{
    ck_assert_int_eq(uc_policy_release_slot(policy, 0), UC_OK);
    ck_assert_uint_eq(acquire(), 0); /* from the free list: reserved */
    ck_assert_uint_eq(acquire(), 1);
    ck_assert_uint_eq(acquire(), 2);
    ck_assert_uint_eq(acquire(), 3);
    ck_assert_uint_eq(acquire(), UC_SLOT_NONE);
}
END_TEST

START_TEST(bits_of_all_words_count)
{
    drop_policy();
    make_policy("clock", CAPACITY, NULL);
    fill_policy();
    ck_assert_uint_eq(acquire(), 0); /* clears every bit */
    for (uint32_t slot = 1; slot < CAPACITY; slot += 2) {
        touch_slot(slot, unknown);
    }
    for (uint32_t slot = 2; slot < CAPACITY; slot += 2) {
        ck_assert_uint_eq(acquire(), slot);
    }
    for (uint32_t slot = 1; slot < CAPACITY; slot += 2) {
        ck_assert_uint_eq(acquire(), slot);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_clock");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, drop_policy);
    tcase_add_test(tcase, first_victim_is_where_the_hand_began);
    tcase_add_test(tcase, touched_slot_is_passed_once);
    tcase_add_test(tcase, hand_stops_behind_the_victim);
    tcase_add_test(tcase, slot_in_use_is_skipped_and_keeps_its_bit);
    tcase_add_test(tcase, released_slot_is_no_victim);
    tcase_add_test(tcase, bits_of_all_words_count);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
