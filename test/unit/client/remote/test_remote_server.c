/* SPDX-License-Identifier: Apache-2.0 */

/* The remote store against a real server over tcp: what works. */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/setup.h>

#include "client/cluster/session.h"
#include "client/stores/remote/store.h"
#include "net/rpc/messages.h"
#include "test/unit/client/remote/remote_env.h"

static struct env_server server;
static struct uc_store *store;
static const struct uc_token_addressed_ops *ops;

static void
setup(void)
{
    server = env_server_start(0, NULL);
    store = env_store(&server, "both");
    ops = uc_store_as_token_addressed(store);
}

static void
teardown(void)
{
    env_store_destroy(store);
    env_server_stop(&server, SIGTERM);
}

/* G2, R-5.2, R-6.10 */
START_TEST(put_is_visible_after_commit_and_reads_back)
{
    struct uc_block_id key = env_key(7);
    struct uc_token *token = NULL;

    ck_assert_int_eq(ops->alloc(store, &key, 1, NULL, &token), UC_OK);
    ck_assert(!env_has(store, 7));
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_OK);
    ck_assert(!env_has(store, 7));
    uc_token_destroy(token);

    env_put(store, 1, BLOCKS);
    ck_assert(env_has(store, 1));
    ck_assert_int_eq(env_get(store, 1, BLOCKS), UC_OK);
    ck_assert_int_eq(uc_store_health(store), UC_OK);
}
END_TEST

/* what nobody wrote stays invisible. */
START_TEST(commit_of_an_unwritten_block_is_refused)
{
    struct uc_block_id key = env_key(7);
    struct uc_token *token = NULL;

    ck_assert_int_eq(ops->alloc(store, &key, 1, NULL, &token), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_ERR_INVALID_PARAM);
    ck_assert(!env_has(store, 7));
    uc_token_destroy(token);
}
END_TEST

/* several jobs per block, several pointers per payload, part of a token. */
START_TEST(layers_of_a_block_are_written_and_read_in_pieces)
{
    struct uc_block_id keys[3] = {env_key(1), env_key(2), env_key(3)};
    uint8_t *bytes = malloc(BLOCK_BYTES);
    uint8_t *back = calloc(1, BLOCK_BYTES);
    struct uc_token *token = NULL;
    struct env_job job;
    void *pointers[2] = {bytes, bytes + 1000};
    uint64_t sizes[2] = {1000, BLOCK_BYTES / 2 - 1000};

    env_fill(bytes, BLOCK_BYTES, 2);
    ck_assert_int_eq(ops->alloc(store, keys, 3, NULL, &token), UC_OK);
    env_job_init(&job, &keys[1], 1, bytes, 0, BLOCK_BYTES / 2);
    job.payloads[0].pointers = pointers;
    job.payloads[0].sizes = sizes;
    job.payloads[0].pointer_count = 2;
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 1), UC_OK);
    env_job_init(&job, &keys[1], 1, bytes + BLOCK_BYTES / 2, BLOCK_BYTES / 2, BLOCK_BYTES / 2);
    ck_assert_int_eq(ops->dump(store, 2, &job.descriptor, token, 1), UC_OK);
    env_expect(store, 1, UC_OK);
    env_expect(store, 2, UC_OK);
    ck_assert_int_eq(ops->commit(store, token, (const uint8_t *)"\0\1", true), UC_OK);
    uc_token_destroy(token);
    ck_assert(!env_has(store, 1) && env_has(store, 2) && !env_has(store, 3));

    ck_assert_int_eq(ops->pin(store, &keys[1], 1, &token), UC_OK);
    env_job_init(&job, &keys[1], 1, back, 0, 5000);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    env_job_init(&job, &keys[1], 1, back + 5000, 5000, BLOCK_BYTES - 5000);
    ck_assert_int_eq(ops->load(store, 2, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    env_expect(store, 2, UC_OK);
    ck_assert_mem_eq(bytes, back, BLOCK_BYTES);
    ops->unpin(store, token);
    uc_token_destroy(token);
    free(bytes);
    free(back);
}
END_TEST

/* The part at offset 0 comes last, and its writer knows of no other: the block is whole all the same. */
START_TEST(layers_written_from_the_last_to_the_first_are_read_back)
{
    struct uc_block_id key = env_key(1);
    uint8_t *bytes = malloc(BLOCK_BYTES);
    struct uc_token *token = NULL;
    struct env_job job;

    env_fill(bytes, BLOCK_BYTES, 1);
    ck_assert_int_eq(ops->alloc(store, &key, 1, NULL, &token), UC_OK);
    for (uint64_t offset = BLOCK_BYTES; offset > 0;) {
        offset -= BLOCK_BYTES / 4;
        env_job_init(&job, &key, 1, bytes + offset, offset, BLOCK_BYTES / 4);
        ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
        env_expect(store, 1, UC_OK);
    }
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
    uc_token_destroy(token);
    ck_assert_int_eq(env_get(store, 1, 1), UC_OK);
    free(bytes);
}
END_TEST

/* a range beyond the stored length fails that block and no other. */
START_TEST(range_beyond_the_stored_length_fails_its_block_only)
{
    struct uc_block_id keys[2] = {env_key(1), env_key(2)};
    uint8_t *bytes = calloc(2, BLOCK_BYTES);
    struct uc_token *token = NULL;
    struct uc_io_result result;
    struct env_job job;

    ck_assert_int_eq(ops->alloc(store, keys, 2, NULL, &token), UC_OK);
    env_job_init(&job, keys, 2, bytes, 0, BLOCK_BYTES);
    job.sizes[0] = 100;
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
    uc_token_destroy(token);

    ck_assert_int_eq(ops->pin(store, keys, 2, &token), UC_OK);
    job.sizes[0] = 101;
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    result = env_wait(store, 1);
    ck_assert_int_eq(result.code, UC_ERR_INVALID_PARAM);
    ck_assert(!uc_io_result_block_ok(&result, 0) && uc_io_result_block_ok(&result, 1));
    uc_io_results_release(&result, 1);
    job.sizes[0] = 100;
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    ops->unpin(store, token);
    uc_token_destroy(token);

    /* The same for a dump beyond what was reserved. */
    keys[0] = env_key(11);
    keys[1] = env_key(12);
    ck_assert_int_eq(ops->alloc(store, keys, 2, NULL, &token), UC_OK);
    env_job_init(&job, keys, 2, bytes, 0, BLOCK_BYTES);
    job.payloads[1].block_offset = 1;
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    result = env_wait(store, 1);
    ck_assert_int_eq(result.code, UC_ERR_INVALID_PARAM);
    ck_assert(uc_io_result_block_ok(&result, 0) && !uc_io_result_block_ok(&result, 1));
    uc_io_results_release(&result, 1);
    ck_assert_int_eq(ops->commit(store, token, (const uint8_t *)"\1\0", true), UC_OK);
    ck_assert(env_has(store, 11) && !env_has(store, 12));
    uc_token_destroy(token);
    free(bytes);
}
END_TEST

/* a committed copy is never overwritten; its dump moves nothing and succeeds. */
START_TEST(dump_of_a_committed_block_moves_nothing)
{
    struct uc_block_id key = env_key(1);
    uint8_t *wrong = calloc(1, BLOCK_BYTES);
    struct uc_token *token = NULL;
    struct env_job job;

    env_put(store, 1, 1);
    ck_assert_int_eq(ops->alloc(store, &key, 1, NULL, &token), UC_OK);
    env_job_init(&job, &key, 1, wrong, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
    ck_assert_int_eq(env_get(store, 1, 1), UC_OK);
    uc_token_destroy(token);
    free(wrong);
}
END_TEST

static void
flip_stored_byte(uint32_t number, uint64_t offset)
{
    struct uc_server_address address;
    struct uc_session_config config = {
            .server = &address,
            .name_space = "default",
            .credential = "",
            .client = "flip",
            .access = UC_ACCESS_RW,
            .connect_timeout_ms = 5000,
            .rpc_timeout_ms = 5000,
            .clock = uc_clock_monotonic(),
    };
    struct uc_debug_flip_request request = {.key = env_key(number), .offset_bytes = offset};
    struct uc_rpc_buffer params = {.length = 0};
    struct uc_session *session = NULL;
    char text[64];

    (void)snprintf(text, sizeof(text), "127.0.0.1:%u", (unsigned)server.port);
    ck_assert_int_eq(uc_server_address_parse(text, &address), UC_OK);
    ck_assert_int_eq(uc_session_create(&config, &session), UC_OK);
    uc_debug_flip_request_encode(&params, &request);
    ck_assert_int_eq(uc_session_call(session, 0, UC_RPC_DEBUG_FLIP, &params, NULL, NULL), UC_OK);
    uc_rpc_buffer_fini(&params);
    uc_session_destroy(session);
}

/* V-39, R-5.14: a damaged block is never delivered, and is absent from the next lookup on. */
START_TEST(damaged_block_is_missing_and_revoked)
{
    struct uc_block_id keys[3] = {env_key(1), env_key(2), env_key(3)};
    uint8_t *back = calloc(3, BLOCK_BYTES);
    struct uc_token *token = NULL;
    struct uc_io_result result;
    struct env_job job;

    env_put(store, 1, 3);
    flip_stored_byte(2, 12345);
    ck_assert_int_eq(ops->pin(store, keys, 3, &token), UC_OK);
    env_job_init(&job, keys, 3, back, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    result = env_wait(store, 1);
    ck_assert_int_eq(result.code, UC_ERR_NOT_FOUND);
    ck_assert(uc_io_result_block_ok(&result, 0));
    ck_assert(!uc_io_result_block_ok(&result, 1));
    ck_assert(uc_io_result_block_ok(&result, 2));
    uc_io_results_release(&result, 1);
    ck_assert(env_has(store, 1) && !env_has(store, 2) && env_has(store, 3));
    ops->unpin(store, token);
    uc_token_destroy(token);

    env_put(store, 2, 1);
    ck_assert_int_eq(env_get(store, 1, 3), UC_OK);
    free(back);
}
END_TEST

/* */
START_TEST(regions_are_checked_and_held_by_jobs)
{
    struct uc_block_id key = env_key(1);
    uint8_t *back = calloc(1, BLOCK_BYTES);
    uint32_t index = 9;
    struct uc_token *token = NULL;
    struct env_job job;

    env_put(store, 1, 1);
    ck_assert_int_eq(uc_store_register_memory(store, 3, back, BLOCK_BYTES, UC_MEMORY_HOST), UC_OK);
    ck_assert_int_eq(uc_store_register_memory(store, 3, back, BLOCK_BYTES, UC_MEMORY_HOST),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(store, 4, back, BLOCK_BYTES, UC_MEMORY_CUDA),
            UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->pin(store, &key, 1, &token), UC_OK);
    env_job_init(&job, &key, 1, back, 0, BLOCK_BYTES);
    job.payloads[0].memory_region_indices = &index;
    job.payloads[0].memory_region_index_count = 1;
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_ERR_INVALID_PARAM);
    index = 3;

    /* While the server is stopped the job stays in flight and holds its region. */
    env_server_freeze(&server);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    ck_assert_int_eq(uc_store_deregister_memory(store, 3), UC_ERR_RETRY);
    env_server_thaw(&server);
    env_expect(store, 1, UC_OK);
    ck_assert_int_eq(uc_store_deregister_memory(store, 3), UC_OK);
    ck_assert_int_eq(uc_store_deregister_memory(store, 3), UC_ERR_NOT_FOUND);
    ops->unpin(store, token);
    uc_token_destroy(token);
    free(back);
}
END_TEST

/* */
static enum uc_status
fires_on_third_poll(void *context, uint64_t handle)
{
    int *polls = context;

    if (handle == 66) {
        return UC_ERR_GENERAL;
    }
    return ++*polls < 3 ? UC_ERR_RETRY : UC_OK;
}

START_TEST(no_byte_moves_before_the_prerequisite_fires)
{
    struct uc_block_id key = env_key(1);
    uint8_t *back = calloc(1, BLOCK_BYTES);
    int polls = 0;
    struct uc_prerequisite hook = {.poll = fires_on_third_poll, .context = &polls};
    struct uc_dict *config = env_config(&server, "both");
    struct uc_store *hooked = uc_remote_store_create();
    struct uc_token *token = NULL;
    struct env_job job;

    env_put(store, 1, 1);
    ck_assert_int_eq(uc_dict_set_pointer(config, UC_SETUP_PREREQUISITE_HOOK, &hook), UC_OK);
    ck_assert_int_eq(uc_store_setup(hooked, config), UC_OK);
    ck_assert_int_eq(ops->pin(hooked, &key, 1, &token), UC_OK);
    env_job_init(&job, &key, 1, back, 0, BLOCK_BYTES);
    job.descriptor.prerequisite_handle = 5;
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->load(hooked, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(hooked, 1, UC_OK);
    ck_assert_int_eq(polls, 3);
    job.descriptor.prerequisite_handle = 66;
    ck_assert_int_eq(ops->load(hooked, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(hooked, 1, UC_ERR_GENERAL);
    ops->unpin(hooked, token);
    uc_token_destroy(token);
    env_store_destroy(hooked);
    uc_dict_destroy(config);
    free(back);
}
END_TEST

/* What the data thread does while the test's own thread makes control calls. */
struct loader {
    struct uc_token *token;
    size_t loads;
};

static void *
load_repeatedly(void *argument)
{
    struct loader *loader = argument;
    uint8_t *back = calloc(4, BLOCK_BYTES);
    struct uc_block_id keys[4] = {env_key(1), env_key(2), env_key(3), env_key(4)};
    struct env_job job;

    env_job_init(&job, keys, 4, back, 0, BLOCK_BYTES);
    for (uint32_t round = 0; round < 100; round++) {
        struct uc_io_result results[2];
        uint64_t ids[2] = {round, round + 1000};
        size_t count = 0;

        for (size_t idx = 0; idx < 2; idx++) {
            if (ops->load(store, ids[idx], &job.descriptor, loader->token, 0) != UC_OK) {
                goto out;
            }
        }
        if (uc_store_wait(store, ids, 2, -1, results, 2, &count) != UC_OK || count != 2) {
            goto out;
        }
        loader->loads += (size_t)results[0].success + (size_t)results[1].success;
        uc_io_results_release(results, count);
        if (uc_store_register_memory(store, round, back, BLOCK_BYTES, UC_MEMORY_HOST) != UC_OK ||
                uc_store_deregister_memory(store, round) != UC_OK) {
            goto out;
        }
    }
out:
    free(back);
    return NULL;
}

/* one control thread and one data thread, and anybody who asks for health. */
START_TEST(control_and_data_threads_run_in_parallel)
{
    struct uc_block_id keys[4] = {env_key(1), env_key(2), env_key(3), env_key(4)};
    struct loader loader = {.loads = 0};
    struct uc_dict *description = NULL;
    pthread_t thread;

    env_put(store, 1, 4);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(ops->pin(store, keys, 4, &loader.token), UC_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, load_repeatedly, &loader), 0);
    for (size_t round = 0; round < 200; round++) {
        struct uc_token *token = NULL;

        ck_assert(env_has(store, 1));
        ck_assert_int_eq(ops->pin(store, keys, 4, &token), UC_OK);
        ops->unpin(store, token);
        uc_token_destroy(token);
        ck_assert_int_eq(uc_store_health(store), UC_OK);
        ck_assert_int_eq(uc_store_describe(store, description), UC_OK);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(loader.loads, 200);
    ops->unpin(store, loader.token);
    uc_token_destroy(loader.token);
    uc_dict_destroy(description);
}
END_TEST

/* */
START_TEST(describe_names_what_it_is_and_counts)
{
    struct uc_dict *description = NULL;
    const char *text = NULL;
    int64_t number = 0;
    bool flag = false;

    env_put(store, 1, 4);
    ck_assert_int_eq(env_get(store, 1, 4), UC_OK);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(store, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "name", &text), UC_OK);
    ck_assert_str_eq(text, "remote");
    ck_assert_int_eq(uc_dict_get_string(description, "fabric", &text), UC_OK);
    ck_assert_str_eq(text, "tcp");
    ck_assert_int_eq(uc_dict_get_bool(description, "token_addressed", &flag), UC_OK);
    ck_assert(flag);
    ck_assert_int_eq(uc_dict_get_bool(description, "connected", &flag), UC_OK);
    ck_assert(flag);
    ck_assert_int_eq(uc_dict_get_int(description, "blocks_read", &number), UC_OK);
    ck_assert_int_eq(number, 4);
    ck_assert_int_eq(uc_dict_get_int(description, "bytes_written", &number), UC_OK);
    ck_assert_int_eq(number, 4 * BLOCK_BYTES);
    uc_dict_destroy(description);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_server");
    TCase *blocks = tcase_create("blocks");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(blocks, setup, teardown);
    tcase_set_timeout(blocks, 60);
    tcase_add_test(blocks, put_is_visible_after_commit_and_reads_back);
    tcase_add_test(blocks, commit_of_an_unwritten_block_is_refused);
    tcase_add_test(blocks, layers_of_a_block_are_written_and_read_in_pieces);
    tcase_add_test(blocks, layers_written_from_the_last_to_the_first_are_read_back);
    tcase_add_test(blocks, range_beyond_the_stored_length_fails_its_block_only);
    tcase_add_test(blocks, dump_of_a_committed_block_moves_nothing);
    tcase_add_test(blocks, damaged_block_is_missing_and_revoked);
    tcase_add_test(blocks, regions_are_checked_and_held_by_jobs);
    tcase_add_test(blocks, no_byte_moves_before_the_prerequisite_fires);
    tcase_add_test(blocks, control_and_data_threads_run_in_parallel);
    tcase_add_test(blocks, describe_names_what_it_is_and_counts);
    suite_add_tcase(suite, blocks);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
