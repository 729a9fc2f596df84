/* SPDX-License-Identifier: Apache-2.0 */

/** @file policy_fixture.h One slot pool under a named discipline, on a clock that the case moves. One thread. */

#ifndef UC_TEST_POLICY_FIXTURE_H
#define UC_TEST_POLICY_FIXTURE_H

#include "test/unit/core/cache_fixture.h"

static struct uc_policy *policy;
static const struct uc_clock fake_clock = {.now_ms = fixture_now_ms};

static inline void
make_policy(const char *name, size_t capacity, const struct uc_dict *parameters)
{
    now_ms = 0;
    ck_assert_int_eq(
            uc_policy_create(uc_policy_find(name), capacity, parameters, &fake_clock, &policy),
            UC_OK);
}

static inline void
drop_policy(void)
{
    uc_policy_destroy(policy);
    policy = NULL;
}

/* A slot, free or a victim's, or UC_SLOT_NONE. */
static inline uint32_t
acquire(void)
{
    uint64_t generation;
    uint32_t slot;
    bool from_victim;
    enum uc_status status = uc_policy_acquire_slot(policy, &slot, &generation, &from_victim);

    ck_assert(status == UC_OK || status == UC_ERR_NO_SPACE);
    return status == UC_OK ? slot : UC_SLOT_NONE;
}

static inline void
commit_slot(uint32_t slot, struct uc_policy_hints hints)
{
    ck_assert_int_eq(uc_policy_commit_slot(policy, slot, &hints), UC_OK);
}

static inline void
touch_slot(uint32_t slot, struct uc_policy_hints hints)
{
    ck_assert_int_eq(uc_policy_touch_slot(policy, slot, &hints), UC_OK);
}

/* Fill the pool with committed slots 0, 1, 2, … of which nothing is known. */
static inline void
fill_policy(void)
{
    size_t capacity = uc_policy_capacity(policy);

    for (uint32_t slot = 0; slot < capacity; slot++) {
        ck_assert_uint_eq(acquire(), slot);
        commit_slot(slot, (struct uc_policy_hints){0});
    }
}

#endif /* UC_TEST_POLICY_FIXTURE_H */
