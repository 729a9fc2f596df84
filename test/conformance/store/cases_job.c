/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs, events, tokens: table 4.3, R-2.17, R-4.53, R-5.8, R-5.19 to, V-42, V-44 to V-46. */

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "test/conformance/store/suite.h"

enum {
    JOBS = 32,
    IDLE_CALLS_MAX = 1000,
};

static struct uc_token *token;

/* One read window over the first keys, which are there. */
static void
open_read(size_t count)
{
    suite_put(suite.ids, count);
    token = suite_prepare_get(suite.ids, count);
}

static void
close_read(void)
{
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
}

/* A read of key `key` into block `key` of the memory. */
static enum uc_status
submit_one(uint64_t job_id, size_t key)
{
    struct uc_io_context io = {.first_key = key, .key_count = 1};

    return uc_worker_submit_get(
            suite.worker, job_id, &suite_payloads(SUITE_KEYS_MAX)[key], 1, token, &io);
}

/* V-44, R-4.33 */
START_TEST(job_id_is_in_use_until_its_event_was_consumed)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 9;

    open_read(1);
    ck_assert_int_eq(submit_one(job_id, 0), UC_OK);
    ck_assert_int_eq(submit_one(job_id, 0), UC_ERR_DUPLICATE_KEY);
    ck_assert_int_eq(uc_worker_submit_prefetch(suite.worker, job_id, token), UC_ERR_DUPLICATE_KEY);
    suite_expect(job_id, UC_OK);
    ck_assert_int_eq(uc_worker_wait(suite.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(submit_one(job_id, 0), UC_OK);
    suite_expect(job_id, UC_OK);
    close_read();
}
END_TEST

/* V-45, R-5.19, R-5.21 */
START_TEST(wait_ignores_unknown_ids_and_counts_repeated_ones_once)
{
    static const uint64_t job_ids[] = {1, 7, 1};
    struct uc_io_result results[3];
    size_t count = 9;

    open_read(1);
    ck_assert_int_eq(submit_one(1, 0), UC_OK);
    ck_assert_int_eq(
            uc_worker_wait(suite.worker, job_ids, 3, -1, results, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_worker_wait(suite.worker, job_ids, 3, SUITE_WAIT_MS, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(results[0].job_id, 1);
    uc_io_results_release(results, count);
    ck_assert_int_eq(uc_worker_wait(suite.worker, NULL, 0, -1, NULL, 0, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
    close_read();
}
END_TEST

/* */
START_TEST(wait_returns_results_in_the_order_of_the_list)
{
    struct uc_io_result results[JOBS];
    uint64_t job_ids[JOBS];
    size_t count = 0;

    open_read(JOBS);
    for (size_t idx = 0; idx < JOBS; idx++) {
        ck_assert_int_eq(submit_one(idx, idx), UC_OK);
        job_ids[JOBS - 1 - idx] = idx;
    }
    ck_assert_int_eq(
            uc_worker_wait(suite.worker, job_ids, JOBS, SUITE_WAIT_MS, results, JOBS, &count),
            UC_OK);
    ck_assert_uint_eq(count, JOBS);
    for (size_t idx = 0; idx < JOBS; idx++) {
        ck_assert_uint_eq(results[idx].job_id, job_ids[idx]);
        ck_assert(results[idx].success);
        ck_assert(suite_matches(&suite.ids[idx], 0, suite_block(idx), suite.block_bytes));
    }
    uc_io_results_release(results, count);
    close_read();
}
END_TEST

/* polling delivers each event once, however often it times out before. */
START_TEST(polling_wait_delivers_the_event_once)
{
    struct uc_io_result result;
    uint64_t job_id = 5;
    size_t delivered = 0;

    open_read(1);
    ck_assert_int_eq(submit_one(job_id, 0), UC_OK);
    while (delivered == 0) {
        size_t count = 9;
        enum uc_status status = uc_worker_wait(suite.worker, &job_id, 1, 0, &result, 1, &count);

        ck_assert(status == UC_OK || status == UC_ERR_TIMEOUT);
        ck_assert_uint_eq(count, status == UC_OK ? 1 : 0);
        delivered += count;
    }
    ck_assert(result.success);
    uc_io_results_release(&result, 1);
    ck_assert_int_eq(uc_worker_get_finished(suite.worker, &result, 1, &delivered), UC_OK);
    ck_assert_uint_eq(delivered, 0);
    close_read();
}
END_TEST

/* Block until get_finished has something; false where the store has no descriptor for it. */
static bool
await_event(void)
{
    struct pollfd entry = {.fd = uc_worker_event_fd(suite.worker), .events = POLLIN};

    if (entry.fd < 0) {
        return false;
    }
    ck_assert_int_eq(poll(&entry, 1, SUITE_WAIT_MS), 1);
    return true;
}

/* G4: each job once, in portions */
START_TEST(get_finished_delivers_each_job_once)
{
    bool seen[JOBS] = {false};
    size_t delivered = 0;

    open_read(JOBS);
    for (size_t idx = 0; idx < JOBS; idx++) {
        ck_assert_int_eq(submit_one(idx, idx), UC_OK);
    }
    while (delivered < JOBS) {
        struct uc_io_result results[5];
        size_t count = 9;

        (void)await_event();
        ck_assert_int_eq(uc_worker_get_finished(suite.worker, results, 5, &count), UC_OK);
        for (size_t idx = 0; idx < count; idx++) {
            ck_assert_uint_lt(results[idx].job_id, JOBS);
            ck_assert(!seen[results[idx].job_id]);
            ck_assert(results[idx].success);
            seen[results[idx].job_id] = true;
        }
        uc_io_results_release(results, count);
        delivered += count;
    }
    close_read();
}
END_TEST

/* A store that its caller drives may ask for calls that deliver nothing, but comes to rest. */
static void
assert_at_rest(int event_fd)
{
    struct pollfd entry = {.fd = event_fd, .events = POLLIN};
    unsigned calls_left = suite_is_driven() ? IDLE_CALLS_MAX : 0;

    while (poll(&entry, 1, 0) != 0) {
        struct uc_io_result result;
        size_t count = 9;

        ck_assert_uint_gt(calls_left--, 0);
        ck_assert_int_eq(uc_worker_get_finished(suite.worker, &result, 1, &count), UC_OK);
        ck_assert_uint_eq(count, 0);
    }
}

/* level triggered. */
START_TEST(event_fd_is_readable_until_the_event_was_consumed)
{
    int event_fd = uc_worker_event_fd(suite.worker);

    if (event_fd < 0) {
        return;
    }
    open_read(1);
    assert_at_rest(event_fd);
    ck_assert_int_eq(submit_one(1, 0), UC_OK);
    ck_assert(await_event());
    ck_assert(await_event());
    suite_expect(1, UC_OK);
    assert_at_rest(event_fd);
    close_read();
}
END_TEST

/* V-42, R-10.7 for plain stores; for tokened ones */
START_TEST(foreign_payload_is_refused)
{
    static const uint8_t byte = 0x55;
    struct uc_token foreign = {
            .keys = suite.ids, .key_count = 1, .payload = &byte, .payload_bytes = 1};

    suite_put(suite.ids, 1);
    ck_assert_int_eq(uc_worker_submit_get(suite.worker, 1, suite_payloads(1), 1, &foreign, NULL),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_put(suite.worker, 1, suite_payloads(1), 1, &foreign, NULL),
            UC_ERR_INVALID_PARAM);
}
END_TEST

/* damaged tokens are refused, or their blocks fail; nothing crashes and nothing hangs. */
START_TEST(damaged_payload_does_no_harm)
{
    /* A damaged name of a server may have to be tried out. */
    static const struct uc_io_context io = {.timeout_ms = 200};
    uint8_t *copy;

    open_read(2);
    copy = malloc(token->payload_bytes + 1);
    ck_assert_ptr_nonnull(copy);
    for (size_t at = 0; at < token->payload_bytes; at++) {
        struct uc_token damaged = *token;
        uint64_t job_id = 1000 + at;

        memcpy(copy, token->payload, token->payload_bytes);
        copy[at] ^= 0xff;
        damaged.payload = copy;
        if (uc_worker_submit_get(suite.worker, job_id, suite_payloads(2), 2, &damaged, &io) ==
                UC_OK) {
            struct uc_io_result result;
            size_t count = 0;

            ck_assert_int_eq(
                    uc_worker_wait(suite.worker, &job_id, 1, SUITE_WAIT_MS, &result, 1, &count),
                    UC_OK);
            ck_assert_uint_eq(count, 1);
            uc_io_results_release(&result, count);
        }
    }
    for (size_t length = 1; length < token->payload_bytes; length++) {
        struct uc_token cut = *token;

        cut.payload_bytes = length;
        ck_assert_int_eq(uc_worker_submit_get(suite.worker, 1, suite_payloads(2), 2, &cut, NULL),
                UC_ERR_INVALID_PARAM);
    }
    free(copy);
    close_read();
    suite_get_and_compare(suite.ids, 2);
}
END_TEST

/* */
START_TEST(token_works_after_a_trip_through_bytes)
{
    struct uc_token *again = NULL;
    uint8_t *bytes;

    open_read(3);
    bytes = malloc(uc_token_serialized_bytes(token));
    ck_assert_ptr_nonnull(bytes);
    uc_token_serialize(token, bytes);
    ck_assert_int_eq(uc_token_deserialize(bytes, uc_token_serialized_bytes(token), &again), UC_OK);
    suite_wipe(suite.memory, 3 * suite.block_bytes);
    ck_assert_int_eq(
            uc_worker_submit_get(suite.worker, 1, suite_payloads(3), 3, again, NULL), UC_OK);
    suite_expect(1, UC_OK);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert(suite_matches(&suite.ids[idx], 0, suite_block(idx), suite.block_bytes));
    }
    uc_token_destroy(again);
    free(bytes);
    close_read();
}
END_TEST

/* G17: blocks fail or, with the same owner still there, transfer; one event in any case. */
START_TEST(concluded_token_does_no_harm)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 0;

    open_read(1);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    if (uc_worker_submit_get(suite.worker, job_id, suite_payloads(1), 1, token, NULL) == UC_OK) {
        ck_assert_int_eq(
                uc_worker_wait(suite.worker, &job_id, 1, SUITE_WAIT_MS, &result, 1, &count), UC_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert(!result.success ||
                  suite_matches(&suite.ids[0], 0, suite_block(0), suite.block_bytes));
        uc_io_results_release(&result, 1);
    }
    uc_token_destroy(token);
}
END_TEST

/* without a hook nobody can tell when the event fires. */
START_TEST(prerequisite_without_hook_is_unsupported)
{
    struct uc_io_context io = {.prerequisite_handle = 42};

    if (suite_memory_kind() != UC_MEMORY_HOST) {
        return; /* the device has one */
    }
    open_read(1);
    ck_assert_int_eq(uc_worker_submit_get(suite.worker, 1, suite_payloads(1), 1, token, &io),
            UC_ERR_UNSUPPORTED);
    close_read();
}
END_TEST

TCase *
suite_job_cases(void)
{
    TCase *tcase = tcase_create("job");

    tcase_add_test(tcase, job_id_is_in_use_until_its_event_was_consumed);
    tcase_add_test(tcase, wait_ignores_unknown_ids_and_counts_repeated_ones_once);
    tcase_add_test(tcase, wait_returns_results_in_the_order_of_the_list);
    tcase_add_test(tcase, polling_wait_delivers_the_event_once);
    tcase_add_test(tcase, get_finished_delivers_each_job_once);
    tcase_add_test(tcase, event_fd_is_readable_until_the_event_was_consumed);
    tcase_add_test(tcase, foreign_payload_is_refused);
    tcase_add_test(tcase, damaged_payload_does_no_harm);
    tcase_add_test(tcase, token_works_after_a_trip_through_bytes);
    tcase_add_test(tcase, concluded_token_does_no_harm);
    tcase_add_test(tcase, prerequisite_without_hook_is_unsupported);
    return tcase;
}
