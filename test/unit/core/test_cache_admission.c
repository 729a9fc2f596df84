/* SPDX-License-Identifier: Apache-2.0 */

/* The life of an admission on the cache engine: table 4.5 of core/CONTRACT.md, evictions, pins and transfers. */

#include "test/unit/core/cache_fixture.h"

static enum uc_cache_state
state_of(char letter)
{
    return peek(letter).state;
}

/* each reserve of a pending block adds a reference; the last writer's TTL is kept. */
START_TEST(sharers_count_references_and_the_last_one_sets_the_ttl)
{
    make_cache(2);
    ck_assert_int_eq(reserve("Q", 5), UC_OK);
    ck_assert_int_eq(state_of('Q'), UC_CACHE_PENDING);
    ck_assert_str_eq(lookup("Q"), "0");
    ck_assert_int_eq(reserve("Q", 20), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_JOINED);
    ck_assert_uint_eq(stats().reserved, 1); /* one slot for both */
    ck_assert_int_eq(commit("Q", true), UC_OK);
    ck_assert_int_eq(state_of('Q'), UC_CACHE_PENDING);
    ck_assert_int_eq(commit("Q", true), UC_OK);
    ck_assert_str_eq(lookup_at(19, "Q"), "1");
    ck_assert_str_eq(lookup_at(20, "Q"), "0");
    drop_cache();
}
END_TEST

/* a verdict before the last is remembered; the last commit shows the block. */
START_TEST(success_of_any_sharer_is_remembered_until_the_last_commit)
{
    bool first = (_i & 1) != 0;
    bool last = (_i & 2) != 0;

    make_cache(2);
    ck_assert_int_eq(reserve("Q", 10), UC_OK);
    ck_assert_int_eq(reserve("Q", 10), UC_OK);
    ck_assert_int_eq(commit("Q", first), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_WAITING);
    ck_assert_int_eq(state_of('Q'), UC_CACHE_PENDING);
    ck_assert_str_eq(lookup("Q"), "0");

    now_ms = 100; /* the deadline counts from the deciding commit */
    ck_assert_int_eq(commit("Q", last), UC_OK);
    ck_assert_str_eq(lookup("Q"), first || last ? "1" : "0");
    if (first || last) {
        ck_assert_uint_eq(peek('Q').deadline_ms, 110);
    } else { /* */
        ck_assert_int_eq(state_of('Q'), UC_CACHE_ABSENT);
        ck_assert_uint_eq(stats().free, 2);
    }
    drop_cache();
}
END_TEST

/* alive, so that the verdict of a readmission changes nothing. */
START_TEST(readmission_of_a_live_block_keeps_its_retention)
{
    struct uc_cache_info before;

    make_cache(1);
    (void)admit("X", 10);
    before = peek('X');
    ck_assert_int_eq(reserve("X", 1000), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_READMITTED);
    ck_assert_uint_eq(slots[0].slot, before.slot);
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_ERR_NO_SPACE); /* held */
    now_ms = 3;
    ck_assert_int_eq(commit("X", _i == 0), UC_OK);
    ck_assert_uint_eq(peek('X').deadline_ms, before.deadline_ms);
    ck_assert_uint_eq(peek('X').generation, before.generation);
    ck_assert_str_eq(lookup("X"), "1");
    drop_cache();
}
END_TEST

/* revived with the TTL of the last admitter, from the deciding commit on, and hot again. */
START_TEST(expired_block_is_revived_by_a_successful_readmission)
{
    make_cache(3);
    (void)admit("X", 10);
    (void)admit("Y", NO_TTL);
    (void)admit("Z", NO_TTL);
    ck_assert_int_eq(reserve("X", 7), UC_OK);
    ck_assert_int_eq(reserve("X", 30), UC_OK);
    ck_assert_str_eq(lookup_at(50, "X"), "0");
    ck_assert_int_eq(state_of('X'), UC_CACHE_EXPIRED);
    ck_assert_int_eq(commit("X", _i == 0), UC_OK);
    ck_assert_str_eq(lookup("X"), "0"); /* not the last one yet */
    ck_assert_int_eq(commit("X", _i == 1), UC_OK);
    ck_assert_str_eq(lookup("X"), "1");
    ck_assert_uint_eq(peek('X').deadline_ms, 80);
    ck_assert_str_eq(admit("A", NO_TTL), "Y"); /* X was the coldest by admission */
    ck_assert_str_eq(lookup_at(80, "X"), "0");
    drop_cache();
}
END_TEST

/* none succeeded; it stays expired and its slot is free at the next probe. */
START_TEST(expired_block_stays_expired_when_no_sharer_succeeds)
{
    make_cache(1);
    (void)admit("X", 10);
    ck_assert_int_eq(reserve("X", 30), UC_OK);
    ck_assert_int_eq(reserve("X", 30), UC_OK);
    now_ms = 50;
    ck_assert_int_eq(commit("X", false), UC_OK);
    ck_assert_int_eq(commit("X", false), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_EXPIRED);
    ck_assert_int_eq(state_of('X'), UC_CACHE_EXPIRED);
    ck_assert_str_eq(lookup("X"), "0");
    ck_assert_uint_eq(stats().free, 1);
    drop_cache();
}
END_TEST

/* invisible from the deadline on; removed by a probe, or by the sweep of a reserve, while unheld. */
START_TEST(expired_block_goes_at_the_next_probe_or_sweep)
{
    make_cache(1);
    (void)admit("X", 10);
    ck_assert_str_eq(lookup_at(9, "X"), "1");
    now_ms = 10;
    ck_assert_int_eq(state_of('X'), UC_CACHE_EXPIRED); /* nobody asked: still in its slot */
    ck_assert_uint_eq(stats().free, 0);
    switch (_i) {
    case 0:
        ck_assert_str_eq(lookup("X"), "0");
        break;
    case 1:
        ck_assert_int_eq(pin("X"), UC_ERR_NOT_FOUND);
        break;
    case 2:
        touch("X", 100); /* no revival */
        break;
    default:
        ck_assert_int_eq(reserve("Y", NO_TTL), UC_OK);
        ck_assert_str_eq(evicted, ""); /* swept, not evicted */
        break;
    }
    ck_assert_int_eq(state_of('X'), UC_CACHE_ABSENT);
    ck_assert_uint_eq(stats().expired_total, 1);
    ck_assert_uint_eq(stats().free, _i == 3 ? 0 : 1);
    drop_cache();
}
END_TEST

/* held blocks outlive their deadline in their slot, invisible. */
START_TEST(expired_block_stays_in_its_slot_while_it_is_held)
{
    make_cache(1);
    (void)admit("X", 10);
    ck_assert_int_eq(pin("X"), UC_OK);
    ck_assert_str_eq(lookup_at(10, "X"), "0");
    ck_assert_int_eq(state_of('X'), UC_CACHE_EXPIRED);
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_ERR_NO_SPACE);
    unpin("X");
    ck_assert_str_eq(lookup("X"), "0");
    ck_assert_int_eq(state_of('X'), UC_CACHE_ABSENT);
    drop_cache();
}
END_TEST

/* G11: when reserve answers, the victim's name leads nowhere and its generation is stale. */
START_TEST(victim_is_unmapped_before_its_slot_is_used)
{
    struct uc_cache_info victim;

    make_cache(1);
    (void)admit("X", NO_TTL);
    victim = peek('X');
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "X");
    ck_assert_uint_eq(slots[0].slot, victim.slot);
    ck_assert_int_eq(state_of('X'), UC_CACHE_ABSENT);
    ck_assert_str_eq(lookup("XY"), "00");
    ck_assert_int_eq(pin("X"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_cache_buffer_transfer_begin(buffer, victim.slot, victim.generation),
            UC_ERR_NOT_FOUND);
    ck_assert_int_eq(commit("X", true), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(commit("Y", true), UC_OK);
    ck_assert_str_eq(lookup("XY"), "01");
    drop_cache();
}
END_TEST

/* one pin less per occurrence, never below zero, unknown ids ignored. */
START_TEST(unpin_drops_one_pin_per_occurrence)
{
    make_cache(2);
    (void)admit("X", NO_TTL);
    ck_assert_int_eq(pin("XXX"), UC_OK);
    ck_assert_uint_eq(peek('X').pin_count, 3);
    unpin("XX");
    ck_assert_uint_eq(peek('X').pin_count, 1);
    unpin("?X");
    ck_assert_uint_eq(peek('X').pin_count, 0);
    unpin("X?");
    ck_assert_uint_eq(peek('X').pin_count, 0);
    ck_assert_uint_eq(stats().evictable, 1);
    ck_assert_uint_eq(stats().pinned, 0);
    drop_cache();
}
END_TEST

/* G3: the slot is kept for each transfer until the last one has ended, whatever order they end in. */
START_TEST(every_transfer_in_flight_keeps_its_slot)
{
    uint64_t generation;
    uint32_t slot;

    make_cache(1);
    ck_assert_int_eq(reserve("X", NO_TTL), UC_OK);
    slot = slots[0].slot;
    generation = slots[0].generation;
    if (_i == 1) {
        ck_assert_int_eq(commit("X", true), UC_OK);
    }
    for (int idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(uc_cache_buffer_transfer_begin(buffer, slot, generation), UC_OK);
    }
    if (_i == 0) {
        ck_assert_int_eq(commit("X", false), UC_OK);
        ck_assert_uint_eq(stats().draining, 1);
    }
    for (int idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(reserve("Y", NO_TTL), UC_ERR_NO_SPACE);
        uc_cache_buffer_transfer_end(buffer, slot);
    }
    ck_assert_uint_eq(stats().draining, 0);
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, _i == 0 ? "" : "X");
    ck_assert_uint_ne(slots[0].generation, generation);
    drop_cache();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_admission");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, sharers_count_references_and_the_last_one_sets_the_ttl);
    tcase_add_loop_test(tcase, success_of_any_sharer_is_remembered_until_the_last_commit, 0, 4);
    tcase_add_loop_test(tcase, readmission_of_a_live_block_keeps_its_retention, 0, 2);
    tcase_add_loop_test(tcase, expired_block_is_revived_by_a_successful_readmission, 0, 2);
    tcase_add_test(tcase, expired_block_stays_expired_when_no_sharer_succeeds);
    tcase_add_loop_test(tcase, expired_block_goes_at_the_next_probe_or_sweep, 0, 4);
    tcase_add_test(tcase, expired_block_stays_in_its_slot_while_it_is_held);
    tcase_add_test(tcase, victim_is_unmapped_before_its_slot_is_used);
    tcase_add_test(tcase, unpin_drops_one_pin_per_occurrence);
    tcase_add_loop_test(tcase, every_transfer_in_flight_keeps_its_slot, 0, 2);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
