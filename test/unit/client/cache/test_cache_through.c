/* SPDX-License-Identifier: Apache-2.0 */

/* Write-through: what is committed here reaches the tier below. */

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "client/stores/cache/segment.h"
#include "test/unit/client/cache/cache_env.h"

static struct uc_store *lower;
static struct uc_store *store;

static void
start_through(struct uc_store *tier)
{
    struct env_options options = {.lower = tier, .write = "through"};

    lower = tier;
    store = env_store(&options);
}

/* Bounded by the clock; the write happens in threads of the store. */
static void
wait_until_written(void)
{
    uint64_t until_ns = uc_clock_now_ns() + (uint64_t)ENV_WAIT_MS * 1000000u;

    while (env_number(store, "write_queued") > 0 && uc_clock_now_ns() < until_ns) {
        (void)sched_yield();
    }
    ck_assert_int_eq(env_number(store, "write_queued"), 0);
    ck_assert_int_eq(env_number(store, "pinned"), 0);
}

/* below: alloc, dump, commit; the pin here lasts until then */
START_TEST(committed_block_reaches_a_tokened_tier)
{
    struct env_options options = {.capacity_blocks = 64};
    uint8_t hit = 9;

    start_through(env_store(&options));
    for (unsigned number = 1; number <= 3 * ENV_BLOCKS; number++) {
        env_put(store, store, number);
        wait_until_written();
    }
    for (unsigned number = 1; number <= 3 * ENV_BLOCKS; number++) {
        ck_assert(env_can_get(lower, lower, number));
    }
    ck_assert_int_eq(env_number(store, "written_total"), 3 * ENV_BLOCKS);
    ck_assert_int_eq(env_number(lower, "reserved"), 0);
    ck_assert(!env_is_hit(store, 1)); /* evicted here, and lifted again */
    ck_assert(env_ask(store, 1, &hit));
    ck_assert_int_eq(env_run_round(store, true), UC_OK);
    ck_assert(env_can_get(store, store, 1));
    ck_assert_int_eq(env_number(store, "written_total"), 3 * ENV_BLOCKS);
    uc_cache_store_destroy(store);
    uc_cache_store_destroy(lower);
}
END_TEST

START_TEST(committed_block_reaches_a_plain_tier)
{
    start_through(env_null_store());
    for (unsigned number = 1; number <= 2 * ENV_BLOCKS; number++) {
        env_put(store, store, number);
    }
    wait_until_written();
    ck_assert(env_is_hit(lower, 1));
    ck_assert_int_eq(env_number(store, "written_total") + env_number(store, "write_skipped_total"),
            2 * ENV_BLOCKS);
    uc_cache_store_destroy(store);
    uc_null_store_destroy(lower);
}
END_TEST

/* A tier below without room costs nothing here but a number. */
START_TEST(full_lower_tier_fails_the_write_only)
{
    const struct uc_token_addressed_ops *tokens;
    struct env_options options = {.capacity_blocks = 1};
    struct uc_block_id id = env_id(99);
    struct uc_token *full = NULL;

    start_through(env_store(&options));
    tokens = uc_store_as_token_addressed(lower);
    ck_assert_int_eq(tokens->alloc(lower, &id, 1, NULL, &full), UC_OK);
    env_put(store, store, 1);
    wait_until_written();
    ck_assert_int_eq(env_number(store, "write_failed_total"), 1);
    ck_assert(env_can_get(store, store, 1));
    ck_assert_int_eq(tokens->commit(lower, full, NULL, false), UC_OK);
    uc_token_destroy(full);
    uc_cache_store_destroy(store);
    uc_cache_store_destroy(lower);
}
END_TEST

/* Change a byte of every slot, as a stray pointer of any process does. */
static void
damage_all(const char *domain)
{
    struct uc_cache_segment *segment = NULL;

    ck_assert_int_eq(uc_cache_segment_attach(domain, ENV_BLOCK_BYTES, &segment), UC_OK);
    for (uint32_t slot = 0; slot < segment->slot_count; slot++) {
        uc_cache_segment_bytes(segment, slot)[7] ^= 0x40;
    }
    uc_cache_segment_close(segment);
}

/* G14: the tier below would sum up what it gets, and keep it as a good block. */
START_TEST(damaged_block_is_not_written_below)
{
    struct env_options control_options = {
            .role = "scheduler", .domain = env_domain(), .write = "through"};
    struct env_options idle_options = {.role = "worker", .domain = env_domain()};
    struct env_options worker_options = {
            .role = "worker", .domain = env_domain(), .write = "through"};
    struct uc_store *idle = env_store(&idle_options); /* without a tier below it writes nothing */
    struct uc_store *worker;

    lower = env_null_store();
    control_options.lower = lower;
    worker_options.lower = lower;
    store = env_store(&control_options);
    env_put(store, idle, 1);
    damage_all(env_domain());
    worker = env_store(&worker_options);
    env_put(store, worker, 2);
    wait_until_written();
    ck_assert(!env_is_hit(lower, 1));
    ck_assert(!env_is_hit(store, 1));
    ck_assert_int_ge(env_number(store, "write_failed_total"), 1); /* 2, if written together */
    env_put(store, worker, 3);
    wait_until_written();
    ck_assert(env_is_hit(lower, 3));
    uc_cache_store_destroy(worker);
    uc_cache_store_destroy(idle);
    uc_cache_store_destroy(store);
    uc_null_store_destroy(lower);
}
END_TEST

/* Change a byte of one block. */
static void
damage_one(const char *domain, unsigned number)
{
    struct uc_block_id id = env_id(number);
    struct uc_cache_segment *segment = NULL;

    ck_assert_int_eq(uc_cache_segment_attach(domain, ENV_BLOCK_BYTES, &segment), UC_OK);
    for (uint32_t slot = 0; slot < segment->slot_count; slot++) {
        if (memcmp(&segment->slots[slot].footer_id, &id, sizeof(id)) == 0) {
            uc_cache_segment_bytes(segment, slot)[7] ^= 0x40;
        }
    }
    uc_cache_segment_close(segment);
}

static void
put_together(struct uc_store *control, struct uc_store *data, unsigned first, size_t count)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(control);
    struct uc_block_id ids[ENV_BLOCKS];
    uint8_t bytes[ENV_BLOCKS * ENV_BLOCK_BYTES];
    struct uc_token *token = NULL;

    for (size_t idx = 0; idx < count; idx++) {
        ids[idx] = env_id(first + (unsigned)idx);
        env_fill(first + (unsigned)idx, bytes + idx * ENV_BLOCK_BYTES);
    }
    ck_assert_int_eq(ops->alloc(control, ids, count, NULL, &token), UC_OK);
    ck_assert_int_eq(env_move(data, false, token, bytes, NULL), UC_OK);
    ck_assert_int_eq(ops->commit(control, token, NULL, true), UC_OK);
    uc_token_destroy(token);
}

/* A block in the middle of a batch fails alone: over a plain tier, and over a tokened one. */
START_TEST(damaged_block_does_not_keep_its_batch_from_below)
{
    struct env_options lower_options = {.capacity_blocks = 64};
    struct env_options control_options = {
            .role = "scheduler", .domain = env_domain(), .write = "through", .capacity_blocks = 8};
    struct env_options idle_options = {
            .role = "worker", .domain = env_domain(), .capacity_blocks = 8};
    struct env_options worker_options = {
            .role = "worker", .domain = env_domain(), .write = "through", .capacity_blocks = 8};
    struct uc_store *idle = env_store(&idle_options); /* without a tier below it writes nothing */
    struct uc_store *worker;

    lower = _i == 0 ? env_null_store() : env_store(&lower_options);
    control_options.lower = lower;
    worker_options.lower = lower;
    store = env_store(&control_options);
    put_together(store, idle, 1, ENV_BLOCKS);
    damage_one(env_domain(), 2);
    worker = env_store(&worker_options);
    ck_assert(env_can_get(store, worker, 1)); /* it has found the segment, and with it the tasks */
    wait_until_written();
    ck_assert(env_is_hit(lower, 1));
    ck_assert(!env_is_hit(lower, 2));
    ck_assert(env_is_hit(lower, 3));
    ck_assert(env_is_hit(lower, 4));
    ck_assert_int_eq(env_number(store, "written_total"), 3);
    ck_assert_int_eq(env_number(store, "write_failed_total"), 1);
    uc_cache_store_destroy(worker);
    uc_cache_store_destroy(idle);
    uc_cache_store_destroy(store);
    if (_i == 0) {
        uc_null_store_destroy(lower);
    } else {
        uc_cache_store_destroy(lower);
    }
}
END_TEST

/* the worker process dumps what the scheduler process reserved below. */
START_TEST(write_through_works_across_processes)
{
    char domain[96];
    struct env_options lower_control_options = {
            .role = "scheduler", .domain = domain, .capacity_blocks = 8};
    struct env_options lower_worker_options = {
            .role = "worker", .domain = domain, .capacity_blocks = 8};
    struct env_options control_options = {
            .role = "scheduler", .domain = env_domain(), .write = "through"};
    struct env_options worker_options = {
            .role = "worker", .domain = env_domain(), .write = "through"};
    struct uc_store *lower_control;
    struct uc_store *lower_worker;
    struct uc_store *worker;

    (void)snprintf(domain, sizeof(domain), "%s-lower", env_domain());
    lower_control = env_store(&lower_control_options);
    lower_worker = env_store(&lower_worker_options);
    control_options.lower = lower_control;
    worker_options.lower = lower_worker;
    worker = env_store(&worker_options);
    store = env_store(&control_options);
    env_put(store, worker, 1);
    wait_until_written();
    ck_assert_int_eq(env_number(store, "written_total"), 1);
    ck_assert(env_is_hit(lower_control, 1));
    uc_cache_store_destroy(worker);
    ck_assert(env_can_get(lower_control, lower_worker, 1));
    uc_cache_store_destroy(store);
    uc_cache_store_destroy(lower_worker);
    uc_cache_store_destroy(lower_control);
}
END_TEST

/* Take a task as a worker does, and never end it. */
static void
take_task_and_hang(const char *domain, int ready)
{
    struct uc_cache_segment *segment;

    if (uc_cache_segment_attach(domain, ENV_BLOCK_BYTES, &segment) != UC_OK) {
        _exit(1);
    }
    (void)!write(ready, "a", 1);
    for (;;) {
        uint32_t state = atomic_load(&segment->tasks[0].state);

        if (UC_CACHE_TASK_KIND(state) == UC_CACHE_TASK_QUEUED &&
                atomic_compare_exchange_strong(&segment->tasks[0].state, &state,
                        UC_CACHE_TASK_STATE(UC_CACHE_TASK_TAKEN, segment->row, 0,
                                UC_CACHE_TASK_SEQUENCE(state)))) {
            (void)!write(ready, "t", 1);
        }
        (void)sched_yield();
    }
}

/* A worker that is killed with a task in hand pins nothing for long. */
START_TEST(killed_worker_gives_its_task_back)
{
    struct env_options lower_options = {.capacity_blocks = 8};
    struct env_options options = {.role = "scheduler", .domain = env_domain(), .write = "through"};
    struct env_options worker_options = {.role = "worker", .domain = env_domain()};
    struct uc_store *worker = env_store(&worker_options);
    const char *domain = env_domain(); /* of the parent */
    char byte = 0;
    int ends[2];
    pid_t pid;

    lower = env_store(&lower_options);
    options.lower = lower;
    store = env_store(&options);
    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        take_task_and_hang(domain, ends[1]);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    env_put(store, worker, 1);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 't');
    ck_assert_int_eq(env_number(store, "pinned"), 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    wait_until_written();
    ck_assert_int_eq(env_number(store, "write_failed_total"), 1);
    ck_assert_int_eq(env_number(lower, "reserved"), 0);
    ck_assert(env_is_hit(store, 1));
    (void)close(ends[0]);
    (void)close(ends[1]);
    uc_cache_store_destroy(worker);
    uc_cache_store_destroy(store);
    uc_cache_store_destroy(lower);
}
END_TEST

START_TEST(write_through_needs_a_lower_tier)
{
    struct env_options options = {.write = "through"};
    enum uc_status status = UC_OK;

    ck_assert_ptr_null(env_try_store(&options, &status));
    ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "through"));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_through");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, committed_block_reaches_a_tokened_tier);
    tcase_add_test(tcase, committed_block_reaches_a_plain_tier);
    tcase_add_test(tcase, full_lower_tier_fails_the_write_only);
    tcase_add_test(tcase, damaged_block_is_not_written_below);
    tcase_add_loop_test(tcase, damaged_block_does_not_keep_its_batch_from_below, 0, 2);
    tcase_add_test(tcase, write_through_works_across_processes);
    tcase_add_test(tcase, killed_worker_gives_its_task_back);
    tcase_add_test(tcase, write_through_needs_a_lower_tier);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
