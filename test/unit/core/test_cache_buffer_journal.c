/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rollback of a Reserve that fails after it began to evict (16.4). makes that rare, so the
 * discipline here runs out of victims on purpose.
 */

#include "test/unit/core/cache_fixture.h"

static const struct uc_policy_ops *lru;
static size_t victims_left;
static uint64_t hint_count; /* of hints that came through */
static struct uc_policy_hints last_hints;

static enum uc_status
fickle_setup(struct uc_policy *policy, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, void **state_out)
{
    return lru->on_setup(policy, capacity, parameters, clock, state_out);
}

static void
fickle_destroy(void *state)
{
    lru->destroy(state);
}

static void
fickle_admitted(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    last_hints = *hints;
    hint_count++;
    lru->on_slot_admitted(state, slot, hints);
}

static void
fickle_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    lru->on_slot_touched(state, slot, hints);
}

static void
fickle_released(void *state, uint32_t slot)
{
    lru->on_slot_released(state, slot);
}

static uint32_t
fickle_victim(void *state)
{
    if (victims_left == 0) {
        return UC_SLOT_NONE;
    }

    victims_left--;
    return lru->select_victim_slot(state);
}

static struct uc_policy_ops fickle = {
        .name = "fickle",
        .on_setup = fickle_setup,
        .destroy = fickle_destroy,
        .on_slot_admitted = fickle_admitted,
        .on_slot_touched = fickle_touched,
        .on_slot_released = fickle_released,
        .select_victim_slot = fickle_victim,
};

static void
setup(void)
{
    lru = uc_policy_find("lru");
    victims_left = SIZE_MAX;
    fickle.leaf_first = false;
    make_cache_with(4, &fickle);
}

/* same slot, same generation, same deadline. */
START_TEST(victims_come_back_as_they_were)
{
    struct uc_cache_info before[3];
    struct uc_cache_stats stats_before;

    (void)admit("ABC", 50);
    for (size_t idx = 0; idx < 3; idx++) {
        before[idx] = peek((char)('A' + idx));
    }
    stats_before = stats();
    victims_left = 2;
    ck_assert_int_eq(reserve("WXYZ", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_str_eq(evicted, "");

    for (size_t idx = 0; idx < 3; idx++) {
        struct uc_cache_info after = peek((char)('A' + idx));

        ck_assert_mem_eq(&after, &before[idx], sizeof(after));
    }
    ck_assert_uint_eq(stats().free, stats_before.free);
    ck_assert_uint_eq(stats().evictable, stats_before.evictable);
    ck_assert_uint_eq(stats().reserved, 0);
    ck_assert_uint_eq(stats().evicted_total, 0);
    ck_assert_str_eq(lookup("ABCWXYZ"), "1110000");
}
END_TEST

START_TEST(restored_victim_still_expires)
{
    (void)admit("AB", 50);
    (void)admit("CD", NO_TTL);
    victims_left = 1;
    ck_assert_int_eq(reserve("XY", NO_TTL), UC_ERR_NO_SPACE);
    victims_left = SIZE_MAX;
    ck_assert_str_eq(lookup_at(49, "AB"), "11");
    now_ms = 50;
    ck_assert_int_eq(reserve("XY", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, ""); /* A and B were swept */
    ck_assert_uint_eq(stats().expired_total, 2);
}
END_TEST

/* the heap's count of live items survives a rollback (asserted whenever it is rebuilt). */
START_TEST(deadlines_can_be_moved_for_ever_after_a_rollback)
{
    (void)admit("AB", 50);
    (void)admit("CD", NO_TTL);
    victims_left = 1;
    ck_assert_int_eq(reserve("XY", NO_TTL), UC_ERR_NO_SPACE);
    victims_left = SIZE_MAX;
    for (now_ms = 1; now_ms < 1000; now_ms++) {
        touch("AB", 50);
    }
    now_ms = 2000;
    ck_assert_int_eq(reserve("XY", NO_TTL), UC_OK);
    ck_assert_str_eq(evicted, "");
}
END_TEST

/* references, pins and ttl of known blocks as before. */
START_TEST(known_blocks_lose_what_the_batch_gave_them)
{
    (void)admit("AB", 50);
    ck_assert_int_eq(reserve("P", 5), UC_OK);
    ck_assert_int_eq(reserve("A", 70), UC_OK);
    victims_left = 0;
    ck_assert_int_eq(reserve("PAXY", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_uint_eq(peek('A').pin_count, 1);
    ck_assert_uint_eq(stats().free, 1);

    ck_assert_int_eq(commit("P", true), UC_OK);
    ck_assert_uint_eq(peek('P').deadline_ms, 5);
    now_ms = 50;
    ck_assert_int_eq(commit("A", true), UC_OK); /* revived by its own ttl, not the batch's */
    ck_assert_uint_eq(peek('A').deadline_ms, 120);
}
END_TEST

/* */
START_TEST(free_slots_return_in_the_old_order)
{
    (void)admit("AB", NO_TTL);
    ck_assert_int_eq(pin("AB"), UC_OK);
    ck_assert_int_eq(reserve("XYZ", NO_TTL), UC_ERR_NO_SPACE); /* infeasible: nothing was taken */
    unpin("AB");
    victims_left = 0;
    ck_assert_int_eq(reserve("XYZ", NO_TTL), UC_ERR_NO_SPACE); /* took slots 2 and 3 first */
    ck_assert_uint_eq(stats().free, 2);
    ck_assert_int_eq(reserve("X", NO_TTL), UC_OK);
    ck_assert_uint_eq(slots[0].slot, 2);
    ck_assert_uint_eq(slots[0].generation, 2); /* an aborted slot has a new generation */
}
END_TEST

/* with: a revoked block that made room is not brought back. */
START_TEST(revoked_block_stays_away)
{
    struct uc_block_id id = block('A');

    (void)admit("ABCD", NO_TTL);
    ck_assert_int_eq(uc_cache_buffer_revoke(buffer, &id, peek('A').generation), UC_OK);
    victims_left = 0;
    ck_assert_int_eq(reserve("AX", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_int_eq(peek('A').state, UC_CACHE_ABSENT);
    ck_assert_uint_eq(stats().free, 1);
    ck_assert_str_eq(lookup("ABCD"), "0111");
}
END_TEST

/* hints reach the discipline at the commit, and a chain can be fed leaf → root. */
START_TEST(hints_reach_the_discipline)
{
    struct uc_block_id ids[2] = {block('A'), block('B')};
    struct uc_policy_hints hints[2] = {
            {.position = 1}, {.position = 2, .partial = true, .seen = 9}};

    hint_count = 0;
    ck_assert_int_eq(
            uc_cache_buffer_reserve(buffer, ids, 2, NULL, hints, slots, NULL, NULL), UC_OK);
    ck_assert_uint_eq(hint_count, 0);
    ck_assert_int_eq(commit("AB", true), UC_OK);
    ck_assert_uint_eq(hint_count, 2);
    ck_assert_uint_eq(last_hints.position, 2);
    ck_assert(last_hints.partial);
    ck_assert_uint_eq(last_hints.seen, 2);
}
END_TEST

START_TEST(leaf_first_disciplines_see_the_root_last)
{
    drop_cache();
    fickle.leaf_first = true;
    make_cache_with(4, &fickle);
    (void)admit("ABCD", NO_TTL);
    ck_assert_str_eq(admit("X", NO_TTL), "D"); /* A, the root, is hottest */
    ck_assert_int_eq(pin("ABC"), UC_OK);
    unpin("ABC");
    ck_assert_str_eq(admit("Y", NO_TTL), "X");
    ck_assert_str_eq(admit("Z", NO_TTL), "C");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_buffer_journal");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, drop_cache);
    tcase_add_test(tcase, victims_come_back_as_they_were);
    tcase_add_test(tcase, restored_victim_still_expires);
    tcase_add_test(tcase, deadlines_can_be_moved_for_ever_after_a_rollback);
    tcase_add_test(tcase, known_blocks_lose_what_the_batch_gave_them);
    tcase_add_test(tcase, free_slots_return_in_the_old_order);
    tcase_add_test(tcase, revoked_block_stays_away);
    tcase_add_test(tcase, hints_reach_the_discipline);
    tcase_add_test(tcase, leaf_first_disciplines_see_the_root_last);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
