/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What every replacement policy has to keep (section 15 of core/CONTRACT.md): each case runs on every
 * discipline of the registry. Links the engine's objects, so that allocations can be counted and fail.
 */

#include "test/conformance/policy/registry.h"
#include "test/fake/fake_alloc.h"

enum {
    CAPACITY = 24,
    STEPS = 40000,
    ALLOCATIONS_MAX = 64
};

static struct uc_policy *policy;
static const struct uc_clock fake_clock = {.now_ms = fixture_now_ms};
static const struct uc_policy_hints unknown;

/* What the case knows of each slot. */
static struct {
    bool reserved;
    bool committed;
    unsigned pins;
    unsigned transfers;
} model[CAPACITY];

static uint64_t state;

static uint64_t
draw(uint64_t count)
{
    state += 0x9e3779b97f4a7c15ull;
    return ((state ^ state >> 31) * 0xbf58476d1ce4e5b9ull >> 33) % count;
}

static void
make_policy(int idx)
{
    memset(model, 0, sizeof(model));
    now_ms = 1000;
    ck_assert_int_eq(uc_policy_create(policies[idx], CAPACITY, NULL, &fake_clock, &policy), UC_OK);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_policy_destroy(policy);
    policy = NULL;
    drop_cache();
}

static struct uc_policy_hints
some_hints(void)
{
    struct uc_policy_hints hints = {
            .position = (uint32_t)draw(5),
            .partial = draw(4) == 0,
            .seen = (uint8_t)draw(3),
    };

    return hints;
}

static bool
model_is_evictable(uint32_t slot)
{
    return model[slot].committed && model[slot].pins == 0 && model[slot].transfers == 0;
}

static size_t
model_evictable(void)
{
    size_t count = 0;

    for (uint32_t slot = 0; slot < CAPACITY; slot++) {
        count += model_is_evictable(slot) ? 1 : 0;
    }
    return count;
}

/* a free slot, else an evictable one, else none. */
static void
step_acquire(void)
{
    size_t free_count = uc_policy_free_count(policy);
    size_t evictable = model_evictable();
    uint64_t generation;
    uint32_t slot;
    bool from_victim;
    enum uc_status status = uc_policy_acquire_slot(policy, &slot, &generation, &from_victim);

    if (free_count + evictable == 0) {
        ck_assert_int_eq(status, UC_ERR_NO_SPACE);
        return;
    }

    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_lt(slot, CAPACITY);
    ck_assert(from_victim == (free_count == 0));
    ck_assert(!model[slot].reserved);
    ck_assert(model_is_evictable(slot) == from_victim);
    if (from_victim && draw(8) == 0) {
        ck_assert_int_eq(uc_policy_restore_slot(policy, slot, generation - 1), UC_OK); /* */
        return;
    }
    model[slot].committed = false;
    model[slot].reserved = true;
}

static void
step_reserved(uint32_t slot)
{
    struct uc_policy_hints hints = some_hints();

    model[slot].reserved = false;
    if (draw(5) == 0) {
        ck_assert_int_eq(uc_policy_abort_slot(policy, slot), UC_OK);
        return;
    }
    model[slot].committed = true;
    ck_assert_int_eq(uc_policy_commit_slot(policy, slot, &hints), UC_OK);
}

static void
step_committed(uint32_t slot)
{
    struct uc_policy_hints hints = some_hints();

    switch (draw(7)) {
    case 0:
        model[slot].pins++;
        ck_assert_int_eq(uc_policy_pin_slot(policy, slot), UC_OK);
        break;
    case 1:
    case 2:
        if (model[slot].pins > 0) {
            model[slot].pins--;
            ck_assert_int_eq(uc_policy_unpin_slot(policy, slot), UC_OK);
        }
        break;
    case 3:
        model[slot].transfers++;
        ck_assert_int_eq(
                uc_policy_transfer_begin(policy, slot, uc_policy_generation(policy, slot)), UC_OK);
        break;
    case 4:
        if (model[slot].transfers > 0) {
            model[slot].transfers--;
            uc_policy_transfer_end(policy, slot);
        }
        break;
    case 5:
        if (model_is_evictable(slot)) {
            model[slot].committed = false;
            ck_assert_int_eq(uc_policy_release_slot(policy, slot), UC_OK);
        }
        break;
    default:
        ck_assert_int_eq(uc_policy_touch_slot(policy, slot, &hints), UC_OK);
    }
}

START_TEST(victims_are_evictable_whatever_happened_before)
{
    make_policy(_i);
    state = 4711;
    for (int step = 0; step < STEPS; step++) {
        uint32_t slot = (uint32_t)draw(CAPACITY);

        now_ms += draw(3) == 0 ? draw(100000) : 0;
        if (model[slot].committed) {
            step_committed(slot);
        } else if (model[slot].reserved) {
            step_reserved(slot);
        } else {
            step_acquire();
        }
        ck_assert_uint_eq(uc_policy_evictable_count(policy), model_evictable());
    }
}
END_TEST

/* 15.1: admission, touch, eviction, release. */
START_TEST(nothing_allocates_after_setup)
{
    enum uc_status status = UC_OK;

    make_policy(_i);
    uc_fake_alloc_fail_after(0); /* the case's own checks allocate: they wait */
    for (uint32_t idx = 0; idx < 5 * CAPACITY && status == UC_OK; idx++) {
        uint64_t generation;
        uint32_t slot;
        bool from_victim;

        status = uc_policy_acquire_slot(policy, &slot, &generation, &from_victim);
        if (status == UC_OK) {
            status = uc_policy_commit_slot(policy, slot, &unknown);
        }
        if (status == UC_OK) {
            status = uc_policy_touch_slot(policy, slot, &unknown);
        }
        if (status == UC_OK && idx % 7 == 0) {
            status = uc_policy_release_slot(policy, slot);
        }
        now_ms += 1000;
    }
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_OK);
}
END_TEST

/* the order holds exactly the committed slots, so each is a victim once. */
START_TEST(every_committed_slot_is_a_victim_once)
{
    bool taken[CAPACITY] = {false};

    make_policy(_i);
    for (uint32_t idx = 0; idx < CAPACITY; idx++) {
        step_acquire();
    }
    for (uint32_t slot = 0; slot < CAPACITY; slot++) {
        struct uc_policy_hints hints = {.seen = (uint8_t)(slot % 3), .partial = slot % 2 == 0};

        ck_assert_int_eq(uc_policy_commit_slot(policy, slot, &hints), UC_OK);
        now_ms += 7;
    }
    for (uint32_t idx = 0; idx < CAPACITY; idx++) {
        uint64_t generation;
        uint32_t slot;
        bool from_victim;

        ck_assert_int_eq(uc_policy_acquire_slot(policy, &slot, &generation, &from_victim), UC_OK);
        ck_assert(!taken[slot]);
        taken[slot] = true;
    }
    memset(model, 0, sizeof(model));
    step_acquire(); /* nothing is left */
}
END_TEST

/* Time may stand still or, in a broken clock, go back. */
START_TEST(clock_that_goes_back_does_no_harm)
{
    make_policy(_i);
    for (uint32_t idx = 0; idx < CAPACITY; idx++) {
        step_acquire();
    }
    for (uint32_t slot = 0; slot < CAPACITY; slot++) {
        model[slot].reserved = false;
        model[slot].committed = true;
        now_ms = slot % 2 == 0 ? UINT64_MAX - 1 : 0;
        ck_assert_int_eq(uc_policy_commit_slot(policy, slot, &unknown), UC_OK);
    }
    now_ms = 5;
    for (uint32_t idx = 0; idx < CAPACITY; idx++) {
        step_acquire();
    }
}
END_TEST

START_TEST(setup_undoes_everything_when_an_allocation_fails)
{
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    size_t pass = 0;

    for (; status != UC_OK && pass < ALLOCATIONS_MAX; pass++) {
        uc_fake_alloc_fail_after(pass);
        status = uc_policy_create(policies[_i], CAPACITY, NULL, &fake_clock, &policy);
        uc_fake_alloc_reset();
        ck_assert(status == UC_OK || status == UC_ERR_OUT_OF_MEMORY);
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_gt(pass, 2);
}
END_TEST

/* The whole cache with it, the ghost included. */
START_TEST(cache_undoes_everything_when_an_allocation_fails)
{
    struct uc_cache_config config = {
            .capacity = 100, .ops = policies[_i], .clock = {.now_ms = fixture_now_ms}};
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;

    for (size_t pass = 0; status != UC_OK && pass < ALLOCATIONS_MAX; pass++) {
        uc_fake_alloc_fail_after(pass);
        status = uc_cache_buffer_create(&config, &buffer);
        uc_fake_alloc_reset();
        ck_assert(status == UC_OK || status == UC_ERR_OUT_OF_MEMORY);
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_gt(stats().memory_bytes, 100 * sizeof(struct uc_block_id));
}
END_TEST

/* a mistyped parameter is an error that names it, in every discipline. */
START_TEST(unknown_parameter_is_refused_by_name)
{
    struct uc_dict *parameters;
    enum uc_status status;

    ck_assert_int_eq(uc_dict_create(&parameters), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(parameters, "gohst", 4), UC_OK);
    status = uc_policy_create(policies[_i], CAPACITY, parameters, &fake_clock, &policy);
    uc_dict_destroy(parameters);
    ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "gohst"));
    ck_assert_ptr_nonnull(strstr(uc_last_error(), policies[_i]->name));
}
END_TEST

START_TEST(memory_grows_with_the_capacity)
{
    size_t small;

    make_policy(_i);
    small = uc_policy_memory_bytes(policy);
    uc_policy_destroy(policy);
    ck_assert_int_eq(
            uc_policy_create(policies[_i], 1000 * CAPACITY, NULL, &fake_clock, &policy), UC_OK);
    ck_assert_uint_gt(uc_policy_memory_bytes(policy), 900 * (small - sizeof(void *) * 32));
}
END_TEST

int
main(void)
{
    const TTest *const cases[] = {
            victims_are_evictable_whatever_happened_before,
            nothing_allocates_after_setup,
            every_committed_slot_is_a_victim_once,
            clock_that_goes_back_does_no_harm,
            setup_undoes_everything_when_an_allocation_fails,
            cache_undoes_everything_when_an_allocation_fails,
            unknown_parameter_is_refused_by_name,
            memory_grows_with_the_capacity,
    };
    Suite *suite = suite_create("policy_conformance");
    TCase *tcase = tcase_create("all");

    find_policies();
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_set_timeout(tcase, 30);
    for (size_t idx = 0; idx < sizeof(cases) / sizeof(cases[0]); idx++) {
        tcase_add_loop_test(tcase, cases[idx], 0, policy_count);
    }
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
