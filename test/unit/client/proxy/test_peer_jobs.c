/* SPDX-License-Identifier: Apache-2.0 */

/* The data half of StorePeer over fake stores, V-3, V-49, V-56. */

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/client/proxy/tree_fixture.h"

static const char three[] =
        "{type: peer, branches: [{type: store, store: fake, config: {tokened: true}}, {type: store, "
        "store: fake}, {type: store, store: fake}], routing: {strategy: ttl, config: {thresholds: "
        "[2000, 1000]}}}";

/* One token per branch. */
static struct uc_token *tokens[3];

static void
start_three(void)
{
    static const char *const names[] = {"a", "b", "c"};
    static const int64_t ttls[] = {5000, 1500, -1};

    tree_reset();
    tree_start(three);
    for (size_t idx = 0; idx < 3; idx++) {
        tree_register(names[idx], ttls[idx]);
        tokens[idx] = tree_get_token(names[idx], 2);
    }
}

static void
stop_three(void)
{
    for (size_t idx = 0; idx < 3; idx++) {
        uc_token_destroy(tokens[idx]);
    }
    tree_stop();
}

static void
hold_events(bool hold)
{
    for (size_t idx = 0; idx < 3; idx++) {
        tree.stores[idx]->hold_events = hold;
    }
}

static void
submit(uint64_t job_id, size_t branch)
{
    ck_assert_msg(tree_submit_get(job_id, tokens[branch]) == UC_OK, "%s", uc_last_error());
}

/* the inner token reaches the branch, without frame. */
START_TEST(submits_reach_the_branch_of_the_frame)
{
    submit(1, 0);
    ck_assert_str_eq(tree.stores[0]->data.log, "token_load ");
    ck_assert_uint_eq(tree.stores[0]->data.payload_bytes, 6);
    ck_assert_mem_eq(tree.stores[0]->data.payload, "FR", 2);
    submit(2, 1);
    submit(3, 2);
    ck_assert_str_eq(tree.stores[1]->data.log, "load ");
    ck_assert_int_eq(
            uc_worker_submit_put(tree.worker, 4, tree_payloads, 2, tokens[2], NULL), UC_OK);
    ck_assert_str_eq(tree.stores[2]->data.log, "load dump ");
    ck_assert_int_eq(uc_worker_submit_prefetch(tree.worker, 5, tokens[2]), UC_OK);
}
END_TEST

/* V-3, R-12.6: InvalidParam, nothing dispatched, the id stays free. */
START_TEST(foreign_tokens_are_not_dispatched)
{
    uint8_t bytes[18];
    struct uc_token wrong = *tokens[0];

    ck_assert_uint_eq(wrong.payload_bytes, sizeof(bytes));
    memcpy(bytes, tokens[0]->payload, sizeof(bytes));
    wrong.payload = bytes;
    switch (_i) {
    case 0:
        wrong.payload_bytes = 11;
        break;
    case 1:
        bytes[3] = '2';
        break;
    case 2:
        bytes[4] = 3; /* the branch count */
        break;
    case 3:
        bytes[11] = 1;
        break;
    default:
        wrong.payload_bytes = 0; /* never passed a peer */
        wrong.payload = NULL;
        break;
    }
    ck_assert_int_eq(tree_submit_get(1, &wrong), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_put(tree.worker, 1, tree_payloads, 2, &wrong, NULL),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_prefetch(tree.worker, 1, &wrong), UC_ERR_INVALID_PARAM);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_str_eq(tree.stores[idx]->data.log, "");
    }
    submit(1, 0);
}
END_TEST

/* V-49, R-12.8: one id space over all branches and classes. */
START_TEST(job_ids_are_unique_across_branches)
{
    hold_events(true);
    submit(5, 0);
    ck_assert_int_eq(tree_submit_get(5, tokens[1]), UC_ERR_DUPLICATE_KEY);
    ck_assert_int_eq(uc_worker_submit_put(tree.worker, 5, tree_payloads, 2, tokens[2], NULL),
            UC_ERR_DUPLICATE_KEY);
    ck_assert_int_eq(uc_worker_submit_prefetch(tree.worker, 5, tokens[1]), UC_ERR_DUPLICATE_KEY);
    ck_assert_str_eq(tree.stores[1]->data.log, ""); /* before any branch is called */
    ck_assert_str_eq(tree.stores[2]->data.log, "");
    uc_fake_store_finish(tree.stores[0], 5, UC_OK);
    ck_assert_int_eq(tree_submit_get(5, tokens[1]), UC_ERR_DUPLICATE_KEY); /* */
}
END_TEST

/* a refused job leaves its id free. */
START_TEST(refused_jobs_free_their_id)
{
    tree.stores[1]->answers[UC_FAKE_LOAD] = UC_ERR_RETRY;
    ck_assert_int_eq(tree_submit_get(5, tokens[1]), UC_ERR_RETRY);
    tree.stores[0]->answers[UC_FAKE_TOKEN_DUMP] = UC_ERR_NO_SPACE;
    ck_assert_int_eq(uc_worker_submit_put(tree.worker, 5, tree_payloads, 2, tokens[0], NULL),
            UC_ERR_NO_SPACE);
    submit(5, 2);
}
END_TEST

/* every event once, then its id is free. */
START_TEST(finished_events_are_merged)
{
    struct uc_io_result results[8];
    bool seen[7] = {false};
    size_t count = 0;

    for (uint64_t job_id = 1; job_id <= 6; job_id++) {
        submit(job_id, job_id % 3);
    }
    ck_assert_int_eq(uc_worker_get_finished(tree.worker, results, 8, &count), UC_OK);
    ck_assert_uint_eq(count, 6);
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert(!seen[results[idx].job_id]);
        seen[results[idx].job_id] = true;
    }
    uc_io_results_release(results, count);
    ck_assert_int_eq(uc_worker_get_finished(tree.worker, results, 8, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
    submit(1, 0);
    ck_assert_int_eq(uc_worker_get_finished(tree.worker, NULL, 0, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
}
END_TEST

/* branch 0 always has something, and one event is taken at a time. */
START_TEST(busy_branch_starves_none)
{
    struct uc_io_result result;
    size_t of_branch[3] = {0};
    uint64_t next_id = 100;

    for (uint64_t job_id = 1; job_id <= 6; job_id++) {
        submit(job_id, 1 + job_id % 2);
    }
    submit(next_id++, 0);
    for (size_t round = 0; round < 18; round++) {
        size_t count = 0;

        ck_assert_int_eq(uc_worker_get_finished(tree.worker, &result, 1, &count), UC_OK);
        ck_assert_uint_eq(count, 1);
        if (result.job_id < 100) {
            of_branch[1 + result.job_id % 2]++;
        } else {
            of_branch[0]++;
            submit(next_id++, 0);
        }
    }
    ck_assert_uint_eq(of_branch[1], 3);
    ck_assert_uint_eq(of_branch[2], 3);
    ck_assert_uint_eq(of_branch[0], 12);
}
END_TEST

/* A branch whose collection fails does not keep the others' events back. */
START_TEST(failing_branch_keeps_no_events_back)
{
    struct uc_io_result results[4];
    size_t count = 77;

    submit(1, 1);
    tree.stores[0]->answers[UC_FAKE_GET_FINISHED] = UC_ERR_OS_API;
    ck_assert_int_eq(uc_worker_get_finished(tree.worker, results, 4, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    count = 77;
    ck_assert_int_eq(uc_worker_get_finished(tree.worker, results, 4, &count), UC_ERR_OS_API);
    ck_assert_uint_eq(count, 77);
    tree.stores[0]->answers[UC_FAKE_GET_FINISHED] = UC_OK;
}
END_TEST

/* V-45: order of the argument, once each, unknown ids left out. */
START_TEST(wait_answers_in_the_order_of_its_argument)
{
    static const uint64_t ids[] = {6, 4, 99, 5, 4, 1, 3, 2, 6};
    static const uint64_t want[] = {6, 4, 5, 1, 3, 2};
    struct uc_io_result results[7];
    size_t count = 0;

    for (uint64_t job_id = 1; job_id <= 6; job_id++) {
        submit(job_id, job_id % 3);
    }
    ck_assert_int_eq(
            uc_worker_wait(tree.worker, ids, 9, -1, results, 6, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 9, -1, results, 7, &count), UC_OK);
    ck_assert_uint_eq(count, 6);
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_uint_eq(results[idx].job_id, want[idx]);
        ck_assert(results[idx].success);
    }
    uc_io_results_release(results, count);
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 9, -1, results, 7, &count), UC_OK);
    ck_assert_uint_eq(count, 0); /* consumed */
    ck_assert_int_eq(uc_worker_wait(tree.worker, NULL, 0, -1, results, 7, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
}
END_TEST

/* events that are ready are delivered, whichever branch hangs. */
START_TEST(timeout_delivers_what_is_ready)
{
    static const uint64_t ids[] = {1, 2, 3};
    struct uc_io_result results[3];
    size_t count = 77;
    size_t hanging = (size_t)_i;

    hold_events(true);
    for (size_t idx = 0; idx < 3; idx++) {
        submit(ids[idx], idx);
        if (idx != hanging) {
            uc_fake_store_finish(tree.stores[idx], ids[idx], UC_OK);
        }
    }
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 3, 0, results, 3, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 2);
    for (size_t idx = 0; idx < 2; idx++) {
        ck_assert_uint_eq(results[idx].job_id, ids[idx < hanging ? idx : idx + 1]);
    }
    uc_io_results_release(results, count);
    uc_fake_store_finish(tree.stores[hanging], ids[hanging], UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 3, 0, results, 3, &count), UC_OK);
    ck_assert_uint_eq(count, 1); /* the others were consumed */
    ck_assert_uint_eq(results[0].job_id, ids[hanging]);
    ck_assert_int_eq(results[0].code, UC_ERR_NOT_FOUND);
    uc_io_results_release(results, count);
}
END_TEST

/* what one branch used of the time is gone for the next. */
START_TEST(one_deadline_covers_all_branches)
{
    static const uint64_t ids[] = {1, 2, 3};
    struct uc_io_result results[3];
    size_t count = 77;

    hold_events(true);
    for (size_t idx = 0; idx < 3; idx++) {
        submit(ids[idx], idx);
    }
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 3, 20, results, 3, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_gt(tree.stores[0]->data.wait_timeout_ms, 0);
    ck_assert_int_le(tree.stores[0]->data.wait_timeout_ms, 20);
    ck_assert_int_eq(tree.stores[1]->data.wait_timeout_ms, 0);
    ck_assert_int_eq(tree.stores[2]->data.wait_timeout_ms, 0);
    for (size_t idx = 0; idx < 3; idx++) {
        uc_fake_store_finish(tree.stores[idx], ids[idx], UC_OK);
    }
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 3, -1, results, 3, &count), UC_OK);
    ck_assert_int_eq(tree.stores[1]->data.wait_timeout_ms, -1);
    uc_io_results_release(results, count);
}
END_TEST

/* A branch that cannot wait: consumed events are delivered, the rest stays pending. */
START_TEST(failing_branch_loses_no_events)
{
    static const uint64_t ids[] = {1, 2};
    struct uc_io_result results[2];
    size_t count = 77;

    submit(1, 0);
    submit(2, 1);
    tree.stores[1]->answers[UC_FAKE_WAIT] = UC_ERR_OS_API;
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 2, -1, results, 2, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(results[0].job_id, 1);
    count = 77;
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 2, -1, results, 2, &count), UC_ERR_OS_API);
    ck_assert_uint_eq(count, 77);
    tree.stores[1]->answers[UC_FAKE_WAIT] = UC_OK;
    ck_assert_int_eq(uc_worker_wait(tree.worker, ids, 2, -1, results, 2, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(results[0].job_id, 2);
}
END_TEST

static bool
is_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    return poll(&poller, 1, 0) == 1;
}

/* level triggered, over all branches; synthetic events of an entry as well. */
START_TEST(event_descriptor_covers_all_branches)
{
    struct uc_io_result result;
    size_t count = 0;
    int fd = uc_worker_event_fd(tree.worker);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(uc_worker_event_fd(tree.worker), fd);
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert(!is_readable(fd));
        if (idx < 3) {
            submit(idx + 1, idx);
        } else {
            ck_assert_int_eq(uc_worker_submit_prefetch(tree.worker, 9, tokens[1]), UC_OK);
        }
        ck_assert(is_readable(fd));
        ck_assert(is_readable(fd));
        ck_assert_int_eq(uc_worker_get_finished(tree.worker, &result, 1, &count), UC_OK);
        ck_assert_uint_eq(count, 1);
    }
    ck_assert(!is_readable(fd));
}
END_TEST

/* A descriptor that missed a branch would make its users sleep through events. */
START_TEST(no_event_descriptor_if_a_branch_has_none)
{
    tree.stores[2]->no_event_fd = true;
    ck_assert_int_eq(uc_worker_event_fd(tree.worker), -1);
    tree.stores[2]->no_event_fd = false;
    ck_assert_int_ge(uc_worker_event_fd(tree.worker), 0);
}
END_TEST

#ifndef NDEBUG
/* undefined, and a debug build says so at once. */
START_TEST(destroying_with_jobs_in_flight_asserts)
{
    hold_events(true);
    submit(1, 1);
    uc_assembler_destroy(tree.assembler);
}
END_TEST
#endif

static uint8_t region[64];

static enum uc_status
register_region(uint32_t *region_idx_out)
{
    return uc_worker_register_memory(
            tree.worker, region, sizeof(region), UC_MEMORY_HOST, region_idx_out);
}

/* V-56, G1, G16, R-2.27, R-9.24: a peer of a pipe and a store. */
START_TEST(refused_region_is_unknown_everywhere)
{
    uint32_t region_idx = 9;

    tree_reset();
    tree_start("{type: peer, branches: [{type: pipe, stores: [{store: fake}, {store: fake}]}, "
               "{type: store, store: fake}], routing: {strategy: ttl, config: {thresholds: [1]}}}");
    ck_assert_int_eq(register_region(&region_idx), UC_OK);
    ck_assert_uint_eq(region_idx, 0);
    tree.stores[2]->answers[UC_FAKE_REGISTER_MEMORY] = UC_ERR_UNSUPPORTED;
    ck_assert_int_eq(register_region(&region_idx), UC_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(uc_last_error(), "branch 1: ") != NULL, "%s", uc_last_error());
    ck_assert_uint_eq(region_idx, 0);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_uint_eq(tree.stores[idx]->data.region_idx, 1);
        ck_assert_uint_eq(tree.stores[idx]->calls[UC_FAKE_DEREGISTER_MEMORY], idx < 2);
    }
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 1), UC_ERR_NOT_FOUND);
    tree.stores[2]->answers[UC_FAKE_REGISTER_MEMORY] = UC_OK;
    ck_assert_int_eq(register_region(&region_idx), UC_OK);
    ck_assert_uint_eq(region_idx, 2);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_uint_eq(tree.stores[idx]->data.region_idx, 2);
    }
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 0), UC_OK);
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, 2), UC_OK);
    tree_stop();
}
END_TEST

/* */
START_TEST(region_in_use_stays_with_all_branches)
{
    uint32_t region_idx = 9;

    ck_assert_int_eq(register_region(&region_idx), UC_OK);
    tree.stores[1]->answers[UC_FAKE_DEREGISTER_MEMORY] = UC_ERR_RETRY;
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, region_idx), UC_ERR_RETRY);
    ck_assert_uint_eq(tree.stores[0]->calls[UC_FAKE_REGISTER_MEMORY], 2);
    ck_assert_uint_eq(tree.stores[2]->calls[UC_FAKE_DEREGISTER_MEMORY], 0);
    tree.stores[1]->answers[UC_FAKE_DEREGISTER_MEMORY] = UC_OK;
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, region_idx), UC_OK);
    ck_assert_int_eq(uc_worker_deregister_memory(tree.worker, region_idx), UC_ERR_NOT_FOUND);
}
END_TEST

enum {
    THREAD_ROUNDS = 3000
};

/* The data thread of a case, beside the control thread that runs the case. */
static void *
transfer_blocks(void *unused)
{
    struct uc_io_result results[8];
    size_t count = 0;

    (void)unused;
    for (uint64_t job_id = 1; job_id <= THREAD_ROUNDS; job_id++) {
        if (tree_submit_get(job_id, tokens[job_id % 3]) != UC_OK ||
                uc_worker_wait(tree.worker, &job_id, 1, -1, results, 1, &count) != UC_OK ||
                count != 1) {
            return (void *)"a transfer failed";
        }
        uc_io_results_release(results, count);
    }

    return NULL;
}

/* one control and one data thread in parallel. */
START_TEST(control_and_data_threads_run_in_parallel)
{
    static const int64_t ttls[] = {5000, 1500, -1};
    void *failure = NULL;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, transfer_blocks, NULL), 0);
    for (size_t round = 0; round < THREAD_ROUNDS; round++) {
        uint8_t hits[2];
        bool signal = false;

        tree_register("r", ttls[round % 3]);
        ck_assert_int_eq(
                uc_scheduler_lookup(tree.scheduler, "r", tree_keys, 2, hits, &signal), UC_OK);
        uc_token_destroy(tree_put_token("r", 2));
        ck_assert_int_eq(uc_scheduler_complete_put(tree.scheduler, "r", true), UC_OK);
        ck_assert_int_eq(uc_scheduler_on_request_finished(tree.scheduler, "r"), UC_OK);
    }
    ck_assert_int_eq(pthread_join(thread, &failure), 0);
    ck_assert_msg(failure == NULL, "%s", (const char *)failure);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("peer_jobs");
    TCase *tcase = tcase_create("three branches");
    TCase *other = tcase_create("others");

    tcase_add_checked_fixture(tcase, start_three, stop_three);
    tcase_add_test(tcase, submits_reach_the_branch_of_the_frame);
    tcase_add_loop_test(tcase, foreign_tokens_are_not_dispatched, 0, 5);
    tcase_add_test(tcase, job_ids_are_unique_across_branches);
    tcase_add_test(tcase, refused_jobs_free_their_id);
    tcase_add_test(tcase, finished_events_are_merged);
    tcase_add_test(tcase, busy_branch_starves_none);
    tcase_add_test(tcase, failing_branch_keeps_no_events_back);
    tcase_add_test(tcase, wait_answers_in_the_order_of_its_argument);
    tcase_add_loop_test(tcase, timeout_delivers_what_is_ready, 0, 3);
    tcase_add_test(tcase, one_deadline_covers_all_branches);
    tcase_add_test(tcase, failing_branch_loses_no_events);
    tcase_add_test(tcase, event_descriptor_covers_all_branches);
    tcase_add_test(tcase, no_event_descriptor_if_a_branch_has_none);
    tcase_add_test(tcase, region_in_use_stays_with_all_branches);
    tcase_add_test(tcase, control_and_data_threads_run_in_parallel);
#ifndef NDEBUG
    if (getenv("CK_FORK") == NULL) { /* the signal ends the process of the case */
        tcase_add_test_raise_signal(tcase, destroying_with_jobs_in_flight_asserts, SIGABRT);
    }
#endif
    tcase_add_test(other, refused_region_is_unknown_everywhere);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, other);
    return tree_run(suite);
}
