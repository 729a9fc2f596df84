/* SPDX-License-Identifier: Apache-2.0 */

/* cache over remote, with a real server: blocks travel between slots and server memory in place. */

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include <check.h>

#include <ucm/clock.h>
#include <ucm/setup.h>

#include "client/stores/cache/store.h"
#include "test/unit/client/remote/remote_env.h"

enum {
    HEAD_BLOCKS = 16,
    PATIENCE_NS = 20 * 1000 * 1000
};

static struct env_server server;
static struct uc_store *lower;
static struct uc_store *head;
static const struct uc_prefetchable_ops *ops;

static void
start(void)
{
    struct uc_dict *config = NULL;

    server = env_server_start(0, NULL);
    lower = env_store(&server, "both");
    head = uc_cache_store_create();
    ck_assert_ptr_nonnull(head);
    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(config, "block_bytes", BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(config, "capacity_blocks", HEAD_BLOCKS), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "write", "through"), UC_OK);
    ck_assert_int_eq(uc_dict_set_pointer(config, UC_SETUP_PIPED_LOWER_STORE, lower), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(config, UC_SETUP_TIERS_BELOW, 1), UC_OK);
    ck_assert_msg(uc_store_setup(head, config) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
    ops = uc_store_as_prefetchable(head);
    ck_assert_ptr_nonnull(ops);
}

static void
stop(void)
{
    uc_cache_store_destroy(head);
    env_store_destroy(lower);
    env_server_stop(&server, SIGTERM);
}

static int64_t
number(const char *key)
{
    struct uc_dict *description = NULL;
    int64_t value = -1;

    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(head, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(description, key, &value), UC_OK);
    uc_dict_destroy(description);
    return value;
}

/* @return the index, −2 for the signal */
static int64_t
look_up(uint32_t first, size_t count)
{
    struct uc_block_id ids[HEAD_BLOCKS];
    bool needed = false;
    int64_t last = -3;

    for (size_t idx = 0; idx < count; idx++) {
        ids[idx] = env_key(first + (uint32_t)idx);
    }
    ck_assert_msg(ops->lookup_on_prefix(head, "r", ids, count, &last, &needed) == UC_OK, "%s",
            uc_last_error());
    return needed ? -2 : last;
}

static void
expect_nothing_held(void)
{
    ck_assert_int_eq(number("reserved"), 0);
    ck_assert_int_eq(number("pinned"), 0);
    ck_assert_int_eq(number("draining"), 0);
}

/* one round lifts the blocks, hits follow. */
START_TEST(blocks_are_lifted_from_a_server)
{
    struct uc_token *plan = NULL;

    env_put(lower, 1, 8);
    ck_assert_int_eq(look_up(1, 10), -2);
    ck_assert_msg(ops->prepare_prefetch(head, "r", NULL, &plan) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(ops->prefetch(head, 500, plan) == UC_OK, "%s", uc_last_error());
    env_expect(head, 500, UC_OK);
    ck_assert_int_eq(ops->complete_prefetch(head, plan, true), UC_OK);
    uc_token_destroy(plan);
    ck_assert_int_eq(look_up(1, 10), 7);
    ck_assert_int_eq(env_get(head, 1, 8), UC_OK);
    expect_nothing_held();
}
END_TEST

START_TEST(blocks_are_written_through_to_a_server)
{
    uint64_t until_ns = uc_clock_now_ns() + 1000ull * PATIENCE_NS;

    env_put(head, 1, 8);
    while (number("write_queued") > 0 && uc_clock_now_ns() < until_ns) {
        (void)sched_yield();
    }
    ck_assert_int_eq(number("written_total"), 8);
    ck_assert_int_eq(env_get(lower, 1, 8), UC_OK);
    expect_nothing_held();
}
END_TEST

/* Killed between prepare and prefetch: the round fails cleanly, the next answer is concrete, nothing leaks. */
START_TEST(killed_server_ends_the_round)
{
    struct uc_token *plan = NULL;
    struct uc_io_result result;

    env_put(lower, 1, 8);
    ck_assert_int_eq(look_up(1, 8), -2);
    ck_assert_int_eq(ops->prepare_prefetch(head, "r", NULL, &plan), UC_OK);
    env_server_stop(&server, SIGKILL);
    if (ops->prefetch(head, 500, plan) == UC_OK) {
        result = env_wait(head, 500);
        ck_assert(!result.success);
        uc_io_results_release(&result, 1);
    }
    ck_assert_int_eq(ops->complete_prefetch(head, plan, false), UC_OK);
    uc_token_destroy(plan);
    ck_assert_int_eq(look_up(1, 8), -1);
    expect_nothing_held();
    ck_assert_int_eq(number("free"), HEAD_BLOCKS);
    server = env_server_start(0, NULL); /* for stop() */
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_remote");
    TCase *tcase = tcase_create("remote");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, start, stop);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, blocks_are_lifted_from_a_server);
    tcase_add_test(tcase, blocks_are_written_through_to_a_server);
    tcase_add_test(tcase, killed_server_ends_the_round);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
