/* SPDX-License-Identifier: Apache-2.0 */

/* The vectors of 20.3 and 20.4, word for word, on the lru discipline. */

#include "test/unit/core/cache_fixture.h"

static void
setup_3(void)
{
    make_cache(3);
}

static void
setup_1(void)
{
    make_cache(1);
}

static void
admit_each(const char *letters)
{
    for (; *letters != '\0'; letters++) {
        char one[2] = {*letters, '\0'};

        (void)admit(one, NO_TTL);
    }
}

/* Victims of single admissions, joined. */
static const char *
victims_of(const char *letters)
{
    static char victims[LIST_MAX + 1];
    size_t used = 0;

    for (; *letters != '\0'; letters++) {
        char one[2] = {*letters, '\0'};
        const char *victim = admit(one, NO_TTL);

        memcpy(victims + used, victim, strlen(victim));
        used += strlen(victim);
    }
    victims[used] = '\0';
    return victims;
}

START_TEST(v14_touch_saves_a_block)
{
    admit_each("ABC");
    touch("A", NO_TTL);
    ck_assert_str_eq(victims_of("DEF"), "BCA");
}
END_TEST

START_TEST(v15_touch_after_eviction)
{
    char victims[8];

    admit_each("ABC");
    memcpy(victims, victims_of("D"), 2);
    touch("B", NO_TTL);
    ck_assert_str_eq(victims, "A");
    ck_assert_str_eq(victims_of("EF"), "CD");
}
END_TEST

START_TEST(v16_pinned_block_is_passed_over)
{
    admit_each("ABC");
    ck_assert_int_eq(pin("A"), UC_OK);
    ck_assert_str_eq(victims_of("DE"), "BC");
}
END_TEST

START_TEST(v17_infeasible_batch_leaves_no_trace)
{
    admit_each("ABC");
    ck_assert_int_eq(reserve("WXYZ", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_str_eq(lookup("ABCWXYZ"), "1110000");
    ck_assert_str_eq(victims_of("DEF"), "ABC");
}
END_TEST

/* V-18, R-16.24: a batch of known and new blocks in each of its orders. */
START_TEST(v18_survivors_do_not_depend_on_the_order_in_a_batch)
{
    static const char *const orders[] = {"BXY", "BYX", "XBY", "XYB", "YBX", "YXB"};

    admit_each("ABC");
    ck_assert_int_eq(reserve(orders[_i], NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "AC");
    ck_assert_int_eq(commit(orders[_i], true), UC_OK);
    ck_assert_str_eq(lookup("ABCXY"), "01011");
}
END_TEST

START_TEST(v19_last_commit_decides_and_any_success_counts)
{
    ck_assert_int_eq(reserve("Q", NO_TTL), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_NEWCOMER);
    ck_assert_int_eq(reserve("Q", NO_TTL), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_JOINED);
    ck_assert_int_eq(commit("Q", true), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_WAITING);
    ck_assert_str_eq(lookup("Q"), "0");
    ck_assert_int_eq(commit("Q", false), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_VISIBLE);
    ck_assert_str_eq(lookup("Q"), "1");
}
END_TEST

/* */
START_TEST(v20_no_success_frees_the_slot)
{
    ck_assert_int_eq(reserve("Q", NO_TTL), UC_OK);
    ck_assert_int_eq(reserve("Q", NO_TTL), UC_OK);
    ck_assert_int_eq(commit("Q", false), UC_OK);
    ck_assert_int_eq(commit("Q", false), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_RELEASED);
    ck_assert_str_eq(lookup("Q"), "0");
    ck_assert_uint_eq(stats().free, 3);
}
END_TEST

/* */
START_TEST(v21_stray_commit_does_not_drop_a_block)
{
    (void)admit("Q", NO_TTL);
    ck_assert_int_eq(commit("Q", false), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_NONE);
    ck_assert_str_eq(lookup("Q"), "1");
}
END_TEST

/* before anything is changed */
START_TEST(v22_a_block_twice_in_one_batch_is_refused)
{
    ck_assert_int_eq(reserve("XX", NO_TTL), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(stats().free, 3);
    (void)admit("X", NO_TTL);
    ck_assert_int_eq(reserve("XYX", NO_TTL), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(peek('X').pin_count, 0);
}
END_TEST

START_TEST(v23_block_expires_at_its_deadline)
{
    (void)admit("X", 10);
    ck_assert_str_eq(lookup_at(9, "X"), "1");
    ck_assert_str_eq(lookup_at(10, "X"), "0");
}
END_TEST

START_TEST(v24_touch_extends)
{
    (void)admit("X", 10);
    now_ms = 9;
    touch("X", 10);
    ck_assert_str_eq(lookup_at(18, "X"), "1");
    ck_assert_str_eq(lookup_at(19, "X"), "0");
}
END_TEST

START_TEST(v25_touch_never_shortens)
{
    (void)admit("X", 10);
    now_ms = 5;
    touch("X", 3);
    now_ms = 6;
    touch("X", NO_TTL);
    ck_assert_str_eq(lookup_at(9, "X"), "1");
    ck_assert_str_eq(lookup_at(10, "X"), "0");
}
END_TEST

START_TEST(v26_block_without_deadline_stays_so)
{
    (void)admit("X", NO_TTL);
    touch("X", 5);
    ck_assert_str_eq(lookup_at(UC_TIME_NEVER_MS - 1, "X"), "1");
    ck_assert_uint_eq(peek('X').deadline_ms, UC_TIME_NEVER_MS);
}
END_TEST

START_TEST(v27_readmission_of_a_live_block_keeps_its_retention)
{
    (void)admit("X", 10);
    now_ms = 5;
    ck_assert_int_eq(reserve("X", 100), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_READMITTED);
    now_ms = 6;
    ck_assert_int_eq(commit("X", true), UC_OK);
    ck_assert_str_eq(lookup_at(9, "X"), "1");
    ck_assert_str_eq(lookup_at(10, "X"), "0");
}
END_TEST

START_TEST(v28_readmission_revives_an_expired_block)
{
    (void)admit("X", 10);
    now_ms = 5;
    ck_assert_int_eq(reserve("X", 20), UC_OK);
    ck_assert_str_eq(lookup_at(11, "X"), "0");
    now_ms = 12;
    ck_assert_int_eq(commit("X", true), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_VISIBLE);
    ck_assert_str_eq(lookup_at(12, "X"), "1");
    ck_assert_str_eq(lookup_at(31, "X"), "1");
    ck_assert_str_eq(lookup_at(32, "X"), "0");
}
END_TEST

START_TEST(v29_failed_readmission_leaves_it_expired)
{
    (void)admit("X", 10);
    now_ms = 5;
    ck_assert_int_eq(reserve("X", 20), UC_OK);
    now_ms = 12;
    ck_assert_int_eq(commit("X", false), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_EXPIRED);
    ck_assert_uint_eq(stats().free, 2);
    ck_assert_str_eq(lookup("X"), "0");
    ck_assert_uint_eq(stats().free, 3);
}
END_TEST

/* */
START_TEST(v30_ttl_starts_at_the_commit)
{
    ck_assert_int_eq(reserve("X", 10), UC_OK);
    now_ms = 50;
    ck_assert_int_eq(commit("X", true), UC_OK);
    ck_assert_str_eq(lookup_at(59, "X"), "1");
    ck_assert_str_eq(lookup_at(60, "X"), "0");
}
END_TEST

/* */
START_TEST(v31_last_admitter_sets_the_ttl)
{
    ck_assert_int_eq(reserve("X", 5), UC_OK);
    ck_assert_int_eq(reserve("X", NO_TTL), UC_OK);
    ck_assert_int_eq(commit("X", true), UC_OK);
    ck_assert_int_eq(commit("X", true), UC_OK);
    ck_assert_str_eq(lookup_at(UC_TIME_NEVER_MS - 1, "X"), "1");
}
END_TEST

START_TEST(v32_failed_join_is_rolled_back)
{
    drop_cache();
    make_cache(2);
    ck_assert_int_eq(reserve("X", 5), UC_OK);
    ck_assert_int_eq(reserve("XYZ", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_int_eq(commit("X", true), UC_OK);
    ck_assert_str_eq(lookup_at(4, "X"), "1");
    ck_assert_str_eq(lookup_at(5, "X"), "0");
}
END_TEST

START_TEST(v33_held_expired_block_goes_after_its_reader)
{
    (void)admit("X", 10);
    ck_assert_int_eq(pin("X"), UC_OK);
    ck_assert_str_eq(lookup_at(10, "X"), "0");
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_ERR_NO_SPACE);
    unpin("X");
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, ""); /* swept, not evicted */
    ck_assert_uint_eq(stats().expired_total, 1);
}
END_TEST

START_TEST(v34_two_readers_hold_a_block_until_both_are_gone)
{
    (void)admit("X", NO_TTL);
    ck_assert_int_eq(pin("X"), UC_OK);
    ck_assert_int_eq(pin("X"), UC_OK);
    unpin("X");
    ck_assert_uint_eq(stats().evictable, 0);
    unpin("X");
    ck_assert_uint_eq(stats().evictable, 1);
    unpin("X"); /* saturating, unknown ids ignored */
    unpin("N");
    ck_assert_uint_eq(stats().evictable, 1);
}
END_TEST

/* */
START_TEST(v35_v36_slot_drains_before_it_is_reused)
{
    struct uc_cache_slot first;

    ck_assert_int_eq(reserve("X", NO_TTL), UC_OK);
    first = slots[0];
    ck_assert_int_eq(uc_cache_buffer_transfer_begin(buffer, first.slot, first.generation), UC_OK);
    ck_assert_int_eq(commit("X", false), UC_OK);
    ck_assert_uint_eq(stats().draining, 1);
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_ERR_NO_SPACE);
    uc_cache_buffer_transfer_end(buffer, first.slot);
    ck_assert_uint_eq(stats().free, 1);
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_OK);
    ck_assert_uint_ne(slots[0].generation, first.generation);
    ck_assert_int_eq(
            uc_cache_buffer_transfer_begin(buffer, first.slot, first.generation), UC_ERR_NOT_FOUND);
}
END_TEST

START_TEST(v37_transfer_protects_after_the_unpin)
{
    (void)admit("X", NO_TTL);
    ck_assert_int_eq(pin("X"), UC_OK);
    ck_assert_int_eq(
            uc_cache_buffer_transfer_begin(buffer, slots[0].slot, slots[0].generation), UC_OK);
    unpin("X");
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_ERR_NO_SPACE);
    uc_cache_buffer_transfer_end(buffer, peek('X').slot);
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "X");
}
END_TEST

/* */
START_TEST(v38_commit_under_a_running_write_fails)
{
    ck_assert_int_eq(reserve("X", NO_TTL), UC_OK);
    ck_assert_int_eq(
            uc_cache_buffer_transfer_begin(buffer, slots[0].slot, slots[0].generation), UC_OK);
    ck_assert_int_eq(commit("X", true), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_RELEASED);
    ck_assert_str_eq(lookup("X"), "0");
    ck_assert_uint_eq(stats().draining, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_buffer_vectors");
    TCase *three = tcase_create("capacity_3");
    TCase *one = tcase_create("capacity_1");

    tcase_add_checked_fixture(three, setup_3, drop_cache);
    tcase_add_test(three, v14_touch_saves_a_block);
    tcase_add_test(three, v15_touch_after_eviction);
    tcase_add_test(three, v16_pinned_block_is_passed_over);
    tcase_add_test(three, v17_infeasible_batch_leaves_no_trace);
    tcase_add_loop_test(three, v18_survivors_do_not_depend_on_the_order_in_a_batch, 0, 6);
    tcase_add_test(three, v19_last_commit_decides_and_any_success_counts);
    tcase_add_test(three, v20_no_success_frees_the_slot);
    tcase_add_test(three, v21_stray_commit_does_not_drop_a_block);
    tcase_add_test(three, v22_a_block_twice_in_one_batch_is_refused);
    tcase_add_test(three, v23_block_expires_at_its_deadline);
    tcase_add_test(three, v24_touch_extends);
    tcase_add_test(three, v25_touch_never_shortens);
    tcase_add_test(three, v26_block_without_deadline_stays_so);
    tcase_add_test(three, v27_readmission_of_a_live_block_keeps_its_retention);
    tcase_add_test(three, v28_readmission_revives_an_expired_block);
    tcase_add_test(three, v29_failed_readmission_leaves_it_expired);
    tcase_add_test(three, v30_ttl_starts_at_the_commit);
    tcase_add_test(three, v31_last_admitter_sets_the_ttl);
    tcase_add_test(three, v32_failed_join_is_rolled_back);
    suite_add_tcase(suite, three);

    tcase_add_checked_fixture(one, setup_1, drop_cache);
    tcase_add_test(one, v33_held_expired_block_goes_after_its_reader);
    tcase_add_test(one, v34_two_readers_hold_a_block_until_both_are_gone);
    tcase_add_test(one, v35_v36_slot_drains_before_it_is_reused);
    tcase_add_test(one, v37_transfer_protects_after_the_unpin);
    tcase_add_test(one, v38_commit_under_a_running_write_fails);
    suite_add_tcase(suite, one);
    return run_suite(suite);
}
