/* SPDX-License-Identifier: Apache-2.0 */

/* Rules of section 16 that no vector shows by itself. */

#include "test/unit/core/cache_fixture.h"

static void
setup(void)
{
    make_cache(4);
}

/* repeated and unknown ids are answered where they stand; an expired one goes for all. */
START_TEST(lookup_answers_every_position)
{
    (void)admit("A", NO_TTL);
    (void)admit("B", 5);
    ck_assert_int_eq(reserve("P", NO_TTL), UC_OK);
    ck_assert_str_eq(lookup(""), "");
    ck_assert_str_eq(lookup("ANBAPB"), "101101");
    ck_assert_str_eq(lookup_at(5, "BABN"), "0100");
    ck_assert_uint_eq(stats().expired_total, 1);
}
END_TEST

/* a token of the slot's last owner opens nothing. */
START_TEST(stale_generation_is_neither_transferred_nor_revoked)
{
    struct uc_block_id id = block('A');
    struct uc_cache_info first;
    struct uc_cache_info second;

    (void)admit("A", 5);
    first = peek('A');
    ck_assert_str_eq(lookup_at(5, "A"), "0");
    (void)admit("A", NO_TTL);
    second = peek('A');
    ck_assert_uint_eq(second.slot, first.slot);
    ck_assert_uint_ne(second.generation, first.generation);

    ck_assert_int_eq(
            uc_cache_buffer_transfer_begin(buffer, first.slot, first.generation), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_cache_buffer_revoke(buffer, &id, first.generation), UC_ERR_NOT_FOUND);
    ck_assert_str_eq(lookup("A"), "1");
    ck_assert_int_eq(uc_cache_buffer_transfer_begin(buffer, second.slot, second.generation), UC_OK);
    uc_cache_buffer_transfer_end(buffer, second.slot);
    ck_assert_int_eq(uc_cache_buffer_revoke(buffer, &id, second.generation), UC_OK);
}
END_TEST

/* unpin and touch answer nothing, whatever they are given. */
START_TEST(unpin_and_touch_take_anything)
{
    (void)admit("A", NO_TTL);
    ck_assert_int_eq(reserve("P", NO_TTL), UC_OK);
    unpin("");
    unpin("APNA");
    touch("", 5);
    touch("APNA", 5);
    ck_assert_int_eq(peek('A').state, UC_CACHE_VISIBLE);
    ck_assert_int_eq(peek('P').state, UC_CACHE_PENDING);
    ck_assert_uint_eq(stats().pinned, 0);
}
END_TEST

/* a repetition behind known and new blocks is found before any of them has changed. */
START_TEST(refused_batch_changes_nothing)
{
    struct uc_cache_stats before;
    struct uc_cache_stats after;

    (void)admit("AB", 50);
    ck_assert_int_eq(reserve("P", 50), UC_OK);
    before = stats();
    ck_assert_int_eq(reserve("APNA", NO_TTL), UC_ERR_INVALID_PARAM);
    after = stats();
    ck_assert_mem_eq(&after, &before, sizeof(after));
    ck_assert_uint_eq(peek('A').pin_count, 0);
    ck_assert_int_eq(commit("P", true), UC_OK);
    ck_assert_uint_eq(peek('P').deadline_ms, 50);
}
END_TEST

/* joiners and readmitters hold the slot that is there, and the last one's ttl counts. */
START_TEST(known_blocks_keep_their_slot_and_take_the_last_ttl)
{
    struct uc_cache_info committed;
    struct uc_cache_info pending;

    (void)admit("A", 5);
    ck_assert_int_eq(reserve("P", 5), UC_OK);
    committed = peek('A');
    pending = peek('P');
    now_ms = 5; /* A is expired */
    ck_assert_int_eq(reserve("PNA", 7), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_JOINED);
    ck_assert_int_eq(slots[1].admission, UC_CACHE_NEWCOMER);
    ck_assert_int_eq(slots[2].admission, UC_CACHE_READMITTED);
    ck_assert_uint_eq(slots[0].slot, pending.slot);
    ck_assert_uint_eq(slots[0].generation, pending.generation);
    ck_assert_uint_eq(slots[2].slot, committed.slot);
    ck_assert_uint_eq(slots[2].generation, committed.generation);
    ck_assert_uint_eq(peek('A').pin_count, 1);

    ck_assert_int_eq(reserve("AP", 11), UC_OK);
    ck_assert_uint_eq(peek('A').pin_count, 2);
    ck_assert_int_eq(commit("APAPP", true), UC_OK);
    ck_assert_uint_eq(peek('A').deadline_ms, 16);
    ck_assert_uint_eq(peek('P').deadline_ms, 16);
}
END_TEST

/* the ids are reported, in order of eviction, and nothing of them is kept. */
START_TEST(evicted_blocks_are_reported_and_gone)
{
    struct uc_block_id ids[2] = {block('Y'), block('Z')};

    (void)admit("ABCD", NO_TTL);
    ck_assert_str_eq(admit("WX", NO_TTL), "AB");
    ck_assert_str_eq(lookup("ABCDWX"), "001111");
    ck_assert_int_eq(peek('A').state, UC_CACHE_ABSENT);

    /* Who does not ask is not told. */
    ck_assert_int_eq(uc_cache_buffer_reserve(buffer, ids, 2, NULL, NULL, slots, NULL, NULL), UC_OK);
    ck_assert_uint_eq(stats().evicted_total, 4);
}
END_TEST

/* with other sharers still writing nothing is decided, and failures of theirs change nothing. */
START_TEST(any_success_publishes_at_the_last_commit)
{
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(reserve("P", 5), UC_OK);
    }
    ck_assert_int_eq(commit("P", false), UC_OK);
    ck_assert_int_eq(commit("P", true), UC_OK);
    now_ms = 100;
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_WAITING);
    ck_assert_int_eq(commit("P", false), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_VISIBLE);
    ck_assert_uint_eq(peek('P').deadline_ms, 105); /* */
    ck_assert_uint_eq(stats().committed_total, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_rules");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, drop_cache);
    tcase_add_test(tcase, lookup_answers_every_position);
    tcase_add_test(tcase, stale_generation_is_neither_transferred_nor_revoked);
    tcase_add_test(tcase, unpin_and_touch_take_anything);
    tcase_add_test(tcase, refused_batch_changes_nothing);
    tcase_add_test(tcase, known_blocks_keep_their_slot_and_take_the_last_ttl);
    tcase_add_test(tcase, evicted_blocks_are_reported_and_gone);
    tcase_add_test(tcase, any_success_publishes_at_the_last_commit);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
