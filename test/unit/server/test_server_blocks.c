/* SPDX-License-Identifier: Apache-2.0 */

/* Life of blocks through real connections: grants, brackets, visibility. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "server_fixture.h"

static struct test_peer *control;
static struct test_peer *worker;

static void
setup(void)
{
    fixture_start(NULL, NULL);
    control = test_session(UC_ACCESS_RW);
    worker = test_worker(control);
}

static void
teardown(void)
{
    test_close(worker);
    test_close(control);
    fixture_stop();
}

static struct test_grant
alloc(struct test_peer *peer, unsigned first, unsigned count)
{
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(peer, first, count, &grant), UC_OK);
    return grant;
}

static void
put(unsigned first, unsigned count)
{
    struct test_grant grant = alloc(control, first, count);

    test_write_whole(worker, &grant, 1);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
}

/* what was written and committed is found; what was only reserved is not. */
START_TEST(block_is_visible_after_write_and_commit_only)
{
    struct test_grant grant = alloc(control, 1, 3);

    ck_assert_uint_eq(test_lookup(control, 1, 3), 0);
    test_write_whole(worker, &grant, 1);
    ck_assert_uint_eq(test_lookup(control, 1, 3), 0);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 4), 7);
    ck_assert_uint_eq(test_stat(control).committed_blocks_total, 3);
}
END_TEST

/* P5: a commit without any Dump must leave the block invisible. */
START_TEST(commit_without_write_is_a_hole)
{
    struct test_grant grant = alloc(control, 1, 2);
    struct uc_stat_reply stat;

    ck_assert_int_eq(test_commit(control, grant.id, true), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(test_lookup(control, 1, 2), 0);
    stat = test_stat(control);
    ck_assert_uint_eq(stat.holes_total, 2);
    ck_assert_uint_eq(stat.reserved_slots, 0);
    ck_assert_uint_eq(stat.free_slots, FIXTURE_CAPACITY);
}
END_TEST

START_TEST(hole_fails_its_own_block_only)
{
    struct test_grant grant = alloc(control, 1, 2);
    struct uc_written_range ranges[2] = {
            {0, 100, 100}, /* whole, though shorter than a slot */
            {0, 50, 100},  /* half of what it announces */
    };

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 2), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, true, ranges, 2), UC_OK);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(test_lookup(control, 1, 2), 1);
}
END_TEST

/* Several workers write their layers of one block, in any order and at the same time. */
START_TEST(layers_of_two_workers_make_one_block)
{
    struct test_grant grant = alloc(control, 1, 1);
    struct test_peer *other = test_worker(control);
    struct uc_written_range low = {0, 1000, 3000};
    struct uc_written_range high = {1000, 2000, 3000};

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(test_begin(other, grant.id, 1, 0, 1), UC_OK);
    ck_assert_uint_eq(test_stat(control).open_brackets, 2);
    ck_assert_int_eq(test_end(other, 1, true, &high, 1), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, true, &low, 1), UC_OK);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1);
    ck_assert_int_eq(test_pin(control, 1, 1, &grant), UC_OK);
    ck_assert_uint_eq(grant.entries[0].length_bytes, 3000);
    test_close(other);
}
END_TEST

START_TEST(bitmap_judges_key_by_key)
{
    struct test_grant grant = alloc(control, 1, 3);

    test_write_whole(worker, &grant, 1);
    ck_assert_int_eq(test_commit_bitmap(control, grant.id, 5), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 3), 5);
}
END_TEST

START_TEST(grant_is_concluded_once)
{
    struct test_grant grant = alloc(control, 1, 1);

    test_write_whole(worker, &grant, 1);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_int_eq(test_commit(control, grant.id, false), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1); /* a stray failure drops nothing */
    ck_assert_int_eq(test_begin(worker, grant.id, 2, 0, 1), UC_ERR_NOT_FOUND);
}
END_TEST

START_TEST(grant_of_another_session_is_out_of_reach)
{
    struct test_peer *stranger = test_session(UC_ACCESS_RW);
    struct test_peer *stranger_worker = test_worker(stranger);
    struct test_grant grant = alloc(control, 1, 1);

    ck_assert_int_eq(test_commit(stranger, grant.id, true), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(test_begin(stranger_worker, grant.id, 1, 0, 1), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(test_unpin(stranger, grant.id), UC_OK); /* unknown: changes nothing */
    ck_assert_uint_eq(test_stat(control).reserved_slots, 1);
    test_close(stranger_worker);
    test_close(stranger);
}
END_TEST

/* one writer; the others' entries move nothing and give no verdict. */
START_TEST(second_alloc_of_a_pending_block_is_shared)
{
    struct test_peer *sharer = test_session(UC_ACCESS_RW);
    struct test_grant first = alloc(control, 1, 2);
    struct test_grant second = alloc(sharer, 2, 2);

    ck_assert_uint_eq(second.entries[0].flags, UC_ENTRY_SHARED);
    ck_assert_uint_eq(second.entries[1].flags, 0);
    ck_assert_uint_eq(test_stat(control).shared_keys_total, 1);
    /* Its commit of the shared key neither drops nor shows the block. */
    ck_assert_int_eq(test_commit_bitmap(sharer, second.id, 1), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 3), 0);
    test_write_whole(worker, &first, 1);
    ck_assert_int_eq(test_commit(control, first.id, true), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 3), 3);
    test_close(sharer);
}
END_TEST

START_TEST(shared_block_of_a_failed_writer_is_written_by_the_next)
{
    struct test_peer *sharer = test_session(UC_ACCESS_RW);
    struct test_grant first = alloc(control, 1, 1);
    struct test_grant second = alloc(sharer, 1, 1);
    struct test_grant third;

    ck_assert_int_eq(test_commit(control, first.id, false), UC_OK);
    ck_assert_int_eq(test_commit(sharer, second.id, true), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 0);
    third = alloc(control, 1, 1);
    ck_assert_uint_eq(third.entries[0].flags, 0);
    ck_assert_uint_ne(third.entries[0].generation, first.entries[0].generation);
    test_close(sharer);
}
END_TEST

/* a committed block is held, not written, and no verdict changes it. */
START_TEST(alloc_of_a_committed_block_is_present)
{
    struct test_grant grant;

    put(1, 1);
    grant = alloc(control, 1, 2);
    ck_assert_uint_eq(grant.entries[0].flags, UC_ENTRY_PRESENT);
    ck_assert_uint_eq(grant.entries[1].flags, 0);
    ck_assert_uint_eq(test_stat(control).pinned_slots, 1);
    ck_assert_int_eq(test_commit(control, grant.id, false), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 2), 1);
    ck_assert_uint_eq(test_stat(control).pinned_slots, 0);
    grant = alloc(control, 1, 1);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1);
}
END_TEST

START_TEST(key_listed_twice_is_refused)
{
    struct uc_block_id ids[3] = {test_id(1), test_id(2), test_id(1)};
    struct test_grant grant;

    ck_assert_int_eq(test_alloc_ids(control, ids, 3, &grant), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(test_stat(control).reserved_slots, 0);
    (void)alloc(control, 1, 1); /* pending now: the second time they would be shared */
    ck_assert_int_eq(test_alloc_ids(control, ids, 3, &grant), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_alloc_ids(control, ids, 0, &grant), UC_ERR_INVALID_PARAM);
}
END_TEST

/* P28: no room is an answer, not a wait; committed blocks make room, pinned ones do not. */
START_TEST(full_server_answers_no_space_until_something_can_go)
{
    struct test_grant pinned;
    struct test_grant grant;

    put(0, FIXTURE_CAPACITY);
    ck_assert_int_eq(test_pin(control, 0, FIXTURE_CAPACITY - 1, &pinned), UC_OK);
    ck_assert_int_eq(test_alloc(control, 100, 2, &grant), UC_ERR_NO_SPACE);
    ck_assert_uint_eq(test_lookup(control, 0, FIXTURE_CAPACITY), 0xff);
    ck_assert_int_eq(test_alloc(control, 100, 1, &grant), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 0, FIXTURE_CAPACITY), 0x7f);
    ck_assert_uint_eq(test_stat(control).evicted_blocks_total, 1);
    ck_assert_int_eq(test_unpin(control, pinned.id), UC_OK);
    ck_assert_uint_eq(test_stat(control).pinned_slots, 0);
}
END_TEST

/* */
START_TEST(pin_is_all_or_nothing_and_unpin_may_come_twice)
{
    struct test_grant grant;

    put(1, 1);
    ck_assert_int_eq(test_pin(control, 1, 2, &grant), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(test_stat(control).pinned_slots, 0);
    ck_assert_int_eq(test_pin(control, 1, 1, &grant), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(test_stat(control).pinned_slots, 1);
    ck_assert_int_eq(test_unpin(control, grant.id), UC_OK);
    ck_assert_int_eq(test_unpin(control, grant.id), UC_OK);
    ck_assert_uint_eq(test_stat(control).pinned_slots, 0);
}
END_TEST

/* the slot is parked until the writer has let go. */
START_TEST(commit_under_an_open_bracket_fails_and_parks_the_slot)
{
    struct test_grant grant = alloc(control, 1, 1);
    struct uc_written_range range = {0, 10, 10};

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 0);
    ck_assert_uint_eq(test_stat(control).draining_slots, 1);
    ck_assert_int_eq(test_end(worker, 1, true, &range, 1), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(test_stat(control).draining_slots, 0);
    ck_assert_uint_eq(test_stat(control).free_slots, FIXTURE_CAPACITY);
}
END_TEST

/* P3: what a failed writer may still have under way is fenced before the answer. */
START_TEST(failed_write_end_is_answered_after_the_fence)
{
    struct test_grant grant = alloc(control, 1, 1);

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, false, NULL, 0), UC_OK);
    ck_assert_uint_eq(test_stat(control).fences_total, 1);
    ck_assert_uint_eq(test_stat(control).open_brackets, 0);
    ck_assert_int_eq(test_end(worker, 1, false, NULL, 0), UC_ERR_NOT_FOUND);
    /* The grant lives: the writer may connect again and write again. */
    ck_assert_int_eq(
            test_attach(worker, control->hello.attach_key, control->hello.incarnation), UC_OK);
    test_write_whole(worker, &grant, 1);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1);
}
END_TEST

/* What a write_end may not say. */
static const struct uc_written_range bad_ranges[] = {
        {FIXTURE_BLOCK_BYTES, 1, 0},     /* one byte past the block */
        {UINT64_MAX, 2, 0},              /* wraps */
        {1, UINT64_MAX, 0},              /* likewise */
        {0, FIXTURE_BLOCK_BYTES + 1, 0}, /* longer than a block */
        {0, 1, FIXTURE_BLOCK_BYTES + 1}, /* announces more than a block */
        {FIXTURE_BLOCK_BYTES + 1, 0, 0}, /* nothing, but outside */
};

START_TEST(range_outside_the_block_is_refused_and_fenced)
{
    struct test_grant grant = alloc(control, 1, 1);

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, true, &bad_ranges[_i], 1), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(test_stat(control).fences_total, 1);
    ck_assert_uint_eq(test_stat(control).open_brackets, 0);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(write_end_with_another_number_of_ranges_is_refused)
{
    struct test_grant grant = alloc(control, 1, 2);
    struct uc_written_range range = {0, 10, 10};

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 2), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, true, &range, 1), UC_ERR_INVALID_PARAM);
}
END_TEST

/* {first, count} of a grant of two keys */
static const struct {
    uint64_t first;
    uint64_t count;
} bad_brackets[] = {{0, 0}, {0, 3}, {2, 1}, {3, 0}, {1, UINT64_MAX}, {UINT64_MAX, 1}};

START_TEST(bracket_outside_its_grant_is_refused)
{
    struct test_grant grant = alloc(control, 1, 2);

    ck_assert_int_eq(
            test_begin(worker, grant.id, 1, bad_brackets[_i].first, bad_brackets[_i].count),
            UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(test_stat(control).open_brackets, 0);
}
END_TEST

START_TEST(bracket_number_is_unique_while_it_is_open)
{
    struct test_grant grant = alloc(control, 1, 1);

    ck_assert_int_eq(test_begin(worker, grant.id, 9, 0, 1), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 9, 0, 1), UC_ERR_DUPLICATE_KEY);
    ck_assert_int_eq(test_end(worker, 9, false, NULL, 0), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 9, 0, 1), UC_OK);
}
END_TEST

static void
add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, block_is_visible_after_write_and_commit_only);
    tcase_add_test(tcase, commit_without_write_is_a_hole);
    tcase_add_test(tcase, hole_fails_its_own_block_only);
    tcase_add_test(tcase, layers_of_two_workers_make_one_block);
    tcase_add_test(tcase, bitmap_judges_key_by_key);
    tcase_add_test(tcase, grant_is_concluded_once);
    tcase_add_test(tcase, grant_of_another_session_is_out_of_reach);
    tcase_add_test(tcase, second_alloc_of_a_pending_block_is_shared);
    tcase_add_test(tcase, shared_block_of_a_failed_writer_is_written_by_the_next);
    tcase_add_test(tcase, alloc_of_a_committed_block_is_present);
    tcase_add_test(tcase, key_listed_twice_is_refused);
    tcase_add_test(tcase, full_server_answers_no_space_until_something_can_go);
    tcase_add_test(tcase, pin_is_all_or_nothing_and_unpin_may_come_twice);
    tcase_add_test(tcase, commit_under_an_open_bracket_fails_and_parks_the_slot);
    tcase_add_test(tcase, failed_write_end_is_answered_after_the_fence);
    tcase_add_loop_test(tcase, range_outside_the_block_is_refused_and_fenced, 0,
            (int)(sizeof(bad_ranges) / sizeof(bad_ranges[0])));
    tcase_add_test(tcase, write_end_with_another_number_of_ranges_is_refused);
    tcase_add_loop_test(tcase, bracket_outside_its_grant_is_refused, 0,
            (int)(sizeof(bad_brackets) / sizeof(bad_brackets[0])));
    tcase_add_test(tcase, bracket_number_is_unique_while_it_is_open);
}

int
main(void)
{
    Suite *suite = suite_create("server/blocks");
    TCase *tcase = tcase_create("blocks");
    SRunner *runner;
    int failed_count;

    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
