/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The numbers that a replay must reproduce. They pin the order semantics of the engine: a pin refreshes
 * once per block in the order of the ids, newcomers become hot at the commit, readmission changes
 * nothing, lookups change nothing.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "tools/bench/simulate.h"

enum {
    PATH_BYTES = 1024
};

static struct uc_trace trace;

static struct uc_replay_counts
simulate(uint64_t nodes, uint64_t capacity_blocks)
{
    struct uc_replay_options options = {
            .nodes = nodes,
            .capacity_blocks = capacity_blocks,
            .policy = "lru",
            .simulate = true,
    };
    struct uc_replay_counts counts = {0};

    ck_assert_int_eq(uc_simulate_run(&trace, &options, &counts), UC_OK);
    ck_assert_uint_eq(counts.requests, trace.request_count);
    ck_assert_uint_eq(counts.block_refs, trace.hash_id_count);
    ck_assert_uint_eq(counts.mismatches + counts.errors, 0);
    return counts;
}

static void
teardown(void)
{
    uc_trace_fini(&trace);
}

/* Public traces, where they are: all counts are exact. */
static const struct {
    const char *file;
    uint64_t limit;
    uint64_t capacity_blocks;
    struct uc_replay_counts want;
} trace_cases[] = {
        {"conversation_trace.jsonl", 0, 10000,
                {.block_refs = 288500,
                        .prefix_hits = 60822,
                        .cross_node_hits = 29993,
                        .written_blocks = 227556,
                        .present_blocks = 122,
                        .evicted_blocks = 217556}},
        {"conversation_trace.jsonl", 500, 10000,
                {.block_refs = 14162,
                        .prefix_hits = 2253,
                        .cross_node_hits = 1134,
                        .written_blocks = 11909,
                        .evicted_blocks = 1909}},
        {"synthetic_trace.jsonl", 0, 10000,
                {.block_refs = 121877,
                        .prefix_hits = 51622,
                        .cross_node_hits = 25452,
                        .written_blocks = 70201,
                        .present_blocks = 54,
                        .evicted_blocks = 60201}},
        {"synthetic_trace.jsonl", 0, 50000, /* room for all */
                {.block_refs = 121877,
                        .prefix_hits = 77953,
                        .cross_node_hits = 41344,
                        .written_blocks = 43924}},
};

static void
check_counts(const struct uc_replay_counts *got, const struct uc_replay_counts *want)
{
    ck_assert_uint_eq(got->block_refs, want->block_refs);
    ck_assert_uint_eq(got->prefix_hits, want->prefix_hits);
    ck_assert_uint_eq(got->cross_node_hits, want->cross_node_hits);
    ck_assert_uint_eq(got->written_blocks, want->written_blocks);
    ck_assert_uint_eq(got->present_blocks, want->present_blocks);
    ck_assert_uint_eq(got->evicted_blocks, want->evicted_blocks);
    ck_assert_uint_eq(got->refused_puts, want->refused_puts);
}

START_TEST(public_traces_give_their_known_numbers)
{
    const char *folder = getenv("UCM_TRACE_DIR");
    struct uc_replay_counts counts;
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "%s/%s", folder == NULL ? DEFAULT_TRACE_DIR : folder,
            trace_cases[_i].file);
    if (access(path, R_OK) != 0) {
        (void)printf("skipped: no %s (set UCM_TRACE_DIR)\n", path);
        return;
    }

    ck_assert_int_eq(uc_trace_read(path, trace_cases[_i].limit, &trace), UC_OK);
    counts = simulate(2, trace_cases[_i].capacity_blocks);
    check_counts(&counts, &trace_cases[_i].want);
}
END_TEST

/* The generated trace of seed 1 with 3000 requests on three nodes: pinned when it was made. */
static const struct {
    uint64_t capacity_blocks;
    struct uc_replay_counts want;
} generated_cases[] = {
        {200, {.block_refs = 48904,
                      .prefix_hits = 12749,
                      .cross_node_hits = 8871,
                      .written_blocks = 35813,
                      .present_blocks = 342,
                      .evicted_blocks = 35613}},
        {1000, {.block_refs = 48904,
                       .prefix_hits = 27028,
                       .cross_node_hits = 18234,
                       .written_blocks = 21725,
                       .present_blocks = 151,
                       .evicted_blocks = 20725}},
        {100000, {.block_refs = 48904,
                         .prefix_hits = 32026,
                         .cross_node_hits = 21696,
                         .written_blocks = 16878}},
};

START_TEST(generated_trace_gives_its_pinned_numbers)
{
    struct uc_replay_counts counts;

    ck_assert_int_eq(uc_trace_generate(1, 3000, &trace), UC_OK);
    counts = simulate(3, generated_cases[_i].capacity_blocks);
    check_counts(&counts, &generated_cases[_i].want);
}
END_TEST

START_TEST(one_node_has_no_other_node)
{
    ck_assert_int_eq(uc_trace_generate(1, 300, &trace), UC_OK);
    ck_assert_uint_eq(simulate(1, 1000).cross_node_hits, 0);
}
END_TEST

/* A request larger than the cache is refused as a whole; the next one is served. */
START_TEST(request_that_does_not_fit_is_counted)
{
    static const uint64_t hash_ids[] = {1, 2, 3, 4, 5};
    struct uc_trace_request request = {0};
    struct uc_replay_counts counts;

    ck_assert_int_eq(uc_trace_add(&trace, &request, hash_ids, 5), UC_OK);
    ck_assert_int_eq(uc_trace_add(&trace, &request, hash_ids, 3), UC_OK);
    ck_assert_int_eq(uc_trace_add(&trace, &request, hash_ids, 0), UC_OK);
    counts = simulate(2, 4);
    ck_assert_uint_eq(counts.refused_puts, 1);
    ck_assert_uint_eq(counts.written_blocks, 3);
    ck_assert_uint_eq(counts.evicted_blocks, 0);
}
END_TEST

START_TEST(unknown_policy_is_an_error)
{
    struct uc_replay_options options = {.nodes = 1, .capacity_blocks = 1, .policy = "nosuch"};
    struct uc_replay_counts counts;

    ck_assert_int_eq(uc_trace_generate(1, 1, &trace), UC_OK);
    ck_assert_int_eq(uc_simulate_run(&trace, &options, &counts), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "nosuch"));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("simulate");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, public_traces_give_their_known_numbers, 0,
            sizeof(trace_cases) / sizeof(trace_cases[0]));
    tcase_add_loop_test(tcase, generated_trace_gives_its_pinned_numbers, 0,
            sizeof(generated_cases) / sizeof(generated_cases[0]));
    tcase_add_test(tcase, one_node_has_no_other_node);
    tcase_add_test(tcase, request_that_does_not_fit_is_counted);
    tcase_add_test(tcase, unknown_policy_is_an_error);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
