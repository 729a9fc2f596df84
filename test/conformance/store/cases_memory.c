/* SPDX-License-Identifier: Apache-2.0 */

/* Memory regions. */

#include <stdlib.h>
#include <string.h>

#include "test/conformance/store/suite.h"

/* Once more, where it is registered already. */
static uint32_t
register_all(void)
{
    uint32_t region = 99;

    ck_assert_msg(
            uc_worker_register_memory(suite.worker, suite.memory,
                    SUITE_KEYS_MAX * suite.block_bytes, suite_memory_kind(), &region) == UC_OK,
            "%s", uc_last_error());
    return region;
}

START_TEST(indices_count_up_and_are_not_reused)
{
    uint32_t first = suite.region_count;

    ck_assert_uint_eq(register_all(), first);
    ck_assert_int_eq(uc_worker_deregister_memory(suite.worker, first), UC_OK);
    ck_assert_int_eq(uc_worker_deregister_memory(suite.worker, first), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(register_all(), first + 1);
    ck_assert_int_eq(uc_worker_deregister_memory(suite.worker, first), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_worker_deregister_memory(suite.worker, first + 1), UC_OK);
}
END_TEST

START_TEST(empty_range_is_refused)
{
    uint32_t region = 99;

    ck_assert_int_eq(
            uc_worker_register_memory(suite.worker, suite.memory, 0, suite_memory_kind(), &region),
            UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(region, 99);
}
END_TEST

/* registered memory is found by address. */
START_TEST(registered_memory_is_used_without_an_index)
{
    uint32_t region = register_all();

    suite_put(suite.ids, 4);
    suite_get_and_compare(suite.ids, 4);
    ck_assert_int_eq(uc_worker_deregister_memory(suite.worker, region), UC_OK);
    suite_get_and_compare(suite.ids, 4); /* and without it */
}
END_TEST

/* */
START_TEST(payloads_name_their_region)
{
    uint32_t registered = register_all();
    uint32_t region = registered;
    struct uc_block_payload payload = suite_payloads(1)[0];
    struct uc_token *token = suite_prepare_put(suite.ids, 1);

    payload.memory_region_indices = &region;
    payload.memory_region_index_count = 1;
    suite_fill(&suite.ids[0], 0, suite_block(0), suite.block_bytes);
    ck_assert_msg(uc_worker_submit_put(suite.worker, 1, &payload, 1, token, NULL) == UC_OK, "%s",
            uc_last_error());
    suite_expect(1, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    uc_token_destroy(token);

    token = suite_prepare_get(suite.ids, 1);
    suite_wipe(suite_block(0), suite.block_bytes);
    ck_assert_int_eq(uc_worker_submit_get(suite.worker, 1, &payload, 1, token, NULL), UC_OK);
    suite_expect(1, UC_OK);
    ck_assert(suite_matches(&suite.ids[0], 0, suite_block(0), suite.block_bytes));
    region = 7;
    ck_assert_int_eq(
            uc_worker_submit_get(suite.worker, 1, &payload, 1, token, NULL), UC_ERR_INVALID_PARAM);
    region = UC_MEMORY_REGION_NONE;
    ck_assert_int_eq(uc_worker_submit_get(suite.worker, 1, &payload, 1, token, NULL), UC_OK);
    suite_expect(1, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
    ck_assert_int_eq(uc_worker_deregister_memory(suite.worker, registered), UC_OK);
}
END_TEST

START_TEST(range_outside_its_region_is_refused)
{
    uint32_t region = 99;
    struct uc_block_payload payload = suite_payloads(1)[0];
    struct uc_token *token;

    ck_assert_int_eq(uc_worker_register_memory(suite.worker, suite.memory, suite.block_bytes - 1,
                             suite_memory_kind(), &region),
            UC_OK);
    payload.memory_region_indices = &region;
    payload.memory_region_index_count = 1;
    token = suite_prepare_put(suite.ids, 1);
    ck_assert_int_eq(
            uc_worker_submit_put(suite.worker, 1, &payload, 1, token, NULL), UC_ERR_INVALID_PARAM);
    uc_token_destroy(token);
}
END_TEST

/* plain heap memory works as well. */
START_TEST(heap_memory_works_without_registration)
{
    uint8_t *heap = malloc(suite.block_bytes + 1);
    void *const pointer = heap + 1; /* not aligned either */
    struct uc_block_payload payload = {
            .pointers = &pointer, .sizes = &suite.block_bytes, .pointer_count = 1};
    struct uc_token *token = suite_prepare_put(suite.ids, 1);

    ck_assert_ptr_nonnull(heap);
    suite_fill(&suite.ids[0], 0, pointer, suite.block_bytes);
    ck_assert_msg(uc_worker_submit_put(suite.worker, 1, &payload, 1, token, NULL) == UC_OK, "%s",
            uc_last_error());
    suite_expect(1, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    uc_token_destroy(token);
    token = suite_prepare_get(suite.ids, 1);
    memset(heap, 0xee, suite.block_bytes + 1);
    ck_assert_int_eq(uc_worker_submit_get(suite.worker, 1, &payload, 1, token, NULL), UC_OK);
    suite_expect(1, UC_OK);
    ck_assert(suite_matches(&suite.ids[0], 0, pointer, suite.block_bytes));
    ck_assert_uint_eq(heap[0], 0xee);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
    free(heap);
}
END_TEST

TCase *
suite_memory_cases(void)
{
    TCase *tcase = tcase_create("memory");

    tcase_add_test(tcase, indices_count_up_and_are_not_reused);
    tcase_add_test(tcase, empty_range_is_refused);
    tcase_add_test(tcase, registered_memory_is_used_without_an_index);
    tcase_add_test(tcase, payloads_name_their_region);
    tcase_add_test(tcase, range_outside_its_region_is_refused);
    tcase_add_test(tcase, heap_memory_works_without_registration);
    return tcase;
}
