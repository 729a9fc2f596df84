/* SPDX-License-Identifier: Apache-2.0 */

/* A cache store above another tier: signals, plans, in-place loads. Section 7. */

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
static const struct uc_prefetchable_ops *ops;

static void
start_over(struct uc_store *tier)
{
    struct env_options options = {.lower = tier};

    lower = tier;
    store = env_store(&options);
    ops = uc_store_as_prefetchable(store);
    ck_assert_ptr_nonnull(ops);
}

static void
start_over_cache(void)
{
    struct env_options options = {.capacity_blocks = 2};

    start_over(env_store(&options));
}

static void
stop_over_cache(void)
{
    uc_cache_store_destroy(store); /* head first */
    uc_cache_store_destroy(lower);
}

static bool
lookup(unsigned number, uint8_t *hit)
{
    struct uc_block_id id = env_id(number);
    bool needed = false;

    ck_assert_msg(ops->lookup(store, "r", &id, 1, hit, &needed) == UC_OK, "%s", uc_last_error());
    return needed;
}

static enum uc_status
run_round(bool success)
{
    struct uc_token *plan = NULL;
    enum uc_status code;

    ck_assert_msg(ops->prepare_prefetch(store, "r", NULL, &plan) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(ops->prefetch(store, 500, plan) == UC_OK, "%s", uc_last_error());
    code = env_wait(store, 500, NULL);
    ck_assert_int_eq(ops->complete_prefetch(store, plan, success), UC_OK);
    ck_assert_int_eq(
            ops->complete_prefetch(store, plan, success), UC_ERR_INVALID_PARAM); /* */
    uc_token_destroy(plan);
    return code;
}

/* one round, then a concrete answer; nothing stays held */
START_TEST(block_is_lifted_from_a_tokened_tier)
{
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(lookup(1, &hit));
    ck_assert_uint_eq(hit, 9); /* */
    ck_assert_int_eq(run_round(true), UC_OK);
    ck_assert(!lookup(1, &hit));
    ck_assert_uint_eq(hit, 1);
    ck_assert(env_can_get(store, store, 1));
    ck_assert_int_eq(env_number(store, "reserved"), 0);
    ck_assert_int_eq(env_number(store, "pinned"), 0);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
}
END_TEST

/* the base version of a plain tier */
START_TEST(block_is_lifted_from_a_plain_tier)
{
    struct uc_store *plain = env_null_store();
    struct uc_block_id ids[3] = {env_id(1), env_id(2), env_id(3)};
    uint8_t memory[3][ENV_BLOCK_BYTES];
    void *pointers[3];
    uint64_t size = ENV_BLOCK_BYTES;
    struct uc_block_payload payloads[3] = {0};
    struct uc_job_descriptor job = {.block_ids = ids, .payloads = payloads, .count = 2};
    bool needed = false;
    int64_t last = -7;

    for (unsigned idx = 0; idx < 3; idx++) {
        env_fill(idx + 1, memory[idx]);
        pointers[idx] = memory[idx];
        payloads[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx], .sizes = &size, .pointer_count = 1};
    }
    ck_assert_int_eq(uc_store_dump(plain, 1, &job), UC_OK);
    ck_assert_int_eq(env_wait(plain, 1, NULL), UC_OK);
    start_over(plain);
    ck_assert_int_eq(ops->lookup_on_prefix(store, "r", ids, 3, &last, &needed), UC_OK);
    ck_assert(needed);
    ck_assert_int_eq(last, -7);
    ck_assert_int_eq(run_round(true), UC_OK);
    ck_assert_int_eq(ops->lookup_on_prefix(store, "r", ids, 3, &last, &needed), UC_OK);
    ck_assert(!needed);
    ck_assert_int_eq(last, 1);
    ck_assert(env_can_get(store, store, 2));
    uc_cache_store_destroy(store);
    uc_null_store_destroy(plain);
}
END_TEST

/* the source went away between signal and prepare; nothing is held */
START_TEST(lost_source_ends_the_query)
{
    struct uc_token *plan = NULL;
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(lookup(1, &hit));
    env_put(lower, lower, 2);
    env_put(lower, lower, 3);
    ck_assert_int_eq(ops->prepare_prefetch(store, "r", NULL, &plan), UC_ERR_NOT_FOUND);
    ck_assert_ptr_null(plan);
    ck_assert_int_eq(env_number(store, "reserved"), 0);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    ck_assert(!lookup(1, &hit));
    ck_assert_uint_eq(hit, 0);
}
END_TEST

/* a refused round leaves nothing, the next answer is concrete */
START_TEST(failed_round_leaves_nothing)
{
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(lookup(1, &hit));
    ck_assert_int_eq(run_round(false), UC_OK);
    ck_assert(!lookup(1, &hit));
    ck_assert_uint_eq(hit, 0);
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
}
END_TEST

/* no room here gives the sources back */
START_TEST(full_tier_gives_the_sources_back)
{
    const struct uc_token_addressed_ops *tokens = uc_store_as_token_addressed(store);
    struct uc_block_id ids[ENV_BLOCKS];
    struct uc_token *plan = NULL;
    struct uc_token *full = NULL;
    uint8_t hit = 9;

    for (unsigned idx = 0; idx < ENV_BLOCKS; idx++) {
        ids[idx] = env_id(100 + idx);
    }
    env_put(lower, lower, 1);
    ck_assert_int_eq(tokens->alloc(store, ids, ENV_BLOCKS, NULL, &full), UC_OK);
    ck_assert(lookup(1, &hit));
    ck_assert_int_eq(ops->prepare_prefetch(store, "r", NULL, &plan), UC_ERR_NO_SPACE);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    ck_assert_int_eq(tokens->commit(store, full, NULL, false), UC_OK);
    ck_assert_int_eq(run_round(true), UC_OK); /* retry */
    ck_assert(env_can_get(store, store, 1));
    uc_token_destroy(full);
}
END_TEST

/* G: a plan that nobody concludes is concluded by destruction at the latest */
START_TEST(forgotten_plan_is_given_back)
{
    struct uc_token *plan = NULL;
    uint8_t hit = 9;

    env_put(lower, lower, 1);
    ck_assert(lookup(1, &hit));
    ck_assert_int_eq(ops->prepare_prefetch(store, "r", NULL, &plan), UC_OK);
    ops->forget(store, "r");
    ck_assert_int_eq(env_number(lower, "pinned"), 1);
    uc_cache_store_destroy(store);
    ck_assert_int_eq(env_number(lower, "pinned"), 0);
    uc_token_destroy(plan);
    store = NULL;
}
END_TEST

/* the lower tier's round is ours; two rounds lift a block by two tiers */
START_TEST(delegated_round_lifts_by_one_tier)
{
    struct uc_store *bottom = env_null_store();
    struct env_options middle_options = {.lower = bottom};
    struct uc_store *middle = env_store(&middle_options);
    struct uc_block_id id = env_id(1);
    uint8_t memory[ENV_BLOCK_BYTES];
    void *pointer = memory;
    uint64_t size = ENV_BLOCK_BYTES;
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &size, .pointer_count = 1};
    struct uc_job_descriptor job = {.block_ids = &id, .payloads = &payload, .count = 1};
    uint8_t hit = 9;

    env_fill(1, memory);
    ck_assert_int_eq(uc_store_dump(bottom, 1, &job), UC_OK);
    ck_assert_int_eq(env_wait(bottom, 1, NULL), UC_OK);
    start_over(middle);
    ck_assert(lookup(1, &hit));
    ck_assert_int_eq(run_round(true), UC_OK);
    ck_assert(env_is_hit(middle, 1));
    ck_assert(!env_is_hit(store, 1));
    uc_cache_store_destroy(store);
    uc_cache_store_destroy(middle);
    uc_null_store_destroy(bottom);
}
END_TEST

/* ---- write-through ---- */

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
    ops = uc_store_as_prefetchable(store);
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
    ck_assert(lookup(1, &hit));
    ck_assert_int_eq(run_round(true), UC_OK);
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
    Suite *suite = suite_create("cache_tiers");
    TCase *tcase = tcase_create("tiers");
    TCase *alone = tcase_create("alone");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, start_over_cache, stop_over_cache);
    tcase_add_test(tcase, block_is_lifted_from_a_tokened_tier);
    tcase_add_test(tcase, lost_source_ends_the_query);
    tcase_add_test(tcase, failed_round_leaves_nothing);
    tcase_add_test(tcase, full_tier_gives_the_sources_back);
    tcase_add_test(tcase, forgotten_plan_is_given_back);
    tcase_add_test(alone, block_is_lifted_from_a_plain_tier);
    tcase_add_test(alone, delegated_round_lifts_by_one_tier);
    tcase_add_test(alone, committed_block_reaches_a_tokened_tier);
    tcase_add_test(alone, committed_block_reaches_a_plain_tier);
    tcase_add_test(alone, full_lower_tier_fails_the_write_only);
    tcase_add_test(alone, write_through_works_across_processes);
    tcase_add_test(alone, killed_worker_gives_its_task_back);
    tcase_add_test(alone, write_through_needs_a_lower_tier);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, alone);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
