/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that cannot be registered with a transport that needs it: `fabric: auto` goes on with the next one, a
 * demanded one says so. The part of verbs is played by shm under a claim that it needs registration.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/stores/remote/store.h"
#include "test/fake/fault_fabric.h"
#include "test/unit/client/remote/remote_env.h"

enum {
    COUNT = 4, /* blocks of a job */
    MEMORY_BYTES = COUNT * BLOCK_BYTES,
    FIRST_REGION = 0,
    SECOND_REGION = 1,
};

static const enum uc_status failing = UC_ERR_OUT_OF_MEMORY; /* what an exceeded limit looks like */

static struct env_server server;
static struct uc_store *store;
static const struct uc_token_addressed_ops *ops;
static uint8_t *first;
static uint8_t *second;
static struct uc_block_id keys[COUNT];
static struct uc_token *token;
static struct env_job job;
static struct env_job later; /* job 2, where there is one */

static enum uc_status
open_store(const char *fabric)
{
    struct uc_dict *config = env_config(&server, "both");
    enum uc_status status;

    ck_assert_int_eq(uc_dict_set_string(config, "fabric", fabric), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "bounce_bytes", "256KiB"), UC_OK);
    store = uc_remote_store_create();
    status = uc_store_setup(store, config);
    uc_dict_destroy(config);
    ops = uc_store_as_token_addressed(store);
    return status;
}

static void
setup(void)
{
    static const char *const extra[] = {"--fabric=auto", NULL};

    uc_fault_fabric_use("shm", "shm", true);
    server = env_server_start(0, extra);
    first = calloc(1, MEMORY_BYTES);
    second = calloc(1, MEMORY_BYTES);
    token = NULL;
    store = NULL;
}

static void
teardown(void)
{
    uc_token_destroy(token);
    env_store_destroy(store);
    env_server_stop(&server, SIGKILL);
    free(first);
    free(second);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    ck_assert_uint_eq(uc_fault_counts().endpoints, 0);
    ck_assert_uint_eq(uc_fault_counts().registrations, 0);
    uc_fault_reset();
}

/* @return the transport that blocks moved over last */
static const char *
fabric_of(struct uc_store *described)
{
    static char name[16];
    struct uc_dict *description = NULL;
    const char *text = "";

    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(described, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "fabric", &text), UC_OK);
    (void)snprintf(name, sizeof(name), "%s", text);
    uc_dict_destroy(description);
    return name;
}

static enum uc_status
register_one(uint32_t region_idx, uint8_t *memory)
{
    return uc_store_register_memory(store, region_idx, memory, MEMORY_BYTES, UC_MEMORY_HOST);
}

/* Keys from here on, and their bytes in memory. */
static void
fill(uint32_t first_key, uint8_t *memory)
{
    for (uint32_t idx = 0; idx < COUNT; idx++) {
        keys[idx] = env_key(first_key + idx);
        env_fill(memory + (size_t)idx * BLOCK_BYTES, BLOCK_BYTES, first_key + idx);
    }
}

/* Blocks go there and come back, from and into this memory. */
static void
put_and_get(uint32_t first_key, uint8_t *memory)
{
    uint8_t *expected = malloc(MEMORY_BYTES);

    fill(first_key, memory);
    memcpy(expected, memory, MEMORY_BYTES);
    ck_assert_msg(ops->alloc(store, keys, COUNT, NULL, &token) == UC_OK, "%s", uc_last_error());
    env_job_init(&job, keys, COUNT, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
    uc_token_destroy(token);
    token = NULL;

    memset(memory, 0, MEMORY_BYTES);
    ck_assert_int_eq(ops->pin(store, keys, COUNT, &token), UC_OK);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    ck_assert_mem_eq(memory, expected, MEMORY_BYTES);
    ops->unpin(store, token);
    uc_token_destroy(token);
    token = NULL;
    free(expected);
}

/* the first one fails already, that of the store's own buffers. */
START_TEST(auto_without_any_registration_takes_the_next_transport)
{
    uc_fault_fail_registrations(UINT32_MAX, failing);
    ck_assert_msg(open_store("auto") == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    put_and_get(1, first);
    ck_assert_str_eq(fabric_of(store), "tcp");
    ck_assert_uint_eq(uc_fault_counts().connects, 0);
}
END_TEST

/* The engine's first one fails, before anything is connected. */
START_TEST(auto_moves_before_it_connects)
{
    ck_assert_int_eq(open_store("auto"), UC_OK);
    uc_fault_fail_registrations(1, failing);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    put_and_get(1, first);
    ck_assert_str_eq(fabric_of(store), "tcp");
    ck_assert_uint_eq(uc_fault_counts().connects, 0);
}
END_TEST

/* A later one fails, on a connection that stands: it is not used any more, for old memory as little as for new. */
START_TEST(auto_moves_off_a_connection_that_stands)
{
    ck_assert_int_eq(open_store("auto"), UC_OK);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    put_and_get(1, first);
    ck_assert_str_eq(fabric_of(store), "shm");

    uc_fault_fail_registrations(1, failing);
    ck_assert_int_eq(register_one(SECOND_REGION, second), UC_OK);
    put_and_get(1 + COUNT, second);
    ck_assert_str_eq(fabric_of(store), "tcp");
    put_and_get(1 + 2 * COUNT, first);
    ck_assert_uint_eq(uc_fault_counts().endpoints, 0);
    ck_assert_int_eq(uc_store_deregister_memory(store, SECOND_REGION), UC_OK);
    ck_assert_int_eq(uc_store_deregister_memory(store, FIRST_REGION), UC_OK);
}
END_TEST

/* Jobs in flight end in peace over the old transport; those submitted meanwhile wait, and go over the new one. G4 */
START_TEST(auto_lets_jobs_in_flight_end_before_it_moves)
{
    struct uc_io_result result;
    uint64_t job_id = 2;
    size_t count = 9;

    ck_assert_int_eq(open_store("auto"), UC_OK);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    put_and_get(1, first);
    memset(first, 0, MEMORY_BYTES);

    ck_assert_int_eq(ops->pin(store, keys, COUNT, &token), UC_OK);
    uc_fault_hold(UC_FAULT_READS, UC_FAULT_BEFORE, UINT32_MAX);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    uc_fault_wait_held(COUNT);
    uc_fault_fail_registrations(1, failing);
    ck_assert_int_eq(register_one(SECOND_REGION, second), UC_OK);
    env_job_init(&later, keys, COUNT, second, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(store, job_id, &later.descriptor, token, 0), UC_OK);
    ck_assert_int_eq(uc_store_wait(store, &job_id, 1, 50, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_str_eq(fabric_of(store), "shm");

    uc_fault_release(false);
    env_expect(store, 1, UC_OK);
    env_expect(store, 2, UC_OK);
    ck_assert_mem_eq(first, second, MEMORY_BYTES);
    ck_assert_str_eq(fabric_of(store), "tcp");
    ck_assert_uint_eq(uc_fault_counts().fences, 0);
    ops->unpin(store, token);
}
END_TEST

/* whoever waits for the move does not wait for ever. */
START_TEST(deadline_passes_while_a_job_waits_for_the_move)
{
    ck_assert_int_eq(open_store("auto"), UC_OK);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    put_and_get(1, first);

    ck_assert_int_eq(ops->pin(store, keys, COUNT, &token), UC_OK);
    uc_fault_hold(UC_FAULT_READS, UC_FAULT_BEFORE, UINT32_MAX);
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    uc_fault_wait_held(COUNT);
    uc_fault_fail_registrations(1, failing);
    ck_assert_int_eq(register_one(SECOND_REGION, second), UC_OK);
    env_job_init(&later, keys, COUNT, second, 0, BLOCK_BYTES);
    later.descriptor.timeout_ms = 100;
    ck_assert_int_eq(ops->load(store, 2, &later.descriptor, token, 0), UC_OK);
    env_expect(store, 2, UC_ERR_TIMEOUT);
    uc_fault_release(false);
    env_expect(store, 1, UC_OK);
    ops->unpin(store, token);
}
END_TEST

/* It fails while the transport connects, with a job that waits for that. */
START_TEST(auto_moves_off_a_connection_being_made)
{
    ck_assert_int_eq(open_store("auto"), UC_OK);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    fill(1, first);
    ck_assert_int_eq(ops->alloc(store, keys, COUNT, NULL, &token), UC_OK);
    env_job_init(&job, keys, COUNT, first, 0, BLOCK_BYTES);
    uc_fault_fail_connects(1, UC_FAULT_CONNECT_SILENT, UC_OK);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    uc_fault_wait_connects(1);

    uc_fault_fail_registrations(1, failing);
    ck_assert_int_eq(register_one(SECOND_REGION, second), UC_OK);
    memcpy(second, first, MEMORY_BYTES);
    env_job_init(&later, keys, COUNT, second, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(store, 2, &later.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    env_expect(store, 2, UC_OK);
    ck_assert_str_eq(fabric_of(store), "tcp");
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
}
END_TEST

/* Not only engines register: the footers of a new job fail. */
START_TEST(auto_moves_when_a_jobs_own_memory_fails)
{
    ck_assert_int_eq(open_store("auto"), UC_OK);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    uc_fault_fail_registrations(1, failing);
    put_and_get(1, first);
    ck_assert_str_eq(fabric_of(store), "tcp");
}
END_TEST

/* refused, nothing is left behind, the index is free, and what is registered works on. */
START_TEST(demanded_transport_refuses_the_region_and_keeps_the_others)
{
    ck_assert_int_eq(open_store("shm"), UC_OK);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    put_and_get(1, first);
    uc_fault_fail_registrations(1, failing);
    ck_assert_int_eq(register_one(SECOND_REGION, second), failing);
    ck_assert_msg(strstr(uc_last_error(), "`fabric: shm` cannot register") != NULL &&
                          strstr(uc_last_error(), "fabric: auto") != NULL,
            "%s", uc_last_error());
    ck_assert_int_eq(uc_store_deregister_memory(store, SECOND_REGION), UC_ERR_NOT_FOUND);
    put_and_get(1 + COUNT, first);
    put_and_get(1 + 2 * COUNT, second); /* through the buffers */
    ck_assert_str_eq(fabric_of(store), "shm");
    ck_assert_int_eq(register_one(SECOND_REGION, second), UC_OK);
}
END_TEST

/* The demanded transport cannot even register the store's own memory: setup says so, or the job that needs it. */
START_TEST(demanded_transport_that_registers_nothing_fails_with_a_reason)
{
    uc_fault_fail_registrations(UINT32_MAX, failing);
    ck_assert_int_eq(open_store("shm"), failing);
    ck_assert_msg(strstr(uc_last_error(), "`fabric: shm` cannot register") != NULL, "%s",
            uc_last_error());
    env_store_destroy(store);

    uc_fault_fail_registrations(0, UC_OK);
    ck_assert_int_eq(open_store("shm"), UC_OK);
    ck_assert_int_eq(register_one(FIRST_REGION, first), UC_OK);
    fill(1, first);
    ck_assert_int_eq(ops->alloc(store, keys, COUNT, NULL, &token), UC_OK);
    env_job_init(&job, keys, COUNT, first, 0, BLOCK_BYTES);
    uc_fault_fail_registrations(1, failing);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), failing);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_registration");
    TCase *cases = tcase_create("registration");
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, auto_without_any_registration_takes_the_next_transport);
    tcase_add_test(cases, auto_moves_before_it_connects);
    tcase_add_test(cases, auto_moves_off_a_connection_that_stands);
    tcase_add_test(cases, auto_lets_jobs_in_flight_end_before_it_moves);
    tcase_add_test(cases, deadline_passes_while_a_job_waits_for_the_move);
    tcase_add_test(cases, auto_moves_off_a_connection_being_made);
    tcase_add_test(cases, auto_moves_when_a_jobs_own_memory_fails);
    tcase_add_test(cases, demanded_transport_refuses_the_region_and_keeps_the_others);
    tcase_add_test(cases, demanded_transport_that_registers_nothing_fails_with_a_reason);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
