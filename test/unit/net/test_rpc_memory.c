/* SPDX-License-Identifier: Apache-2.0 */

/* Running out of memory: an error or a closed connection, never a crash. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "test/fake/fake_alloc.h"
#include "test/unit/net/rpc_side.h"

static void
teardown(void)
{
    uc_fake_alloc_reset();
    side_teardown();
}

/*
 * Check allocates for its own assertions, so the allocator fails only while the code under test runs.
 *
 * _i allocations succeed and the next one fails; the leak checker sees what was not undone.
 */
START_TEST(create_undoes_everything_when_an_allocation_fails)
{
    struct uc_rpc_connection *connection = NULL;
    enum uc_status status;
    int fds[2];

    side_pair(fds);
    uc_fake_alloc_fail_after((size_t)_i);
    status = uc_rpc_connection_create(fds[0], &side_handler, NULL, FRAME_MAX, &connection);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(connection);
    /* The socket stays the caller's. */
    ck_assert_int_eq(close(fds[0]), 0);
    ck_assert_int_eq(close(fds[1]), 0);
}
END_TEST

static enum uc_status
call_left(const struct uc_rpc_buffer *params)
{
    return uc_rpc_call(left.connection, UC_RPC_LOOKUP, params, LONG_MS, side_on_reply, &left);
}

START_TEST(buffer_remembers_that_it_failed)
{
    struct uc_rpc_buffer buffer = {0};

    uc_rpc_buffer_append(&buffer, "abc", 3);
    uc_fake_alloc_fail_after(0);
    uc_rpc_buffer_append(&buffer, (char[1000]){0}, 1000);
    uc_rpc_buffer_append(&buffer, "d", 1);
    uc_fake_alloc_reset();
    ck_assert(buffer.failed);
    ck_assert_uint_eq(buffer.length, 3);
    ck_assert_int_eq(call_left(&buffer), UC_ERR_OUT_OF_MEMORY);
    uc_rpc_buffer_reset(&buffer);
    ck_assert(!buffer.failed);
    uc_rpc_buffer_fini(&buffer);
}
END_TEST

START_TEST(call_without_memory_fails_and_the_connection_lives)
{
    struct uc_rpc_buffer params = {0};
    enum uc_status status;

    uc_empty_request_encode(&params);
    uc_fake_alloc_fail_after(0);
    status = call_left(&params);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_eq(call_left(&params), UC_OK);
    RAW_SEND("\x94\x01\x00\xc0\xc0");
    uc_rpc_connection_progress(left.connection);
    ck_assert_uint_eq(left.reply_count, 1);
    uc_rpc_buffer_fini(&params);
}
END_TEST

START_TEST(frame_without_memory_closes_the_connection)
{
    static const uint8_t head[20000] = {0x40, 0x9c}; /* 40,000 bytes follow, of which half come */

    ck_assert_int_eq(write(raw_fd, head, sizeof(head)), sizeof(head));
    uc_fake_alloc_fail_after(0);
    uc_rpc_connection_progress(left.connection);
    uc_fake_alloc_reset();
    ck_assert_uint_eq(left.closed_count, 1);
    ck_assert_int_eq(left.closed_reason, UC_ERR_OUT_OF_MEMORY);
}
END_TEST

/* ARCHITECTURE.md §11: the hot calls cost no allocation once buffers have grown. */
START_TEST(steady_state_does_not_allocate)
{
    static struct uc_block_id ids[256];
    struct uc_rpc_buffer params = {0};
    size_t started = 0;

    right.answer = true;
    for (int round = 0; round < 20; round++) {
        if (round == 2) {
            uc_fake_alloc_fail_after(0);
        }
        uc_rpc_buffer_reset(&params);
        uc_keys_request_encode(&params, (struct uc_keys_view){.ids = ids, .count = 256});
        for (int idx = 0; idx < 8; idx++) {
            started += call_left(&params) == UC_OK;
        }
        side_progress_both();
    }
    uc_fake_alloc_reset();
    ck_assert_uint_eq(started, 20 * 8);
    ck_assert_uint_eq(left.reply_count, 20 * 8);
    uc_rpc_buffer_fini(&params);
}
END_TEST

static Suite *
rpc_memory_suite(void)
{
    Suite *suite = suite_create("rpc_memory");
    TCase *create = tcase_create("create");
    TCase *raw = tcase_create("raw");
    TCase *both = tcase_create("both");

    tcase_add_checked_fixture(create, NULL, uc_fake_alloc_reset);
    tcase_add_loop_test(create, create_undoes_everything_when_an_allocation_fails, 0, 2);
    suite_add_tcase(suite, create);

    tcase_add_checked_fixture(raw, side_setup_raw, teardown);
    tcase_add_test(raw, buffer_remembers_that_it_failed);
    tcase_add_test(raw, call_without_memory_fails_and_the_connection_lives);
    tcase_add_test(raw, frame_without_memory_closes_the_connection);
    suite_add_tcase(suite, raw);

    tcase_add_checked_fixture(both, side_setup_pair, teardown);
    tcase_add_test(both, steady_state_does_not_allocate);
    suite_add_tcase(suite, both);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(rpc_memory_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
