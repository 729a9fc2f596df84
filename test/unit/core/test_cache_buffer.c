/* SPDX-License-Identifier: Apache-2.0 */

/* Rules of sections 4.5 and 16 beyond the vectors. */

#include "test/unit/core/cache_fixture.h"

static void
setup(void)
{
    make_cache(4);
}

/* */
START_TEST(create_names_what_is_wrong)
{
    struct uc_cache_config config = {.capacity = 0, .clock = {.now_ms = fixture_now_ms}};
    struct uc_cache_buffer *none = NULL;

    ck_assert_int_eq(uc_cache_buffer_create(&config, &none), UC_ERR_INVALID_PARAM);
    config.capacity = 3;
    config.policy = "nosuch";
    ck_assert_int_eq(uc_cache_buffer_create(&config, &none), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "nosuch"));
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "lru"));
    ck_assert_ptr_null(none);
}
END_TEST

/* */
START_TEST(empty_batches_are_refused_where_they_have_no_meaning)
{
    ck_assert_int_eq(reserve("", NO_TTL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(pin(""), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(commit("", true), UC_OK);
    ck_assert_str_eq(lookup(""), "");
    unpin("");
    touch("", 5);
}
END_TEST

/* G2 */
START_TEST(reservation_is_invisible_and_cannot_be_pinned)
{
    ck_assert_int_eq(reserve("AB", NO_TTL), UC_OK);
    ck_assert_str_eq(lookup("AB"), "00");
    ck_assert_int_eq(pin("A"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(peek('A').state, UC_CACHE_PENDING);
    ck_assert_uint_eq(peek('A').generation, slots[0].generation);
    ck_assert_uint_eq(stats().reserved, 2);
    ck_assert_uint_eq(stats().evictable, 0); /* */
}
END_TEST

/* the batch's own block is the coldest, yet somebody else goes. */
START_TEST(batch_never_evicts_its_own_members)
{
    (void)admit("A", NO_TTL);
    (void)admit("BCD", NO_TTL);
    ck_assert_int_eq(reserve("XYZA", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "BCD");
    ck_assert_int_eq(slots[3].admission, UC_CACHE_READMITTED);
    ck_assert_int_eq(commit("XYZA", true), UC_OK);
    ck_assert_str_eq(lookup("AXYZ"), "1111");
}
END_TEST

/* exactly as many newcomers as there is room for, and not one more. */
START_TEST(feasibility_is_exact)
{
    (void)admit("ABC", NO_TTL);
    ck_assert_int_eq(pin("A"), UC_OK);
    ck_assert_int_eq(reserve("WXYZ", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_str_eq(lookup("ABC"), "111");
    ck_assert_int_eq(reserve("XYZ", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "BC");
}
END_TEST

/* with A-14 */
START_TEST(batch_larger_than_the_cache_is_no_space)
{
    ck_assert_int_eq(reserve("ABCDE", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_uint_eq(stats().free, 4);
    ck_assert_uint_eq(stats().evicted_total, 0);
}
END_TEST

/* an expired block counts as evictable; nothing is swept if the batch does not fit. */
START_TEST(infeasible_batch_sweeps_nothing)
{
    (void)admit("AB", 5);
    now_ms = 5;
    ck_assert_int_eq(reserve("VWXYZ", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_uint_eq(stats().blocks, 2);
    ck_assert_uint_eq(stats().expired_total, 0);
}
END_TEST

/* free, then swept, then evicted */
START_TEST(newcomer_takes_free_then_swept_then_evicted)
{
    (void)admit("AB", NO_TTL);
    (void)admit("C", 5);
    now_ms = 5;
    ck_assert_int_eq(reserve("XYZ", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "A");
    ck_assert_uint_eq(stats().expired_total, 1);
    ck_assert_uint_eq(stats().evicted_total, 1);
    ck_assert_str_eq(lookup("BC"), "10");
}
END_TEST

/* sweeping runs under pressure only. */
START_TEST(expired_blocks_stay_while_there_is_room)
{
    (void)admit("A", 5);
    now_ms = 6;
    (void)admit("BC", NO_TTL);
    ck_assert_int_eq(peek('A').state, UC_CACHE_EXPIRED);
    ck_assert_uint_eq(stats().blocks, 3);
}
END_TEST

/* popped while held, then swept once it is free. */
START_TEST(deferred_block_is_swept_later)
{
    (void)admit("ABCD", 5);
    ck_assert_int_eq(pin("A"), UC_OK);
    now_ms = 5;
    ck_assert_int_eq(reserve("W", NO_TTL), UC_OK); /* sweeps B, C, D and defers A */
    ck_assert_uint_eq(stats().expired_total, 3);
    ck_assert_int_eq(reserve("XY", NO_TTL), UC_OK);
    ck_assert_int_eq(reserve("Z", NO_TTL), UC_ERR_NO_SPACE);
    unpin("A");
    ck_assert_int_eq(peek('A').state, UC_CACHE_EXPIRED); /* Unpin removes nothing */
    ck_assert_int_eq(reserve("Z", NO_TTL), UC_OK);
    ck_assert_uint_eq(stats().expired_total, 4);
    ck_assert_str_eq(evicted, "");
}
END_TEST

/* a block that was deferred and revived meanwhile is not swept before its new deadline. */
START_TEST(revived_block_leaves_the_deferred_list)
{
    (void)admit("A", 5);
    (void)admit("BCD", NO_TTL);
    ck_assert_int_eq(reserve("A", 100), UC_OK);
    now_ms = 5;
    ck_assert_int_eq(reserve("X", NO_TTL), UC_OK); /* defers A, evicts B */
    ck_assert_int_eq(commit("A", true), UC_OK);    /* revived until 105 */
    ck_assert_int_eq(commit("X", true), UC_OK);
    ck_assert_int_eq(reserve("Y", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "C");
    ck_assert_str_eq(lookup_at(104, "A"), "1");
    ck_assert_str_eq(lookup_at(105, "A"), "0");
}
END_TEST

/* a transfer on an expired block parks its slot. */
START_TEST(expired_block_under_a_transfer_drains)
{
    uint32_t slot;

    (void)admit("A", 5);
    slot = peek('A').slot;
    ck_assert_int_eq(uc_cache_buffer_transfer_begin(buffer, slot, peek('A').generation), UC_OK);
    ck_assert_str_eq(lookup_at(5, "AA"), "00");
    ck_assert_uint_eq(stats().draining, 1);
    ck_assert_uint_eq(stats().free, 3);
    ck_assert_uint_eq(stats().evictable, 0);
    uc_cache_buffer_transfer_end(buffer, slot);
    ck_assert_uint_eq(stats().free, 4);
}
END_TEST

/* */
START_TEST(ttl_zero_expires_at_the_commit)
{
    (void)admit("A", 0);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_EXPIRED);
    ck_assert_str_eq(lookup("A"), "0");
}
END_TEST

/* */
START_TEST(saturated_deadline_never_arrives)
{
    now_ms = 1000;
    (void)admit("A", UC_TIME_NEVER_MS - 5);
    ck_assert_str_eq(lookup_at(UC_TIME_NEVER_MS - 1, "A"), "1");
}
END_TEST

/* touching again and again leaves stale items behind, which are dropped in time. */
START_TEST(many_touches_do_not_outgrow_the_heap)
{
    (void)admit("ABCD", 10);
    for (now_ms = 1; now_ms < 5000; now_ms++) {
        touch("ABCD", 10);
    }
    ck_assert_str_eq(lookup("ABCD"), "1111");
    now_ms = 6000;
    ck_assert_int_eq(reserve("WXYZ", NO_TTL), UC_OK);
    ck_assert_uint_eq(stats().expired_total, 4);
    ck_assert_str_eq(evicted, "");
}
END_TEST

/* */
START_TEST(held_expired_block_may_be_readmitted_and_stays_hidden)
{
    (void)admit("A", 5);
    ck_assert_int_eq(pin("A"), UC_OK);
    now_ms = 5;
    ck_assert_int_eq(reserve("A", 20), UC_OK);
    ck_assert_int_eq(reserve("A", 30), UC_OK);
    ck_assert_uint_eq(peek('A').pin_count, 3);
    ck_assert_str_eq(lookup("A"), "0");
    ck_assert_int_eq(commit("A", true), UC_OK);
    ck_assert_str_eq(lookup("A"), "0"); /* not the last one */
    ck_assert_int_eq(commit("A", false), UC_OK);
    ck_assert_str_eq(lookup_at(34, "A"), "1");
    ck_assert_str_eq(lookup_at(35, "A"), "0");
}
END_TEST

/* no order changes: revival refreshes. */
START_TEST(readmission_of_a_live_block_does_not_refresh_it)
{
    (void)admit("A", NO_TTL);
    (void)admit("BCD", NO_TTL);
    (void)admit("A", NO_TTL);
    ck_assert_str_eq(admit("X", NO_TTL), "A");
}
END_TEST

START_TEST(revival_refreshes)
{
    (void)admit("A", 5);
    (void)admit("BCD", NO_TTL);
    ck_assert_int_eq(reserve("A", NO_TTL), UC_OK);
    now_ms = 5;
    ck_assert_int_eq(commit("A", true), UC_OK);
    ck_assert_str_eq(admit("X", NO_TTL), "B");
}
END_TEST

/* pitfall P25 */
START_TEST(lookup_does_not_refresh)
{
    (void)admit("ABCD", NO_TTL);
    (void)lookup("A");
    ck_assert_str_eq(admit("X", NO_TTL), "A");
}
END_TEST

/* a pin per occurrence, one refresh per block, in the order of the list */
START_TEST(pin_counts_occurrences_and_refreshes_once)
{
    (void)admit("ABCD", NO_TTL);
    ck_assert_int_eq(pin("ABA"), UC_OK);
    ck_assert_uint_eq(peek('A').pin_count, 2);
    ck_assert_uint_eq(slots[0].slot, slots[2].slot);
    unpin("ABA");
    ck_assert_uint_eq(stats().pinned, 0);
    ck_assert_str_eq(admit("WXYZ", NO_TTL), "CDAB");
}
END_TEST

/* */
START_TEST(failed_pin_leaves_no_trace)
{
    (void)admit("ABCD", NO_TTL);
    ck_assert_int_eq(pin("ABN"), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(stats().pinned, 0);
    ck_assert_uint_eq(stats().evictable, 4);
    ck_assert_str_eq(admit("X", NO_TTL), "A"); /* hotness untouched */
}
END_TEST

/* */
START_TEST(commit_concludes_what_it_can)
{
    ck_assert_int_eq(reserve("AB", NO_TTL), UC_OK);
    ck_assert_int_eq(commit("ANB", true), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_VISIBLE);
    ck_assert_int_eq(outcomes[1], UC_CACHE_OUTCOME_NONE);
    ck_assert_int_eq(outcomes[2], UC_CACHE_OUTCOME_VISIBLE);
    ck_assert_str_eq(lookup("AB"), "11");
}
END_TEST

static enum uc_status
revoke(char letter, uint64_t generation)
{
    struct uc_block_id id = block(letter);

    return uc_cache_buffer_revoke(buffer, &id, generation);
}

/* */
START_TEST(revoked_block_is_gone_and_can_be_written_again)
{
    struct uc_cache_info before;

    (void)admit("A", NO_TTL);
    before = peek('A');
    ck_assert_int_eq(revoke('A', before.generation + 1), UC_ERR_NOT_FOUND);
    ck_assert_str_eq(lookup("A"), "1");
    ck_assert_int_eq(revoke('A', before.generation), UC_OK);
    ck_assert_int_eq(peek('A').state, UC_CACHE_EXPIRED);
    ck_assert_int_eq(reserve("A", NO_TTL), UC_OK); /* unheld: counts as unknown */
    ck_assert_int_eq(slots[0].admission, UC_CACHE_NEWCOMER);
    ck_assert_int_eq(commit("A", true), UC_OK);
    ck_assert_str_eq(lookup("A"), "1");
    ck_assert_int_eq(revoke('A', before.generation), UC_ERR_NOT_FOUND); /* a late report */
    ck_assert_str_eq(lookup("A"), "1");
}
END_TEST

START_TEST(revoked_block_is_not_revived_while_held)
{
    (void)admit("A", NO_TTL);
    ck_assert_int_eq(pin("A"), UC_OK);
    ck_assert_int_eq(revoke('A', peek('A').generation), UC_OK);
    ck_assert_int_eq(reserve("A", 100), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_READMITTED);
    ck_assert_int_eq(commit("A", true), UC_OK);
    ck_assert_int_eq(outcomes[0], UC_CACHE_OUTCOME_EXPIRED);
    ck_assert_str_eq(lookup("A"), "0");
    unpin("A");
    ck_assert_str_eq(lookup("A"), "0");
    ck_assert_uint_eq(stats().free, 4);
}
END_TEST

START_TEST(pending_and_absent_blocks_cannot_be_revoked)
{
    ck_assert_int_eq(reserve("A", NO_TTL), UC_OK);
    ck_assert_int_eq(revoke('A', slots[0].generation), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(revoke('N', 1), UC_ERR_NOT_FOUND);
}
END_TEST

/* with: in a full cache the revoked copy is in flight, so there is no room after all. */
START_TEST(revoked_block_in_flight_leaves_no_room_for_its_successor)
{
    uint32_t slot;

    (void)admit("ABCD", NO_TTL);
    ck_assert_int_eq(pin("BCD"), UC_OK);
    slot = peek('A').slot;
    ck_assert_int_eq(uc_cache_buffer_transfer_begin(buffer, slot, peek('A').generation), UC_OK);
    ck_assert_int_eq(revoke('A', peek('A').generation), UC_OK);
    ck_assert_int_eq(reserve("A", NO_TTL), UC_ERR_NO_SPACE);
    uc_cache_buffer_transfer_end(buffer, slot);
    ck_assert_int_eq(reserve("A", NO_TTL), UC_OK);
    ck_assert_int_eq(slots[0].admission, UC_CACHE_NEWCOMER);
}
END_TEST

/* */
START_TEST(touch_ignores_what_is_not_alive)
{
    (void)admit("A", 5);
    ck_assert_int_eq(reserve("B", 5), UC_OK);
    now_ms = 5;
    touch("ABN", 100);
    ck_assert_str_eq(lookup("AB"), "00");
    ck_assert_uint_eq(stats().blocks, 0);
    ck_assert_uint_eq(stats().reserved, 1);
}
END_TEST

/* The budget of ARCHITECTURE.md: at most 128 bytes of index per block. */
START_TEST(index_needs_at_most_128_bytes_per_block)
{
    struct uc_cache_config config = {.capacity = 100000, .clock = {.now_ms = fixture_now_ms}};
    struct uc_cache_buffer *large;

    ck_assert_int_eq(uc_cache_buffer_create(&config, &large), UC_OK);
    ck_assert_uint_le(uc_cache_buffer_stats(large).memory_bytes, 128 * config.capacity);
    uc_cache_buffer_destroy(large);
}
END_TEST

/* Batches beyond the first scratch and beyond one chunk of the map. */
START_TEST(large_batches_work)
{
    enum {
        COUNT = 1000
    };
    struct uc_cache_config config = {.capacity = COUNT, .clock = {.now_ms = fixture_now_ms}};
    static struct uc_block_id ids[COUNT];
    static struct uc_cache_slot places[COUNT];
    static uint8_t hits[COUNT];
    struct uc_cache_buffer *large;

    for (size_t idx = 0; idx < COUNT; idx++) {
        ids[idx].bytes[0] = (uint8_t)idx;
        ids[idx].bytes[7] = (uint8_t)(idx >> 8);
    }
    ck_assert_int_eq(uc_cache_buffer_create(&config, &large), UC_OK);
    ck_assert_int_eq(
            uc_cache_buffer_reserve(large, ids, COUNT, NULL, NULL, places, NULL, NULL), UC_OK);
    ck_assert_int_eq(uc_cache_buffer_commit(large, ids, COUNT, true, NULL), UC_OK);
    ck_assert_int_eq(uc_cache_buffer_pin(large, ids, COUNT, places), UC_OK);
    uc_cache_buffer_lookup(large, ids, COUNT, hits);
    for (size_t idx = 0; idx < COUNT; idx++) {
        ck_assert_uint_eq(hits[idx], 1);
        ck_assert_uint_eq(places[idx].slot, idx);
    }
    uc_cache_buffer_unpin(large, ids, COUNT);
    ck_assert_uint_eq(uc_cache_buffer_stats(large).evictable, COUNT);
    uc_cache_buffer_destroy(large);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_buffer");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, drop_cache);
    tcase_add_test(tcase, create_names_what_is_wrong);
    tcase_add_test(tcase, empty_batches_are_refused_where_they_have_no_meaning);
    tcase_add_test(tcase, reservation_is_invisible_and_cannot_be_pinned);
    tcase_add_test(tcase, batch_never_evicts_its_own_members);
    tcase_add_test(tcase, feasibility_is_exact);
    tcase_add_test(tcase, batch_larger_than_the_cache_is_no_space);
    tcase_add_test(tcase, infeasible_batch_sweeps_nothing);
    tcase_add_test(tcase, newcomer_takes_free_then_swept_then_evicted);
    tcase_add_test(tcase, expired_blocks_stay_while_there_is_room);
    tcase_add_test(tcase, deferred_block_is_swept_later);
    tcase_add_test(tcase, revived_block_leaves_the_deferred_list);
    tcase_add_test(tcase, expired_block_under_a_transfer_drains);
    tcase_add_test(tcase, ttl_zero_expires_at_the_commit);
    tcase_add_test(tcase, saturated_deadline_never_arrives);
    tcase_add_test(tcase, many_touches_do_not_outgrow_the_heap);
    tcase_add_test(tcase, held_expired_block_may_be_readmitted_and_stays_hidden);
    tcase_add_test(tcase, readmission_of_a_live_block_does_not_refresh_it);
    tcase_add_test(tcase, revival_refreshes);
    tcase_add_test(tcase, lookup_does_not_refresh);
    tcase_add_test(tcase, pin_counts_occurrences_and_refreshes_once);
    tcase_add_test(tcase, failed_pin_leaves_no_trace);
    tcase_add_test(tcase, commit_concludes_what_it_can);
    tcase_add_test(tcase, revoked_block_is_gone_and_can_be_written_again);
    tcase_add_test(tcase, revoked_block_is_not_revived_while_held);
    tcase_add_test(tcase, pending_and_absent_blocks_cannot_be_revoked);
    tcase_add_test(tcase, revoked_block_in_flight_leaves_no_room_for_its_successor);
    tcase_add_test(tcase, touch_ignores_what_is_not_alive);
    tcase_add_test(tcase, index_needs_at_most_128_bytes_per_block);
    tcase_add_test(tcase, large_batches_work);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
