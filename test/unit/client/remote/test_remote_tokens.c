/* SPDX-License-Identifier: Apache-2.0 */

/* The remote store against a real server over tcp: tokens, and what wrong input is told. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/stores/remote/store.h"
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

/* a token is concluded once. */
START_TEST(second_conclusion_changes_nothing)
{
    struct uc_block_id key = env_key(1);
    struct uc_token *token = NULL;

    env_put(store, 1, 1);
    ck_assert_int_eq(ops->alloc(store, &key, 1, NULL, &token), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_ERR_NOT_FOUND);
    ck_assert(env_has(store, 1));
    ops->unpin(store, token); /* of an alloc: not a pin */
    uc_token_destroy(token);

    ck_assert_int_eq(ops->pin(store, &key, 1, &token), UC_OK);
    ops->unpin(store, token);
    ops->unpin(store, token);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_ERR_NOT_FOUND);
    ck_assert(env_has(store, 1));
    uc_token_destroy(token);
}
END_TEST

/* nothing is moved with a token that was concluded. */
START_TEST(dump_with_a_concluded_token_fails)
{
    struct uc_block_id key = env_key(1);
    uint8_t *bytes = calloc(1, BLOCK_BYTES);
    struct uc_token *token = NULL;
    struct env_job job;

    ck_assert_int_eq(ops->alloc(store, &key, 1, NULL, &token), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_OK);
    env_job_init(&job, &key, 1, bytes, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_store_health(store), UC_OK);
    uc_token_destroy(token);
    free(bytes);
}
END_TEST

/* scheduler and worker are instances that share nothing but the bytes of tokens. */
START_TEST(worker_instance_needs_nothing_but_token_bytes)
{
    struct uc_store *scheduler = env_store(&server, "scheduler");
    struct uc_store *worker = env_store(&server, "worker");
    struct uc_block_id key = env_key(1);
    uint8_t *bytes = malloc(BLOCK_BYTES);
    uint8_t *back = calloc(1, BLOCK_BYTES);
    struct uc_token *minted = NULL;
    struct uc_token *token;
    struct env_job job;

    env_fill(bytes, BLOCK_BYTES, 1);
    ck_assert_int_eq(ops->alloc(scheduler, &key, 1, NULL, &minted), UC_OK);
    token = env_token_copy(minted);
    env_job_init(&job, &key, 1, bytes, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(scheduler, 1, &job.descriptor, token, 0), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->alloc(worker, &key, 1, NULL, &minted), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->dump(worker, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(worker, 1, UC_OK);
    ck_assert_int_eq(ops->commit(scheduler, minted, NULL, true), UC_OK);
    uc_token_destroy(token);
    uc_token_destroy(minted);

    ck_assert_int_eq(ops->pin(scheduler, &key, 1, &minted), UC_OK);
    token = env_token_copy(minted);
    env_job_init(&job, &key, 1, back, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(worker, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(worker, 1, UC_OK);
    ck_assert_mem_eq(bytes, back, BLOCK_BYTES);
    ops->unpin(scheduler, minted);
    uc_token_destroy(token);
    uc_token_destroy(minted);
    env_store_destroy(worker);
    env_store_destroy(scheduler);
    free(bytes);
    free(back);
}
END_TEST

/* ARCHITECTURE.md §6: no flipped bit of a token moves a byte to or from the wrong place. */
START_TEST(flipped_bits_of_a_token_never_succeed)
{
    struct uc_block_id key = env_key(1);
    uint8_t *back = calloc(1, BLOCK_BYTES);
    uint8_t *expected = malloc(BLOCK_BYTES);
    struct uc_token *token = NULL;
    uint8_t *bytes;
    size_t length;

    env_put(store, 1, 2);
    env_fill(expected, BLOCK_BYTES, 1);
    ck_assert_int_eq(ops->pin(store, &key, 1, &token), UC_OK);
    length = uc_token_serialized_bytes(token);
    bytes = malloc(length);
    for (size_t idx = 16 + UC_BLOCK_ID_BYTES; idx < length; idx++) {
        struct uc_token *forged = NULL;
        struct env_job job;

        uc_token_serialize(token, bytes);
        bytes[idx] ^= (uint8_t)(1u << (idx % 8));
        if (uc_token_deserialize(bytes, length, &forged) != UC_OK) {
            continue;
        }
        env_job_init(&job, &key, 1, back, 0, BLOCK_BYTES);
        if (ops->load(store, 1, &job.descriptor, forged, 0) == UC_OK) {
            struct uc_io_result result = env_wait(store, 1);

            ck_assert_msg(!result.success, "byte %zu", idx);
            uc_io_results_release(&result, 1);
        }
        uc_token_destroy(forged);
    }
    for (size_t idx = 0; idx < BLOCK_BYTES; idx++) {
        ck_assert_uint_eq(back[idx], 0);
    }
    env_wait_health(store, UC_OK);
    ck_assert_int_eq(env_get(store, 1, 1), UC_OK);
    ops->unpin(store, token);
    uc_token_destroy(token);
    free(bytes);
    free(expected);
    free(back);
}
END_TEST

/* */
START_TEST(job_id_is_in_use_until_its_event_is_consumed)
{
    struct uc_block_id key = env_key(1);
    uint8_t *back = calloc(1, BLOCK_BYTES);
    struct uc_token *token = NULL;
    struct env_job job;

    env_put(store, 1, 1);
    ck_assert_int_eq(ops->pin(store, &key, 1, &token), UC_OK);
    env_job_init(&job, &key, 1, back, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(store, 5, &job.descriptor, token, 0), UC_OK);
    ck_assert_int_eq(ops->load(store, 5, &job.descriptor, token, 0), UC_ERR_DUPLICATE_KEY);
    env_expect(store, 5, UC_OK);
    ck_assert_int_eq(ops->load(store, 5, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 5, UC_OK);
    ops->unpin(store, token);
    uc_token_destroy(token);
    free(back);
}
END_TEST

struct setup_case {
    const char *key;
    const char *text; /* NULL: the number below */
    int64_t number;
    enum uc_status want;
    const char *message;
};

/* the text names what was found and what is needed. */
static const struct setup_case setup_cases[] = {
        {"namespace", "nosuch", 0, UC_ERR_NOT_FOUND, "nosuch"},
        {"block_bytes", NULL, 4096, UC_ERR_INVALID_PARAM, "65536"},
        {"block_bytes", NULL, BLOCK_BYTES, UC_OK, ""},
        {"access", "admin", 0, UC_ERR_INVALID_PARAM, "access"},
        {"fabric", "pigeon", 0, UC_ERR_INVALID_PARAM, "pigeon"},
        {"checksum", "perhaps", 0, UC_ERR_INVALID_PARAM, "checksum"},
        {"rpc_timeout", "soon", 0, UC_ERR_INVALID_PARAM, "rpc_timeout"},
        {"unknown_key", "x", 0, UC_OK, ""}, /* only warns */
};

START_TEST(setup_says_what_is_wrong)
{
    const struct setup_case *row = &setup_cases[_i];
    struct uc_dict *config = env_config(&server, _i % 2 == 0 ? "both" : "worker");
    struct uc_store *other = uc_remote_store_create();
    enum uc_status status;

    if (row->text != NULL) {
        ck_assert_int_eq(uc_dict_set_string(config, row->key, row->text), UC_OK);
    } else {
        ck_assert_int_eq(uc_dict_set_int(config, row->key, row->number), UC_OK);
    }
    status = uc_store_setup(other, config);
    ck_assert_msg(
            status == row->want, "%s: %s: %s", row->key, uc_status_name(status), uc_last_error());
    if (status != UC_OK) {
        ck_assert_msg(strstr(uc_last_error(), row->message) != NULL, "%s", uc_last_error());
    }
    ck_assert_int_eq(uc_store_setup(other, config), UC_ERR_INVALID_PARAM); /* */
    env_store_destroy(other);
    uc_dict_destroy(config);
}
END_TEST

/* Without one the size of the blocks is not known. */
START_TEST(setup_needs_one_reachable_server_or_block_bytes)
{
    struct uc_dict *config = NULL;
    struct uc_store *other = uc_remote_store_create();
    struct env_server gone = env_server_start(0, NULL);

    env_server_stop(&gone, SIGKILL);
    config = env_config(&gone, "both");
    ck_assert_int_eq(uc_store_setup(other, config), UC_ERR_UNHEALTHY);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "127.0.0.1"));
    env_store_destroy(other);

    other = uc_remote_store_create();
    ck_assert_int_eq(uc_dict_append_string(config, "servers", "127.0.0.1:1"), UC_OK);
    ck_assert_int_eq(uc_store_setup(other, config), UC_ERR_UNHEALTHY);
    env_store_destroy(other);

    /* G19: misses and typed errors until a server comes; the only one, since it must have the key */
    uc_dict_destroy(config);
    config = env_config(&gone, "both");
    other = uc_remote_store_create();
    ck_assert_int_eq(uc_dict_set_int(config, "block_bytes", BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(uc_store_setup(other, config), UC_OK);
    ck_assert_int_eq(uc_store_health(other), UC_ERR_UNHEALTHY);
    ck_assert(!env_has(other, 1));
    gone = env_server_start(gone.port, NULL);
    env_wait_health(other, UC_OK);
    env_put(other, 1, 1);
    ck_assert_int_eq(env_get(other, 1, 1), UC_OK);
    env_store_destroy(other);
    env_server_stop(&gone, SIGKILL);
    uc_dict_destroy(config);
}
END_TEST

START_TEST(read_only_store_reads_and_does_not_write)
{
    struct uc_block_id key = env_key(2);
    struct uc_dict *config = env_config(&server, "both");
    struct uc_store *reader = uc_remote_store_create();
    struct uc_token *token = NULL;

    env_put(store, 1, 1);
    ck_assert_int_eq(uc_dict_set_string(config, "access", "ro"), UC_OK);
    ck_assert_int_eq(uc_store_setup(reader, config), UC_OK);
    ck_assert_int_eq(env_get(reader, 1, 1), UC_OK);
    ck_assert_int_eq(ops->alloc(reader, &key, 1, NULL, &token), UC_ERR_PERMISSION_DENIED);
    env_store_destroy(reader);
    uc_dict_destroy(config);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_tokens");
    TCase *tokens = tcase_create("tokens");
    TCase *wrong = tcase_create("wrong");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tokens, setup, teardown);
    tcase_set_timeout(tokens, 60);
    tcase_add_test(tokens, second_conclusion_changes_nothing);
    tcase_add_test(tokens, dump_with_a_concluded_token_fails);
    tcase_add_test(tokens, worker_instance_needs_nothing_but_token_bytes);
    tcase_add_test(tokens, flipped_bits_of_a_token_never_succeed);
    tcase_add_test(tokens, job_id_is_in_use_until_its_event_is_consumed);
    suite_add_tcase(suite, tokens);

    tcase_add_checked_fixture(wrong, setup, teardown);
    tcase_set_timeout(wrong, 60);
    tcase_add_loop_test(
            wrong, setup_says_what_is_wrong, 0, sizeof(setup_cases) / sizeof(setup_cases[0]));
    tcase_add_test(wrong, setup_needs_one_reachable_server_or_block_bytes);
    tcase_add_test(wrong, read_only_store_reads_and_does_not_write);
    suite_add_tcase(suite, wrong);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
