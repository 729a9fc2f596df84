/* SPDX-License-Identifier: Apache-2.0 */

/* Memory regions and payloads of a StoreEntry. */

#include <string.h>

#include "test/unit/client/proxy/entry_fixture.h"

enum {
    REGION_BYTES = 256
};

static uint8_t memory[REGION_BYTES];
static uint32_t region;
static struct uc_token *token;

static void
start(int kind)
{
    fixture_start((enum kind)kind);
    fixture_register();
    token = fixture_put_token(1);
    ck_assert_int_eq(
            uc_worker_register_memory(fx.worker, memory, REGION_BYTES, UC_MEMORY_HOST, &region),
            UC_OK);
}

static void
stop(void)
{
    uc_token_destroy(token);
    fixture_stop();
}

/* from 0 up, never reused, and spent by a refusal (the store half of V-56). */
START_TEST(region_indices_count_up_and_are_never_reused)
{
    uint32_t idx = 99;

    start(_i);
    ck_assert_uint_eq(region, 0);
    ck_assert_uint_eq(fx.fake->data.region_idx, 0);
    ck_assert_int_eq(uc_worker_deregister_memory(fx.worker, 0), UC_OK);
    fx.fake->answers[UC_FAKE_REGISTER_MEMORY] = UC_ERR_UNSUPPORTED;
    ck_assert_int_eq(uc_worker_register_memory(fx.worker, memory, 1, UC_MEMORY_CUDA, &idx),
            UC_ERR_UNSUPPORTED);
    ck_assert_uint_eq(idx, 99);
    ck_assert_int_eq(uc_worker_deregister_memory(fx.worker, 1), UC_ERR_NOT_FOUND);
    fx.fake->answers[UC_FAKE_REGISTER_MEMORY] = UC_OK;
    ck_assert_int_eq(uc_worker_register_memory(fx.worker, memory, 1, UC_MEMORY_HOST, &idx), UC_OK);
    ck_assert_uint_eq(idx, 2);
    ck_assert_uint_eq(fx.fake->data.region_idx, 2);
    stop();
}
END_TEST

/* */
START_TEST(range_that_is_none_is_refused_and_spends_no_index)
{
    uint32_t idx = 99;

    start(KIND_PLAIN);
    ck_assert_int_eq(uc_worker_register_memory(fx.worker, memory, 0, UC_MEMORY_HOST, &idx),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_register_memory(fx.worker, NULL, 1, UC_MEMORY_HOST, &idx),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_register_memory(fx.worker, memory, UINT64_MAX, UC_MEMORY_HOST, &idx),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_register_memory(fx.worker, memory, 1, UC_MEMORY_HOST, NULL),
            UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(idx, 99);
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_REGISTER_MEMORY], 1);
    ck_assert_int_eq(uc_worker_register_memory(fx.worker, memory, 1, UC_MEMORY_HOST, &idx), UC_OK);
    ck_assert_uint_eq(idx, 1);
    stop();
}
END_TEST

/* */
START_TEST(deregistering_answers_not_found_and_retry)
{
    start(_i);
    ck_assert_int_eq(uc_worker_deregister_memory(fx.worker, 1), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(
            uc_worker_deregister_memory(fx.worker, UC_MEMORY_REGION_NONE), UC_ERR_NOT_FOUND);
    fx.fake->answers[UC_FAKE_DEREGISTER_MEMORY] = UC_ERR_RETRY;
    ck_assert_int_eq(uc_worker_deregister_memory(fx.worker, 0), UC_ERR_RETRY);
    fx.fake->answers[UC_FAKE_DEREGISTER_MEMORY] = UC_OK;
    ck_assert_int_eq(uc_worker_deregister_memory(fx.worker, 0), UC_OK);
    ck_assert_int_eq(uc_worker_deregister_memory(fx.worker, 0), UC_ERR_NOT_FOUND);
    stop();
}
END_TEST

/*
 * one payload of two pointers at offset[0], offset[1] of a region of 256 bytes.
 */
static const struct {
    const char *why;
    size_t pointer_count;
    uint64_t offsets[2];
    uint64_t sizes[2];
    size_t region_count;
    uint32_t regions[2];
    size_t group_count;
    uint64_t groups[2];
    uint64_t block_offset;
    enum uc_status want;
} payload_cases[] = {
        {"no regions", 2, {0, 64}, {64, 64}, 0, {0}, 0, {0}, 0, UC_OK},
        {"inside the region", 2, {0, 192}, {64, 64}, 2, {0, 0}, 0, {0}, 0, UC_OK},
        {"one pointer without region", 2, {0, 999}, {64, 64}, 2, {0, UC_MEMORY_REGION_NONE}, 0, {0},
                0, UC_OK},
        {"one group", 2, {0, 64}, {64, 64}, 0, {0}, 1, {2}, 0, UC_OK},
        {"two groups", 2, {0, 64}, {64, 64}, 0, {0}, 2, {1, 1}, 0, UC_OK},
        {"empty group", 2, {0, 64}, {64, 64}, 0, {0}, 2, {0, 2}, 0, UC_OK},
        {"offset", 2, {0, 64}, {64, 64}, 0, {0}, 0, {0}, 4096, UC_OK},
        {"no pointers", 0, {0}, {0}, 0, {0}, 0, {0}, 0, UC_ERR_INVALID_PARAM},
        {"fewer regions than pointers", 2, {0, 64}, {64, 64}, 1, {0}, 0, {0}, 0,
                UC_ERR_INVALID_PARAM},
        {"region that nobody registered", 2, {0, 64}, {64, 64}, 2, {0, 5}, 0, {0}, 0,
                UC_ERR_INVALID_PARAM},
        {"end leaves the region", 2, {0, 193}, {64, 64}, 2, {0, 0}, 0, {0}, 0,
                UC_ERR_INVALID_PARAM},
        {"start leaves the region", 2, {0, 257}, {64, 0}, 2, {0, 0}, 0, {0}, 0,
                UC_ERR_INVALID_PARAM},
        {"before the region", 1, {(uint64_t)-8}, {4}, 1, {0}, 0, {0}, 0, UC_ERR_INVALID_PARAM},
        {"length wraps", 1, {8}, {UINT64_MAX}, 1, {0}, 0, {0}, 0, UC_ERR_INVALID_PARAM},
        {"groups short of the pointers", 2, {0, 64}, {64, 64}, 0, {0}, 1, {1}, 0,
                UC_ERR_INVALID_PARAM},
        {"groups beyond the pointers", 2, {0, 64}, {64, 64}, 0, {0}, 2, {2, 1}, 0,
                UC_ERR_INVALID_PARAM},
        {"group sum wraps", 2, {0, 64}, {64, 64}, 0, {0}, 2, {3, UINT64_MAX}, 0,
                UC_ERR_INVALID_PARAM},
        {"offset and sizes wrap", 2, {0, 64}, {64, 64}, 0, {0}, 0, {0}, UINT64_MAX - 100,
                UC_ERR_INVALID_PARAM},
};

START_TEST(payload_is_checked_before_the_store_sees_it)
{
    uintptr_t base = (uintptr_t)memory;
    void *const pointers[2] = {(void *)(base + (uintptr_t)payload_cases[_i].offsets[0]),
            (void *)(base + (uintptr_t)payload_cases[_i].offsets[1])};
    struct uc_block_payload payload = {
            .pointers = pointers,
            .sizes = payload_cases[_i].sizes,
            .pointer_count = payload_cases[_i].pointer_count,
            .memory_region_indices = payload_cases[_i].regions,
            .memory_region_index_count = payload_cases[_i].region_count,
            .group_sizes = payload_cases[_i].groups,
            .group_count = payload_cases[_i].group_count,
            .block_offset = payload_cases[_i].block_offset,
    };

    for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
        start(kind);
        ck_assert_msg(uc_worker_submit_put(fx.worker, 1, &payload, 1, token, NULL) ==
                              payload_cases[_i].want,
                "%s: %s", payload_cases[_i].why, uc_last_error());
        ck_assert_uint_eq(fx.fake->calls[UC_FAKE_DUMP] + fx.fake->calls[UC_FAKE_TOKEN_DUMP],
                payload_cases[_i].want == UC_OK ? 1 : 0);
        stop();
    }
}
END_TEST

START_TEST(payload_with_null_arrays_is_refused)
{
    static const uint64_t size = 8;
    void *const pointers[1] = {memory};
    void *const null_pointers[1] = {NULL};
    const struct uc_block_payload bad[] = {
            {.pointers = NULL, .sizes = &size, .pointer_count = 1},
            {.pointers = pointers, .sizes = NULL, .pointer_count = 1},
            {.pointers = null_pointers, .sizes = &size, .pointer_count = 1},
            {.pointers = pointers,
                    .sizes = &size,
                    .pointer_count = 1,
                    .memory_region_index_count = 1},
            {.pointers = pointers, .sizes = &size, .pointer_count = 1, .group_count = 1},
    };

    start(_i);
    for (size_t idx = 0; idx < sizeof(bad) / sizeof(bad[0]); idx++) {
        ck_assert_int_eq(uc_worker_submit_put(fx.worker, 1, &bad[idx], 1, token, NULL),
                UC_ERR_INVALID_PARAM);
        ck_assert_int_eq(uc_worker_submit_get(fx.worker, 1, &bad[idx], 1, token, NULL),
                UC_ERR_INVALID_PARAM);
    }
    ck_assert_uint_eq(fx.fake->calls[UC_FAKE_DUMP] + fx.fake->calls[UC_FAKE_TOKEN_DUMP], 0);
    stop();
}
END_TEST

/* */
START_TEST(library_memory_is_whole_pages_and_writable)
{
    void *block = NULL;

    ck_assert_int_eq(uc_memory_alloc(5000, &block), UC_OK);
    ck_assert_uint_eq((uintptr_t)block % 4096, 0);
    memset(block, 0x5a, 8192); /* up to the end of the second page */
    uc_memory_free(block, 5000);
    uc_memory_free(NULL, 5000);
}
END_TEST

START_TEST(library_memory_refuses_sizes_that_do_not_fit)
{
    void *block = &block;

    ck_assert_int_eq(uc_memory_alloc(0, &block), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_memory_alloc(1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_memory_alloc(UINT64_MAX, &block), UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_ne(uc_memory_alloc(UINT64_MAX / 2 + 1, &block), UC_OK);
    ck_assert_ptr_eq(block, &block);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("entry_memory");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, region_indices_count_up_and_are_never_reused, 0, KIND_COUNT);
    tcase_add_test(tcase, range_that_is_none_is_refused_and_spends_no_index);
    tcase_add_loop_test(tcase, deregistering_answers_not_found_and_retry, 0, KIND_COUNT);
    tcase_add_loop_test(tcase, payload_is_checked_before_the_store_sees_it, 0,
            sizeof(payload_cases) / sizeof(payload_cases[0]));
    tcase_add_loop_test(tcase, payload_with_null_arrays_is_refused, 0, KIND_COUNT);
    tcase_add_test(tcase, library_memory_is_whole_pages_and_writable);
    tcase_add_test(tcase, library_memory_refuses_sizes_that_do_not_fit);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
