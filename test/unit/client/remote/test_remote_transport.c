/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The remote store over a transport with faults on command, against a real server: whatever fails, in
 * whatever state of a job, it ends once, in time, and nothing touches its buffers afterwards.
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/log.h>

#include "client/stores/remote/store.h"
#include "test/fake/fault_fabric.h"
#include "test/unit/client/remote/remote_env.h"

enum {
    COUNT = 8,        /* blocks of a job */
    DUMPED = 100,     /* first key of a dump */
    SHORT_MS = 200,   /* a deadline that is to pass */
    QUIET_BYTE = 0xa5 /* what buffers hold that nothing may touch */
};

static struct env_server server;
static struct uc_store *store;
static const struct uc_token_addressed_ops *ops;
static uint8_t *memory;
static struct uc_block_id keys[COUNT];
static struct uc_token *token;
static struct env_job job;
static struct env_job marker; /* job 2, where there is one */
static struct uc_token *marker_token;
static uint8_t *marker_memory;

static void
setup(void)
{
    struct uc_dict *config;

    uc_fault_fabric_use("tcp", "tcp", false);
    server = env_server_start(0, NULL);
    config = env_config(&server, "both");
    /* No job may have to wait for it. */
    ck_assert_int_eq(uc_dict_set_string(config, "rpc_timeout", "60s"), UC_OK);
    store = uc_remote_store_create();
    ck_assert_msg(uc_store_setup(store, config) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
    ops = uc_store_as_token_addressed(store);
    memory = calloc(COUNT, BLOCK_BYTES);
    marker_memory = calloc(1, BLOCK_BYTES);
    token = NULL;
    marker_token = NULL;
}

static void
teardown(void)
{
    struct uc_fault_counts counts;

    uc_token_destroy(token);
    uc_token_destroy(marker_token);
    env_store_destroy(store);
    env_server_stop(&server, SIGKILL);
    free(memory);
    free(marker_memory);
    counts = uc_fault_counts();
    ck_assert_uint_eq(counts.in_flight, 0);
    ck_assert_uint_eq(counts.posted, counts.completed);
    ck_assert_uint_eq(counts.endpoints, 0);
    ck_assert_uint_eq(counts.registrations, 0);
    uc_fault_reset();
}

/* A job of COUNT blocks from key first on, with its token; submitted by submit(). */
static void
prepare(bool is_dump, uint32_t first, uint64_t timeout_ms)
{
    for (uint32_t idx = 0; idx < COUNT; idx++) {
        keys[idx] = env_key(first + idx);
        env_fill(memory + (size_t)idx * BLOCK_BYTES, BLOCK_BYTES, is_dump ? first + idx : 0);
    }
    if (is_dump) {
        ck_assert_msg(ops->alloc(store, keys, COUNT, NULL, &token) == UC_OK, "%s", uc_last_error());
    } else {
        ck_assert_msg(ops->pin(store, keys, COUNT, &token) == UC_OK, "%s", uc_last_error());
    }
    env_job_init(&job, keys, COUNT, memory, 0, BLOCK_BYTES);
    job.descriptor.timeout_ms = timeout_ms;
}

static void
submit(bool is_dump, uint64_t job_id)
{
    ck_assert_int_eq(is_dump ? ops->dump(store, job_id, &job.descriptor, token, 0)
                             : ops->load(store, job_id, &job.descriptor, token, 0),
            UC_OK);
}

static void
assert_memory_is(uint32_t first)
{
    uint8_t *expected = malloc(BLOCK_BYTES);

    for (uint32_t idx = 0; idx < COUNT; idx++) {
        env_fill(expected, BLOCK_BYTES, first + idx);
        ck_assert_mem_eq(memory + (size_t)idx * BLOCK_BYTES, expected, BLOCK_BYTES);
    }
    free(expected);
}

/* The engine has its buffers back: whatever it puts there stays. */
static void
take_buffers_back(void)
{
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    memset(memory, QUIET_BYTE, (size_t)COUNT * BLOCK_BYTES);
}

static void
assert_buffers_quiet(void)
{
    size_t at = 0;

    while (at < (size_t)COUNT * BLOCK_BYTES && memory[at] == QUIET_BYTE) {
        at++;
    }
    ck_assert_uint_eq(at, (size_t)COUNT * BLOCK_BYTES);
}

/* The store and the server go on: what was put before is there, and a dump that failed left nothing. */
static void
assert_usable(void)
{
    env_wait_health(store, UC_OK);
    ck_assert_int_eq(env_get(store, 1, COUNT), UC_OK);
    env_put(store, DUMPED + COUNT, COUNT);
    ck_assert_int_eq(env_get(store, DUMPED + COUNT, COUNT), UC_OK);
}

/*
 * Conclude the token of a dump that ended so: a commit shows what is complete and nothing else. Where the answer
 * to write_end was lost, all had been written, so that both verdicts are right.
 */
static void
conclude_dump(enum uc_status code, bool may_be_complete)
{
    enum uc_status status = ops->commit(store, token, NULL, true);

    if (code == UC_OK || (may_be_complete && status == UC_OK)) {
        ck_assert_int_eq(status, UC_OK);
        ck_assert_int_eq(env_get(store, DUMPED, COUNT), UC_OK);
    } else {
        ck_assert_int_ne(status, UC_OK);
        ck_assert(!env_has(store, DUMPED));
        env_put(store, DUMPED, COUNT); /* the slots are free again, for the same blocks too */
        ck_assert_int_eq(env_get(store, DUMPED, COUNT), UC_OK);
    }
}

/* P4, R-5.23, R-5.24: a load whose completions are late ends as Timeout, but not before its READs are over. */
START_TEST(late_reads_end_a_load_as_timeout_after_the_fence)
{
    enum uc_fault_point point = _i == 0 ? UC_FAULT_BEFORE : UC_FAULT_AFTER;

    env_put(store, 1, COUNT);
    prepare(false, 1, SHORT_MS);
    uc_fault_hold(UC_FAULT_READS, point, UINT32_MAX);
    submit(false, 1);
    uc_fault_wait_held(1);
    env_expect(store, 1, UC_ERR_TIMEOUT);
    take_buffers_back();
    ck_assert_uint_ge(uc_fault_counts().fences, 1);
    uc_fault_release(false);
    ops->unpin(store, token);
    assert_usable();
    assert_buffers_quiet();
}
END_TEST

/* P3: a dump likewise; its slots are not reused under a write, and its blocks stay invisible. */
START_TEST(late_writes_end_a_dump_as_timeout_after_the_fence)
{
    static const struct {
        unsigned opcodes;
        enum uc_fault_point point;
    } rows[] = {
            {UC_FAULT_WRITES, UC_FAULT_BEFORE}, /* nothing moves */
            {UC_FAULT_WRITES, UC_FAULT_AFTER},  /* all of it moves, and nobody hears of it */
            {UC_FAULT_FLUSHES, UC_FAULT_BEFORE},
            {UC_FAULT_FLUSHES, UC_FAULT_AFTER},
    };

    env_put(store, 1, COUNT);
    prepare(true, DUMPED, SHORT_MS);
    uc_fault_hold(rows[_i].opcodes, rows[_i].point, UINT32_MAX);
    submit(true, 1);
    uc_fault_wait_held(1);
    env_expect(store, 1, UC_ERR_TIMEOUT);
    take_buffers_back();
    ck_assert_uint_ge(uc_fault_counts().fences, 1);
    uc_fault_release(false);
    env_wait_health(store, UC_OK);
    conclude_dump(UC_ERR_TIMEOUT, false);
    assert_usable();
    assert_buffers_quiet();
}
END_TEST

/* Completions in any order: the bytes are right, and the event is one (G4). */
START_TEST(completions_in_reverse_order_end_the_job_all_the_same)
{
    bool is_dump = _i == 1;

    env_put(store, 1, COUNT);
    prepare(is_dump, is_dump ? DUMPED : 1, 0);
    uc_fault_hold(UC_FAULT_ALL, UC_FAULT_AFTER, UINT32_MAX);
    submit(is_dump, 1);
    uc_fault_wait_held(is_dump ? 2 * COUNT + 1 : COUNT);
    uc_fault_release(true);
    env_expect(store, 1, UC_OK);
    if (is_dump) {
        conclude_dump(UC_OK, false);
    } else {
        assert_memory_is(1);
        ops->unpin(store, token);
    }
    assert_usable();
}
END_TEST

/* A job whose completions wait does not hold up another one on the same endpoint (G4). */
START_TEST(held_completions_delay_their_own_job_only)
{
    struct uc_io_result result;
    uint64_t job_id = 1;
    size_t count = 1;

    env_put(store, 1, COUNT);
    prepare(false, 1, 0);
    uc_fault_hold(UC_FAULT_READS, UC_FAULT_AFTER, COUNT);
    submit(false, 1);
    uc_fault_wait_held(COUNT);
    ck_assert_int_eq(env_get(store, 1, COUNT), UC_OK);
    ck_assert_int_eq(uc_store_wait(store, &job_id, 1, 0, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0);
    uc_fault_release(false);
    env_expect(store, 1, UC_OK);
    assert_memory_is(1);
    ops->unpin(store, token);
}
END_TEST

/* A list that is refused as a whole is posted one by one. */
START_TEST(post_that_fails_once_costs_nothing)
{
    env_put(store, 1, COUNT);
    uc_fault_fail_posts(1, UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(env_get(store, 1, COUNT), UC_OK);
    uc_fault_fail_posts(1, UC_ERR_INVALID_PARAM);
    env_put(store, DUMPED, COUNT);
    assert_usable();
}
END_TEST

/* what cannot be posted fails with the transport's reason; the bracket is closed. */
START_TEST(posts_that_fail_end_the_job_with_their_status)
{
    bool is_dump = _i == 1;

    env_put(store, 1, COUNT);
    prepare(is_dump, is_dump ? DUMPED : 1, 0);
    uc_fault_fail_posts(UINT32_MAX, UC_ERR_INVALID_PARAM);
    submit(is_dump, 1);
    env_expect(store, 1, UC_ERR_INVALID_PARAM);
    take_buffers_back();
    uc_fault_fail_posts(0, UC_OK);
    if (is_dump) {
        conclude_dump(UC_ERR_INVALID_PARAM, false);
    } else {
        ops->unpin(store, token);
    }
    assert_usable();
    assert_buffers_quiet();
}
END_TEST

/* an operation that fails takes its own block along and no other. */
START_TEST(operation_that_fails_costs_its_own_block)
{
    struct uc_io_result result;

    env_put(store, 1, COUNT);
    prepare(false, 1, 0);
    uc_fault_fail_operations(UC_FAULT_READS, 1, UC_ERR_NOT_FOUND);
    submit(false, 1);
    result = env_wait(store, 1);
    ck_assert_int_eq(result.code, UC_ERR_NOT_FOUND);
    ck_assert(!uc_io_result_block_ok(&result, 0));
    for (size_t idx = 1; idx < COUNT; idx++) {
        ck_assert(uc_io_result_block_ok(&result, idx));
    }
    uc_io_results_release(&result, 1);
    ops->unpin(store, token);
    assert_usable();
}
END_TEST

/* G14, R-2.30: a byte that changed on the way is a miss; the server looks and keeps its block. */
START_TEST(byte_that_changes_on_the_way_is_a_miss_and_no_reason_to_drop_the_block)
{
    env_put(store, 1, COUNT);
    uc_fault_corrupt_reads(1);
    ck_assert_int_eq(env_get(store, 1, COUNT), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(env_get(store, 1, COUNT), UC_OK);
}
END_TEST

/* The connection breaks after _i completions of a load, then of a dump. */
START_TEST(connection_that_breaks_in_the_middle_ends_the_job)
{
    bool is_dump = _i >= 4;
    struct uc_io_result result;

    env_put(store, 1, COUNT);
    prepare(is_dump, is_dump ? DUMPED : 1, 0);
    uc_fault_hold(is_dump ? UC_FAULT_FLUSHES : UC_FAULT_READS, UC_FAULT_AFTER, 1);
    uc_fault_cut_after((unsigned)(_i % 4) + 1);
    submit(is_dump, 1);
    result = env_wait(store, 1);
    ck_assert_int_eq(result.code, UC_ERR_UNHEALTHY);
    uc_io_results_release(&result, 1);
    take_buffers_back();
    env_wait_health(store, UC_OK);
    if (is_dump) {
        conclude_dump(UC_ERR_UNHEALTHY, false);
    } else {
        ops->unpin(store, token);
    }
    assert_usable();
    assert_buffers_quiet();
}
END_TEST

/* Connects that fail: jobs fail at once, and later ones work. */
START_TEST(refused_connects_fail_jobs_until_one_succeeds)
{
    struct uc_store *worker = env_store(&server, "worker");

    env_put(store, 1, COUNT);
    prepare(false, 1, 0);
    uc_fault_fail_connects(
            2, _i == 0 ? UC_FAULT_CONNECT_REFUSED : UC_FAULT_CONNECT_ERROR, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops->load(worker, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(worker, 1, UC_ERR_UNHEALTHY);
    env_wait_health(worker, UC_OK);
    ck_assert_int_eq(ops->load(worker, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(worker, 1, UC_OK);
    assert_memory_is(1);
    ops->unpin(store, token);
    env_store_destroy(worker);
}
END_TEST

/* States of a job in which something happens. */
enum state {
    LOAD_WAITING,
    LOAD_MOVING,
    LOAD_REPORTING,
    DUMP_WAITING,
    DUMP_BEGINNING,
    DUMP_MOVING,
    DUMP_ENDING,
    STATE_COUNT,
};

/* Jobs are taken in order: a READ of this load, held, shows that the dump before it waits for its answer. */
static void
begin_dump(void)
{
    struct uc_block_id key = env_key(1);

    ck_assert_int_eq(ops->pin(store, &key, 1, &marker_token), UC_OK);
    env_job_init(&marker, &key, 1, marker_memory, 0, BLOCK_BYTES);
    uc_fault_hold(UC_FAULT_READS, UC_FAULT_BEFORE, 1);
    env_server_freeze(&server);
    submit(true, 1);
    ck_assert_int_eq(ops->load(store, 2, &marker.descriptor, marker_token, 0), UC_OK);
    uc_fault_wait_held(1);
}

static void
end_marker(void)
{
    if (marker_token != NULL) {
        env_expect(store, 2, UC_ERR_UNHEALTHY);
        ops->unpin(store, marker_token);
        uc_token_destroy(marker_token);
        marker_token = NULL;
    }
}

/* Submit job 1 and bring it there. The server is frozen where its answer would lead out of the state. */
static void
reach(enum state state, uint64_t timeout_ms)
{
    bool is_dump = state >= DUMP_WAITING;

    if (state != LOAD_WAITING && state != DUMP_WAITING) {
        env_put(store, 1, COUNT); /* attaches, too */
    } else {
        struct uc_store *other = env_store(&server, "both");

        env_put(other, 1, COUNT);
        env_store_destroy(other);
        uc_fault_fail_connects(1, UC_FAULT_CONNECT_SILENT, UC_OK);
    }
    prepare(is_dump, is_dump ? DUMPED : 1, timeout_ms);
    switch (state) {
    case LOAD_WAITING:
    case DUMP_WAITING: {
        unsigned connects = uc_fault_counts().connects;

        submit(is_dump, 1);
        uc_fault_wait_connects(connects + 1);
        break;
    }
    case DUMP_BEGINNING:
        begin_dump();
        break;
    case LOAD_MOVING:
    case DUMP_MOVING:
        uc_fault_hold(UC_FAULT_ALL, UC_FAULT_BEFORE, UINT32_MAX);
        submit(is_dump, 1);
        uc_fault_wait_held(1);
        env_server_freeze(&server);
        break;
    case LOAD_REPORTING:
        uc_fault_corrupt_reads(1);
        uc_fault_hold(UC_FAULT_READS, UC_FAULT_AFTER, COUNT);
        submit(is_dump, 1);
        uc_fault_wait_held(COUNT);
        env_server_freeze(&server);
        uc_fault_release(false);
        uc_fault_wait_idle();
        break;
    case DUMP_ENDING:
        uc_fault_hold(UC_FAULT_FLUSHES, UC_FAULT_AFTER, 1);
        submit(is_dump, 1);
        uc_fault_wait_held(1);
        env_server_freeze(&server);
        uc_fault_release(false);
        uc_fault_wait_idle();
        break;
    case STATE_COUNT:
        break;
    }
}

/* Job 1 has ended so: give everything back and go on. */
static void
conclude(enum state state, enum uc_status code)
{
    bool is_dump = state >= DUMP_WAITING;

    end_marker();
    take_buffers_back();
    uc_fault_release(false);
    if (code == UC_ERR_TIMEOUT && (state == LOAD_WAITING || state == DUMP_WAITING)) {
        unsigned connects = uc_fault_counts().connects;

        uc_fault_cut(); /* no transport is silent for ever */
        uc_fault_wait_connects(connects + 1);
    }
    env_wait_health(store, UC_OK);
    if (is_dump) {
        conclude_dump(code, state == DUMP_ENDING);
    } else {
        ops->unpin(store, token);
    }
    assert_usable();
    assert_buffers_quiet();
}

/* The transport breaks; the server answers what it is asked. G4, G15, R-5.24 */
START_TEST(cut_in_every_state_ends_the_job)
{
    static const enum uc_status codes[STATE_COUNT] = {
            [LOAD_WAITING] = UC_ERR_UNHEALTHY,
            [LOAD_MOVING] = UC_ERR_UNHEALTHY,
            [LOAD_REPORTING] = UC_ERR_NOT_FOUND, /* the transport is not needed any more */
            [DUMP_WAITING] = UC_ERR_UNHEALTHY,
            [DUMP_BEGINNING] = UC_ERR_UNHEALTHY,
            [DUMP_MOVING] = UC_ERR_UNHEALTHY,
            [DUMP_ENDING] = UC_OK, /* likewise */
    };
    enum state state = (enum state)_i;

    reach(state, 0);
    uc_fault_cut();
    env_server_thaw(&server);
    env_expect(store, 1, codes[state]);
    conclude(state, codes[state]);
}
END_TEST

/* A server that is stopped: the deadline ends the job, whatever it waits for (R-5.23, R-5.24, V-46). */
START_TEST(deadline_in_every_state_ends_the_job_as_timeout)
{
    enum state state = (enum state)_i;
    /* The one whose blocks had failed already says why they did. */
    enum uc_status code = state == LOAD_REPORTING ? UC_ERR_NOT_FOUND : UC_ERR_TIMEOUT;

    reach(state, SHORT_MS);
    env_expect(store, 1, code);
    end_marker();
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    env_server_thaw(&server);
    conclude(state, code);
}
END_TEST

/* The server dies: what it was asked for is lost, and told at once (G4, R-5.31). */
START_TEST(killed_server_in_every_state_ends_the_job)
{
    enum state state = (enum state)_i;

    reach(state, 0);
    env_server_stop(&server, SIGKILL);
    env_expect(store, 1, state == LOAD_REPORTING ? UC_ERR_NOT_FOUND : UC_ERR_UNHEALTHY);
    end_marker();
    take_buffers_back();
    if (state >= DUMP_WAITING) {
        ck_assert_int_ne(ops->commit(store, token, NULL, true), UC_OK);
    } else {
        ops->unpin(store, token);
    }
    env_wait_health(store, UC_ERR_UNHEALTHY);
    assert_buffers_quiet();
}
END_TEST

/* asks for drained jobs; a store that is destroyed all the same fences what is under way. */
START_TEST(destroyed_store_leaves_buffers_quiet_in_every_state)
{
    enum state state = (enum state)_i;

    reach(state, 0);
    env_store_destroy(store);
    take_buffers_back();
    uc_fault_release(false);
    env_server_thaw(&server);
    store = env_store(&server, "both");
    ck_assert_int_eq(env_get(store, 1, COUNT), UC_OK);
    assert_buffers_quiet();
}
END_TEST

static TCase *
add_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("remote_transport");
    TCase *operations = add_case(suite, "operations");
    TCase *order = add_case(suite, "order");
    TCase *states = add_case(suite, "states");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(operations, late_reads_end_a_load_as_timeout_after_the_fence, 0, 2);
    tcase_add_loop_test(operations, late_writes_end_a_dump_as_timeout_after_the_fence, 0, 4);
    tcase_add_loop_test(order, completions_in_reverse_order_end_the_job_all_the_same, 0, 2);
    tcase_add_test(order, held_completions_delay_their_own_job_only);
    tcase_add_test(operations, post_that_fails_once_costs_nothing);
    tcase_add_loop_test(operations, posts_that_fail_end_the_job_with_their_status, 0, 2);
    tcase_add_test(operations, operation_that_fails_costs_its_own_block);
    tcase_add_test(
            operations, byte_that_changes_on_the_way_is_a_miss_and_no_reason_to_drop_the_block);
    tcase_add_loop_test(operations, connection_that_breaks_in_the_middle_ends_the_job, 0, 8);
    tcase_add_loop_test(operations, refused_connects_fail_jobs_until_one_succeeds, 0, 2);
    tcase_add_loop_test(states, cut_in_every_state_ends_the_job, 0, STATE_COUNT);
    tcase_add_loop_test(states, deadline_in_every_state_ends_the_job_as_timeout, 0, STATE_COUNT);
    tcase_add_loop_test(states, killed_server_in_every_state_ends_the_job, 0, STATE_COUNT);
    tcase_add_loop_test(
            states, destroyed_store_leaves_buffers_quiet_in_every_state, 0, STATE_COUNT);

    uc_log_set_level(UC_LOG_ERROR); /* every case breaks something */
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
