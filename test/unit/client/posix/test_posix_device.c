/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks in memory of a device, over a driver without one whose memory the processor cannot touch; on both engines, with
 * and without O_DIRECT.
 */

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "client/stores/posix/store.h"
#include "test/fake/alloc_count.h"
#include "test/fake/fake_cuda.h"
#include "test/unit/client/posix/posix_env.h"

enum {
    BLOCK_BYTES = 20001, /* not a multiple of a page */
    MEMORY_BYTES = 8 * BLOCK_BYTES,
    WAYS = 4,
};

static struct uc_store *store;
static uint8_t *memory; /* of the device */

/* Way 0 to 3: engine and O_DIRECT. @return false: this machine cannot */
static bool
open_way(int way)
{
    const char *settings[] = {env_engine(way % 2), "block_bytes=20001",
            way < 2 ? "direct_io=off" : "direct_io=on", NULL};

    if (way >= 2 && env_open_status(settings) == UC_ERR_UNSUPPORTED) {
        return false;
    }
    store = env_open(settings);
    memory = fake_cuda_alloc(MEMORY_BYTES);
    ck_assert_msg(uc_store_register_memory(store, 0, memory, MEMORY_BYTES, UC_MEMORY_CUDA) == UC_OK,
            "%s", uc_last_error());
    return true;
}

static void
close_way(void)
{
    uc_posix_store_destroy(store);
    fake_cuda_free(memory);
    ck_assert_uint_eq(fake_cuda_objects(), 0);
}

static enum uc_status
move(bool is_dump, uint64_t number, uint64_t offset, uint8_t *bytes, uint64_t length)
{
    enum uc_status status = env_submit(store, is_dump, 7, number, offset, bytes, length);

    ck_assert_msg(status == UC_OK, "%s", uc_last_error());
    return env_wait(store, 7);
}

static enum uc_status
dump_from_device(uint64_t number)
{
    env_fill(number, 0, fake_cuda_bytes(memory), BLOCK_BYTES);
    return move(true, number, 0, memory, BLOCK_BYTES);
}

static bool
device_matches(uint64_t number, uint64_t offset, const uint8_t *address, size_t length)
{
    return env_matches(number, offset, fake_cuda_bytes(address), length);
}

START_TEST(block_goes_from_a_device_to_a_device_and_to_the_host)
{
    uint8_t *to;

    if (!open_way(_i)) {
        return;
    }
    to = memory + 2 * BLOCK_BYTES + 3;
    ck_assert_int_eq(dump_from_device(1), UC_OK);
    ck_assert_int_eq(move(false, 1, 0, to, BLOCK_BYTES), UC_OK);
    ck_assert(device_matches(1, 0, to, BLOCK_BYTES));
    ck_assert_uint_eq(fake_cuda_bytes(to)[-1], 0); /* nothing beside it */
    ck_assert_uint_eq(fake_cuda_bytes(to)[BLOCK_BYTES], 0);
    ck_assert_int_eq(env_load(store, 1, 0, BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(env_dump(store, 2, 0, BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(move(false, 2, 0, to, BLOCK_BYTES), UC_OK);
    ck_assert(device_matches(2, 0, to, BLOCK_BYTES));
    close_way();
}
END_TEST

/* */
START_TEST(parts_of_blocks_come_from_a_device_and_go_there)
{
    static const uint64_t cuts[] = {0, 4096, 12345, BLOCK_BYTES};

    if (!open_way(_i)) {
        return;
    }
    env_fill(1, 0, fake_cuda_bytes(memory), BLOCK_BYTES);
    for (size_t part = 0; part < 3; part++) {
        ck_assert_int_eq(
                move(true, 1, cuts[part], memory + cuts[part], cuts[part + 1] - cuts[part]), UC_OK);
    }
    ck_assert_int_eq(env_load(store, 1, 0, BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(move(false, 1, 5000, memory + BLOCK_BYTES, 9000), UC_OK);
    ck_assert(device_matches(1, 5000, memory + BLOCK_BYTES, 9000));
    ck_assert_int_eq(move(false, 1, 4096, memory + BLOCK_BYTES, 4096), UC_OK);
    ck_assert(device_matches(1, 4096, memory + BLOCK_BYTES, 4096));
    close_way();
}
END_TEST

/* One block each in host memory, in the device's, and in pieces of both. */
START_TEST(blocks_of_host_and_device_share_a_job)
{
    struct uc_block_id ids[3] = {env_id(1), env_id(2), env_id(3)};
    uint8_t host[2][BLOCK_BYTES];
    uint64_t whole = BLOCK_BYTES;
    uint64_t pieces[2] = {10000, BLOCK_BYTES - 10000};
    void *first = host[0];
    void *second = memory;
    void *third[2] = {NULL, host[1] + 10000};
    struct uc_block_payload payloads[3] = {
            {.pointers = &first, .sizes = &whole, .pointer_count = 1},
            {.pointers = &second, .sizes = &whole, .pointer_count = 1},
            {.pointers = third, .sizes = pieces, .pointer_count = 2},
    };
    struct uc_job_descriptor job = {.block_ids = ids, .payloads = payloads, .count = 3};

    if (!open_way(_i)) {
        return;
    }
    second = memory;
    third[0] = memory + BLOCK_BYTES;
    env_fill(1, 0, host[0], BLOCK_BYTES);
    env_fill(2, 0, fake_cuda_bytes(memory), BLOCK_BYTES);
    env_fill(3, 0, host[1], BLOCK_BYTES);
    memcpy(fake_cuda_bytes(third[0]), host[1], 10000);
    ck_assert_int_eq(uc_store_dump(store, 1, &job), UC_OK);
    ck_assert_int_eq(env_wait(store, 1), UC_OK);
    for (uint64_t number = 1; number <= 3; number++) {
        ck_assert_int_eq(env_load(store, number, 0, BLOCK_BYTES), UC_OK);
    }
    memset(host, 0, sizeof(host));
    memset(fake_cuda_bytes(memory), 0, MEMORY_BYTES);
    ck_assert_int_eq(uc_store_load(store, 2, &job), UC_OK);
    ck_assert_int_eq(env_wait(store, 2), UC_OK);
    ck_assert(env_matches(1, 0, host[0], BLOCK_BYTES));
    ck_assert(device_matches(2, 0, memory, BLOCK_BYTES));
    ck_assert(device_matches(3, 0, third[0], 10000));
    ck_assert(env_matches(3, 10000, host[1] + 10000, BLOCK_BYTES - 10000));
    close_way();
}
END_TEST

/* the sum is of what lies in the buffer; what is wrong does not get to the device. */
START_TEST(damaged_file_is_found_out_before_the_device_has_it)
{
    char path[ENV_PATH_BYTES];
    uint8_t byte = 0;
    int fd;

    if (!open_way(_i)) {
        return;
    }
    ck_assert_int_eq(dump_from_device(1), UC_OK);
    env_block_path(env_folder, 1, path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, &byte, 1, 777), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, 777), 1);
    (void)close(fd);
    memset(fake_cuda_bytes(memory), 0, BLOCK_BYTES);
    ck_assert_int_eq(move(false, 1, 0, memory, BLOCK_BYTES), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(fake_cuda_bytes(memory)[0], 0);
    ck_assert(!env_is_present(store, 1)); /* */
    close_way();
}
END_TEST

/* Bounded by the clock; the copies are started by threads of the store. */
static void
wait_for_copy(void)
{
    uint64_t until_ns = uc_clock_now_ns() + (uint64_t)ENV_WAIT_MS * 1000000u;

    while (fake_cuda_held() == 0 && uc_clock_now_ns() < until_ns) {
        (void)sched_yield();
    }
    ck_assert_uint_eq(fake_cuda_held(), 1);
}

static void
expect_no_event_for(uint64_t duration_ms)
{
    uint64_t until_ns = uc_clock_now_ns() + duration_ms * 1000000u;
    struct uc_io_result result;
    size_t count = 0;

    while (uc_clock_now_ns() < until_ns) {
        ck_assert_int_eq(uc_store_get_finished(store, &result, 1, &count), UC_OK);
        ck_assert_uint_eq(count, 0);
    }
}

/* the deadline passes under a copy. The medium is not to blame. */
START_TEST(no_event_comes_before_the_copy_is_over)
{
    struct uc_block_id id = env_id(1);
    uint64_t length = BLOCK_BYTES;
    void *pointer;
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &length, .pointer_count = 1};
    struct uc_job_descriptor job = {
            .block_ids = &id, .payloads = &payload, .count = 1, .timeout_ms = 500};

    if (!open_way(_i)) {
        return;
    }
    pointer = memory;
    env_fill(1, 0, fake_cuda_bytes(memory), BLOCK_BYTES);
    fake_cuda_hold();
    ck_assert_int_eq(uc_store_dump(store, 1, &job), UC_OK);
    wait_for_copy();
    expect_no_event_for(1000); /* it has noticed by then */
    ck_assert_int_eq(uc_store_deregister_memory(store, 0), UC_ERR_RETRY); /* */
    ck_assert_int_eq(uc_store_health(store), UC_OK);
    fake_cuda_release();
    ck_assert_int_eq(env_wait(store, 1), UC_ERR_TIMEOUT);
    ck_assert(!env_is_present(store, 1));
    ck_assert_int_eq(dump_from_device(1), UC_OK);
    fake_cuda_hold();
    ck_assert_int_eq(uc_store_load(store, 1, &job), UC_OK);
    wait_for_copy();
    expect_no_event_for(1000); /* it has noticed by then */
    fake_cuda_release();
    ck_assert_int_eq(env_wait(store, 1), UC_OK); /* all bytes arrived */
    ck_assert_int_eq(uc_store_deregister_memory(store, 0), UC_OK);
    close_way();
}
END_TEST

START_TEST(copy_that_fails_makes_no_block)
{
    if (!open_way(_i)) {
        return;
    }
    env_fill(1, 0, fake_cuda_bytes(memory), BLOCK_BYTES);
    fake_cuda_fail_copies(1);
    ck_assert_int_eq(move(true, 1, 0, memory, BLOCK_BYTES), UC_ERR_OS_API);
    ck_assert(!env_is_present(store, 1));
    ck_assert_int_eq(uc_store_health(store), UC_OK);
    ck_assert_int_eq(dump_from_device(1), UC_OK);
    fake_cuda_fail_copies(1);
    ck_assert_int_eq(move(false, 1, 0, memory, BLOCK_BYTES), UC_ERR_OS_API);
    fake_cuda_break_copies(1); /* the device takes it, and fails at it then */
    ck_assert_int_eq(move(false, 1, 0, memory, BLOCK_BYTES), UC_ERR_OS_API);
    fake_cuda_break_copies(1);
    ck_assert_int_eq(move(true, 2, 0, memory, BLOCK_BYTES), UC_ERR_OS_API);
    ck_assert(!env_is_present(store, 2));
    ck_assert_int_eq(env_number(store, "blocks_loaded"), 0);
    ck_assert_int_eq(env_load(store, 1, 0, BLOCK_BYTES), UC_OK);
    close_way();
}
END_TEST

/* The second piece is refused while the first one still moves: that one is waited for. */
START_TEST(failed_copy_waits_for_those_before_it)
{
    struct uc_block_id id = env_id(1);
    uint64_t pieces[2] = {10000, BLOCK_BYTES - 10000};
    void *pointers[2];
    struct uc_block_payload payload = {.pointers = pointers, .sizes = pieces, .pointer_count = 2};
    struct uc_job_descriptor job = {.block_ids = &id, .payloads = &payload, .count = 1};

    if (!open_way(_i)) {
        return;
    }
    pointers[0] = memory;
    pointers[1] = memory + 10000;
    fake_cuda_hold();
    fake_cuda_fail_copies_after(1, 1);
    ck_assert_int_eq(uc_store_dump(store, 1, &job), UC_OK);
    wait_for_copy();
    expect_no_event_for(20);
    fake_cuda_release();
    ck_assert_int_eq(env_wait(store, 1), UC_ERR_OS_API);
    ck_assert(!env_is_present(store, 1));
    close_way();
}
END_TEST

/* What a place of an engine copies with is made once. */
START_TEST(warm_transfers_allocate_nothing)
{
    enum {
        COUNT = 8
    };
    const char *settings[] = {env_engine(_i), "block_bytes=20001", "threads=1", "io_depth=1", NULL};
    enum uc_status code = UC_OK;
    size_t allocated;

    store = env_open(settings);
    memory = fake_cuda_alloc(MEMORY_BYTES);
    ck_assert_int_eq(
            uc_store_register_memory(store, 0, memory, MEMORY_BYTES, UC_MEMORY_CUDA), UC_OK);
    ck_assert_int_eq(dump_from_device(1), UC_OK);
    /* Two jobs: one may be on its way back when the next one is submitted. */
    fake_cuda_hold();
    ck_assert_int_eq(env_submit(store, false, 7, 1, 0, memory, BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(env_submit(store, false, 8, 1, 0, memory, BLOCK_BYTES), UC_OK);
    fake_cuda_release();
    ck_assert_int_eq(env_wait(store, 7), UC_OK);
    ck_assert_int_eq(env_wait(store, 8), UC_OK);
    uc_alloc_count_start();
    for (uint64_t number = 2; number < 2 + COUNT && code == UC_OK; number++) {
        code = env_submit(store, true, 7, number, 0, memory, BLOCK_BYTES);
        code = code == UC_OK ? env_wait(store, 7) : code;
        code = code == UC_OK ? env_submit(store, false, 8, number, 0, memory, BLOCK_BYTES) : code;
        code = code == UC_OK ? env_wait(store, 8) : code;
    }
    allocated = uc_alloc_count_stop();
    ck_assert_int_eq(code, UC_OK);
    /* The driver of the test takes memory for each copy. */
    ck_assert_uint_eq(allocated, uc_alloc_count_works() ? 2 * COUNT : 0);
    close_way();
}
END_TEST

/* */
START_TEST(memory_is_what_it_was_registered_as)
{
    uint8_t host[64];

    ck_assert(open_way(0));
    ck_assert_int_eq(uc_store_register_memory(store, 1, host, sizeof(host), UC_MEMORY_CUDA),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_deregister_memory(store, 1), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(env_submit(store, true, 1, 1, 0, memory + MEMORY_BYTES - 1, BLOCK_BYTES),
            UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "as a whole"));
    ck_assert_int_eq(
            env_submit(store, false, 1, 1, 0, memory - 1, BLOCK_BYTES), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(dump_from_device(1), UC_OK); /* the job's id is free */
    close_way();
}
END_TEST

/* Whatever the driver refuses: an error, or blocks that failed; no wrong bytes, and nothing that stays. */
START_TEST(refused_call_of_the_driver_costs_its_block_at_most)
{
    unsigned good_count = 0;
    bool was_refused;

    if (!open_way(_i)) {
        return;
    }
    ck_assert_int_eq(dump_from_device(1), UC_OK);
    do {
        uint64_t number = 100 + good_count;
        uint8_t *to = memory + 2 * BLOCK_BYTES;

        uc_posix_store_destroy(store);
        store = env_open((const char *[]){env_engine(_i % 2), "block_bytes=20001",
                _i < 2 ? "direct_io=off" : "direct_io=on", NULL});
        fake_cuda_refuse_calls_after(good_count++, 1);
        if (uc_store_register_memory(store, 0, memory, MEMORY_BYTES, UC_MEMORY_CUDA) == UC_OK) {
            if (dump_from_device(number) == UC_OK) {
                ck_assert_int_eq(env_load(store, number, 0, BLOCK_BYTES), UC_OK);
            }
            if (move(false, 1, 0, to, BLOCK_BYTES) == UC_OK) {
                ck_assert(device_matches(1, 0, to, BLOCK_BYTES));
            }
        }
        was_refused = fake_cuda_left_to_refuse() == 0;
        fake_cuda_refuse_calls_after(0, 0);
    } while (was_refused);
    ck_assert_uint_gt(good_count, 10);
    close_way();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("posix_device");
    TCase *cases = tcase_create("posix_device");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, env_setup, env_teardown);
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, block_goes_from_a_device_to_a_device_and_to_the_host, 0, WAYS);
    tcase_add_loop_test(cases, parts_of_blocks_come_from_a_device_and_go_there, 0, WAYS);
    tcase_add_loop_test(cases, blocks_of_host_and_device_share_a_job, 0, WAYS);
    tcase_add_loop_test(cases, damaged_file_is_found_out_before_the_device_has_it, 0, WAYS);
    tcase_add_loop_test(cases, no_event_comes_before_the_copy_is_over, 0, WAYS);
    tcase_add_loop_test(cases, copy_that_fails_makes_no_block, 0, WAYS);
    tcase_add_loop_test(cases, failed_copy_waits_for_those_before_it, 0, WAYS);
    tcase_add_loop_test(cases, refused_call_of_the_driver_costs_its_block_at_most, 0, WAYS);
    tcase_add_loop_test(cases, warm_transfers_allocate_nothing, 0, 2);
    tcase_add_test(cases, memory_is_what_it_was_registered_as);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
