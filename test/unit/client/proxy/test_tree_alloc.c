/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Trees with one allocation that fails, whichever, G1. Linked from the objects, whose allocations
 * the fake reaches; leaks show under the address sanitizer.
 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/assembler.h>

#include "core/config/fields.h"
#include "test/fake/fake_alloc.h"

enum {
    ALLOCATIONS_MAX = 200
};

static const char tree[] = "{type: peer, branches: [{type: pipe, stores: [{store: " PLUGIN_NULL
                           "}, {store: " PLUGIN_NULL "}]}, {type: store, store: " PLUGIN_NULL
                           "}], routing: {strategy: ttl, config: {thresholds: [1000]}}}";

static const struct uc_block_id keys[2] = {{.bytes = "a"}, {.bytes = "b"}};

static struct uc_dict *
tree_config(void)
{
    struct uc_dict *config = NULL;

    ck_assert_msg(
            uc_yaml_read_text(tree, strlen(tree), "case", &config) == UC_OK, "%s", uc_last_error());
    return config;
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
}

START_TEST(assembly_fails_whole_at_every_allocation)
{
    struct uc_dict *config = tree_config();
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    size_t passed = 0;

    while (status == UC_ERR_OUT_OF_MEMORY) {
        struct uc_assembler *assembler = NULL;

        uc_fake_alloc_fail_once(passed++);
        status = uc_assembler_create(config, NULL, &assembler);
        uc_fake_alloc_reset();
        ck_assert_uint_lt(passed, ALLOCATIONS_MAX);
        ck_assert_int_eq(assembler != NULL, status == UC_OK);
        uc_assembler_destroy(assembler);
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_gt(passed, 10); /* it did reach the tree */
    uc_dict_destroy(config);
}
END_TEST

/* A window whose token cannot be framed is closed again. */
START_TEST(prepare_that_fails_leaves_no_window)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_dict *config = tree_config();
    struct uc_assembler *assembler = NULL;
    struct uc_scheduler *scheduler = NULL;

    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_OK);
    uc_dict_destroy(config);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_scheduler_on_new_request(scheduler, &context), UC_OK);
    for (int window = 0; window < 3; window++) {
        for (size_t attempt = 0; attempt < 2; attempt++) {
            struct uc_token *token = NULL;
            enum uc_status status;

            if (attempt == 0) {
                uc_fake_alloc_fail_once(
                        0); /* that of the frame: tokens are made in libucm_core.so */
            }
            status = window == 0   ? uc_scheduler_prepare_prefetch(scheduler, "r", &token)
                     : window == 1 ? uc_scheduler_prepare_get(scheduler, "r", keys, 2, &token)
                                   : uc_scheduler_prepare_put(scheduler, "r", keys, 2, &token);
            uc_fake_alloc_reset();
            ck_assert_int_eq(status, attempt == 0 ? UC_ERR_OUT_OF_MEMORY : UC_OK);
            uc_token_destroy(token);
        }
    }
    uc_assembler_destroy(assembler);
}
END_TEST

/* a registration that the branch cannot keep is not kept by the peer either. */
START_TEST(registration_fails_whole_at_every_allocation)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_dict *config = tree_config();
    struct uc_assembler *assembler = NULL;
    struct uc_scheduler *scheduler = NULL;
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    size_t passed = 0;

    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_OK);
    uc_dict_destroy(config);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    while (status == UC_ERR_OUT_OF_MEMORY) {
        uc_fake_alloc_fail_once(passed++);
        status = uc_scheduler_on_new_request(scheduler, &context);
        uc_fake_alloc_reset();
        ck_assert_uint_lt(passed, ALLOCATIONS_MAX);
        ck_assert_int_eq(uc_scheduler_on_request_finished(scheduler, "r"),
                status == UC_OK ? UC_OK : UC_ERR_NOT_FOUND);
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_eq(passed, 5); /* two for the peer, two for the entry, and the one that passes */
    uc_assembler_destroy(assembler);
}
END_TEST

/* Data half: a submit, a wait and a region, each without memory; nothing stays. */
START_TEST(data_calls_fail_whole_at_every_allocation)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_dict *config = tree_config();
    struct uc_assembler *assembler = NULL;
    struct uc_scheduler *scheduler = NULL;
    struct uc_worker *worker = NULL;
    struct uc_token *token = NULL;
    struct uc_io_result result;
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    static uint8_t bytes[2][64];
    static void *const pointers[2] = {bytes[0], bytes[1]};
    static const uint64_t size = sizeof(bytes[0]);
    const struct uc_block_payload payloads[2] = {
            {.pointers = &pointers[0], .sizes = &size, .pointer_count = 1},
            {.pointers = &pointers[1], .sizes = &size, .pointer_count = 1}};
    uint64_t job_id = 1;
    uint32_t region_idx = 0;
    size_t passed = 0;
    size_t count = 0;

    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_OK);
    uc_dict_destroy(config);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(assembler, &worker), UC_OK);
    ck_assert_int_eq(uc_scheduler_on_new_request(scheduler, &context), UC_OK);
    ck_assert_int_eq(uc_scheduler_prepare_put(scheduler, "r", keys, 2, &token), UC_OK);
    while (status == UC_ERR_OUT_OF_MEMORY) {
        uc_fake_alloc_fail_once(passed++);
        status = uc_worker_submit_put(worker, job_id, payloads, 2, token, NULL);
        uc_fake_alloc_reset();
        ck_assert_uint_lt(passed, ALLOCATIONS_MAX);
    }
    ck_assert_int_eq(status, UC_OK);
    status = UC_ERR_OUT_OF_MEMORY;
    for (passed = 0; status == UC_ERR_OUT_OF_MEMORY; passed++) {
        uc_fake_alloc_fail_once(passed);
        status = uc_worker_wait(worker, &job_id, 1, -1, &result, 1, &count);
        uc_fake_alloc_reset();
        ck_assert_uint_lt(passed, ALLOCATIONS_MAX);
        if (status == UC_ERR_TIMEOUT) {
            status = UC_ERR_OUT_OF_MEMORY;
        }
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_eq(count, 1); /* the event was not lost on the way */
    uc_io_results_release(&result, count);
    status = UC_ERR_OUT_OF_MEMORY;
    for (passed = 0; status == UC_ERR_OUT_OF_MEMORY; passed++) {
        uc_fake_alloc_fail_once(passed);
        status = uc_worker_register_memory(
                worker, bytes, sizeof(bytes), UC_MEMORY_HOST, &region_idx);
        uc_fake_alloc_reset();
        ck_assert_uint_lt(passed, ALLOCATIONS_MAX);
    }
    ck_assert_int_eq(status, UC_OK);
    ck_assert_uint_eq(region_idx, passed - 1); /* refused ones are spent */
    uc_token_destroy(token);
    uc_assembler_destroy(assembler);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("tree_alloc");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, assembly_fails_whole_at_every_allocation);
    tcase_add_test(tcase, prepare_that_fails_leaves_no_window);
    tcase_add_test(tcase, registration_fails_whole_at_every_allocation);
    tcase_add_test(tcase, data_calls_fail_whole_at_every_allocation);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
