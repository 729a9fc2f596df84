/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Host memory that is not registered, over a transport that needs it: blocks go through buffers of the store.
 * There are two of them, and jobs of eight blocks.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/log.h>

#include "test/unit/client/remote/bounce_env.h"

static void
setup(void)
{
    bounce_setup(true);
}

/* more blocks than buffers, in both directions; also with one buffer, smaller than asked for. */
START_TEST(unregistered_memory_goes_through_few_buffers)
{
    bounce_reopen(_i < 2 ? BUFFERS * BLOCK_BYTES : 1, bounce_progress(_i));
    env_put(bounce.store, 1, COUNT);
    ck_assert_int_eq(env_get(bounce.store, 1, COUNT), UC_OK);
    ck_assert_uint_eq(bounce_number("blocks_bounced"), 2 * COUNT);
}
END_TEST

/* named by its index, or found by its address, registered memory is used in place. */
START_TEST(registered_memory_needs_no_buffer)
{
    uint32_t region_idx = REGION;
    struct bounce_job *job;

    bounce_reopen(0, bounce_progress(_i));
    ck_assert_int_eq(uc_store_register_memory(
                             bounce.store, REGION, bounce.memory, ALL_BYTES, UC_MEMORY_HOST),
            UC_OK);
    bounce_fill(bounce.memory, 1);
    (void)bounce_prepare(1, true, 1, bounce.memory, 0);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    memset(bounce.memory, 0, ALL_BYTES);
    job = bounce_prepare(1, false, 1, bounce.memory, 0);
    for (size_t idx = 0; idx < COUNT; idx++) {
        job->job.payloads[idx].memory_region_indices = &region_idx;
        job->job.payloads[idx].memory_region_index_count = 1;
    }
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    bounce_assert_bytes(bounce.memory, 1);
    ck_assert_uint_eq(bounce_number("blocks_bounced"), 0);
}
END_TEST

/* without buffers nothing is registered on the fly. */
START_TEST(without_buffers_unregistered_memory_is_refused)
{
    bounce_reopen(0, "thread");
    bounce_fill(bounce.memory, 1);
    (void)bounce_prepare(1, true, 1, bounce.memory, 0);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(
                             bounce.store, REGION, bounce.memory, ALL_BYTES, UC_MEMORY_HOST),
            UC_OK);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
}
END_TEST

/* a block of which one piece is registered and one is not, beside blocks that are registered. */
START_TEST(block_bounces_if_one_of_its_pieces_has_to)
{
    uint8_t *other = bounce.memory + ALL_BYTES;
    void *pointers[2] = {bounce.memory, other + 777};
    uint64_t sizes[2] = {1000, BLOCK_BYTES - 1000};
    uint8_t *expected = malloc(BLOCK_BYTES);
    struct bounce_job *job;

    bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    ck_assert_int_eq(uc_store_register_memory(
                             bounce.store, REGION, bounce.memory, ALL_BYTES, UC_MEMORY_HOST),
            UC_OK);
    bounce_fill(bounce.memory, 1);
    memcpy(pointers[1], bounce.memory + 1000, BLOCK_BYTES - 1000);
    for (int is_load = 0; is_load < 2; is_load++) {
        job = bounce_prepare(1, is_load == 0, 1, bounce.memory, 0);
        job->job.payloads[0].pointers = pointers;
        job->job.payloads[0].sizes = sizes;
        job->job.payloads[0].pointer_count = 2;
        bounce_submit(1);
        env_expect(bounce.store, 1, UC_OK);
        bounce_conclude(1, true);
        if (is_load == 0) {
            memset(bounce.memory, 0, (size_t)2 * ALL_BYTES);
        }
    }
    env_fill(expected, BLOCK_BYTES, 1);
    ck_assert_mem_eq(pointers[0], expected, sizes[0]);
    ck_assert_mem_eq(pointers[1], expected + sizes[0], sizes[1]);
    memcpy(bounce.memory, expected, BLOCK_BYTES);
    bounce_assert_bytes(bounce.memory, 1);
    ck_assert_uint_eq(bounce_number("blocks_bounced"), 2);
    free(expected);
}
END_TEST

/* bytes are verified in the buffer, and do not reach the engine if they are wrong. */
START_TEST(damaged_bytes_stay_in_the_buffer)
{
    struct uc_io_result result;

    env_put(bounce.store, 1, COUNT);
    memset(bounce.memory, QUIET_BYTE, ALL_BYTES);
    (void)bounce_prepare(1, false, 1, bounce.memory, 0);
    uc_fault_corrupt_reads(1);
    bounce_submit(1);
    result = env_wait(bounce.store, 1);
    ck_assert_int_eq(result.code, UC_ERR_NOT_FOUND);
    ck_assert(!uc_io_result_block_ok(&result, 0));
    ck_assert(uc_io_result_block_ok(&result, 1));
    uc_io_results_release(&result, 1);
    bounce_conclude(1, true);
    bounce_assert_quiet(bounce.memory, BLOCK_BYTES);
}
END_TEST

/* the blocks that have buffers are fenced, those in line never start. */
START_TEST(deadline_ends_a_job_that_stands_in_line)
{
    bool is_dump = _i / 2 == 1;

    bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, is_dump, is_dump ? DUMPED : 1, bounce.memory, SHORT_MS);
    uc_fault_hold(UC_FAULT_ALL, UC_FAULT_BEFORE, UINT32_MAX);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_ERR_TIMEOUT);
    ck_assert_uint_eq(uc_fault_counts().fences, 1);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    memset(bounce.memory, QUIET_BYTE, ALL_BYTES);
    uc_fault_release(false);
    bounce_conclude(1, false);
    ck_assert(!env_has(bounce.store, DUMPED));
    bounce_assert_usable();
    bounce_assert_quiet(bounce.memory, ALL_BYTES);
}
END_TEST

/* a job that never got a buffer ends alone; those that have them go on. */
START_TEST(deadline_in_line_costs_nobody_else)
{
    bool is_dump = _i / 2 == 1;

    bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, false, 1, bounce.memory, 0);
    (void)bounce_prepare(2, is_dump, is_dump ? DUMPED : 1, bounce.memory + ALL_BYTES, SHORT_MS);
    memset(bounce.memory + ALL_BYTES, QUIET_BYTE, ALL_BYTES);
    uc_fault_hold(UC_FAULT_ALL, UC_FAULT_BEFORE, UINT32_MAX);
    bounce_submit(1);
    bounce_submit(2);
    env_expect(bounce.store, 2, UC_ERR_TIMEOUT);
    ck_assert_uint_eq(uc_fault_counts().in_flight, BUFFERS);
    uc_fault_release(false);
    env_expect(bounce.store, 1, UC_OK);
    ck_assert_uint_eq(uc_fault_counts().fences, 0);
    bounce_assert_bytes(bounce.memory, 1);
    bounce_assert_quiet(bounce.memory + ALL_BYTES, ALL_BYTES);
    bounce_conclude(1, true);
    bounce_conclude(2, false);
    ck_assert(!env_has(bounce.store, DUMPED));
    bounce_assert_usable();
}
END_TEST

/* whichever operation is the last one that works. */
START_TEST(connection_that_breaks_ends_the_job_and_gives_buffers_back)
{
    bool is_dump = _i % 2 == 1;

    bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i / 2));
    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, is_dump, is_dump ? DUMPED : 1, bounce.memory, 0);
    uc_fault_cut_after((unsigned)(_i / 4 * 2 + 1));
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_ERR_UNHEALTHY);
    bounce_conclude(1, false);
    ck_assert(!env_has(bounce.store, DUMPED));
    bounce_assert_usable();
}
END_TEST

START_TEST(operation_that_fails_costs_its_own_block)
{
    struct uc_io_result result;

    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, false, 1, bounce.memory, 0);
    uc_fault_fail_operations(UC_FAULT_READS, 1, UC_ERR_NOT_FOUND);
    bounce_submit(1);
    result = env_wait(bounce.store, 1);
    ck_assert_int_eq(result.code, UC_ERR_NOT_FOUND);
    ck_assert(!uc_io_result_block_ok(&result, 0));
    for (size_t idx = 1; idx < COUNT; idx++) {
        ck_assert(uc_io_result_block_ok(&result, idx));
    }
    uc_io_results_release(&result, 1);
    bounce_conclude(1, true);
    bounce_assert_usable();
}
END_TEST

/* A transport that takes nothing just now, for a block alone as for a list. */
START_TEST(refused_posts_give_the_buffers_back)
{
    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, false, 1, bounce.memory, 0);
    uc_fault_fail_posts(UINT32_MAX, UC_ERR_INVALID_PARAM);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_ERR_INVALID_PARAM);
    uc_fault_fail_posts(0, UC_OK);
    bounce_conclude(1, true);
    bounce_assert_usable();
}
END_TEST

/* G15: a store that goes while jobs are in line. */
START_TEST(destroyed_store_leaves_nothing_behind)
{
    bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    bounce_assert_usable();
    (void)bounce_prepare(1, true, DUMPED, bounce.memory, 0);
    (void)bounce_prepare(2, false, 500, bounce.memory + ALL_BYTES, 0);
    uc_fault_hold(UC_FAULT_ALL, UC_FAULT_BEFORE, UINT32_MAX);
    bounce_submit(1);
    bounce_submit(2);
    if (_i == 0) {
        uc_fault_wait_held(1);
    }
    bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
}
END_TEST

static struct uc_store *
open_on_two_servers(const struct env_server *other, uint64_t bounce_bytes)
{
    struct uc_dict *config = env_config(&bounce.server, "both");
    struct uc_store *store = uc_remote_store_create();
    char address[64];

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)other->port);
    ck_assert_int_eq(uc_dict_append_string(config, "servers", address), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(config, "bounce_bytes", (int64_t)bounce_bytes), UC_OK);
    ck_assert_msg(uc_store_setup(store, config) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
    return store;
}

/* Wait until the blocks of one server have all moved, and the other one has one operation under way. */
static void
wait_for_the_rest(unsigned completed, size_t first_count, size_t second_count)
{
    size_t fewest = first_count < second_count ? first_count : second_count;
    struct uc_fault_counts counts = uc_fault_counts();

    for (unsigned waited_ms = 0; counts.completed - completed < fewest || counts.in_flight != 1;
            waited_ms++) {
        ck_assert_msg(waited_ms < 20000, "%u operations are done, %u under way",
                counts.completed - completed, counts.in_flight);
        env_pass_time(1);
        counts = uc_fault_counts();
    }
}

/* G19: one that stands still gets half of the buffers at most, however few were asked for; the others go on. */
START_TEST(server_that_stands_still_leaves_buffers_to_others)
{
    struct env_server other = env_server_start(0, NULL);
    struct uc_store *there = env_store(&other, "both");
    struct uc_store *store = open_on_two_servers(&other, _i == 0 ? BUFFERS * BLOCK_BYTES : 1);
    uint8_t *memory = malloc((size_t)BLOCKS * BLOCK_BYTES);
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    unsigned completed;
    struct env_job job;
    size_t count = 0;

    env_put(store, 1, BLOCKS);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(1 + idx);
        count += env_has(there, 1 + idx) ? 1 : 0;
    }
    bounce.ops = uc_store_as_token_addressed(store);
    ck_assert_int_eq(bounce.ops->pin(store, keys, BLOCKS, &token), UC_OK);
    env_job_init(&job, keys, BLOCKS, memory, 0, BLOCK_BYTES);
    completed = uc_fault_counts().completed;
    uc_fault_hold(UC_FAULT_READS, UC_FAULT_BEFORE, 1);
    ck_assert_int_eq(bounce.ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    wait_for_the_rest(completed, count, BLOCKS - count);
    uc_fault_release(false);
    env_expect(store, 1, UC_OK);
    bounce.ops->unpin(store, token);
    uc_token_destroy(token);
    free(memory);
    env_store_destroy(store);
    env_store_destroy(there);
    env_server_stop(&other, SIGKILL);
}
END_TEST

/* What cannot be registered at setup is said there, and nothing stays. */
START_TEST(buffers_that_cannot_be_registered_fail_setup)
{
    struct uc_dict *config = env_config(&bounce.server, "both");
    struct uc_store *store = uc_remote_store_create();

    uc_fault_fail_registrations(1, UC_ERR_OS_API);
    ck_assert_int_eq(uc_store_setup(store, config), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "bounce_bytes"));
    env_store_destroy(store);
    uc_dict_destroy(config);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_bounce");
    TCase *cases = tcase_create("host");
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, cases);
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, setup, bounce_teardown);
    tcase_add_loop_test(cases, unregistered_memory_goes_through_few_buffers, 0, 4);
    tcase_add_loop_test(cases, registered_memory_needs_no_buffer, 0, 2);
    tcase_add_test(cases, without_buffers_unregistered_memory_is_refused);
    tcase_add_loop_test(cases, block_bounces_if_one_of_its_pieces_has_to, 0, 2);
    tcase_add_test(cases, damaged_bytes_stay_in_the_buffer);
    tcase_add_loop_test(cases, deadline_ends_a_job_that_stands_in_line, 0, 4);
    tcase_add_loop_test(cases, deadline_in_line_costs_nobody_else, 0, 4);
    tcase_add_loop_test(cases, connection_that_breaks_ends_the_job_and_gives_buffers_back, 0, 12);
    tcase_add_test(cases, operation_that_fails_costs_its_own_block);
    tcase_add_test(cases, refused_posts_give_the_buffers_back);
    tcase_add_loop_test(cases, destroyed_store_leaves_nothing_behind, 0, 2);
    tcase_add_loop_test(cases, server_that_stands_still_leaves_buffers_to_others, 0, 2);
    tcase_add_test(cases, buffers_that_cannot_be_registered_fail_setup);

    uc_log_set_level(UC_LOG_ERROR); /* every other case breaks something */
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
