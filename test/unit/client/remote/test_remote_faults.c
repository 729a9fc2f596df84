/* SPDX-License-Identifier: Apache-2.0 */

/* The remote store when its server dies, hangs or comes back (ARCHITECTURE.md §7, R-5.27 to ). */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/stores/remote/store.h"
#include "test/unit/client/remote/remote_env.h"

static struct env_server server;
static struct uc_store *store;
static const struct uc_token_addressed_ops *ops;
static uint8_t *memory;

static void
setup(void)
{
    server = env_server_start(0, NULL);
    store = env_store(&server, "both");
    ops = uc_store_as_token_addressed(store);
    memory = calloc(BLOCKS, BLOCK_BYTES);
}

static void
teardown(void)
{
    env_store_destroy(store);
    env_server_stop(&server, SIGKILL);
    free(memory);
}

static struct uc_token *
pin_one(uint32_t number)
{
    struct uc_block_id key = env_key(number);
    struct uc_token *token = NULL;

    ck_assert_msg(ops->pin(store, &key, 1, &token) == UC_OK, "%s", uc_last_error());
    return token;
}

static struct uc_token *
alloc_one(uint32_t number)
{
    struct uc_block_id key = env_key(number);
    struct uc_token *token = NULL;

    ck_assert_msg(ops->alloc(store, &key, 1, NULL, &token) == UC_OK, "%s", uc_last_error());
    return token;
}

/* V-60, R-5.29, R-5.30, R-5.31, G19 */
START_TEST(dead_server_means_misses_and_typed_errors)
{
    struct uc_block_id key = env_key(1);
    struct uc_token *read_token;
    struct uc_token *write_token;
    struct uc_token *token = NULL;
    struct env_job job;

    env_put(store, 1, 1);
    read_token = pin_one(1);
    write_token = alloc_one(2);
    env_server_stop(&server, SIGKILL);
    env_wait_health(store, UC_ERR_UNHEALTHY);

    ck_assert(!env_has(store, 1));
    ck_assert_int_eq(ops->pin(store, &key, 1, &token), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops->alloc(store, &key, 1, NULL, &token), UC_ERR_UNHEALTHY);
    env_job_init(&job, &key, 1, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, read_token, 0), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(uc_store_touch(store, &key, 1, NULL), UC_OK);
    ck_assert_int_eq(
            uc_store_register_memory(store, 7, memory, BLOCK_BYTES, UC_MEMORY_HOST), UC_OK);
    ck_assert_int_eq(uc_store_deregister_memory(store, 7), UC_OK);
    ops->unpin(store, read_token);
    ck_assert_int_eq(ops->commit(store, write_token, NULL, true), UC_ERR_NOT_FOUND);
    uc_token_destroy(read_token);
    uc_token_destroy(write_token);
}
END_TEST

/* ARCHITECTURE.md §3: a late conclusion never touches what a new session holds. */
START_TEST(restarted_server_is_found_again_and_old_tokens_are_stale)
{
    struct uc_store *worker = env_store(&server, "worker");
    struct uc_block_id key = env_key(1);
    struct uc_token *old_read;
    struct uc_token *old_write;
    struct uc_token *new_write;
    struct uc_io_result result;
    uint16_t port = server.port;
    struct env_job job;

    env_put(store, 1, 1);
    old_read = pin_one(1);
    old_write = alloc_one(2);
    env_job_init(&job, &key, 1, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(worker, 1, &job.descriptor, old_read, 0), UC_OK);
    env_expect(worker, 1, UC_OK);
    env_server_stop(&server, SIGKILL);
    env_wait_health(store, UC_ERR_UNHEALTHY);
    env_wait_health(worker, UC_ERR_UNHEALTHY);
    server = env_server_start(port, NULL);
    env_wait_health(store, UC_OK);
    env_wait_health(worker, UC_OK);

    ck_assert(!env_has(store, 1));
    memset(memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(worker, 1, &job.descriptor, old_read, 0), UC_OK);
    result = env_wait(worker, 1);
    ck_assert_msg(result.code == UC_ERR_STALE, "%s", uc_status_name(result.code));
    uc_io_results_release(&result, 1);
    ck_assert_uint_eq(memory[0], 0);
    new_write = alloc_one(2);
    ck_assert_int_eq(ops->commit(store, old_write, NULL, false), UC_ERR_NOT_FOUND);
    ops->unpin(store, old_read);
    key = env_key(2);
    env_job_init(&job, &key, 1, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(worker, 1, &job.descriptor, new_write, 0), UC_OK);
    env_expect(worker, 1, UC_OK);
    ck_assert_int_eq(ops->commit(store, new_write, NULL, true), UC_OK);
    ck_assert(env_has(store, 2));
    uc_token_destroy(old_read);
    uc_token_destroy(old_write);
    uc_token_destroy(new_write);
    env_store_destroy(worker);
}
END_TEST

/* V-46: a hanging job ends as Timeout, and nothing touches its buffers afterwards. */
START_TEST(silent_server_lets_a_job_run_into_its_deadline)
{
    struct uc_block_id key = env_key(1);
    struct uc_io_result results[1];
    struct uc_token *token;
    struct env_job job;
    uint64_t job_id = 1;
    size_t count = 9;

    env_put(store, 1, 1);
    token = pin_one(1);
    env_job_init(&job, &key, 1, memory, 0, BLOCK_BYTES);
    job.descriptor.timeout_ms = 200;
    env_server_freeze(&server);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    ck_assert_int_eq(uc_store_wait(store, &job_id, 1, 0, results, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
    env_expect(store, 1, UC_ERR_TIMEOUT);
    env_server_thaw(&server);
    env_wait_health(store, UC_OK);
    ck_assert_uint_eq(memory[0], 0);
    ops->unpin(store, token);
    uc_token_destroy(token);

    /* The store goes on: same session or a new one, the blocks are still there. */
    env_wait_health(store, UC_OK);
    ck_assert_int_eq(env_get(store, 1, 1), UC_OK);
}
END_TEST

START_TEST(dump_on_a_silent_server_times_out_and_is_not_visible)
{
    struct uc_block_id key = env_key(3);
    struct uc_token *token;
    struct env_job job;

    env_put(store, 1, 1);
    token = alloc_one(3);
    env_job_init(&job, &key, 1, memory, 0, BLOCK_BYTES);
    job.descriptor.timeout_ms = 200;
    env_server_freeze(&server);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_ERR_TIMEOUT);
    env_server_thaw(&server);
    env_wait_health(store, UC_OK);
    ck_assert_int_ne(ops->commit(store, token, NULL, true), UC_OK);
    uc_token_destroy(token);
    ck_assert(!env_has(store, 3));
    env_wait_health(store, UC_OK);
    env_put(store, 3, 1);
    ck_assert_int_eq(env_get(store, 3, 1), UC_OK);
}
END_TEST

/* A short lease: idle clients ping, and keep what they hold. */
START_TEST(idle_session_and_attachment_outlive_their_lease)
{
    static const char *const short_lease[] = {"--lease=300ms", NULL};
    struct env_server quick = env_server_start(0, short_lease);
    struct uc_store *idle = env_store(&quick, "both");
    struct uc_block_id key = env_key(1);
    struct uc_token *token = NULL;
    struct uc_io_result result;
    uint64_t unknown = 77;
    size_t count = 0;
    struct env_job job;

    env_put(idle, 1, 1);
    ck_assert_int_eq(ops->pin(idle, &key, 1, &token), UC_OK);
    env_job_init(&job, &key, 1, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(idle, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(idle, 1, UC_OK);

    /* Three leases pass while a job waits for a server that is told nothing. */
    ck_assert_int_eq(uc_store_wait(idle, &unknown, 1, 0, &result, 1, &count), UC_OK);
    env_pass_time(900);
    ck_assert_int_eq(uc_store_health(idle), UC_OK);
    ck_assert_int_eq(ops->load(idle, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(idle, 1, UC_OK);
    ops->unpin(idle, token);
    uc_token_destroy(token);
    env_store_destroy(idle);
    env_server_stop(&quick, SIGTERM);
}
END_TEST

/* asks for drained jobs; a store that is destroyed all the same neither hangs nor leaks. */
START_TEST(destroy_with_a_job_in_flight_fences_it)
{
    struct uc_block_id key = env_key(1);
    struct uc_store *other = env_store(&server, "both");
    struct uc_token *token = NULL;
    struct env_job job;

    env_put(store, 1, 1);
    ck_assert_int_eq(ops->pin(other, &key, 1, &token), UC_OK);
    env_job_init(&job, &key, 1, memory, 0, BLOCK_BYTES);
    env_server_freeze(&server);
    ck_assert_int_eq(ops->load(other, 1, &job.descriptor, token, 0), UC_OK);
    env_store_destroy(other);
    env_server_thaw(&server);
    ck_assert_uint_eq(memory[0], 0);
    uc_token_destroy(token);
}
END_TEST

/* Jobs in flight when the server dies end at once, each with one event (G4, G15). */
START_TEST(jobs_in_flight_end_when_the_server_dies)
{
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    struct env_job job;

    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(1 + idx);
    }
    env_put(store, 1, BLOCKS);
    ck_assert_int_eq(ops->pin(store, keys, BLOCKS, &token), UC_OK);
    env_job_init(&job, keys, BLOCKS, memory, 0, BLOCK_BYTES);
    env_server_freeze(&server);
    for (uint64_t id = 0; id < 20; id++) {
        ck_assert_int_eq(ops->load(store, id, &job.descriptor, token, 0), UC_OK);
    }
    env_server_stop(&server, SIGKILL);
    for (uint64_t id = 0; id < 20; id++) {
        env_expect(store, id, UC_ERR_UNHEALTHY);
    }
    ops->unpin(store, token);
    uc_token_destroy(token);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_faults");
    TCase *faults = tcase_create("faults");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(faults, setup, teardown);
    tcase_set_timeout(faults, 60);
    tcase_add_test(faults, dead_server_means_misses_and_typed_errors);
    tcase_add_test(faults, restarted_server_is_found_again_and_old_tokens_are_stale);
    tcase_add_test(faults, silent_server_lets_a_job_run_into_its_deadline);
    tcase_add_test(faults, dump_on_a_silent_server_times_out_and_is_not_visible);
    tcase_add_test(faults, idle_session_and_attachment_outlive_their_lease);
    tcase_add_test(faults, destroy_with_a_job_in_flight_fences_it);
    tcase_add_test(faults, jobs_in_flight_end_when_the_server_dies);
    suite_add_tcase(suite, faults);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
