/* SPDX-License-Identifier: Apache-2.0 */

/* The containers of the proxy against plain models, and without memory. Links the objects. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/proxy/entry.h"
#include "client/proxy/finished_queue.h"
#include "client/proxy/id_set.h"
#include "client/proxy/job_table.h"
#include "client/proxy/region_set.h"
#include "client/proxy/request_table.h"
#include "test/fake/fake_alloc.h"
#include "test/fake/fake_store.h"
#include "test/unit/client/proxy/entry_fixture.h"

static void
teardown(void)
{
    uc_fake_alloc_reset();
}

/* any number is a job id. */
START_TEST(job_table_takes_any_id)
{
    static const uint64_t ids[] = {0, 1, UINT64_MAX, 1ull << 63, 0x0000000100000001ull};
    struct uc_job_table table = {0};

    for (size_t idx = 0; idx < 5; idx++) {
        ck_assert_int_eq(uc_job_table_add(&table, ids[idx], idx), UC_OK);
        ck_assert_int_eq(uc_job_table_add(&table, ids[idx], 9), UC_ERR_DUPLICATE_KEY);
    }
    for (size_t idx = 0; idx < 5; idx++) {
        ck_assert_uint_eq(*uc_job_table_find(&table, ids[idx]), idx);
        ck_assert(uc_job_table_remove(&table, ids[idx]));
        ck_assert(!uc_job_table_remove(&table, ids[idx]));
        ck_assert_ptr_null(uc_job_table_find(&table, ids[idx]));
    }
    uc_job_table_fini(&table);
}
END_TEST

/* Random adds and removes against an array of flags: shifting back must lose nothing. */
START_TEST(job_table_agrees_with_a_model)
{
    enum {
        IDS = 300,
        STEPS = 20000
    };
    struct uc_job_table table = {0};
    bool model[IDS] = {false};
    uint32_t random = 1;
    size_t count = 0;

    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525u + 1013904223u;
        uint64_t id = (random >> 8) % IDS;

        if (model[id]) {
            ck_assert_int_eq(uc_job_table_add(&table, id, 1), UC_ERR_DUPLICATE_KEY);
            ck_assert(uc_job_table_remove(&table, id));
            count--;
        } else {
            ck_assert(!uc_job_table_remove(&table, id));
            ck_assert_int_eq(uc_job_table_add(&table, id, id), UC_OK);
            count++;
        }
        model[id] = !model[id];
        ck_assert_uint_eq(table.count, count);
    }
    for (uint64_t id = 0; id < IDS; id++) {
        ck_assert_int_eq(uc_job_table_find(&table, id) != NULL, model[id]);
    }
    uc_job_table_fini(&table);
}
END_TEST

/* Data path: as many jobs as once before need no memory. */
START_TEST(job_table_allocates_only_to_grow)
{
    struct uc_job_table table = {0};
    size_t added_count = 0;

    for (uint64_t id = 0; id < 1000; id++) {
        ck_assert_int_eq(uc_job_table_add(&table, id, 0), UC_OK);
    }
    for (uint64_t id = 0; id < 1000; id++) {
        ck_assert(uc_job_table_remove(&table, id));
    }
    /* Checks allocate, so none are made while allocations fail. */
    uc_fake_alloc_fail_after(0);
    for (uint64_t id = 5000; id < 6000; id++) {
        added_count += uc_job_table_add(&table, id, 0) == UC_OK ? 1 : 0;
    }
    uc_fake_alloc_reset();
    ck_assert_uint_eq(added_count, 1000);
    uc_job_table_fini(&table);
}
END_TEST

START_TEST(job_table_survives_lack_of_memory)
{
    struct uc_job_table table = {0};
    uint64_t id = 0;

    ck_assert_int_eq(uc_job_table_add(&table, id++, 0), UC_OK);
    uc_fake_alloc_fail_after(0);
    while (uc_job_table_add(&table, id, 0) == UC_OK) {
        id++;
    }
    uc_fake_alloc_reset();
    ck_assert_uint_eq(table.count, id);
    ck_assert_ptr_nonnull(uc_job_table_find(&table, 0));
    ck_assert_int_eq(uc_job_table_add(&table, id, 0), UC_OK);
    uc_job_table_fini(&table);
}
END_TEST

/* with: taken in order, or out of turn; ids come back into use. */
START_TEST(finished_queue_keeps_order_and_skips_what_was_taken)
{
    struct uc_finished_queue queue = {0};
    struct uc_job_table table = {0};
    uint64_t id = 0;

    for (uint64_t add = 1; add <= 40; add++) {
        ck_assert_int_eq(uc_finished_queue_add(&queue, &table, add), UC_OK);
    }
    ck_assert_int_eq(uc_finished_queue_add(&queue, &table, 5), UC_ERR_DUPLICATE_KEY);
    for (uint64_t even = 2; even <= 40; even += 2) {
        uc_finished_queue_take_job(&queue, &table, even);
    }
    ck_assert_int_eq(uc_finished_queue_add(&queue, &table, 2), UC_OK); /* again, now the last */
    for (uint64_t odd = 1; odd <= 39; odd += 2) {
        ck_assert(uc_finished_queue_take(&queue, &table, &id));
        ck_assert_uint_eq(id, odd);
    }
    ck_assert(uc_finished_queue_take(&queue, &table, &id));
    ck_assert_uint_eq(id, 2);
    ck_assert(!uc_finished_queue_take(&queue, &table, &id));
    ck_assert_uint_eq(queue.alive_count, 0);
    ck_assert_uint_eq(table.count, 0);
    uc_finished_queue_fini(&queue);
    uc_job_table_fini(&table);
}
END_TEST

/* Waits alone must not let the queue grow without bound. */
START_TEST(finished_queue_does_not_grow_by_dead_entries)
{
    struct uc_finished_queue queue = {0};
    struct uc_job_table table = {0};

    for (uint64_t round = 0; round < 10000; round++) {
        ck_assert_int_eq(uc_finished_queue_add(&queue, &table, round % 3), UC_OK);
        uc_finished_queue_take_job(&queue, &table, round % 3);
    }
    ck_assert_uint_le(queue.capacity, 64);
    uc_finished_queue_fini(&queue);
    uc_job_table_fini(&table);
}
END_TEST

START_TEST(finished_queue_survives_lack_of_memory)
{
    struct uc_finished_queue queue = {0};
    struct uc_job_table table = {0};
    uint64_t id = 0;

    for (size_t passes = 0; passes < 2; passes++) { /* the queue, then the table */
        enum uc_status status;

        uc_fake_alloc_fail_after(passes);
        status = uc_finished_queue_add(&queue, &table, 1);
        uc_fake_alloc_reset();
        ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    }
    ck_assert(!uc_finished_queue_take(&queue, &table, &id));
    ck_assert_int_eq(uc_finished_queue_add(&queue, &table, 1), UC_OK);
    uc_finished_queue_fini(&queue);
    uc_job_table_fini(&table);
}
END_TEST

START_TEST(region_set_finds_by_index)
{
    struct uc_region_set set = {0};

    for (uint32_t idx = 0; idx < 100; idx++) {
        struct uc_region region = {.region_idx = idx * 3, .address = idx, .length_bytes = 1};

        ck_assert_int_eq(uc_region_set_add(&set, &region), UC_OK);
        ck_assert_int_eq(uc_region_set_add(&set, &region), UC_ERR_INVALID_PARAM);
    }
    for (uint32_t idx = 0; idx < 300; idx++) {
        const struct uc_region *region = uc_region_set_find(&set, idx);

        ck_assert_int_eq(region != NULL, idx % 3 == 0);
        ck_assert(region == NULL || region->address == idx / 3);
    }
    ck_assert(uc_region_set_remove(&set, 150));
    ck_assert(!uc_region_set_remove(&set, 150));
    ck_assert_ptr_null(uc_region_set_find(&set, 150));
    ck_assert_uint_eq(uc_region_set_find(&set, 153)->address, 51);
    uc_region_set_fini(&set);
}
END_TEST

/* on a list that is too long for the stack. */
START_TEST(long_lists_are_searched_for_duplicates)
{
    enum {
        COUNT = 5000
    };
    struct uc_block_id *ids = calloc(COUNT, sizeof(ids[0]));
    enum uc_status status;

    ck_assert_ptr_nonnull(ids);
    for (uint32_t idx = 0; idx < COUNT; idx++) {
        memcpy(ids[idx].bytes + 8, &idx, sizeof(idx));
    }
    ck_assert_int_eq(uc_id_set_check_distinct(ids, COUNT), UC_OK);
    ids[COUNT - 1] = ids[17];
    ck_assert_int_eq(uc_id_set_check_distinct(ids, COUNT), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "17 and 4999"));
    uc_fake_alloc_fail_after(0);
    status = uc_id_set_check_distinct(ids, COUNT);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    free(ids);
}
END_TEST

START_TEST(request_table_holds_many)
{
    struct uc_request_table *table = NULL;
    struct uc_request *request = NULL;
    char id[32];

    ck_assert_int_eq(uc_request_table_create(&table), UC_OK);
    for (int idx = 0; idx < 1000; idx++) {
        struct uc_request_context context = uc_request_context_init(id);

        (void)snprintf(id, sizeof(id), "request-%d", idx);
        ck_assert_int_eq(uc_request_table_add(table, &context, &request), UC_OK);
        ck_assert_str_eq(request->context->request_id, id);
        ck_assert_ptr_ne(request->context->request_id, id);
    }
    for (int idx = 0; idx < 1000; idx += 2) {
        (void)snprintf(id, sizeof(id), "request-%d", idx);
        uc_request_table_remove(table, uc_request_table_find(table, id));
    }
    for (int idx = 0; idx < 1000; idx++) {
        (void)snprintf(id, sizeof(id), "request-%d", idx);
        ck_assert_int_eq(uc_request_table_find(table, id) != NULL, idx % 2);
    }
    ck_assert_uint_eq(uc_request_table_count(table), 500);
    uc_request_table_destroy(table);
}
END_TEST

/* The n-th allocation fails: nothing leaks, nothing is half made. */
START_TEST(request_table_survives_lack_of_memory)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_request_table *table = NULL;
    struct uc_request *request = NULL;
    enum uc_status status;

    uc_fake_alloc_fail_after(0);
    status = uc_request_table_create(&table);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_eq(uc_request_table_create(&table), UC_OK);
    for (size_t passes = 0; passes < 2; passes++) {
        uc_fake_alloc_fail_after(passes);
        status = uc_request_table_add(table, &context, &request);
        uc_fake_alloc_reset();
        ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
        ck_assert_ptr_null(uc_request_table_find(table, "r"));
    }
    ck_assert_int_eq(uc_request_table_add(table, &context, &request), UC_OK);
    uc_request_table_destroy(table);
}
END_TEST

START_TEST(entry_survives_lack_of_memory)
{
    struct uc_fake_store *fake = uc_fake_store_create(true, true);
    struct uc_entry *entry = NULL;
    size_t passes = 0;
    enum uc_status status;

    ck_assert_ptr_nonnull(fake);
    do {
        uc_fake_alloc_fail_after(passes++);
        status = uc_entry_create(&fake->base, &entry);
        uc_fake_alloc_reset();
        ck_assert(status == UC_OK || status == UC_ERR_OUT_OF_MEMORY);
    } while (status != UC_OK);
    ck_assert_uint_gt(passes, 2);
    uc_entry_destroy(entry);
    uc_entry_destroy(NULL);
    uc_fake_store_destroy(&fake->base);
}
END_TEST

/* in spirit: a wait that cannot be carried out consumes nothing. */
START_TEST(wait_without_memory_consumes_nothing)
{
    struct uc_io_result result;
    struct uc_token *token;
    uint64_t job_id = 1;
    size_t count = 0;

    fixture_start(KIND_PLAIN);
    fixture_register();
    token = fixture_get_token(1);
    ck_assert_int_eq(uc_worker_submit_get(fx.worker, 1, payloads, 1, token, NULL), UC_OK);
    for (size_t passes = 0; passes < 3; passes++) {
        enum uc_status status;

        uc_fake_alloc_fail_after(passes);
        status = uc_worker_wait(fx.worker, &job_id, 1, -1, &result, 1, &count);
        uc_fake_alloc_reset();
        ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    }
    ck_assert_int_eq(uc_worker_wait(fx.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    uc_token_destroy(token);
    fixture_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("proxy_tables");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, job_table_takes_any_id);
    tcase_add_test(tcase, job_table_agrees_with_a_model);
    tcase_add_test(tcase, job_table_allocates_only_to_grow);
    tcase_add_test(tcase, job_table_survives_lack_of_memory);
    tcase_add_test(tcase, finished_queue_keeps_order_and_skips_what_was_taken);
    tcase_add_test(tcase, finished_queue_does_not_grow_by_dead_entries);
    tcase_add_test(tcase, finished_queue_survives_lack_of_memory);
    tcase_add_test(tcase, region_set_finds_by_index);
    tcase_add_test(tcase, long_lists_are_searched_for_duplicates);
    tcase_add_test(tcase, request_table_holds_many);
    tcase_add_test(tcase, request_table_survives_lack_of_memory);
    tcase_add_test(tcase, entry_survives_lack_of_memory);
    tcase_add_test(tcase, wait_without_memory_consumes_nothing);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
