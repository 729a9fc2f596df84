/* SPDX-License-Identifier: Apache-2.0 */

/* What the engine does when memory is short. Links its objects, so that their calls are wrapped. */

#include "test/fake/fake_alloc.h"
#include "test/unit/core/cache_fixture.h"

enum {
    CREATE_ALLOCATIONS = 13, /* of one create; the case below fails if it is another number */
    BATCH = 200              /* more than the first scratch holds */
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

/* _i allocations succeed and the next one fails; the leak checker sees what was not undone. */
START_TEST(create_undoes_everything_when_an_allocation_fails)
{
    struct uc_cache_config config = {.capacity = 100, .clock = {.now_ms = fixture_now_ms}};
    struct uc_cache_buffer *none = NULL;
    enum uc_status status;

    uc_fake_alloc_fail_after((size_t)_i);
    status = uc_cache_buffer_create(&config, &none);
    uc_fake_alloc_reset();
    if (_i == CREATE_ALLOCATIONS) {
        ck_assert_int_eq(status, UC_OK);
        uc_cache_buffer_destroy(none);
        return;
    }
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(none);
}
END_TEST

static enum uc_status
reserve_all(void)
{
    return uc_cache_buffer_reserve(buffer, ids, BATCH, NULL, NULL, places, NULL, NULL);
}

/* no trace, and the next batch finds a working cache. */
START_TEST(reserve_changes_nothing_when_its_scratch_cannot_grow)
{
    struct uc_cache_stats before = stats();
    struct uc_cache_stats after;
    enum uc_status status;

    uc_fake_alloc_fail_after((size_t)_i);
    status = reserve_all();
    uc_fake_alloc_reset(); /* Check's own allocations are wrapped as well */
    after = stats();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_mem_eq(&after, &before, sizeof(after));
    ck_assert_int_eq(reserve_all(), UC_OK);
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
    tcase_add_loop_test(
            create, create_undoes_everything_when_an_allocation_fails, 0, CREATE_ALLOCATIONS + 1);
    suite_add_tcase(suite, create);

    tcase_add_checked_fixture(reserve_case, setup, teardown);
    tcase_add_loop_test(reserve_case, reserve_changes_nothing_when_its_scratch_cannot_grow, 0, 3);
    tcase_add_test(reserve_case, data_path_works_without_any_allocation);
    suite_add_tcase(suite, reserve_case);
    return run_suite(suite);
}
