/* SPDX-License-Identifier: Apache-2.0 */

/* The operations of CUDA devices, over a driver without a device. */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "client/device/device.h"
#include "test/fake/fake_cuda.h"

enum {
    PAGE = 4096,
    LENGTH = 8 * PAGE,
};

static const struct uc_device_ops *ops;
static uint8_t *memory;
static uint8_t *host;
static struct uc_device *device;
static struct uc_device_ticket *ticket;

static void
setup(void)
{
    ops = uc_device_find(UC_MEMORY_CUDA);
    ck_assert_ptr_nonnull(ops);
    memory = fake_cuda_alloc(LENGTH);
    host = malloc(LENGTH);
    ck_assert_msg(ops->open(memory, LENGTH, &device) == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(ops->register_host(device, host, LENGTH), UC_OK);
    ck_assert_int_eq(ops->ticket_create(device, &ticket), UC_OK);
}

static void
teardown(void)
{
    ops->ticket_destroy(ticket);
    ops->unregister_host(device, host);
    ops->close(device);
    ck_assert_uint_eq(fake_cuda_objects(), 0);
    ck_assert_uint_eq(fake_cuda_pushed(), 0); /* the thread's context is what it was */
    fake_cuda_free(memory);
    free(host);
}

START_TEST(there_is_a_table_for_cuda_and_none_for_host_memory)
{
    ck_assert_int_eq(ops->kind, UC_MEMORY_CUDA);
    ck_assert_ptr_null(uc_device_find(UC_MEMORY_HOST));
    ck_assert_ptr_null(uc_device_find((enum uc_memory_kind)7));
}
END_TEST

START_TEST(host_memory_and_ranges_beyond_an_allocation_are_refused)
{
    struct uc_device *other = NULL;

    ck_assert_int_eq(ops->open(host, LENGTH, &other), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "no memory of a device"));
    ck_assert_int_eq(ops->open(memory, LENGTH + 1, &other), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(ops->open(memory + 1, LENGTH, &other), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(ops->open(memory, UINT64_MAX, &other), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "one allocation"));
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(copies_move_bytes_both_ways_and_the_ticket_tells_when)
{
    memset(host, 7, LENGTH);
    fake_cuda_hold();
    ck_assert_int_eq(ops->copy(ticket, true, memory, host, LENGTH), UC_OK);
    ck_assert_int_eq(ops->mark(ticket), UC_OK);
    ck_assert_int_eq(ops->poll(ticket), UC_ERR_RETRY);
    ck_assert_uint_eq(fake_cuda_bytes(memory)[LENGTH - 1], 0);
    fake_cuda_release();
    ck_assert_int_eq(ops->poll(ticket), UC_OK);
    ck_assert_uint_eq(fake_cuda_bytes(memory)[LENGTH - 1], 7);

    fake_cuda_bytes(memory)[PAGE] = 9;
    ck_assert_int_eq(ops->copy(ticket, false, memory + PAGE, host, 1), UC_OK);
    ck_assert_int_eq(ops->mark(ticket), UC_OK);
    ck_assert_int_eq(ops->poll(ticket), UC_OK);
    ck_assert_uint_eq(host[0], 9);
    ck_assert_uint_eq(host[1], 7);
}
END_TEST

START_TEST(copy_that_the_driver_refuses_is_an_error_with_its_name)
{
    fake_cuda_fail_copies(1);
    ck_assert_int_eq(ops->copy(ticket, true, memory, host, 1), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    ck_assert_int_eq(ops->mark(ticket), UC_OK);
    ck_assert_int_eq(ops->poll(ticket), UC_OK); /* nothing is under way */
}
END_TEST

START_TEST(file_of_a_range_is_that_of_its_pages)
{
    struct uc_device_file file = {.fd = -1};
    uint8_t byte = 0;

    fake_cuda_bytes(memory)[PAGE + 100] = 42;
    ck_assert_int_eq(ops->export_file(device, memory + PAGE + 100, 10, &file), UC_OK);
    ck_assert_uint_eq(file.offset_bytes, 100);
    ck_assert_int_eq(pread(file.fd, &byte, 1, PAGE + 100), 1);
    ck_assert_uint_eq(byte, 42);
    (void)close(file.fd);
    fake_cuda_set_files(false);
    ck_assert_int_eq(ops->export_file(device, memory, PAGE, &file), UC_ERR_UNSUPPORTED);
    fake_cuda_set_files(true);
}
END_TEST

START_TEST(copy_that_fails_on_the_device_is_told_by_its_ticket)
{
    fake_cuda_break_copies(1);
    ck_assert_int_eq(ops->copy(ticket, true, memory, host, 1), UC_OK);
    ck_assert_int_eq(ops->mark(ticket), UC_OK);
    ck_assert_int_eq(ops->poll(ticket), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
}
END_TEST

static void *
release_later(void *argument)
{
    (void)argument;
    while (fake_cuda_left_to_refuse() > 0) {
        (void)sched_yield();
    }
    fake_cuda_release();
    return NULL;
}

/* Callers take the memory back when an error is told: no copy may be under way then. */
START_TEST(ticket_that_cannot_tell_waits_for_its_copies)
{
    pthread_t thread;
    enum uc_status status;

    memset(host, 7, LENGTH);
    fake_cuda_hold();
    ck_assert_int_eq(ops->copy(ticket, true, memory, host, LENGTH), UC_OK);
    if (_i == 2) {
        ck_assert_int_eq(ops->mark(ticket), UC_OK);
    }
    fake_cuda_refuse_calls_after(
            _i == 1 ? 1 : 0, 1); /* entering the context; the event; asking it */
    ck_assert_int_eq(pthread_create(&thread, NULL, release_later, NULL), 0);
    status = _i == 2 ? ops->poll(ticket) : ops->mark(ticket);
    ck_assert_int_eq(status, UC_ERR_OS_API);
    ck_assert_uint_eq(fake_cuda_held(), 0);
    ck_assert_uint_eq(fake_cuda_bytes(memory)[LENGTH - 1], 7);
    (void)pthread_join(thread, NULL);
}
END_TEST

/* A device that does not order what a NIC writes is flushed; without a flush there is no promise. */
START_TEST(writes_of_others_are_flushed_where_the_device_does_not_order_them)
{
    struct uc_device *other = NULL;
    size_t flushes = fake_cuda_flushes();

    ck_assert_int_eq(ops->settle(device), UC_OK);
    ck_assert_uint_eq(fake_cuda_flushes(), flushes);
    fake_cuda_set_order(false, true);
    ck_assert_int_eq(ops->open(memory, LENGTH, &other), UC_OK);
    ck_assert_int_eq(ops->settle(other), UC_OK);
    ck_assert_uint_eq(fake_cuda_flushes(), flushes + 1);
    ops->close(other);
    fake_cuda_set_order(false, false);
    ck_assert_int_eq(ops->open(memory, LENGTH, &other), UC_OK);
    ck_assert_int_eq(ops->settle(other), UC_ERR_UNSUPPORTED);
    ops->close(other);
    fake_cuda_set_order(true, true);
}
END_TEST

/* */
START_TEST(event_of_the_engine_is_retry_until_it_has_fired)
{
    uint64_t event = fake_cuda_make_event();

    ck_assert(ops->has_events());
    ck_assert_int_eq(ops->event_poll(NULL, event), UC_ERR_RETRY);
    fake_cuda_fire(event);
    ck_assert_int_eq(ops->event_poll(NULL, event), UC_OK);
    fake_cuda_free_event(event);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cuda");
    TCase *cases = tcase_create("cuda");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, there_is_a_table_for_cuda_and_none_for_host_memory);
    tcase_add_test(cases, host_memory_and_ranges_beyond_an_allocation_are_refused);
    tcase_add_test(cases, copies_move_bytes_both_ways_and_the_ticket_tells_when);
    tcase_add_test(cases, copy_that_the_driver_refuses_is_an_error_with_its_name);
    tcase_add_test(cases, file_of_a_range_is_that_of_its_pages);
    tcase_add_test(cases, copy_that_fails_on_the_device_is_told_by_its_ticket);
    tcase_add_loop_test(cases, ticket_that_cannot_tell_waits_for_its_copies, 0, 3);
    tcase_add_test(cases, writes_of_others_are_flushed_where_the_device_does_not_order_them);
    tcase_add_test(cases, event_of_the_engine_is_retry_until_it_has_fired);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
