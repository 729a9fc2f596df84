/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of blocks that a device copies if it is late, or fails, or one of those around it goes. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include <ucm/log.h>
#include <ucm/setup.h>

#include "client/device/device.h"
#include "test/unit/client/remote/device_env.h"

static void
setup_staged(void)
{
    device_setup(false);
    device_register();
}

/* A server, and neither store nor thread: the case forks. */
static void
setup_killed(void)
{
    device_setup_server();
}

/* Let the store move on; without a thread of its own it does so in here. */
static void
wait_a_moment(uint64_t job_id)
{
    struct uc_io_result result;
    size_t count = 9;

    ck_assert_int_eq(
            uc_store_wait(bounce.store, &job_id, 1, 1, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
}

/* a device that copies late keeps the event back, beyond the deadline. */
START_TEST(copies_under_way_keep_the_event_back)
{
    bool is_dump = _i / 2 == 1;
    uint64_t job_id = 1;
    struct uc_io_result result;
    size_t count = 9;

    device_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, is_dump, is_dump ? DUMPED : 1, device_memory, SHORT_MS);
    fake_cuda_hold();
    bounce_submit(1);
    ck_assert_int_eq(uc_store_wait(bounce.store, &job_id, 1, 2 * SHORT_MS, &result, 1, &count),
            UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(fake_cuda_held(), BUFFERS);
    ck_assert_int_eq(uc_store_deregister_memory(bounce.store, REGION), UC_ERR_RETRY);
    fake_cuda_release();
    env_expect(bounce.store, 1, UC_ERR_TIMEOUT);
    ck_assert_int_eq(uc_store_deregister_memory(bounce.store, REGION), UC_OK);
    bounce_conclude(1, false);
    ck_assert(!env_has(bounce.store, DUMPED));
    bounce_assert_usable();
}
END_TEST

/* the connection goes while a device copies. */
START_TEST(connection_that_breaks_under_a_copy_waits_for_the_copy)
{
    bool is_dump = _i / 2 == 1;
    uint64_t job_id = 1;
    struct uc_io_result result;
    size_t count = 9;

    device_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, is_dump, is_dump ? DUMPED : 1, device_memory, 0);
    fake_cuda_hold();
    bounce_submit(1);
    while (fake_cuda_held() < BUFFERS) {
        ck_assert_int_eq(
                uc_store_wait(bounce.store, &job_id, 1, 1, &result, 1, &count), UC_ERR_TIMEOUT);
    }
    uc_fault_cut();
    ck_assert_int_eq(
            uc_store_wait(bounce.store, &job_id, 1, SHORT_MS, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
    fake_cuda_release();
    env_expect(bounce.store, 1, UC_ERR_UNHEALTHY);
    bounce_conclude(1, false);
    ck_assert(!env_has(bounce.store, DUMPED));
    bounce_assert_usable();
}
END_TEST

/* A copy that the driver refuses, in the middle of a block too, or that fails on the device. */
START_TEST(copy_that_fails_costs_its_own_block)
{
    struct uc_io_result result;
    void *pointers[2] = {device_memory, device_memory + 1000};
    uint64_t sizes[2] = {1000, BLOCK_BYTES - 1000};
    struct bounce_job *job;
    bool is_dump = _i / 3 == 1;
    size_t failed = 0;

    env_put(bounce.store, 1, COUNT);
    job = bounce_prepare(1, is_dump, is_dump ? DUMPED : 1, device_memory, 0);
    job->job.payloads[0].pointers = pointers;
    job->job.payloads[0].sizes = sizes;
    job->job.payloads[0].pointer_count = 2;
    if (_i % 3 < 2) {
        fake_cuda_fail_copies_after((unsigned)_i % 3, 1);
    } else {
        fake_cuda_break_copies(1);
    }
    bounce_submit(1);
    result = env_wait(bounce.store, 1);
    ck_assert_int_eq(result.code, UC_ERR_OS_API);
    for (size_t idx = 0; idx < COUNT; idx++) {
        failed += uc_io_result_block_ok(&result, idx) ? 0 : 1;
    }
    ck_assert_uint_ge(failed, 1);
    if (_i % 3 < 2) {
        ck_assert_uint_eq(failed, 1); /* a stream on which something has failed stays so */
    }
    uc_io_results_release(&result, 1);
    if (is_dump) {
        ck_assert_int_ne(bounce.ops->commit(bounce.store, bounce.jobs[1].token, NULL, true), UC_OK);
    } else {
        bounce_conclude(1, true);
    }
}
END_TEST

/* Once the connection is gone, all that is left of the store waits for the device. */
static void *
release_late(void *unused)
{
    struct timespec pause = {.tv_nsec = 1000000};

    (void)unused;
    while (uc_fault_counts().endpoints > 0) {
        (void)nanosleep(&pause, NULL);
    }
    fake_cuda_release();
    return NULL;
}

/* G15: a device copies while the store goes; what it copies to is still there. */
START_TEST(destroyed_store_waits_for_the_device)
{
    pthread_t releaser;

    device_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    env_put(bounce.store, 1, COUNT);
    (void)bounce_prepare(1, false, 1, device_memory, 0);
    fake_cuda_hold();
    bounce_submit(1);
    while (fake_cuda_held() == 0) {
        wait_a_moment(1);
    }
    ck_assert_int_eq(pthread_create(&releaser, NULL, release_late, NULL), 0);
    env_store_destroy(bounce.store);
    bounce.store = NULL;
    ck_assert_uint_eq(fake_cuda_held(), 0);
    ck_assert_uint_eq(fake_cuda_objects(), 0);
    ck_assert_int_eq(pthread_join(releaser, NULL), 0);
}
END_TEST

/* A worker whose device copies and copies; it ends by a signal. */
static void
hang(int ready_fd)
{
    (void)alarm(60);
    device_reopen(BUFFERS * BLOCK_BYTES, "thread");
    (void)bounce_prepare(1, true, DUMPED, device_memory, 0);
    fake_cuda_hold();
    bounce_submit(1);
    while (fake_cuda_held() == 0) {
        wait_a_moment(1);
    }
    (void)!write(ready_fd, "r", 1);
    while (true) {
        (void)pause();
    }
}

/* G15: a worker that is killed while its device copies leaves nothing behind at the server. */
START_TEST(killed_worker_leaves_its_slots_to_others)
{
    int ready[2];
    char byte = 0;
    int state = 0;
    pid_t child;

    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        hang(ready[1]);
    }
    (void)close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &state, 0), child);

    device_reopen(BUFFERS * BLOCK_BYTES, "thread");
    do {
        env_put(bounce.store, DUMPED,
                COUNT); /* shares until the server has seen that the writer is gone */
    } while (!env_has(bounce.store, DUMPED));
    ck_assert_int_eq(env_get(bounce.store, DUMPED, COUNT), UC_OK);
    device_round_trip();
}
END_TEST

/* the device's events are asked on the thread that moves the blocks, and no copy is started before. */
START_TEST(no_byte_leaves_the_device_before_its_event_has_fired)
{
    struct uc_prerequisite hook = {.poll = uc_device_find(UC_MEMORY_CUDA)->event_poll};
    struct uc_dict *config = env_config(&bounce.server, "both");
    uint64_t event = fake_cuda_make_event();
    uint64_t job_id = 1;
    struct uc_io_result result;
    struct bounce_job *job;
    size_t count = 9;

    ck_assert_int_eq(uc_dict_set_pointer(config, "prerequisite_hook", &hook), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "progress", bounce_progress(_i)), UC_OK);
    env_store_destroy(bounce.store);
    bounce.store = uc_remote_store_create();
    ck_assert_int_eq(uc_store_setup(bounce.store, config), UC_OK);
    uc_dict_destroy(config);
    bounce.ops = uc_store_as_token_addressed(bounce.store);
    device_register();

    fake_cuda_hold();
    job = bounce_prepare(1, true, 1, device_memory, 0);
    job->job.descriptor.prerequisite_handle = event;
    bounce_submit(1);
    ck_assert_int_eq(
            uc_store_wait(bounce.store, &job_id, 1, SHORT_MS, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(fake_cuda_held(), 0);
    bounce_fill(fake_cuda_bytes(device_memory), 1);
    fake_cuda_fire(event);
    fake_cuda_release();
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    ck_assert_int_eq(env_get(bounce.store, 1, COUNT), UC_OK);
    fake_cuda_free_event(event);
}
END_TEST

/* A dump from the device and a load into it. @return whether the driver was asked for what it was to refuse */
static bool
move_with_a_refusal(unsigned good_count)
{
    uint8_t *target = device_memory + ALL_BYTES;
    uint8_t *expected = malloc(BLOCK_BYTES);
    struct uc_io_result results[2];

    bounce_fill(fake_cuda_bytes(device_memory), DUMPED);
    fake_cuda_refuse_calls_after(good_count, 1);
    if (uc_store_register_memory(bounce.store, REGION, device_memory, 2 * (uint64_t)ALL_BYTES,
                UC_MEMORY_CUDA) == UC_OK) {
        (void)bounce_prepare(1, true, DUMPED, device_memory, 0);
        (void)bounce_prepare(2, false, 1, target, 0);
        bounce_submit(1);
        bounce_submit(2);
        results[0] = env_wait(bounce.store, 1);
        results[1] = env_wait(bounce.store, 2);
        for (uint32_t idx = 0; idx < COUNT; idx++) {
            env_fill(expected, BLOCK_BYTES, 1 + idx);
            ck_assert(!uc_io_result_block_ok(&results[1], idx) ||
                      memcmp(fake_cuda_bytes(target) + (size_t)idx * BLOCK_BYTES, expected,
                              BLOCK_BYTES) == 0);
        }
        bounce_conclude(1, results[0].code == UC_OK);
        bounce_conclude(2, true);
        ck_assert_int_eq(
                results[0].code == UC_OK ? env_get(bounce.store, DUMPED, COUNT) : UC_OK, UC_OK);
        uc_io_results_release(results, 2);
        ck_assert_int_eq(uc_store_deregister_memory(bounce.store, REGION), UC_OK);
    }
    free(expected);
    return fake_cuda_left_to_refuse() == 0;
}

/* Whatever the driver refuses: an error, or blocks that failed; no wrong bytes, and nothing that stays. */
START_TEST(refused_call_of_the_driver_costs_its_blocks_at_most)
{
    unsigned good_count = 0;
    bool was_refused;

    env_put(bounce.store, 1, COUNT);
    do {
        bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
        was_refused = move_with_a_refusal(good_count++);
        fake_cuda_refuse_calls_after(0, 0);
    } while (was_refused);
    ck_assert_uint_gt(good_count, 2 * COUNT);
    device_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    device_round_trip();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_device_faults");
    TCase *staged = tcase_create("staged");
    TCase *killed = tcase_create("killed");
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, staged);
    tcase_set_timeout(staged, 60);
    tcase_add_checked_fixture(staged, setup_staged, device_teardown);
    suite_add_tcase(suite, killed);
    tcase_set_timeout(killed, 60);
    tcase_add_checked_fixture(killed, setup_killed, device_teardown);

    tcase_add_loop_test(staged, copies_under_way_keep_the_event_back, 0, 4);
    tcase_add_loop_test(staged, connection_that_breaks_under_a_copy_waits_for_the_copy, 0, 4);
    tcase_add_loop_test(staged, copy_that_fails_costs_its_own_block, 0, 6);
    tcase_add_loop_test(staged, destroyed_store_waits_for_the_device, 0, 2);
    tcase_add_loop_test(staged, no_byte_leaves_the_device_before_its_event_has_fired, 0, 2);
    tcase_add_loop_test(staged, refused_call_of_the_driver_costs_its_blocks_at_most, 0, 2);
    tcase_add_test(killed, killed_worker_leaves_its_slots_to_others);

    uc_log_set_level(UC_LOG_ERROR); /* every other case breaks something */
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
