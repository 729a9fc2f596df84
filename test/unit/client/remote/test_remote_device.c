/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory of a device that the processor cannot touch, on every way there is: in place by file or by address,
 * or through buffers. There are two buffers and jobs of eight blocks.
 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/log.h>

#include "test/unit/client/remote/device_env.h"

static void
setup_staged(void)
{
    device_setup(false);
    device_register();
}

/* Over a transport that needs registration, and as yet without a region. */
static void
setup_reached(void)
{
    device_setup(true);
}

/* a direct touch of these addresses would crash. */
START_TEST(memory_of_a_device_goes_through_buffers)
{
    device_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    device_round_trip();
    ck_assert_uint_eq(bounce_number("blocks_bounced"), 2 * COUNT);
}
END_TEST

/* A transport that reaches the device: by the file, else by the address, else not at all. */
START_TEST(reach_of_the_transport_decides_how_blocks_move)
{
    static const struct {
        bool by_file;
        bool by_address;
        bool exports;
        bool in_place;
    } cases[] = {
            {true, false, true, true},    /* dma-buf */
            {true, true, false, true},    /* the driver exports none: peer memory */
            {false, true, true, true},    /* the transport refuses it: peer memory */
            {false, false, true, false},  /* both refused */
            {true, false, false, false},  /* no file, no peer memory */
            {false, false, false, false}, /* nothing at all */
    };

    uc_fault_reach_devices(cases[_i].by_file, cases[_i].by_address ? fake_cuda_bytes : NULL);
    fake_cuda_set_files(cases[_i].exports);
    device_register();
    device_round_trip();
    /* What env_get() adds is host memory that is not registered. */
    ck_assert_uint_eq(bounce_number("blocks_bounced"), cases[_i].in_place ? COUNT : 3 * COUNT);
}
END_TEST

/* A load in place ends after the device is told; one that cannot keep up is never written in place. */
START_TEST(load_in_place_is_settled_before_its_event)
{
    size_t flushes;

    uc_fault_reach_devices(true, NULL);
    fake_cuda_set_order(false, _i == 0);
    device_register();
    flushes = fake_cuda_flushes();
    device_round_trip();
    ck_assert_uint_eq(bounce_number("blocks_bounced"), _i == 0 ? COUNT : 3 * COUNT);
    ck_assert_uint_eq(fake_cuda_flushes() - flushes, _i == 0 ? 1 : 0);
}
END_TEST

/* without buffers there is one way only. */
START_TEST(without_buffers_the_transport_has_to_reach_the_device)
{
    enum uc_status status;

    bounce_reopen(0, "thread");
    uc_fault_reach_devices(_i == 1, NULL);
    status = uc_store_register_memory(
            bounce.store, REGION, device_memory, 2 * (uint64_t)ALL_BYTES, UC_MEMORY_CUDA);
    if (_i == 0) {
        ck_assert_int_eq(status, UC_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(uc_last_error(), "bounce_bytes"));
        return;
    }

    ck_assert_int_eq(status, UC_OK);
    bounce_fill(fake_cuda_bytes(device_memory), 1);
    (void)bounce_prepare(1, true, 1, device_memory, 0);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    ck_assert_int_eq(uc_store_deregister_memory(bounce.store, REGION), UC_OK);
    ck_assert_uint_eq(fake_cuda_objects(), 0);
}
END_TEST

/* Blocks in host and in device memory, and one block that lies in both. */
static struct bounce_job *
mixed(bool is_dump, uint8_t *device_bytes, uint8_t *host_bytes, void **pointers, uint64_t *sizes)
{
    struct bounce_job *job = bounce_prepare(1, is_dump, 1, device_bytes, 0);

    for (size_t idx = 1; idx < COUNT; idx += 2) {
        job->job.pointers[idx] = host_bytes + idx * BLOCK_BYTES;
    }
    pointers[0] = device_bytes;
    pointers[1] = host_bytes;
    pointers[2] = device_bytes + 5000;
    sizes[0] = 1000;
    sizes[1] = 4000;
    sizes[2] = BLOCK_BYTES - 5000;
    job->job.payloads[0].pointers = pointers;
    job->job.payloads[0].sizes = sizes;
    job->job.payloads[0].pointer_count = 3;
    return job;
}

START_TEST(job_may_have_blocks_on_both_sides)
{
    uint8_t *host = bounce.memory;
    uint8_t *target = fake_cuda_bytes(device_memory) + ALL_BYTES;
    uint8_t *expected = malloc(ALL_BYTES);
    void *pointers[3];
    uint64_t sizes[3];

    uc_fault_reach_devices(_i / 2 == 1, NULL);
    bounce_reopen(BUFFERS * BLOCK_BYTES, bounce_progress(_i));
    device_register();
    bounce_fill(expected, 1);
    memcpy(fake_cuda_bytes(device_memory), expected, ALL_BYTES);
    memcpy(host, expected, ALL_BYTES);
    memcpy(host, expected + 1000, 4000);
    (void)mixed(true, device_memory, host, pointers, sizes);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);

    host += ALL_BYTES;
    (void)mixed(false, device_memory + ALL_BYTES, host, pointers, sizes);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    ck_assert(memcmp(target, expected, 1000) == 0);
    ck_assert(memcmp(host, expected + 1000, 4000) == 0);
    ck_assert(memcmp(target + 5000, expected + 5000, BLOCK_BYTES - 5000) == 0);
    for (size_t idx = 1; idx < COUNT; idx++) {
        size_t at = idx * BLOCK_BYTES;

        ck_assert(memcmp((idx % 2 == 1 ? host : target) + at, expected + at, BLOCK_BYTES) == 0);
    }
    free(expected);
}
END_TEST

/* what is read from a device has no checksum; one that is there is compared before the device gets the bytes. */
START_TEST(checksum_is_not_made_of_a_devices_bytes_but_compared_for_them)
{
    struct uc_io_result result;

    env_put(bounce.store, 1, COUNT);
    memset(fake_cuda_bytes(device_memory), QUIET_BYTE, ALL_BYTES);
    (void)bounce_prepare(1, false, 1, device_memory, 0);
    uc_fault_corrupt_reads(1);
    bounce_submit(1);
    result = env_wait(bounce.store, 1);
    ck_assert_int_eq(result.code, UC_ERR_NOT_FOUND);
    ck_assert(!uc_io_result_block_ok(&result, 0));
    ck_assert(uc_io_result_block_ok(&result, 1));
    uc_io_results_release(&result, 1);
    bounce_conclude(1, true);
    bounce_assert_quiet(fake_cuda_bytes(device_memory), BLOCK_BYTES);

    (void)bounce_prepare(1, true, DUMPED, device_memory, 0);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    (void)bounce_prepare(1, false, DUMPED, device_memory, 0);
    uc_fault_corrupt_reads(1);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
}
END_TEST

/* */
START_TEST(what_is_no_memory_of_a_device_is_refused)
{
    ck_assert_int_eq(
            uc_store_register_memory(bounce.store, 8, bounce.memory, ALL_BYTES, UC_MEMORY_CUDA),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(
                             bounce.store, 8, bounce.memory, ALL_BYTES, (enum uc_memory_kind)7),
            UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_store_register_memory(bounce.store, 8, device_memory,
                             3 * (uint64_t)ALL_BYTES, UC_MEMORY_CUDA),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(
                             bounce.store, REGION, device_memory, ALL_BYTES, UC_MEMORY_CUDA),
            UC_ERR_INVALID_PARAM);
}
END_TEST

/* what lies in a device's memory in part is for neither the processor nor the device to copy. */
START_TEST(piece_across_the_border_of_a_region_is_refused)
{
    uint8_t *borders[] = {
            device_memory + 2 * (size_t)ALL_BYTES - 1, device_memory - BLOCK_BYTES + 1};
    struct bounce_job *job;

    env_put(bounce.store, 1, COUNT);
    for (size_t idx = 0; idx < 2; idx++) {
        job = bounce_prepare(1, false, 1, bounce.memory, 0);
        job->job.pointers[COUNT - 1] = borders[idx];
        ck_assert_int_eq(bounce.ops->load(bounce.store, 1, &job->job.descriptor, job->token, 0),
                UC_ERR_INVALID_PARAM);
        bounce_conclude(1, true);
    }
    ck_assert_int_eq(uc_store_deregister_memory(bounce.store, REGION), UC_OK);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_device");
    TCase *staged = tcase_create("staged");
    TCase *reached = tcase_create("reached");
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, staged);
    tcase_set_timeout(staged, 60);
    tcase_add_checked_fixture(staged, setup_staged, device_teardown);
    suite_add_tcase(suite, reached);
    tcase_set_timeout(reached, 60);
    tcase_add_checked_fixture(reached, setup_reached, device_teardown);

    tcase_add_loop_test(staged, memory_of_a_device_goes_through_buffers, 0, 2);
    tcase_add_test(staged, checksum_is_not_made_of_a_devices_bytes_but_compared_for_them);
    tcase_add_test(staged, what_is_no_memory_of_a_device_is_refused);
    tcase_add_test(staged, piece_across_the_border_of_a_region_is_refused);
    tcase_add_loop_test(reached, reach_of_the_transport_decides_how_blocks_move, 0, 6);
    tcase_add_loop_test(reached, load_in_place_is_settled_before_its_event, 0, 2);
    tcase_add_loop_test(reached, without_buffers_the_transport_has_to_reach_the_device, 0, 2);
    tcase_add_loop_test(reached, job_may_have_blocks_on_both_sides, 0, 4);

    uc_log_set_level(UC_LOG_ERROR); /* every other case breaks something */
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
