/* SPDX-License-Identifier: Apache-2.0 */

/* Handles of jobs where the host gave no hook, in a process that has the driver of CUDA, over one without a device. */

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include <ucm/assembler.h>

#include "core/config/fields.h"
#include "test/fake/fake_cuda.h"

enum {
    BLOCK_BYTES = 4096,
    WAIT_MS = 20000,
};

static const char *const stores[] = {
        "{type: store, store: cache, config: {block_bytes: 4096, capacity_blocks: 4}}",
        "{type: store, store: posix, config: {block_bytes: 4096, root: blocks}}",
        "{type: store, store: posix, config: {root: blocks, io: threads}}",
};

static char folder[32];
static struct uc_assembler *assembler;
static struct uc_scheduler *scheduler;
static struct uc_worker *worker;
static struct uc_token *token;
static struct uc_block_id id;
static uint8_t bytes[BLOCK_BYTES];

static int
remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    (void)facts;
    (void)type;
    (void)where;
    return remove(path);
}

/* Once for all cases, so that nothing stays behind one that fails. */
static void
enter_folder(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/ucm-hook-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void
remove_folder(void)
{
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
assemble(const char *text, const struct uc_assembler_options *options)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_dict *config = NULL;
    unsigned pid = (unsigned)getpid();

    memcpy(id.bytes, &pid, sizeof(pid));
    id.bytes[15]++;
    ck_assert_msg(
            uc_yaml_read_text(text, strlen(text), "case", &config) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(uc_assembler_create(config, options, &assembler) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(assembler, &worker), UC_OK);
    ck_assert_int_eq(uc_scheduler_on_new_request(scheduler, &context), UC_OK);
    ck_assert_int_eq(uc_scheduler_prepare_put(scheduler, "r", &id, 1, &token), UC_OK);
}

static void
take_apart(void)
{
    (void)uc_scheduler_complete_put(scheduler, "r", false);
    uc_token_destroy(token);
    uc_assembler_destroy(assembler);
}

static enum uc_status
submit_behind(uint64_t event)
{
    struct uc_io_context io = {.prerequisite_handle = event};
    static const uint64_t size = BLOCK_BYTES;
    void *const pointer = bytes;
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &size, .pointer_count = 1};

    return uc_worker_submit_put(worker, 1, &payload, 1, token, &io);
}

static enum uc_status
wait_for(int64_t timeout_ms, enum uc_status *code_out)
{
    struct uc_io_result result = {0};
    uint64_t job_id = 1;
    size_t count = 0;
    enum uc_status status = uc_worker_wait(worker, &job_id, 1, timeout_ms, &result, 1, &count);

    *code_out = result.code;
    uc_io_results_release(&result, count);
    return status;
}

/* */
START_TEST(job_waits_for_an_event_of_the_device)
{
    uint64_t event = fake_cuda_make_event();
    enum uc_status code = UC_ERR_GENERAL;

    assemble(stores[_i], NULL);
    ck_assert_msg(submit_behind(event) == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(wait_for(20, &code), UC_ERR_TIMEOUT);
    fake_cuda_fire(event);
    ck_assert_int_eq(wait_for(WAIT_MS, &code), UC_OK);
    ck_assert_int_eq(code, UC_OK);
    take_apart();
    fake_cuda_free_event(event);
}
END_TEST

static enum uc_status
refuse(void *context, uint64_t handle)
{
    (void)context;
    return handle == 42 ? UC_ERR_STALE : UC_ERR_GENERAL;
}

/* the host knows better what its handles are. */
START_TEST(hook_of_the_host_comes_first)
{
    struct uc_assembler_options options = {
            .struct_size = sizeof(options), .prerequisite_hook = refuse};
    enum uc_status code = UC_OK;

    assemble(stores[_i], &options);
    ck_assert_int_eq(submit_behind(42), UC_OK);
    ck_assert_int_eq(wait_for(WAIT_MS, &code), UC_OK);
    ck_assert_int_eq(code, UC_ERR_STALE);
    take_apart();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("device_hook");
    TCase *cases = tcase_create("device_hook");
    const int count = (int)(sizeof(stores) / sizeof(stores[0]));
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(cases, enter_folder, remove_folder);
    tcase_add_loop_test(cases, job_waits_for_an_event_of_the_device, 0, count);
    tcase_add_loop_test(cases, hook_of_the_host_comes_first, 0, count);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
