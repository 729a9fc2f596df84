/* SPDX-License-Identifier: Apache-2.0 */

/* What the engine does when memory is short. Links its objects, so that their calls are wrapped. */

#include "core/base/block_map.h"
#include "core/cache/ghost.h"
#include "test/fake/fake_alloc.h"
#include "test/unit/core/cache_fixture.h"

enum {
    BATCH = 200 /* more than the first scratch holds */
};

static struct uc_block_id ids[BATCH];
static struct uc_cache_slot places[BATCH];

static void
setup(void)
{
    for (size_t idx = 0; idx < BATCH; idx++) {
        ids[idx].bytes[0] = (uint8_t)idx;
    }
    make_cache(BATCH);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    drop_cache();
}

/* One object whose making allocates; `make` undoes it again when it succeeded. */
struct constructor {
    const char *name;
    size_t least; /* allocations that it makes at the least */
    enum uc_status (*make)(const char *name);
};

static enum uc_status
make_block_map(const char *name)
{
    struct uc_block_map *map;
    enum uc_status status = uc_block_map_create(BATCH, ids, sizeof(ids[0]), &map);

    (void)name;
    if (status == UC_OK) {
        uc_block_map_destroy(map);
    }
    return status;
}

static enum uc_status
make_ghost(const char *name)
{
    struct uc_ghost *ghost;
    enum uc_status status = uc_ghost_create(BATCH, &ghost);

    (void)name;
    if (status == UC_OK) {
        uc_ghost_destroy(ghost);
    }
    return status;
}

static enum uc_status
make_policy(const char *name)
{
    struct uc_clock clock = {.now_ms = fixture_now_ms};
    struct uc_policy *policy;
    enum uc_status status = uc_policy_create(uc_policy_find(name), BATCH, NULL, &clock, &policy);

    if (status == UC_OK) {
        uc_policy_destroy(policy);
    }
    return status;
}

static enum uc_status
make_buffer(const char *name)
{
    struct uc_cache_config config = {
            .capacity = 100, .policy = name, .clock = {.now_ms = fixture_now_ms}};
    struct uc_cache_buffer *made;
    enum uc_status status = uc_cache_buffer_create(&config, &made);

    if (status == UC_OK) {
        uc_cache_buffer_destroy(made);
    }
    return status;
}

static const struct constructor constructors[] = {
        {"block map", 2, make_block_map},
        {"ghost", 2, make_ghost},
        {"lru", 3, make_policy},
        {"clock", 3, make_policy},
        {"fifo", 3, make_policy},
        {"pwa", 3, make_policy},
        {"lru", 10, make_buffer},
        {"clock", 10, make_buffer},
        {"fifo", 10, make_buffer},
        {"pwa", 12, make_buffer},
};

enum {
    CONSTRUCTOR_COUNT = sizeof(constructors) / sizeof(constructors[0])
};

/*
 * the first allocation fails, then the second, and so on until none does; alone, and with all
 * that follow. The leak checker sees what was not undone.
 */
START_TEST(constructor_undoes_everything_whichever_allocation_fails)
{
    const struct constructor *constructor = &constructors[_i / 2];
    void (*arm)(size_t) = _i % 2 == 0 ? uc_fake_alloc_fail_after : uc_fake_alloc_fail_once;
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    size_t passed = 0;

    for (; status == UC_ERR_OUT_OF_MEMORY && passed < 1000; passed++) {
        arm(passed);
        status = constructor->make(constructor->name);
        uc_fake_alloc_reset(); /* Check's own allocations are wrapped as well */
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_gt(passed, constructor->least);
}
END_TEST

static enum uc_status
reserve_all(void)
{
    return uc_cache_buffer_reserve(buffer, ids, BATCH, NULL, NULL, places, NULL, NULL);
}

/* no trace whichever allocation fails, and the next batch finds a working cache. */
START_TEST(reserve_changes_nothing_whichever_allocation_fails)
{
    void (*arm)(size_t) = _i == 0 ? uc_fake_alloc_fail_after : uc_fake_alloc_fail_once;
    struct uc_cache_info joined_before;
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    size_t passed = 0;

    ck_assert_int_eq(
            uc_cache_buffer_reserve(buffer, ids, 1, NULL, NULL, places, NULL, NULL), UC_OK);
    joined_before = uc_cache_buffer_peek(buffer, &ids[0]);
    for (; passed < 100; passed++) {
        struct uc_cache_stats before = stats();
        struct uc_cache_stats after;

        arm(passed);
        status = reserve_all();
        uc_fake_alloc_reset();
        if (status == UC_OK) {
            break;
        }
        after = stats();
        ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
        ck_assert_mem_eq(&after, &before, sizeof(after));
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_ge(passed, 3);

    /* The first block has two references now, and no third one from a batch that failed. */
    ck_assert_uint_eq(uc_cache_buffer_peek(buffer, &ids[0]).generation, joined_before.generation);
    ck_assert_int_eq(uc_cache_buffer_commit(buffer, ids, 1, true, NULL), UC_OK);
    ck_assert_int_eq(uc_cache_buffer_commit(buffer, ids, 1, true, NULL), UC_OK);
    ck_assert_int_eq(uc_cache_buffer_commit(buffer, ids, 1, true, NULL), UC_ERR_NOT_FOUND);
}
END_TEST

/* House rule 25: after the first batch of its size nothing allocates any more. */
START_TEST(data_path_works_without_any_allocation)
{
    enum uc_status done[3];
    uint8_t hits[BATCH];

    ck_assert_int_eq(reserve_all(), UC_OK);
    uc_fake_alloc_fail_after(0);
    done[0] = uc_cache_buffer_commit(buffer, ids, BATCH, true, NULL);
    done[1] = uc_cache_buffer_pin(buffer, ids, BATCH, places);
    uc_cache_buffer_unpin(buffer, ids, BATCH);
    uc_cache_buffer_touch(buffer, ids, BATCH, NULL);
    uc_cache_buffer_lookup(buffer, ids, BATCH, hits);
    for (size_t idx = 0; idx < BATCH; idx++) {
        ids[idx].bytes[15] = 1;
    }
    done[2] = reserve_all();
    uc_fake_alloc_reset();
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(done[idx], UC_OK);
    }
    ck_assert_uint_eq(stats().evicted_total, BATCH);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_buffer_alloc");
    TCase *create = tcase_create("create");
    TCase *reserve_case = tcase_create("reserve");

    tcase_add_checked_fixture(create, NULL, uc_fake_alloc_reset);
    tcase_add_loop_test(create, constructor_undoes_everything_whichever_allocation_fails, 0,
            2 * CONSTRUCTOR_COUNT);
    suite_add_tcase(suite, create);

    tcase_add_checked_fixture(reserve_case, setup, teardown);
    tcase_add_loop_test(reserve_case, reserve_changes_nothing_whichever_allocation_fails, 0, 2);
    tcase_add_test(reserve_case, data_path_works_without_any_allocation);
    suite_add_tcase(suite, reserve_case);
    return run_suite(suite);
}
