/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What disciplines cost, counted in slots that they look at. They are linked against a pool of this
 * file, which answers from an array and counts.
 */

#include <stdlib.h>

#include <check.h>

#include "core/cache/policy.h"

extern const struct uc_policy_ops uc_policy_lru;
extern const struct uc_policy_ops uc_policy_clock;
extern const struct uc_policy_ops uc_policy_fifo;

enum {
    CAPACITY = 1000
};

static size_t looks;
static bool held[CAPACITY];
static bool admitted[CAPACITY];
static const struct uc_policy_hints nothing;
static const struct uc_policy_ops *ops;
static void *discipline;

/* The pool, as far as disciplines see it. */

bool
uc_policy_is_evictable(const struct uc_policy *policy, uint32_t slot)
{
    (void)policy;
    looks++;
    return slot < CAPACITY && admitted[slot] && !held[slot];
}

void *
uc_policy_allocate(struct uc_policy *policy, size_t count, size_t size_bytes)
{
    (void)policy;
    return calloc(count, size_bytes);
}

void
uc_policy_prefetch(const struct uc_policy *policy, uint32_t slot)
{
    (void)policy;
    (void)slot;
}

static void
admit(uint32_t slot)
{
    admitted[slot] = true;
    ops->on_slot_admitted(discipline, slot, &nothing);
}

static uint32_t
take_victim(void)
{
    uint32_t slot = ops->select_victim_slot(discipline);

    ck_assert_uint_lt(slot, CAPACITY);
    ck_assert(admitted[slot] && !held[slot]);
    admitted[slot] = false;
    ops->on_slot_released(discipline, slot);
    return slot;
}

static void
fill(const struct uc_policy_ops *which)
{
    struct uc_policy *no_pool = NULL;

    ops = which;
    ck_assert_int_eq(ops->on_setup(no_pool, CAPACITY, NULL, NULL, &discipline), UC_OK);
    for (uint32_t slot = 0; slot < CAPACITY; slot++) {
        admit(slot);
    }
    looks = 0;
}

static void
teardown(void)
{
    ops->destroy(discipline);
}

static const struct uc_policy_ops *
list_discipline(int which)
{
    return which == 0 ? &uc_policy_lru : &uc_policy_fifo;
}

/* a list in order, so each victim is the first one looked at. */
START_TEST(list_looks_at_its_victim_alone)
{
    fill(list_discipline(_i));
    for (uint32_t round = 0; round < 3 * CAPACITY; round++) {
        admit(take_victim());
    }
    ck_assert_uint_eq(looks, 3 * CAPACITY);
}
END_TEST

/* "plus skipped slots" */
START_TEST(list_looks_at_what_it_skips)
{
    fill(list_discipline(_i));
    for (uint32_t slot = 0; slot < 10; slot++) {
        held[slot] = true;
    }
    ck_assert_uint_eq(take_victim(), 10);
    ck_assert_uint_eq(looks, 11);
}
END_TEST

/* the hand clears a bit for every one that an admission or a touch has set, and no more. */
START_TEST(hand_of_the_clock_goes_no_further_than_its_bits)
{
    const uint32_t rounds = 10 * CAPACITY;
    size_t bits = CAPACITY;

    fill(&uc_policy_clock);
    for (uint32_t round = 0; round < rounds; round++) {
        admit(take_victim());
        bits++;
        if (round % 3 == 0) {
            ops->on_slot_touched(discipline, round % CAPACITY, &nothing);
            bits++;
        }
    }
    ck_assert_uint_le(looks, bits + rounds);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_cost");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, list_looks_at_its_victim_alone, 0, 2);
    tcase_add_loop_test(tcase, list_looks_at_what_it_skips, 0, 2);
    tcase_add_test(tcase, hand_of_the_clock_goes_no_further_than_its_bits);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
