/* SPDX-License-Identifier: Apache-2.0 */

/* Prefetching through pipes of slot stores: section 7 and V-51 to V-55, with real bytes. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include <ucm/assembler.h>

#include "core/config/fields.h"

enum {
    BLOCK_BYTES = 512,
    KEY_COUNT = 4,
    CONFIG_BYTES = 4096
};

static struct uc_block_id keys[KEY_COUNT];
static uint8_t blocks[KEY_COUNT][BLOCK_BYTES];
static void *const pointers[KEY_COUNT] = {blocks[0], blocks[1], blocks[2], blocks[3]};
static const uint64_t size = BLOCK_BYTES;
static char folder[64];
static size_t tier_count;
static struct uc_assembler *assembler;
static struct uc_scheduler *scheduler;
static struct uc_worker *worker;
static uint64_t last_job_id;

static const struct uc_block_payload *
payloads(void)
{
    static struct uc_block_payload all[KEY_COUNT];

    for (size_t idx = 0; idx < KEY_COUNT; idx++) {
        all[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx], .sizes = &size, .pointer_count = 1};
    }
    return all;
}

static void
setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/ucm-prefetch-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t idx = 0; idx < KEY_COUNT; idx++) {
        (void)snprintf((char *)keys[idx].bytes, sizeof(keys[idx].bytes), "block %zu", idx);
    }
    last_job_id = 0;
    assembler = NULL;
}

static void
teardown(void)
{
    char path[96];

    uc_assembler_destroy(assembler);
    for (size_t tier = 0; tier < 3; tier++) {
        (void)snprintf(path, sizeof(path), "%s/tier%zu", folder, tier);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static struct uc_assembler *
assemble(const char *yaml, enum uc_role role)
{
    struct uc_assembler_options options = {.struct_size = sizeof(options), .role = role};
    struct uc_assembler *made = NULL;
    struct uc_dict *config = NULL;

    ck_assert_msg(
            uc_yaml_read_text(yaml, strlen(yaml), "case", &config) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(uc_assembler_create(config, &options, &made) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
    return made;
}

static void
register_request(const char *request_id)
{
    struct uc_request_context context = uc_request_context_init(request_id);

    ck_assert_int_eq(uc_scheduler_on_new_request(scheduler, &context), UC_OK);
}

static void
expect_job(uint64_t job_id, enum uc_status code)
{
    struct uc_io_result result = {0};
    size_t count = 0;

    ck_assert_int_eq(uc_worker_wait(worker, &job_id, 1, 20000, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_msg(result.code == code, "job ended as %s", uc_status_name(result.code));
    uc_io_results_release(&result, 1);
}

static void
put(const char *request_id, size_t first, size_t count)
{
    struct uc_token *token = NULL;
    uint64_t job_id = ++last_job_id;

    ck_assert_msg(
            uc_scheduler_prepare_put(scheduler, request_id, &keys[first], count, &token) == UC_OK,
            "%s", uc_last_error());
    for (size_t idx = 0; idx < count; idx++) {
        memset(blocks[idx], (int)(first + idx + 1), BLOCK_BYTES);
    }
    ck_assert_int_eq(uc_worker_submit_put(worker, job_id, payloads(), count, token, NULL), UC_OK);
    expect_job(job_id, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(scheduler, request_id, true), UC_OK);
    uc_token_destroy(token);
}

/* Put blocks into one tier, by a store of its own over the same file. */
static void
seed(size_t tier, size_t first, size_t count)
{
    char yaml[CONFIG_BYTES];

    (void)snprintf(yaml, sizeof(yaml),
            "{type: store, store: %s, config: {path: %s/tier%zu, block_bytes: %d, slots: 8}}",
            PLUGIN_SLOTS, folder, tier, BLOCK_BYTES);
    assembler = assemble(yaml, UC_ROLE_BOTH);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(assembler, &worker), UC_OK);
    register_request("seed");
    put("seed", first, count);
    uc_assembler_destroy(assembler);
    assembler = NULL;
}

static void
pipe_config(char *yaml, size_t head_slots)
{
    size_t used = (size_t)snprintf(yaml, CONFIG_BYTES, "{type: pipe, stores: [");

    for (size_t tier = 0; tier < tier_count; tier++) {
        used += (size_t)snprintf(yaml + used, CONFIG_BYTES - used,
                "{store: %s, config: {path: %s/tier%zu, block_bytes: %d, slots: %zu, keep: %s}}, ",
                PLUGIN_SLOTS, folder, tier, BLOCK_BYTES, tier == 0 ? head_slots : 8,
                tier == 0 ? "false" : "true");
    }
    (void)snprintf(yaml + used, CONFIG_BYTES - used, "]}");
}

/* A pipe over what was seeded; the middle ones of three tiers start with what their files hold. */
static void
start_pipe(size_t tiers, size_t head_slots)
{
    char yaml[CONFIG_BYTES];

    tier_count = tiers;
    pipe_config(yaml, head_slots);
    assembler = assemble(yaml, UC_ROLE_BOTH);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(assembler, &worker), UC_OK);
    register_request("r");
}

/* Nothing is pinned or reserved, in no tier. */
static void
expect_nothing_held(void)
{
    struct uc_dict *description = NULL;

    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_scheduler_describe(scheduler, description), UC_OK);
    for (size_t tier = 0; tier < tier_count; tier++) {
        const struct uc_dict *of_tier = NULL;
        int64_t pinned = -1;
        int64_t reserved = -1;

        ck_assert_int_eq(uc_dict_get_dict_at(description, "tiers", tier, &of_tier), UC_OK);
        ck_assert_int_eq(uc_dict_get_int(of_tier, "pinned", &pinned), UC_OK);
        ck_assert_int_eq(uc_dict_get_int(of_tier, "reserved", &reserved), UC_OK);
        ck_assert_msg(pinned == 0 && reserved == 0, "tier %zu: %d pinned, %d reserved", tier,
                (int)pinned, (int)reserved);
    }
    uc_dict_destroy(description);
}

static bool
signals(size_t first, size_t count)
{
    int64_t index = -9;
    bool signal = false;

    ck_assert_msg(uc_scheduler_lookup_on_prefix(
                          scheduler, "r", &keys[first], count, &index, &signal) == UC_OK,
            "%s", uc_last_error());
    ck_assert_int_eq(index == -9, signal); /* nothing else is written on a signal */
    return signal;
}

static int64_t
prefix(size_t first, size_t count)
{
    int64_t index = -9;
    bool signal = false;

    ck_assert_msg(uc_scheduler_lookup_on_prefix(
                          scheduler, "r", &keys[first], count, &index, &signal) == UC_OK,
            "%s", uc_last_error());
    ck_assert(!signal);
    return index;
}

static void
run_round(bool success)
{
    struct uc_token *plan = NULL;
    uint64_t job_id = ++last_job_id;

    ck_assert_msg(
            uc_scheduler_prepare_prefetch(scheduler, "r", &plan) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(uc_worker_submit_prefetch(worker, job_id, plan) == UC_OK, "%s", uc_last_error());
    expect_job(job_id, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_prefetch(scheduler, "r", success), UC_OK);
    uc_token_destroy(plan);
}

/* Read blocks from the head and compare. */
static void
get_and_compare(size_t first, size_t count)
{
    struct uc_token *token = NULL;
    uint64_t job_id = ++last_job_id;

    ck_assert_msg(uc_scheduler_prepare_get(scheduler, "r", &keys[first], count, &token) == UC_OK,
            "%s", uc_last_error());
    memset(blocks, 0xee, sizeof(blocks));
    ck_assert_int_eq(uc_worker_submit_get(worker, job_id, payloads(), count, token, NULL), UC_OK);
    expect_job(job_id, UC_OK);
    for (size_t idx = 0; idx < count; idx++) {
        for (size_t at = 0; at < BLOCK_BYTES; at++) {
            ck_assert_uint_eq(blocks[idx][at], first + idx + 1);
        }
    }
    ck_assert_int_eq(uc_scheduler_complete_get(scheduler, "r"), UC_OK);
    uc_token_destroy(token);
}

/* V-51, R-7.12: an unused signal is followed by a concrete answer; each kind of lookup. */
START_TEST(unused_signal_is_followed_by_a_concrete_answer)
{
    uint8_t hits[2] = {9, 9};
    int64_t index = -9;
    bool signal = false;

    seed(1, 0, 2);
    start_pipe(2, 8);
    ck_assert_int_eq(uc_scheduler_lookup(scheduler, "r", keys, 2, hits, &signal), UC_OK);
    ck_assert(signal);
    ck_assert_uint_eq(hits[0], 9);
    ck_assert_int_eq(uc_scheduler_lookup(scheduler, "r", keys, 2, hits, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert(hits[0] == 0 && hits[1] == 0);
    ck_assert(signals(0, 2));
    ck_assert_int_eq(prefix(0, 2), -1);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(scheduler, "r", keys, 2, &index, &signal), UC_OK);
    ck_assert(signal);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(scheduler, "r", keys, 2, &index, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert_int_eq(index, -1);
    expect_nothing_held();
}
END_TEST

/* V-52, R-7.13, R-7.19, R-7.29 */
START_TEST(round_makes_blocks_of_below_hits)
{
    seed(1, 0, 3);
    start_pipe(2, 8);
    ck_assert(signals(0, 4));
    run_round(true);
    ck_assert_int_eq(prefix(0, 4), 2);
    expect_nothing_held();
    get_and_compare(0, 3);
    expect_nothing_held();
    ck_assert_int_eq(prefix(0, 4), 2); /* block 3 is nowhere: no signal */
}
END_TEST

/* V-53, R-7.20, R-7.22: destinations free, sources unpinned, no second signal. */
START_TEST(failed_round_leaves_nothing_and_answers)
{
    seed(1, 0, 2);
    start_pipe(2, 2);
    ck_assert(signals(0, 2));
    run_round(false);
    expect_nothing_held();
    ck_assert_int_eq(prefix(0, 2), -1);
    put("r", 2, 2); /* the slots are free again */
    ck_assert_int_eq(prefix(2, 2), 1);
}
END_TEST

/* V-54, R-7.9, R-7.26 */
START_TEST(another_list_is_refused_after_a_signal)
{
    int64_t index = -9;
    bool signal = false;

    seed(1, 0, 2);
    start_pipe(2, 8);
    ck_assert(signals(0, 2));
    ck_assert_int_eq(uc_scheduler_lookup_on_prefix(scheduler, "r", &keys[1], 2, &index, &signal),
            UC_ERR_INVALID_PARAM);
    register_request("other"); /* another request is not concerned */
    ck_assert_int_eq(
            uc_scheduler_lookup_on_prefix(scheduler, "other", &keys[1], 2, &index, &signal), UC_OK);
    ck_assert(signal);
    ck_assert_int_eq(prefix(0, 2), -1);
}
END_TEST

/* V-55, R-7.21, R-7.27, R-7.28: one tier per round. */
START_TEST(block_of_the_third_tier_takes_two_rounds)
{
    seed(2, 0, 2);
    seed(1, 3, 1);
    start_pipe(3, 8);
    ck_assert(signals(0, 2));
    run_round(true);
    expect_nothing_held();
    ck_assert(signals(0, 2));
    run_round(true);
    expect_nothing_held();
    ck_assert_int_eq(prefix(0, 2), 1);
    get_and_compare(0, 2);
    ck_assert(signals(3, 1)); /* a new list: the middle tier's own block, one round */
    run_round(true);
    ck_assert_int_eq(prefix(3, 1), 0);
}
END_TEST

/* a delegated round that fails ends the query as well. */
START_TEST(failed_delegated_round_ends_the_query)
{
    seed(2, 0, 2);
    start_pipe(3, 8);
    ck_assert(signals(0, 2));
    run_round(false);
    expect_nothing_held();
    ck_assert_int_eq(prefix(0, 2), -1);
    ck_assert(signals(0, 2)); /* and a new one may start */
    ck_assert_int_eq(prefix(0, 2), -1);
}
END_TEST

/* only what could change the answer is signalled. */
START_TEST(signals_are_exact)
{
    static const size_t both[] = {3, 0};
    struct uc_block_id list[2];
    int64_t index = -9;
    bool signal = false;

    seed(1, 1, 2);
    start_pipe(2, 8);
    put("r", 2, 1);                     /* block 2 is here as well, blocks 0 and 3 are nowhere */
    ck_assert_int_eq(prefix(0, 3), -1); /* the first absent one is not below */
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(scheduler, "r", keys, 3, &index, &signal), UC_OK);
    ck_assert(!signal); /* block 1 is below, but with a smaller index than the answer */
    ck_assert_int_eq(index, 2);
    for (size_t idx = 0; idx < 2; idx++) {
        list[idx] = keys[both[idx]];
    }
    ck_assert_int_eq(
            uc_scheduler_lookup_on_prefix(scheduler, "r", list, 2, &index, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert(signals(1, 2));
    run_round(true);
    ck_assert_int_eq(prefix(1, 2), 1);
    get_and_compare(1, 2);
}
END_TEST

/* on_reverse lifts one block, lookup all of them; repeated ids are lifted once. */
START_TEST(rounds_lift_what_the_lookup_asked_for)
{
    struct uc_block_id twice[4] = {keys[0], keys[1], keys[0], keys[1]};
    uint8_t hits[4];
    int64_t index = -9;
    bool signal = false;

    seed(1, 0, 3);
    start_pipe(2, 8);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(scheduler, "r", keys, 3, &index, &signal), UC_OK);
    ck_assert(signal);
    run_round(true);
    ck_assert_int_eq(
            uc_scheduler_lookup_on_reverse(scheduler, "r", keys, 3, &index, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert_int_eq(index, 2);
    ck_assert_int_eq(uc_scheduler_lookup(scheduler, "r", twice, 4, hits, &signal), UC_OK);
    ck_assert(signal);
    run_round(true);
    ck_assert_int_eq(uc_scheduler_lookup(scheduler, "r", twice, 4, hits, &signal), UC_OK);
    ck_assert(!signal);
    ck_assert(hits[0] && hits[1] && hits[2] && hits[3]);
    get_and_compare(0, 3);
}
END_TEST

/* G1: no room for the destinations; nothing is held, and a later attempt may succeed. */
START_TEST(refused_prepare_holds_nothing)
{
    struct uc_token *plan = NULL;

    seed(1, 0, 2);
    start_pipe(2, 1);
    ck_assert(signals(0, 2));
    for (size_t attempt = 0; attempt < 2; attempt++) {
        ck_assert_int_eq(uc_scheduler_prepare_prefetch(scheduler, "r", &plan), UC_ERR_NO_SPACE);
        expect_nothing_held();
    }
    ck_assert_int_eq(uc_scheduler_complete_prefetch(scheduler, "r", false), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(prefix(0, 2), -1); /* as if the signal was not used */
}
END_TEST

/* concrete while the plan is out: no transfer, no progress. */
START_TEST(plan_without_transfer_commits_nothing)
{
    struct uc_token *plan = NULL;

    seed(1, 0, 2);
    start_pipe(2, 8);
    ck_assert(signals(0, 2));
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(scheduler, "r", &plan), UC_OK);
    ck_assert_uint_eq(plan->key_count, 2); /* the destinations */
    ck_assert_int_eq(prefix(0, 2), -1);
    ck_assert_int_eq(uc_scheduler_complete_prefetch(scheduler, "r", true), UC_OK);
    ck_assert_int_eq(prefix(0, 2), -1);
    expect_nothing_held();
    uc_token_destroy(plan);
}
END_TEST

/* everything came by another way since the signal. */
START_TEST(round_with_nothing_left_is_empty)
{
    struct uc_token *plan = NULL;

    seed(1, 0, 2);
    start_pipe(2, 8);
    register_request("writer");
    ck_assert(signals(0, 2));
    put("writer", 0, 2);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(scheduler, "r", &plan), UC_OK);
    ck_assert_uint_eq(plan->key_count, 0);
    ck_assert_int_eq(uc_worker_submit_prefetch(worker, 500, plan), UC_OK);
    expect_job(500, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_prefetch(scheduler, "r", true), UC_OK);
    ck_assert_int_eq(prefix(0, 2), 1);
    uc_token_destroy(plan);
}
END_TEST

/* a destination that somebody writes at the same time is shared. */
START_TEST(prefetch_shares_with_a_concurrent_put)
{
    struct uc_token *token = NULL;

    seed(1, 0, 2);
    start_pipe(2, 2); /* room for two, not for four */
    register_request("writer");
    ck_assert_int_eq(uc_scheduler_prepare_put(scheduler, "writer", keys, 2, &token), UC_OK);
    ck_assert(signals(0, 2));
    run_round(true);
    ck_assert_int_eq(prefix(0, 2), -1); /* the last Commit decides */
    ck_assert_int_eq(uc_scheduler_complete_put(scheduler, "writer", false), UC_OK);
    ck_assert_int_eq(prefix(0, 2), 1); /* one sharer succeeded */
    uc_token_destroy(token);
    get_and_compare(0, 2);
    expect_nothing_held();
}
END_TEST

/* the safety net concludes the plan and forgets the query. */
START_TEST(finished_request_leaves_no_plan)
{
    struct uc_token *plan = NULL;

    seed(2, 0, 2);
    start_pipe(3, 8);
    ck_assert(signals(0, 2));
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(scheduler, "r", &plan), UC_OK);
    if (_i == 0) {
        ck_assert_int_eq(uc_scheduler_on_request_finished(scheduler, "r"), UC_OK);
        expect_nothing_held();
        register_request("r");
        ck_assert(signals(0, 2)); /* nothing is remembered */
    }
    uc_token_destroy(plan); /* the second time the assembler goes with all of it open */
}
END_TEST

/* G9: scheduler and worker are instances of their own; the plan travels as bytes. */
START_TEST(plan_works_between_separate_instances)
{
    struct uc_assembler *worker_side;
    struct uc_token *received = NULL;
    struct uc_token *plan = NULL;
    char yaml[CONFIG_BYTES];
    uint8_t *bytes;

    seed(2, 0, 2);
    tier_count = 3;
    pipe_config(yaml, 8);
    assembler = assemble(yaml, UC_ROLE_SCHEDULER);
    worker_side = assemble(yaml, UC_ROLE_WORKER);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(worker_side, &worker), UC_OK);
    register_request("r");
    for (size_t round = 0; round < 2; round++) {
        ck_assert(signals(0, 2));
        ck_assert_int_eq(uc_scheduler_prepare_prefetch(scheduler, "r", &plan), UC_OK);
        bytes = malloc(uc_token_serialized_bytes(plan));
        ck_assert_ptr_nonnull(bytes);
        uc_token_serialize(plan, bytes);
        ck_assert_int_eq(
                uc_token_deserialize(bytes, uc_token_serialized_bytes(plan), &received), UC_OK);
        free(bytes);
        ck_assert_int_eq(uc_worker_submit_prefetch(worker, ++last_job_id, received), UC_OK);
        expect_job(last_job_id, UC_OK);
        ck_assert_int_eq(uc_scheduler_complete_prefetch(scheduler, "r", true), UC_OK);
        uc_token_destroy(plan);
        uc_token_destroy(received);
    }
    ck_assert_int_eq(prefix(0, 2), 1);
    get_and_compare(0, 2);
    uc_assembler_destroy(worker_side);
}
END_TEST

/* damaged plans are refused at submit or fail in the event; nothing else happens. */
START_TEST(damaged_plans_do_no_harm)
{
    struct uc_token *plan = NULL;
    uint8_t *payload;

    seed(1, 0, 2);
    start_pipe(2, 8);
    ck_assert(signals(0, 2));
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(scheduler, "r", &plan), UC_OK);
    payload = malloc(plan->payload_bytes);
    ck_assert_ptr_nonnull(payload);
    for (size_t at = 0; at < plan->payload_bytes; at++) {
        struct uc_token damaged = *plan;
        uint64_t job_id = ++last_job_id;

        memcpy(payload, plan->payload, plan->payload_bytes);
        payload[at] ^= 0xff;
        damaged.payload = payload;
        damaged.payload_bytes = at % 3 == 0 ? at : plan->payload_bytes;
        if (uc_worker_submit_prefetch(worker, job_id, &damaged) == UC_OK) {
            struct uc_io_result result;
            size_t count = 0;

            ck_assert_int_eq(uc_worker_wait(worker, &job_id, 1, 20000, &result, 1, &count), UC_OK);
            ck_assert_uint_eq(count, 1);
            uc_io_results_release(&result, 1);
        }
    }
    free(payload);
    ck_assert_int_eq(uc_worker_submit_prefetch(worker, ++last_job_id, plan), UC_OK);
    expect_job(last_job_id, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_prefetch(scheduler, "r", true), UC_OK);
    uc_token_destroy(plan);
    get_and_compare(0, 2);
    expect_nothing_held();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipe_prefetch");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, unused_signal_is_followed_by_a_concrete_answer);
    tcase_add_test(tcase, round_makes_blocks_of_below_hits);
    tcase_add_test(tcase, failed_round_leaves_nothing_and_answers);
    tcase_add_test(tcase, another_list_is_refused_after_a_signal);
    tcase_add_test(tcase, block_of_the_third_tier_takes_two_rounds);
    tcase_add_test(tcase, failed_delegated_round_ends_the_query);
    tcase_add_test(tcase, signals_are_exact);
    tcase_add_test(tcase, rounds_lift_what_the_lookup_asked_for);
    tcase_add_test(tcase, refused_prepare_holds_nothing);
    tcase_add_test(tcase, plan_without_transfer_commits_nothing);
    tcase_add_test(tcase, round_with_nothing_left_is_empty);
    tcase_add_test(tcase, prefetch_shares_with_a_concurrent_put);
    tcase_add_loop_test(tcase, finished_request_leaves_no_plan, 0, 2);
    tcase_add_test(tcase, plan_works_between_separate_instances);
    tcase_add_test(tcase, damaged_plans_do_no_harm);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
