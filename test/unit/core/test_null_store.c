/* SPDX-License-Identifier: Apache-2.0 */

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/store.h>

#include "test/fake/fake_alloc.h"

enum {
    BLOCK_BYTES = 64
};

static const struct uc_block_id id_a = {{'a'}};
static const struct uc_block_id id_b = {{'b'}};
static struct uc_store *store;
static uint8_t source[BLOCK_BYTES];
static uint8_t target[BLOCK_BYTES];

static struct uc_dict *
make_config(const char *key, int64_t value)
{
    struct uc_dict *config = NULL;

    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    if (key != NULL) {
        ck_assert_int_eq(uc_dict_set_int(config, key, value), UC_OK);
    }
    return config;
}

static void
open_store(const char *key, int64_t value)
{
    struct uc_dict *config = make_config(key, value);

    store = uc_null_store_create();
    ck_assert_ptr_nonnull(store);
    ck_assert_int_eq(uc_store_check(store), UC_OK);
    ck_assert_int_eq(uc_store_setup(store, config), UC_OK);
    uc_dict_destroy(config);
}

static void
setup(void)
{
    open_store(NULL, 0);
    for (size_t idx = 0; idx < BLOCK_BYTES; idx++) {
        source[idx] = (uint8_t)(idx + 1);
        target[idx] = 0;
    }
}

static void
setup_with_block_bytes(void)
{
    setup();
    uc_null_store_destroy(store);
    open_store("block_bytes", BLOCK_BYTES);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_null_store_destroy(store);
    store = NULL;
}

/* Submit one block: `bytes` at `memory`, from `offset` of the block. */
static enum uc_status
submit(bool is_dump, uint64_t job_id, const struct uc_block_id *id, void *memory, uint64_t bytes,
        uint64_t offset)
{
    struct uc_block_payload payload = {
            .pointers = &memory, .sizes = &bytes, .pointer_count = 1, .block_offset = offset};
    struct uc_job_descriptor job = {.block_ids = id, .payloads = &payload, .count = 1};

    return is_dump ? uc_store_dump(store, job_id, &job) : uc_store_load(store, job_id, &job);
}

/* The code of the only pending event. */
static enum uc_status
outcome(uint64_t job_id)
{
    struct uc_io_result result = {0};
    size_t count = 0;
    enum uc_status code;

    ck_assert_int_eq(uc_store_wait(store, &job_id, 1, 0, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(result.job_id, job_id);
    ck_assert_int_eq(result.success, result.code == UC_OK);
    code = result.code;
    uc_io_results_release(&result, 1);
    return code;
}

static enum uc_status
dump(const struct uc_block_id *id, uint64_t bytes, uint64_t offset)
{
    enum uc_status status = submit(true, 1, id, source + offset, bytes, offset);

    return status != UC_OK ? status : outcome(1);
}

static enum uc_status
load(const struct uc_block_id *id, uint64_t bytes, uint64_t offset)
{
    enum uc_status status = submit(false, 1, id, target, bytes, offset);

    return status != UC_OK ? status : outcome(1);
}

static bool
is_present(const struct uc_block_id *id)
{
    uint8_t hit = 9;

    ck_assert_int_eq(uc_store_lookup(store, id, 1, &hit), UC_OK);
    ck_assert_uint_le(hit, 1);
    return hit != 0;
}

/* */
START_TEST(dumped_block_is_present_and_loads_back)
{
    ck_assert(!is_present(&id_a));
    ck_assert_int_eq(load(&id_a, BLOCK_BYTES, 0), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(submit(true, 7, &id_a, source, BLOCK_BYTES, 0), UC_OK);
    ck_assert(is_present(&id_a)); /* before its event is delivered */
    ck_assert_int_eq(outcome(7), UC_OK);
    ck_assert_int_eq(load(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert_mem_eq(target, source, BLOCK_BYTES);
    ck_assert(!is_present(&id_b));
}
END_TEST

START_TEST(block_may_be_scattered)
{
    uint8_t gathered[6] = {0};
    void *parts[] = {source, source + 10, source + 20};
    void *places[] = {gathered + 4, gathered, gathered + 1};
    const uint64_t part_sizes[] = {1, 0, 5};
    const uint64_t place_sizes[] = {2, 1, 3};
    struct uc_block_payload from = {.pointers = parts, .sizes = part_sizes, .pointer_count = 3};
    struct uc_block_payload to = {.pointers = places, .sizes = place_sizes, .pointer_count = 3};
    struct uc_job_descriptor job = {.block_ids = &id_a, .payloads = &from, .count = 1};

    ck_assert_int_eq(uc_store_dump(store, 1, &job), UC_OK);
    ck_assert_int_eq(outcome(1), UC_OK);
    job.payloads = &to;
    ck_assert_int_eq(uc_store_load(store, 1, &job), UC_OK);
    ck_assert_int_eq(outcome(1), UC_OK);
    /* stored: 1, 21..25; the first two go to the end */
    ck_assert_mem_eq(gathered, ((uint8_t[]){22, 23, 24, 25, 1, 21}), 6);
}
END_TEST

/* without block_bytes */
START_TEST(offset_needs_block_bytes)
{
    ck_assert_int_eq(submit(true, 1, &id_a, source, 8, 8), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(dump(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert_int_eq(submit(false, 1, &id_a, target, 8, 8), UC_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "block_bytes"));
}
END_TEST

START_TEST(second_dump_replaces_the_block_as_a_whole)
{
    ck_assert_int_eq(dump(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert_int_eq(submit(true, 1, &id_a, source + 4, 8, 0), UC_OK);
    ck_assert_int_eq(outcome(1), UC_OK);
    ck_assert_int_eq(load(&id_a, 8, 0), UC_OK);
    ck_assert_mem_eq(target, source + 4, 8);
    ck_assert_int_eq(load(&id_a, 9, 0), UC_ERR_INVALID_PARAM); /* beyond its length */
}
END_TEST

START_TEST(empty_block_is_a_block)
{
    ck_assert_int_eq(dump(&id_a, 0, 0), UC_OK);
    ck_assert(is_present(&id_a));
    ck_assert_int_eq(load(&id_a, 0, 0), UC_OK);
}
END_TEST

/* with block_bytes */
START_TEST(block_is_present_once_all_its_bytes_were_seen)
{
    ck_assert_int_eq(dump(&id_a, 16, 48), UC_OK);
    ck_assert_int_eq(dump(&id_a, 16, 0), UC_OK);
    ck_assert_int_eq(dump(&id_a, 16, 0), UC_OK);
    ck_assert(!is_present(&id_a));
    ck_assert_int_eq(load(&id_a, 16, 0), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(dump(&id_a, 32, 16), UC_OK);
    ck_assert(is_present(&id_a));
    ck_assert_int_eq(load(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert_mem_eq(target, source, BLOCK_BYTES);
    ck_assert_int_eq(load(&id_a, 8, 40), UC_OK);
    ck_assert_mem_eq(target, source + 40, 8);
}
END_TEST

/* a complete copy never becomes a mixture */
START_TEST(part_of_a_complete_block_moves_nothing)
{
    ck_assert_int_eq(dump(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert_int_eq(submit(true, 1, &id_a, source, 8, 8), UC_OK);
    ck_assert_int_eq(outcome(1), UC_OK);
    ck_assert_int_eq(load(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert_mem_eq(target, source, BLOCK_BYTES);
}
END_TEST

START_TEST(whole_dump_over_a_partial_one_completes_it)
{
    ck_assert_int_eq(dump(&id_a, 16, 0), UC_OK);
    ck_assert_int_eq(dump(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert(is_present(&id_a));
}
END_TEST

START_TEST(range_beyond_block_bytes_is_refused)
{
    ck_assert_int_eq(submit(true, 1, &id_a, source, 1, BLOCK_BYTES), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(submit(true, 1, &id_a, source, 33, 32), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(submit(false, 1, &id_a, source, 1, UINT64_MAX - 1), UC_ERR_INVALID_PARAM);
    ck_assert(!is_present(&id_a));
}
END_TEST

/* */
START_TEST(partly_failed_job_tells_which_blocks)
{
    const struct uc_block_id ids[] = {id_a, id_b, id_a};
    void *memory = target;
    const uint64_t bytes = BLOCK_BYTES;
    struct uc_block_payload payload = {.pointers = &memory, .sizes = &bytes, .pointer_count = 1};
    const struct uc_block_payload payloads[] = {payload, payload, payload};
    struct uc_job_descriptor job = {.block_ids = ids, .payloads = payloads, .count = 3};
    struct uc_io_result result;
    uint64_t job_id = 3;
    size_t count = 0;

    ck_assert_int_eq(dump(&id_a, BLOCK_BYTES, 0), UC_OK);
    ck_assert_int_eq(uc_store_load(store, job_id, &job), UC_OK); /* G5: accepted only */
    ck_assert_int_eq(uc_store_wait(store, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert(!result.success);
    ck_assert_int_eq(result.code, UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(result.block_count, 3);
    ck_assert(uc_io_result_block_ok(&result, 0));
    ck_assert(!uc_io_result_block_ok(&result, 1));
    ck_assert(uc_io_result_block_ok(&result, 2));
    uc_io_results_release(&result, 1);
}
END_TEST

/* V-44 */
START_TEST(job_id_is_taken_until_its_event_was_consumed)
{
    ck_assert_int_eq(submit(true, 1, &id_a, source, 8, 0), UC_OK);
    ck_assert_int_eq(submit(true, 1, &id_b, source, 8, 0), UC_ERR_DUPLICATE_KEY);
    ck_assert_int_eq(submit(false, 1, &id_a, target, 8, 0), UC_ERR_DUPLICATE_KEY);
    ck_assert(!is_present(&id_b)); /* a refused job moves nothing */
    ck_assert_int_eq(outcome(1), UC_OK);
    ck_assert_int_eq(submit(true, 1, &id_b, source, 8, 0), UC_OK);
    ck_assert_int_eq(outcome(1), UC_OK);
}
END_TEST

START_TEST(refused_job_frees_its_id)
{
    ck_assert_int_eq(submit(true, 1, &id_a, source, 8, 8), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(submit(true, 1, &id_a, source, 8, 0), UC_OK);
    ck_assert_int_eq(outcome(1), UC_OK);
}
END_TEST

START_TEST(event_fd_follows_the_events)
{
    struct pollfd poll_fd = {.fd = uc_store_event_fd(store), .events = POLLIN};
    struct uc_io_result results[2];
    size_t count = 0;

    ck_assert_int_ge(poll_fd.fd, 0);
    ck_assert_int_eq(poll(&poll_fd, 1, 0), 0);
    ck_assert_int_eq(submit(true, 1, &id_a, source, 8, 0), UC_OK);
    ck_assert_int_eq(submit(false, 2, &id_a, target, 8, 0), UC_OK);
    ck_assert_int_eq(poll(&poll_fd, 1, 0), 1);
    ck_assert_int_eq(uc_store_get_finished(store, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(poll(&poll_fd, 1, 0), 0);
}
END_TEST

/* no hook, no prerequisite */
START_TEST(prerequisite_is_not_supported)
{
    struct uc_job_descriptor job = {.prerequisite_handle = 1};

    ck_assert_int_eq(uc_store_load(store, 1, &job), UC_ERR_UNSUPPORTED);
    job.prerequisite_handle = 0;
    ck_assert_int_eq(uc_store_load(store, 1, &job), UC_OK); /* no blocks: done at once */
    ck_assert_int_eq(outcome(1), UC_OK);
}
END_TEST

/* */
START_TEST(regions_are_registered_once_and_forgotten)
{
    for (uint32_t idx = 0; idx < 20; idx++) {
        ck_assert_int_eq(
                uc_store_register_memory(store, idx, source, BLOCK_BYTES, UC_MEMORY_HOST), UC_OK);
    }
    ck_assert_int_eq(uc_store_register_memory(store, 3, target, BLOCK_BYTES, UC_MEMORY_HOST),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(store, 30, target, BLOCK_BYTES, UC_MEMORY_CUDA),
            UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_store_deregister_memory(store, 3), UC_OK);
    ck_assert_int_eq(uc_store_deregister_memory(store, 3), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(
            uc_store_register_memory(store, 3, target, BLOCK_BYTES, UC_MEMORY_HOST), UC_OK);
}
END_TEST

static enum uc_status
dump_with_region(uint32_t region_idx, size_t first, uint64_t bytes)
{
    void *memory = source + first;
    struct uc_block_payload payload = {.pointers = &memory,
            .sizes = &bytes,
            .pointer_count = 1,
            .memory_region_indices = &region_idx,
            .memory_region_index_count = 1};
    struct uc_job_descriptor job = {.block_ids = &id_a, .payloads = &payload, .count = 1};
    enum uc_status status = uc_store_dump(store, 1, &job);

    return status != UC_OK ? status : outcome(1);
}

/* */
START_TEST(pointer_lies_inside_its_region)
{
    ck_assert_int_eq(uc_store_register_memory(store, 0, source + 8, 16, UC_MEMORY_HOST), UC_OK);
    ck_assert_int_eq(dump_with_region(0, 8, 16), UC_OK);
    ck_assert_int_eq(dump_with_region(0, 24, 0), UC_OK);
    ck_assert_int_eq(dump_with_region(0, 8, 17), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(dump_with_region(0, 7, 4), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(dump_with_region(0, 25, 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(dump_with_region(1, 0, 4), UC_OK); /* not needed, so not missed */
    ck_assert_int_eq(dump_with_region(UC_MEMORY_REGION_NONE, 0, 4), UC_OK);
}
END_TEST

/* */
START_TEST(null_store_is_plain_and_says_so)
{
    struct uc_dict *description = NULL;
    const char *name = NULL;
    int64_t version = 0;
    bool is_tokened = true;
    bool is_prefetchable = true;

    ck_assert_ptr_null(uc_store_as_token_addressed(store));
    ck_assert_ptr_null(uc_store_as_prefetchable(store));
    ck_assert_int_eq(uc_store_health(store), UC_OK);
    ck_assert_int_eq(uc_store_touch(store, &id_a, 1, NULL), UC_OK);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(store, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "name", &name), UC_OK);
    ck_assert_str_eq(name, "null");
    ck_assert_int_eq(uc_dict_get_int(description, "abi_version", &version), UC_OK);
    ck_assert_int_eq(version, UC_STORE_ABI_VERSION);
    ck_assert_int_eq(uc_dict_get_bool(description, "token_addressed", &is_tokened), UC_OK);
    ck_assert_int_eq(uc_dict_get_bool(description, "prefetchable", &is_prefetchable), UC_OK);
    ck_assert(!is_tokened && !is_prefetchable);
    ck_assert(uc_dict_has(description, "version") && uc_dict_has(description, "node_path"));
    uc_dict_destroy(description);
}
END_TEST

START_TEST(many_blocks_are_all_found)
{
    for (uint32_t idx = 0; idx < 1000; idx++) {
        struct uc_block_id id = {{(uint8_t)idx, 0, 0, 0, 0, 0, 0, 0, (uint8_t)(idx / 256)}};

        source[0] = (uint8_t)idx;
        ck_assert_int_eq(dump(&id, 2, 0), UC_OK);
    }
    for (uint32_t idx = 0; idx < 1000; idx++) {
        struct uc_block_id id = {{(uint8_t)idx, 0, 0, 0, 0, 0, 0, 0, (uint8_t)(idx / 256)}};

        ck_assert_int_eq(load(&id, 2, 0), UC_OK);
        ck_assert_uint_eq(target[0], (uint8_t)idx);
    }
}
END_TEST

/* each with a store that was not set up */
START_TEST(setup_checks_and_happens_once)
{
    static const struct {
        const char *key;
        int64_t value;
        enum uc_status want;
    } cases[] = {
            {"block_bytes", 0, UC_ERR_INVALID_PARAM}, {"block_bytes", -1, UC_ERR_INVALID_PARAM},
            {"timeout_ms", -1, UC_ERR_INVALID_PARAM}, {"node_path", 1, UC_ERR_INVALID_PARAM},
            {"timeout_ms", 5, UC_OK}, {"something_else", 1, UC_OK}, /* a warning only, R-14.6 */
    };
    struct uc_dict *config = make_config(cases[_i].key, cases[_i].value);
    struct uc_dict *good = make_config(NULL, 0);
    struct uc_store *fresh = uc_null_store_create();
    uint8_t hit = 0;

    ck_assert_int_eq(uc_store_lookup(fresh, &id_a, 1, &hit), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_setup(fresh, config), cases[_i].want);
    if (cases[_i].want != UC_OK) {
        ck_assert_ptr_nonnull(strstr(uc_last_error(), cases[_i].key));
        ck_assert_int_eq(uc_store_lookup(fresh, &id_a, 1, &hit), UC_ERR_INVALID_PARAM);
    }
    ck_assert_int_eq(uc_store_setup(fresh, good), UC_ERR_INVALID_PARAM);
    uc_null_store_destroy(fresh);
    uc_null_store_destroy(NULL);
    uc_dict_destroy(config);
    uc_dict_destroy(good);
}
END_TEST

START_TEST(create_undoes_everything_when_an_allocation_fails)
{
    struct uc_store *none;

    uc_fake_alloc_fail_after((size_t)_i);
    none = uc_null_store_create();
    uc_fake_alloc_reset();
    ck_assert_ptr_null(none);
}
END_TEST

/* Out of memory shows at submit or in the event; an older content survives it. */
START_TEST(dump_without_memory_leaves_the_previous_content)
{
    enum uc_status status;

    ck_assert_int_eq(dump(&id_a, 8, 0), UC_OK);
    uc_fake_alloc_fail_after((size_t)_i);
    status = submit(true, 9, &id_a, source + 8, 8, 0);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status == UC_OK ? outcome(9) : status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_eq(load(&id_a, 8, 0), UC_OK);
    ck_assert_mem_eq(target, source, 8);
}
END_TEST

static void *
look_up_all_the_time(void *arg)
{
    uint8_t hit = 0;

    for (int round = 0; round < 2000; round++) {
        if (uc_store_lookup(store, &id_a, 1, &hit) != UC_OK) {
            return NULL;
        }
        (void)uc_store_touch(store, &id_a, 1, NULL);
    }
    return arg;
}

/* */
START_TEST(control_and_data_thread_may_run_in_parallel)
{
    void *result = NULL;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, look_up_all_the_time, store), 0);
    for (int round = 0; round < 500; round++) {
        struct uc_block_id id = {{'a', (uint8_t)round}};

        ck_assert_int_eq(dump(&id, 8, 0), UC_OK);
        ck_assert_int_eq(load(&id, 8, 0), UC_OK);
    }
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, store);
}
END_TEST

static Suite *
null_store_suite(void)
{
    Suite *suite = suite_create("null_store");
    TCase *plain = tcase_create("whole_blocks");
    TCase *parts = tcase_create("block_bytes");

    tcase_add_checked_fixture(plain, setup, teardown);
    tcase_add_test(plain, dumped_block_is_present_and_loads_back);
    tcase_add_test(plain, block_may_be_scattered);
    tcase_add_test(plain, offset_needs_block_bytes);
    tcase_add_test(plain, second_dump_replaces_the_block_as_a_whole);
    tcase_add_test(plain, empty_block_is_a_block);
    tcase_add_test(plain, partly_failed_job_tells_which_blocks);
    tcase_add_test(plain, job_id_is_taken_until_its_event_was_consumed);
    tcase_add_test(plain, refused_job_frees_its_id);
    tcase_add_test(plain, event_fd_follows_the_events);
    tcase_add_test(plain, prerequisite_is_not_supported);
    tcase_add_test(plain, regions_are_registered_once_and_forgotten);
    tcase_add_test(plain, pointer_lies_inside_its_region);
    tcase_add_test(plain, null_store_is_plain_and_says_so);
    tcase_add_test(plain, many_blocks_are_all_found);
    tcase_add_loop_test(plain, setup_checks_and_happens_once, 0, 6);
    tcase_add_loop_test(plain, create_undoes_everything_when_an_allocation_fails, 0, 4);
    tcase_add_loop_test(plain, dump_without_memory_leaves_the_previous_content, 0, 2);
    tcase_add_test(plain, control_and_data_thread_may_run_in_parallel);
    suite_add_tcase(suite, plain);

    tcase_add_checked_fixture(parts, setup_with_block_bytes, teardown);
    tcase_add_test(parts, block_is_present_once_all_its_bytes_were_seen);
    tcase_add_test(parts, part_of_a_complete_block_moves_nothing);
    tcase_add_test(parts, whole_dump_over_a_partial_one_completes_it);
    tcase_add_test(parts, range_beyond_block_bytes_is_refused);
    suite_add_tcase(suite, parts);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(null_store_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
