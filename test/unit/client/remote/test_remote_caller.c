/* SPDX-License-Identifier: Apache-2.0 */

/* The remote store without a thread of its own: `progress: caller`; and where the thread may run. */

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/clock.h>

#include "client/stores/remote/store.h"
#include "test/fake/fault_fabric.h"
#include "test/unit/client/remote/remote_env.h"

enum {
    COUNT = 8,
    SHORT_MS = 200,
    LONG_MS = 20000,
    LEASE_PASSED_MS = 2500, /* with a lease of a second */
};

static struct env_server server;
static struct uc_store *scheduler;
static struct uc_store *worker;
static const struct uc_token_addressed_ops *ops;
static uint8_t *memory;
static struct uc_block_id keys[COUNT];
static struct uc_token *token;
static struct env_job job;

static enum uc_status
make_worker(const char *progress, int64_t cpu, struct uc_store **store_out)
{
    struct uc_dict *config = env_config(&server, "worker");
    struct uc_store *store = uc_remote_store_create();
    enum uc_status status;

    ck_assert_int_eq(uc_dict_set_string(config, "progress", progress), UC_OK);
    if (cpu >= -1) {
        ck_assert_int_eq(uc_dict_set_int(config, "progress_cpu", cpu), UC_OK);
    }
    status = uc_store_setup(store, config);
    uc_dict_destroy(config);
    *store_out = store;
    return status;
}

static void
setup(void)
{
    uc_fault_fabric_use("tcp", "tcp", false);
    server = env_server_start(0, NULL);
    scheduler = env_store(&server, "scheduler");
    ck_assert_msg(make_worker("caller", -2, &worker) == UC_OK, "%s", uc_last_error());
    ops = uc_store_as_token_addressed(worker);
    memory = calloc(COUNT, BLOCK_BYTES);
    token = NULL;
}

static void
teardown(void)
{
    uc_token_destroy(token);
    env_store_destroy(worker);
    env_store_destroy(scheduler);
    env_server_stop(&server, SIGKILL);
    free(memory);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    ck_assert_uint_eq(uc_fault_counts().endpoints, 0);
    uc_fault_reset();
}

static void
dump(uint64_t job_id, uint64_t timeout_ms)
{
    for (uint32_t idx = 0; idx < COUNT; idx++) {
        keys[idx] = env_key(1 + idx);
        env_fill(memory + (size_t)idx * BLOCK_BYTES, BLOCK_BYTES, 1 + idx);
    }
    ck_assert_msg(uc_store_as_token_addressed(scheduler)->alloc(
                          scheduler, keys, COUNT, NULL, &token) == UC_OK,
            "%s", uc_last_error());
    env_job_init(&job, keys, COUNT, memory, 0, BLOCK_BYTES);
    job.descriptor.timeout_ms = timeout_ms;
    ck_assert_int_eq(ops->dump(worker, job_id, &job.descriptor, token, 0), UC_OK);
}

static uint64_t
now_ms(void)
{
    struct uc_clock clock = uc_clock_monotonic();

    return uc_clock_now_ms(&clock);
}

static size_t
count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    size_t count = 0;

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

START_TEST(worker_has_no_thread)
{
    size_t before = count_threads();
    struct uc_store *other = NULL;

    ck_assert_int_eq(make_worker("caller", -2, &other), UC_OK);
    ck_assert_uint_eq(count_threads(), before);
    env_store_destroy(other);
    ck_assert_int_eq(make_worker("thread", -2, &other), UC_OK);
    ck_assert_uint_eq(count_threads(), before + 1);
    env_store_destroy(other);
}
END_TEST

/* whoever sleeps on the descriptor alone sees the job through. */
START_TEST(event_fd_wakes_up_for_everything_there_is_to_do)
{
    int event_fd = uc_store_event_fd(worker);
    struct uc_io_result result;
    size_t count = 0;

    ck_assert_int_ge(event_fd, 0);
    dump(1, 0);
    while (count == 0) {
        struct pollfd poll_fd = {.fd = event_fd, .events = POLLIN};

        ck_assert_int_eq(poll(&poll_fd, 1, LONG_MS), 1);
        ck_assert_int_eq(uc_store_get_finished(worker, &result, 1, &count), UC_OK);
    }
    ck_assert_int_eq(result.code, UC_OK);
    uc_io_results_release(&result, 1);
    ck_assert_int_eq(
            uc_store_as_token_addressed(scheduler)->commit(scheduler, token, NULL, true), UC_OK);
}
END_TEST

/* level triggered, so an event that was left is told again. */
START_TEST(event_fd_stays_readable_while_an_event_is_left)
{
    struct pollfd poll_fd = {.fd = uc_store_event_fd(worker), .events = POLLIN};
    struct uc_io_result result;
    size_t count = 9;

    dump(1, 0);
    while (uc_store_get_finished(worker, &result, 0, &count) == UC_OK &&
            uc_fault_counts().completed < 2 * COUNT + 1) {
        ck_assert_uint_eq(count, 0);
        ck_assert_int_eq(poll(&poll_fd, 1, LONG_MS), 1);
    }
    env_expect(worker, 1, UC_OK);
    ck_assert_int_eq(ops->dump(worker, 2, &job.descriptor, token, 0), UC_OK);
    for (uint64_t job_id = 3; job_id < 5; job_id++) {
        ck_assert_int_eq(ops->dump(worker, job_id, &job.descriptor, token, 0), UC_OK);
        env_expect(worker, job_id, UC_OK);
    }
    ck_assert_int_eq(poll(&poll_fd, 1, 0), 1); /* job 2 has come with them */
    env_expect(worker, 2, UC_OK);
}
END_TEST

/* time runs out for the wait, not for the job. */
START_TEST(wait_that_runs_out_leaves_the_job_to_the_next_one)
{
    uint64_t job_id = 1;
    struct uc_io_result result;
    size_t count = 9;

    uc_fault_hold(UC_FAULT_WRITES, UC_FAULT_AFTER, UINT32_MAX);
    dump(job_id, 0);
    ck_assert_int_eq(
            uc_store_wait(worker, &job_id, 1, SHORT_MS, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(uc_store_wait(worker, &job_id, 1, 0, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_ge(uc_fault_counts().held, 1);
    uc_fault_release(false);
    env_expect(worker, job_id, UC_OK);
}
END_TEST

/* */
START_TEST(deadline_ends_a_job_after_the_fence)
{
    uc_fault_hold(UC_FAULT_ALL, UC_FAULT_BEFORE, UINT32_MAX);
    dump(1, SHORT_MS);
    env_expect(worker, 1, UC_ERR_TIMEOUT);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    ck_assert_uint_ge(uc_fault_counts().fences, 1);
}
END_TEST

/* G15: nobody drives any more, and nothing is left behind. */
START_TEST(destroyed_store_leaves_nothing_in_flight)
{
    uint64_t job_id = 1;
    struct uc_io_result result;
    size_t count = 9;

    uc_fault_hold(UC_FAULT_ALL, UC_FAULT_BEFORE, UINT32_MAX);
    dump(job_id, 0);
    while (uc_fault_counts().held == 0) {
        ck_assert_int_eq(uc_store_wait(worker, &job_id, 1, 1, &result, 1, &count), UC_ERR_TIMEOUT);
    }
    env_store_destroy(worker);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    ck_assert_int_eq(make_worker("caller", -2, &worker), UC_OK);
}
END_TEST

/* whoever calls too late gets the Timeout then, after the fence. */
START_TEST(deadline_that_passed_unseen_is_noticed_by_the_next_call)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 9;

    uc_fault_hold(UC_FAULT_WRITES, UC_FAULT_BEFORE, UINT32_MAX);
    dump(job_id, SHORT_MS);
    while (uc_fault_counts().held == 0) {
        ck_assert_int_eq(uc_store_wait(worker, &job_id, 1, 1, &result, 1, &count), UC_ERR_TIMEOUT);
    }
    env_pass_time(2 * SHORT_MS);
    ck_assert_uint_ge(uc_fault_counts().in_flight, 1); /* nobody has called */
    env_expect(worker, job_id, UC_ERR_TIMEOUT);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
}
END_TEST

/* a deadline wakes up whoever sleeps on the descriptor alone. */
START_TEST(event_fd_wakes_up_for_a_deadline)
{
    int event_fd = uc_store_event_fd(worker);
    struct uc_io_result result;
    size_t count = 0;

    uc_fault_hold(UC_FAULT_ALL, UC_FAULT_BEFORE, UINT32_MAX);
    dump(1, SHORT_MS);
    while (count == 0) {
        struct pollfd poll_fd = {.fd = event_fd, .events = POLLIN};

        ck_assert_int_eq(poll(&poll_fd, 1, LONG_MS), 1);
        ck_assert_int_eq(uc_store_get_finished(worker, &result, 1, &count), UC_OK);
    }
    ck_assert_int_eq(result.code, UC_ERR_TIMEOUT);
    uc_io_results_release(&result, 1);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
}
END_TEST

/* A server with a lease that is over soon. */
static void
use_short_lease(void)
{
    static const char *const extra[] = {"--lease=1s", NULL};

    env_store_destroy(worker);
    env_store_destroy(scheduler);
    env_server_stop(&server, SIGKILL);
    server = env_server_start(0, extra);
    scheduler = env_store(&server, "scheduler");
    ck_assert_msg(make_worker("caller", -2, &worker) == UC_OK, "%s", uc_last_error());
    ops = uc_store_as_token_addressed(worker);
}

/* a silent worker is fenced by the server; its dump fails, and the next one goes by a new connection. */
START_TEST(worker_that_was_silent_for_a_lease_starts_anew)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 9;

    use_short_lease();
    uc_fault_hold(UC_FAULT_WRITES, UC_FAULT_BEFORE, UINT32_MAX);
    dump(job_id, 0);
    while (uc_fault_counts().held == 0) {
        ck_assert_int_eq(uc_store_wait(worker, &job_id, 1, 1, &result, 1, &count), UC_ERR_TIMEOUT);
    }
    env_pass_time(LEASE_PASSED_MS);
    env_expect(worker, job_id, UC_ERR_UNHEALTHY);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    uc_fault_release(false);

    ck_assert_int_eq(ops->dump(worker, 2, &job.descriptor, token, 0), UC_OK);
    env_expect(worker, 2, UC_OK);
    ck_assert_int_eq(
            uc_store_as_token_addressed(scheduler)->commit(scheduler, token, NULL, true), UC_OK);
}
END_TEST

/* pings are something to do, so a worker without jobs stays as long as the descriptor is looked at. */
START_TEST(event_fd_keeps_an_idle_worker_connected)
{
    int event_fd;
    unsigned connects;

    use_short_lease();
    event_fd = uc_store_event_fd(worker);
    dump(1, 0);
    env_expect(worker, 1, UC_OK);
    connects = uc_fault_counts().connects;
    for (uint64_t end_ms = now_ms() + LEASE_PASSED_MS; now_ms() < end_ms;) {
        struct pollfd poll_fd = {.fd = event_fd, .events = POLLIN};
        struct uc_io_result result;
        size_t count = 9;

        ck_assert_int_eq(poll(&poll_fd, 1, LONG_MS), 1);
        ck_assert_int_eq(uc_store_get_finished(worker, &result, 1, &count), UC_OK);
        ck_assert_uint_eq(count, 0);
    }
    ck_assert_int_eq(ops->dump(worker, 2, &job.descriptor, token, 0), UC_OK);
    env_expect(worker, 2, UC_OK);
    ck_assert_uint_eq(uc_fault_counts().connects, connects);
}
END_TEST

START_TEST(progress_cpu_has_to_be_there)
{
    static const struct {
        const char *progress;
        int64_t cpu;
        const char *text;
    } rows[] = {
            {"thread", CPU_SETSIZE - 1, "progress_cpu: 1023"},
            {"thread", CPU_SETSIZE, "allowed are 0 to 1023"},
            {"thread", -1, "progress_cpu: -1"},
            {"caller", 0, "leave out one of the two"},
    };
    struct uc_store *other = NULL;

    ck_assert_int_eq(make_worker(rows[_i].progress, rows[_i].cpu, &other), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), rows[_i].text) != NULL, "%s", uc_last_error());
    env_store_destroy(other);
}
END_TEST

/* @return how many threads of this process may run on this CPU and no other */
static size_t
count_threads_bound_to(int cpu)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    size_t count = 0;

    ck_assert_ptr_nonnull(folder);
    while ((entry = readdir(folder)) != NULL) {
        pid_t thread_id = (pid_t)strtol(entry->d_name, NULL, 10);
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        if (thread_id > 0 && sched_getaffinity(thread_id, sizeof(cpus), &cpus) == 0) {
            count += CPU_COUNT(&cpus) == 1 && CPU_ISSET((unsigned)cpu, &cpus);
        }
    }
    (void)closedir(folder);
    return count;
}

START_TEST(progress_thread_runs_where_it_is_told)
{
    struct uc_store *other = NULL;
    int cpu = sched_getcpu();
    size_t before = count_threads_bound_to(cpu);

    ck_assert_msg(make_worker("thread", cpu, &other) == UC_OK, "%s", uc_last_error());
    if (before == 0) { /* else the machine has one CPU, or was told to use one */
        ck_assert_uint_eq(count_threads_bound_to(cpu), 1);
    }
    env_store_destroy(other);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_caller");
    TCase *cases = tcase_create("caller");
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, worker_has_no_thread);
    tcase_add_test(cases, event_fd_wakes_up_for_everything_there_is_to_do);
    tcase_add_test(cases, event_fd_stays_readable_while_an_event_is_left);
    tcase_add_test(cases, wait_that_runs_out_leaves_the_job_to_the_next_one);
    tcase_add_test(cases, deadline_ends_a_job_after_the_fence);
    tcase_add_test(cases, deadline_that_passed_unseen_is_noticed_by_the_next_call);
    tcase_add_test(cases, event_fd_wakes_up_for_a_deadline);
    tcase_add_test(cases, worker_that_was_silent_for_a_lease_starts_anew);
    tcase_add_test(cases, event_fd_keeps_an_idle_worker_connected);
    tcase_add_test(cases, destroyed_store_leaves_nothing_in_flight);
    tcase_add_loop_test(cases, progress_cpu_has_to_be_there, 0, 4);
    tcase_add_test(cases, progress_thread_runs_where_it_is_told);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
