/* SPDX-License-Identifier: Apache-2.0 */

/* Slot pool: transitions of 4.1 and the operations of section 15, on the lru discipline. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/cache/policy_internal.h"

static struct uc_policy *policy;
static const struct uc_policy_hints unknown;

/* A discipline that counts its hooks and picks whatever the case says. */
static struct {
    int admitted;
    int touched;
    int released;
    uint32_t victim;
} spy;

static enum uc_status
spy_setup(struct uc_policy *owner, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, void **state_out)
{
    (void)owner;
    (void)capacity;
    (void)parameters;
    (void)clock;
    *state_out = &spy;
    return UC_OK;
}

static void
spy_destroy(void *state)
{
    (void)state;
}

static void
spy_admitted(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    (void)state;
    (void)slot;
    (void)hints;
    spy.admitted++;
}

static void
spy_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    (void)state;
    (void)slot;
    (void)hints;
    spy.touched++;
}

static void
spy_released(void *state, uint32_t slot)
{
    (void)state;
    (void)slot;
    spy.released++;
}

static uint32_t
spy_victim(void *state)
{
    (void)state;
    return spy.victim;
}

static const struct uc_policy_ops spy_ops = {
        .name = "spy",
        .on_setup = spy_setup,
        .destroy = spy_destroy,
        .on_slot_admitted = spy_admitted,
        .on_slot_touched = spy_touched,
        .on_slot_released = spy_released,
        .select_victim_slot = spy_victim,
};

static void
setup(void)
{
    memset(&spy, 0, sizeof(spy));
    ck_assert_int_eq(uc_policy_create(&spy_ops, 3, NULL, NULL, &policy), UC_OK);
}

static void
setup_lru(void)
{
    ck_assert_int_eq(uc_policy_create(uc_policy_find("lru"), 3, NULL, NULL, &policy), UC_OK);
}

static void
teardown(void)
{
    uc_policy_destroy(policy);
}

static uint32_t
acquire(void)
{
    uint64_t generation;
    uint32_t slot;
    bool evicted;

    ck_assert_int_eq(uc_policy_acquire_slot(policy, &slot, &generation, &evicted), UC_OK);
    ck_assert_uint_eq(generation, uc_policy_generation(policy, slot));
    return slot;
}

static uint32_t
acquire_committed(void)
{
    uint32_t slot = acquire();

    ck_assert_int_eq(uc_policy_commit_slot(policy, slot, &unknown), UC_OK);
    return slot;
}

static enum uc_status
begin(uint32_t slot)
{
    return uc_policy_transfer_begin(policy, slot, uc_policy_generation(policy, slot));
}

static enum uc_status
acquire_status(void)
{
    uint64_t generation;
    uint32_t slot;
    bool evicted;

    return uc_policy_acquire_slot(policy, &slot, &generation, &evicted);
}

/* */
START_TEST(fresh_slots_come_in_order_with_generation_one)
{
    for (uint32_t want = 0; want < 3; want++) {
        ck_assert_uint_eq(acquire(), want);
        ck_assert_uint_eq(uc_policy_generation(policy, want), 1);
        ck_assert_uint_eq(uc_policy_free_count(policy), 2 - want);
    }
}
END_TEST

/* */
START_TEST(returned_slot_goes_to_the_front_with_the_next_generation)
{
    uint32_t first = acquire();

    (void)acquire();
    ck_assert_int_eq(uc_policy_abort_slot(policy, first), UC_OK);
    ck_assert_uint_eq(acquire(), first);
    ck_assert_uint_eq(uc_policy_generation(policy, first), 2);
}
END_TEST

/* none while occupied, else the next one; the last one points to itself. */
START_TEST(free_list_runs_through_the_slots)
{
    const struct slot *pool = policy->slots;

    ck_assert_uint_eq(pool[0].next_free, 1);
    ck_assert_uint_eq(pool[1].next_free, 2);
    ck_assert_uint_eq(pool[2].next_free, 2);
    for (uint32_t slot = 0; slot < 3; slot++) {
        ck_assert_uint_eq(acquire(), slot);
        ck_assert_uint_eq(pool[slot].next_free, UC_SLOT_NONE);
    }
    ck_assert_int_eq(uc_policy_abort_slot(policy, 1), UC_OK);
    ck_assert_uint_eq(pool[1].next_free, 1);
    ck_assert_int_eq(uc_policy_abort_slot(policy, 0), UC_OK);
    ck_assert_uint_eq(pool[0].next_free, 1);
}
END_TEST

/* */
START_TEST(hooks_fire_on_committed_slots_only)
{
    uint32_t slot = acquire();

    ck_assert_int_eq(uc_policy_abort_slot(policy, slot), UC_OK);
    ck_assert_int_eq(spy.admitted + spy.touched + spy.released, 0);

    slot = acquire_committed();
    ck_assert_int_eq(spy.admitted, 1);
    ck_assert_int_eq(uc_policy_touch_slot(policy, slot, &unknown), UC_OK);
    ck_assert_int_eq(spy.touched, 1);
    ck_assert_int_eq(uc_policy_release_slot(policy, slot), UC_OK);
    ck_assert_int_eq(spy.released, 1);
    ck_assert_uint_eq(uc_policy_free_count(policy), 3);
}
END_TEST

enum call {
    CALL_COMMIT,
    CALL_ABORT,
    CALL_RELEASE,
    CALL_TOUCH,
    CALL_PIN,
    CALL_UNPIN,
    CALL_COUNT
};

static enum uc_status
apply(enum call call, uint32_t slot)
{
    switch (call) {
    case CALL_COMMIT:
        return uc_policy_commit_slot(policy, slot, &unknown);
    case CALL_ABORT:
        return uc_policy_abort_slot(policy, slot);
    case CALL_RELEASE:
        return uc_policy_release_slot(policy, slot);
    case CALL_TOUCH:
        return uc_policy_touch_slot(policy, slot, &unknown);
    case CALL_PIN:
        return uc_policy_pin_slot(policy, slot);
    default:
        return uc_policy_unpin_slot(policy, slot);
    }
}

/* States of 4.1 and the calls that each allows; everything else is refused. */
static const struct {
    const char *name;
    bool open;
    bool committed;
    bool pinned;
    bool transfer;
    unsigned allowed; /* bit per call */
} state_cases[] = {
        {"free", false, false, false, false, 0},
        {"reserved", true, false, false, false, 1u << CALL_COMMIT | 1u << CALL_ABORT},
        {"reserved, transfer", true, false, false, true, 1u << CALL_ABORT},
        {"committed", true, true, false, false,
                1u << CALL_RELEASE | 1u << CALL_TOUCH | 1u << CALL_PIN},
        {"committed, transfer", true, true, false, true,
                1u << CALL_RELEASE | 1u << CALL_TOUCH | 1u << CALL_PIN},
        {"pinned", true, true, true, false, 1u << CALL_TOUCH | 1u << CALL_PIN | 1u << CALL_UNPIN},
        {"draining", false, false, false, true, 0},
};

static uint32_t
enter_state(int idx)
{
    uint32_t slot = acquire();

    if (state_cases[idx].committed) {
        ck_assert_int_eq(apply(CALL_COMMIT, slot), UC_OK);
    }
    if (state_cases[idx].pinned) {
        ck_assert_int_eq(apply(CALL_PIN, slot), UC_OK);
    }
    if (state_cases[idx].transfer) {
        ck_assert_int_eq(begin(slot), UC_OK);
    }
    if (!state_cases[idx].open) {
        ck_assert_int_eq(apply(CALL_ABORT, slot), UC_OK);
    }
    return slot;
}

/* */
START_TEST(each_state_allows_its_transitions_and_no_others)
{
    for (int call = 0; call < CALL_COUNT; call++) {
        bool allowed = (state_cases[_i].allowed >> call & 1u) != 0;
        struct uc_policy *old = policy;
        uint64_t generation;
        size_t evictable;
        uint32_t slot;

        ck_assert_int_eq(uc_policy_create(&spy_ops, 3, NULL, NULL, &policy), UC_OK);
        slot = enter_state(_i);
        generation = uc_policy_generation(policy, slot);
        evictable = uc_policy_evictable_count(policy);
        ck_assert_msg(apply((enum call)call, slot) == (allowed ? UC_OK : UC_ERR_INVALID_PARAM),
                "%s: call %d", state_cases[_i].name, call);
        if (!allowed) {
            ck_assert_uint_eq(uc_policy_generation(policy, slot), generation);
            ck_assert_uint_eq(uc_policy_evictable_count(policy), evictable);
        }
        uc_policy_destroy(policy);
        policy = old;
    }
}
END_TEST

/* COMMITTED, no pins, no transfers: counted at each transition */
START_TEST(only_committed_idle_slots_are_evictable)
{
    bool want = state_cases[_i].committed && !state_cases[_i].pinned && !state_cases[_i].transfer;
    uint32_t slot = enter_state(_i);

    ck_assert_int_eq(uc_policy_is_evictable(policy, slot), want);
    ck_assert_uint_eq(uc_policy_evictable_count(policy), want ? 1 : 0);
}
END_TEST

/* */
START_TEST(transfer_begins_on_open_slots_of_its_generation_only)
{
    uint32_t slot = enter_state(_i);
    uint64_t generation = uc_policy_generation(policy, slot);
    uint32_t before = uc_policy_transfer_count(policy, slot);

    ck_assert_int_eq(uc_policy_transfer_begin(policy, slot, generation),
            state_cases[_i].open ? UC_OK : UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_policy_transfer_begin(policy, slot, generation + 1), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_policy_transfer_begin(policy, slot, 0), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(
            uc_policy_transfer_count(policy, slot), before + (state_cases[_i].open ? 1 : 0));
}
END_TEST

/* : free and draining slots are counted */
START_TEST(draining_slot_is_free_after_its_last_transfer)
{
    uint32_t slot = _i == 0 ? acquire() : acquire_committed();

    ck_assert_int_eq(begin(slot), UC_OK);
    ck_assert_int_eq(begin(slot), UC_OK);
    ck_assert_int_eq(
            _i == 0 ? uc_policy_abort_slot(policy, slot) : uc_policy_release_slot(policy, slot),
            UC_OK);
    ck_assert_uint_eq(uc_policy_draining_count(policy), 1);
    ck_assert_uint_eq(uc_policy_free_count(policy), 2);

    uc_policy_transfer_end(policy, slot);
    ck_assert_uint_eq(uc_policy_draining_count(policy), 1);
    uc_policy_transfer_end(policy, slot);
    ck_assert_uint_eq(uc_policy_draining_count(policy), 0);
    ck_assert_uint_eq(uc_policy_free_count(policy), 3);
    ck_assert_uint_eq(acquire(), slot); /* in front of the free list */
}
END_TEST

/* a data thread counts the slot as returned a moment after the control thread can have it. */
START_TEST(slot_taken_before_its_return_is_counted_is_not_free)
{
    uint32_t slots[3] = {acquire(), acquire(), acquire()};

    ck_assert_int_eq(begin(slots[0]), UC_OK);
    ck_assert_int_eq(uc_policy_abort_slot(policy, slots[0]), UC_OK);
    (void)atomic_fetch_add(&policy->draining, 1); /* as if the thread stopped before it counts */
    uc_policy_transfer_end(policy, slots[0]);
    ck_assert_uint_eq(uc_policy_free_count(policy), 0);
    ck_assert_uint_eq(acquire(), slots[0]);
    ck_assert_uint_eq(uc_policy_free_count(policy), 0);
    (void)atomic_fetch_sub(&policy->draining, 1);
    ck_assert_uint_eq(uc_policy_free_count(policy), 0);
}
END_TEST

START_TEST(several_drained_slots_come_back_last_one_first)
{
    for (uint32_t slot = 0; slot < 3; slot++) {
        ck_assert_uint_eq(acquire(), slot);
        ck_assert_int_eq(begin(slot), UC_OK);
        ck_assert_int_eq(uc_policy_abort_slot(policy, slot), UC_OK);
    }
    spy.victim = UC_SLOT_NONE;
    ck_assert_int_eq(acquire_status(), UC_ERR_NO_SPACE);
    uc_policy_transfer_end(policy, 1);
    uc_policy_transfer_end(policy, 0);
    uc_policy_transfer_end(policy, 2);
    ck_assert_uint_eq(acquire(), 2);
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_uint_eq(acquire(), 1);
}
END_TEST

START_TEST(end_without_begin_changes_nothing)
{
    uint32_t slot = acquire();

    uc_policy_transfer_end(policy, slot);
    uc_policy_transfer_end(policy, 99);
    ck_assert_uint_eq(uc_policy_transfer_count(policy, slot), 0);
    ck_assert_int_eq(uc_policy_transfer_begin(policy, 99, 1), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_policy_abort_slot(policy, 99), UC_ERR_INVALID_PARAM);
}
END_TEST

/* */
START_TEST(victim_is_reserved_under_a_new_generation_and_can_be_restored)
{
    uint64_t generation;
    uint32_t slot;
    bool evicted;

    for (uint32_t idx = 0; idx < 3; idx++) {
        (void)acquire_committed();
    }
    spy.victim = 1;
    ck_assert_int_eq(uc_policy_acquire_slot(policy, &slot, &generation, &evicted), UC_OK);
    ck_assert(evicted);
    ck_assert_uint_eq(slot, 1);
    ck_assert_uint_eq(generation, 2);
    ck_assert_int_eq(spy.released, 1);
    ck_assert_uint_eq(uc_policy_free_count(policy), 0);

    ck_assert_int_eq(uc_policy_restore_slot(policy, slot, 2), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_policy_restore_slot(policy, slot, 0), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_policy_restore_slot(policy, slot, 1), UC_OK);
    ck_assert_uint_eq(uc_policy_generation(policy, slot), 1);
    ck_assert_uint_eq(uc_policy_evictable_count(policy), 3);
    ck_assert_int_eq(spy.admitted, 4);
    ck_assert_int_eq(uc_policy_restore_slot(policy, slot, 1), UC_ERR_INVALID_PARAM);
}
END_TEST

/* */
START_TEST(victim_that_is_not_evictable_is_a_fault_of_the_discipline)
{
    static const uint32_t bad[] = {0, 7};

    for (uint32_t idx = 0; idx < 3; idx++) {
        (void)acquire_committed();
    }
    ck_assert_int_eq(uc_policy_pin_slot(policy, 0), UC_OK);
    for (size_t idx = 0; idx < 2; idx++) {
        spy.victim = bad[idx];
        ck_assert_int_eq(acquire_status(), UC_ERR_GENERAL);
    }
    ck_assert_int_eq(spy.released, 0);
    ck_assert_uint_eq(uc_policy_generation(policy, 0), 1);
}
END_TEST

/* */
START_TEST(acquire_without_free_slot_and_victim_is_no_space)
{
    spy.victim = UC_SLOT_NONE;
    for (uint32_t idx = 0; idx < 3; idx++) {
        (void)acquire();
    }
    ck_assert_int_eq(acquire_status(), UC_ERR_NO_SPACE);
}
END_TEST

/* coldest evictable */
START_TEST(lru_skips_what_is_pinned_or_in_flight)
{
    uint64_t generation;
    uint32_t slot;
    bool evicted;

    for (uint32_t idx = 0; idx < 3; idx++) {
        (void)acquire_committed();
    }
    ck_assert_int_eq(uc_policy_pin_slot(policy, 0), UC_OK);
    ck_assert_int_eq(begin(1), UC_OK);
    ck_assert_int_eq(uc_policy_acquire_slot(policy, &slot, &generation, &evicted), UC_OK);
    ck_assert_uint_eq(slot, 2);
    ck_assert_int_eq(acquire_status(), UC_ERR_NO_SPACE);
    uc_policy_transfer_end(policy, 1);
    ck_assert_int_eq(uc_policy_acquire_slot(policy, &slot, &generation, &evicted), UC_OK);
    ck_assert_uint_eq(slot, 1);
}
END_TEST

/* */
START_TEST(create_refuses_what_it_cannot_run)
{
    struct uc_policy_ops incomplete = spy_ops;
    struct uc_policy *none = NULL;

    incomplete.on_slot_touched = NULL;
    ck_assert_int_eq(uc_policy_create(&incomplete, 3, NULL, NULL, &none), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_policy_create(&spy_ops, 0, NULL, NULL, &none), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_policy_create(&spy_ops, (size_t)INT32_MAX + 1, NULL, NULL, &none),
            UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(registry_knows_its_names)
{
    char names[256];

    uc_policy_names(names, sizeof(names));
    ck_assert_ptr_nonnull(strstr(names, "lru"));
    ck_assert_ptr_nonnull(uc_policy_find("lru"));
    ck_assert_ptr_null(uc_policy_find("nosuch"));
    uc_policy_names(names, 2);
    ck_assert_uint_eq(strlen(names), 1);
}
END_TEST

int
main(void)
{
    const int states = sizeof(state_cases) / sizeof(state_cases[0]);
    Suite *suite = suite_create("policy");
    TCase *base = tcase_create("base");
    TCase *lru = tcase_create("lru");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(base, setup, teardown);
    tcase_add_test(base, fresh_slots_come_in_order_with_generation_one);
    tcase_add_test(base, returned_slot_goes_to_the_front_with_the_next_generation);
    tcase_add_test(base, free_list_runs_through_the_slots);
    tcase_add_test(base, hooks_fire_on_committed_slots_only);
    tcase_add_loop_test(base, each_state_allows_its_transitions_and_no_others, 0, states);
    tcase_add_loop_test(base, only_committed_idle_slots_are_evictable, 0, states);
    tcase_add_loop_test(base, transfer_begins_on_open_slots_of_its_generation_only, 0, states);
    tcase_add_loop_test(base, draining_slot_is_free_after_its_last_transfer, 0, 2);
    tcase_add_test(base, slot_taken_before_its_return_is_counted_is_not_free);
    tcase_add_test(base, several_drained_slots_come_back_last_one_first);
    tcase_add_test(base, end_without_begin_changes_nothing);
    tcase_add_test(base, victim_is_reserved_under_a_new_generation_and_can_be_restored);
    tcase_add_test(base, victim_that_is_not_evictable_is_a_fault_of_the_discipline);
    tcase_add_test(base, acquire_without_free_slot_and_victim_is_no_space);
    tcase_add_test(base, create_refuses_what_it_cannot_run);
    tcase_add_test(base, registry_knows_its_names);
    suite_add_tcase(suite, base);

    tcase_add_checked_fixture(lru, setup_lru, teardown);
    tcase_add_test(lru, lru_skips_what_is_pinned_or_in_flight);
    suite_add_tcase(suite, lru);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
