/* SPDX-License-Identifier: Apache-2.0 */

/* What a head tier asks of the tier below it: heads with real slots over a fake that records. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/unit/client/proxy/tree_fixture.h"

static char path[64];

static void
setup(void)
{
    int fd;

    tree_reset();
    (void)snprintf(path, sizeof(path), "/tmp/ucm-lower-XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

static void
teardown(void)
{
    (void)unlink(path);
}

/* The heads that lift blocks: the reference store of the tests, and the real one. */
enum head {
    HEAD_SLOTS,
    HEAD_CACHE,
    HEAD_COUNT,
};

/* The head holds nothing; the fake below says that it has everything. */
static void
start(enum head head, const char *lower_config)
{
    char yaml[1024];
    char config[256];

    if (head == HEAD_SLOTS) {
        (void)snprintf(config, sizeof(config), "path: %s, block_bytes: 64, slots: 4", path);
    } else {
        (void)snprintf(config, sizeof(config),
                "domain: lower-%d, block_bytes: 64, capacity_blocks: 4", (int)getpid());
    }
    (void)snprintf(yaml, sizeof(yaml),
            "{type: pipe, stores: [{store: %s, config: {%s}}, {store: fake, config: {%s}}]}",
            head == HEAD_SLOTS ? PLUGIN_SLOTS : "cache", config, lower_config);
    tree_start(yaml);
    tree_register("r", 5000);
    tree.stores[0]->control.log[0] = '\0';
    tree.stores[0]->data.log[0] = '\0';
}

static enum uc_status
look_up(int kind, size_t count, uint8_t *hits, int64_t *index_out, bool *signal_out)
{
    switch (kind) {
    case 0:
        return uc_scheduler_lookup(tree.scheduler, "r", tree_keys, count, hits, signal_out);
    case 1:
        return uc_scheduler_lookup_on_prefix(
                tree.scheduler, "r", tree_keys, count, index_out, signal_out);
    default:
        return uc_scheduler_lookup_on_reverse(
                tree.scheduler, "r", tree_keys, count, index_out, signal_out);
    }
}

/* G7: hits or index, or the signal, or an error; another list meanwhile is InvalidParam. */
START_TEST(each_lookup_answers_by_signal_value_or_error)
{
    uint8_t hits[4] = {9, 9, 9, 9};
    int64_t index = -9;
    bool signal = false;
    int kind = _i % 3;

    start((enum head)(_i / 3), "");
    ck_assert_int_eq(look_up(kind, 3, hits, &index, &signal), UC_OK);
    ck_assert(signal);
    ck_assert_uint_eq(hits[0], 9); /* */
    ck_assert_int_eq(index, -9);
    ck_assert_int_eq(look_up(kind, 2, hits, &index, &signal), UC_ERR_INVALID_PARAM); /* */
    ck_assert_int_eq(look_up(kind, 3, hits, &index, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert_uint_eq(hits[0], kind == 0 ? 0 : 9);
    ck_assert_int_eq(index, kind == 0 ? -9 : -1);

    for (int op = UC_FAKE_LOOKUP; op <= UC_FAKE_LOOKUP_ON_REVERSE; op++) {
        tree.stores[0]->answers[op] = UC_ERR_OS_API;
    }
    hits[0] = 9;
    index = -9;
    signal = false;
    ck_assert_int_eq(look_up(kind, 3, hits, &index, &signal), UC_ERR_OS_API);
    ck_assert(!signal && hits[0] == 9 && index == -9);
    tree_stop();
}
END_TEST

/* sources pinned below and destinations reserved here, or neither. */
START_TEST(prepare_holds_both_tiers_or_neither)
{
    static const enum uc_fake_op fails[] = {UC_FAKE_PIN, UC_FAKE_OP_COUNT};
    struct uc_token *plan = NULL;
    struct uc_token *blocker = NULL;
    uint8_t hits[4];
    int64_t index;
    bool signal = false;

    start((enum head)(_i / 2), "tokened: true");
    tree_register("writer", -1);
    ck_assert_int_eq(look_up(0, 3, hits, &index, &signal), UC_OK);
    ck_assert(signal);
    if (fails[_i % 2] != UC_FAKE_OP_COUNT) { /* the source is gone */
        tree.stores[0]->answers[fails[_i % 2]] = UC_ERR_NOT_FOUND;
        ck_assert_int_eq(
                uc_scheduler_prepare_prefetch(tree.scheduler, "r", &plan), UC_ERR_NOT_FOUND);
        tree.stores[0]->answers[fails[_i % 2]] = UC_OK;
    } else { /* no room for the destinations: other blocks take two of four slots */
        struct uc_block_id others[2] = {{.bytes = "other 0"}, {.bytes = "other 1"}};

        ck_assert_int_eq(
                uc_scheduler_prepare_put(tree.scheduler, "writer", others, 2, &blocker), UC_OK);
        ck_assert_int_eq(
                uc_scheduler_prepare_prefetch(tree.scheduler, "r", &plan), UC_ERR_NO_SPACE);
        ck_assert_int_eq(uc_scheduler_complete_put(tree.scheduler, "writer", false), UC_OK);
        uc_token_destroy(blocker);
    }
    ck_assert_ptr_null(plan);
    ck_assert_uint_eq(tree.stores[0]->pin_count, 0);

    ck_assert_int_eq(uc_scheduler_prepare_prefetch(tree.scheduler, "r", &plan), UC_OK);
    ck_assert_uint_eq(plan->key_count, 3);
    ck_assert_uint_eq(tree.stores[0]->pin_count, 1);
    ck_assert_int_eq(uc_scheduler_complete_prefetch(tree.scheduler, "r", false), UC_OK); /* */
    ck_assert_uint_eq(tree.stores[0]->pin_count, 0);
    uc_token_destroy(plan);
    tree_stop();
}
END_TEST

/* the worker drives the lower tier's Load, with its token if it is tokened. */
START_TEST(prefetch_drives_the_load_of_the_lower_tier)
{
    struct uc_io_result result;
    struct uc_token *plan = NULL;
    uint8_t hits[4] = {0};
    int64_t index;
    uint64_t job_id = 1;
    size_t count = 0;
    bool is_plain = _i % 2 == 0;
    bool signal = false;

    start((enum head)(_i / 2), is_plain ? "" : "tokened: true");
    ck_assert_int_eq(look_up(0, 3, hits, &index, &signal), UC_OK);
    ck_assert(signal);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(tree.scheduler, "r", &plan), UC_OK);
    ck_assert_uint_eq(tree.stores[0]->calls[UC_FAKE_LOAD], 0);
    ck_assert_int_eq(uc_worker_submit_prefetch(tree.worker, 1, plan), UC_OK);
    ck_assert_int_eq(uc_worker_wait(tree.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert(result.success);
    ck_assert_uint_eq(tree.stores[0]->calls[UC_FAKE_LOAD], is_plain ? 1 : 0);
    ck_assert_uint_eq(tree.stores[0]->calls[UC_FAKE_TOKEN_LOAD], is_plain ? 0 : 1);
    ck_assert_mem_eq(tree.stores[0]->data.ids, tree_keys, 3 * sizeof(tree_keys[0]));
    ck_assert_int_eq(uc_scheduler_complete_prefetch(tree.scheduler, "r", true), UC_OK);
    ck_assert_int_eq(look_up(0, 3, hits, &index, &signal), UC_OK);
    ck_assert(!signal && hits[0] && hits[1] && hits[2]);
    uc_token_destroy(plan);
    tree_stop();
}
END_TEST

/* the tier below is touched with the same ids and facts, whether the head holds the blocks or not. */
START_TEST(touch_reaches_the_tier_below_with_the_same_ids)
{
    start((enum head)_i, "tokened: true");
    ck_assert_int_eq(uc_scheduler_touch(tree.scheduler, "r", tree_keys, 3), UC_OK);
    ck_assert_str_eq(tree.stores[0]->control.log, "touch ");
    ck_assert_uint_eq(tree.stores[0]->control.count, 3);
    ck_assert_mem_eq(tree.stores[0]->control.ids, tree_keys, 3 * sizeof(tree_keys[0]));
    ck_assert(tree.stores[0]->control.has_ttl);
    ck_assert_uint_eq(tree.stores[0]->control.ttl_ms, 5000);
    tree_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipe_lower");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, each_lookup_answers_by_signal_value_or_error, 0, 3 * HEAD_COUNT);
    tcase_add_loop_test(tcase, prepare_holds_both_tiers_or_neither, 0, 2 * HEAD_COUNT);
    tcase_add_loop_test(tcase, prefetch_drives_the_load_of_the_lower_tier, 0, 2 * HEAD_COUNT);
    tcase_add_loop_test(tcase, touch_reaches_the_tier_below_with_the_same_ids, 0, HEAD_COUNT);
    suite_add_tcase(suite, tcase);
    return tree_run(suite);
}
