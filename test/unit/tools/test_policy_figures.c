/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the policies reach on two public traces, in percent of the block references, to 0.15 points; and
 * that pwa is never more than half a point below lru on traces derived from them.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "tools/bench/curve.h"
#include "tools/bench/trace_load.h"

enum {
    PATH_BYTES = 1024,
    CAPACITIES = 8,
    POLICIES = 5
};

#define TOLERANCE     0.15
#define BELOW_LRU_MAX 0.5

static const struct uc_replay_capacities capacities = {
        .blocks = {1000, 2500, 5000, 10000, 15000, 25000, 35000, 50000}, .count = CAPACITIES};

static const struct {
    const char *file;
    double wanted[POLICIES][CAPACITIES]; /* fifo, lru, clock, pwa without and with ghost */
    double optimum[CAPACITIES];
} figures[] = {
        {"conversation_trace.jsonl",
                {{4.34, 5.67, 10.53, 18.13, 22.57, 27.68, 31.00, 33.35},
                        {4.45, 5.80, 11.03, 21.08, 25.52, 30.98, 34.03, 35.46},
                        {4.45, 5.76, 10.62, 19.59, 24.45, 29.75, 32.90, 34.73},
                        {4.50, 6.16, 12.22, 21.99, 27.05, 32.05, 34.04, 35.52},
                        {7.77, 12.46, 16.33, 23.05, 27.51, 32.16, 34.24, 35.60}},
                {19.07, 27.71, 34.12, 36.64, 36.64, 36.64, 36.64, 36.64}},
        {"synthetic_trace.jsonl",
                {{8.19, 16.16, 26.57, 39.70, 48.21, 56.56, 61.10, 63.96},
                        {8.25, 16.86, 27.90, 42.36, 51.78, 60.51, 63.43, 63.96},
                        {8.11, 16.73, 27.29, 40.75, 50.71, 59.64, 62.75, 63.96},
                        {8.83, 17.53, 28.02, 43.85, 52.94, 61.64, 63.78, 63.96},
                        {9.39, 18.71, 29.90, 44.64, 54.23, 61.83, 63.78, 63.96}},
                {27.67, 41.74, 52.63, 61.80, 63.96, 63.96, 63.96, 63.96}},
};

enum {
    FIRST_PWA = 3, /* rows of pwa may be better */
    CONVERSATION = 0,
    SYNTHETIC = 1,
    NONE = -1
};

static struct uc_trace trace;
static struct uc_curve *curve;
static char paths[2][PATH_BYTES];

static void
teardown(void)
{
    uc_curve_destroy(curve);
    uc_trace_fini(&trace);
    curve = NULL;
}

static bool
have_traces(void)
{
    const char *folder = getenv("UCM_TRACE_DIR");

    for (size_t idx = 0; idx < 2; idx++) {
        (void)snprintf(paths[idx], sizeof(paths[idx]), "%s/%s",
                folder == NULL ? DEFAULT_TRACE_DIR : folder, figures[idx].file);
        if (access(paths[idx], R_OK) != 0) {
            (void)printf("skipped: no %s (set UCM_TRACE_DIR)\n", paths[idx]);
            return false;
        }
    }

    return true;
}

static void
run_curve(struct uc_replay_options *options)
{
    options->nodes = 1;
    ck_assert_int_eq(uc_trace_load(options, &trace), UC_OK);
    ck_assert_int_eq(uc_curve_run(&trace, options, &curve), UC_OK);
}

START_TEST(policies_reach_their_figures)
{
    struct uc_replay_options options = {.half = "all",
            .thin = 1,
            .time_scale = 1,
            .policy = "fifo,lru,clock,pwa:ghost=0,pwa",
            .capacities = capacities};

    if (!have_traces()) {
        return;
    }
    options.trace_path = paths[_i];
    run_curve(&options);
    for (size_t idx = 0; idx < CAPACITIES; idx++) {
        for (size_t policy = 0; policy < POLICIES; policy++) {
            double pct = uc_curve_hit_pct(curve, curve->counts[policy][idx].prefix_hits);
            double above = pct - figures[_i].wanted[policy][idx];

            ck_assert_msg(above >= -TOLERANCE && (above <= TOLERANCE || policy >= FIRST_PWA),
                    "%s with %lu blocks: %.2f, not %.2f", curve->policies[policy].text,
                    (unsigned long)capacities.blocks[idx], pct, figures[_i].wanted[policy][idx]);
        }
        ck_assert_double_eq_tol(
                uc_curve_hit_pct(curve, curve->optimum_hits[idx]), figures[_i].optimum[idx], 0.005);
    }
}
END_TEST

static const struct {
    int trace;
    int mix;
    const char *half;
    uint64_t thin;
    double time_scale;
} derived[] = {
        {CONVERSATION, NONE, "first", 1, 1},
        {CONVERSATION, NONE, "second", 1, 1},
        {CONVERSATION, NONE, "all", 2, 1},
        {CONVERSATION, NONE, "all", 1, 0.5},
        {CONVERSATION, NONE, "all", 1, 2},
        {SYNTHETIC, NONE, "first", 1, 1},
        {SYNTHETIC, NONE, "second", 1, 1},
        {SYNTHETIC, NONE, "all", 2, 1},
        {SYNTHETIC, NONE, "all", 1, 0.5},
        {SYNTHETIC, NONE, "all", 1, 2},
        {CONVERSATION, SYNTHETIC, "all", 1, 1},
        {CONVERSATION, SYNTHETIC, "first", 1, 1},
        {CONVERSATION, SYNTHETIC, "all", 2, 1},
};

START_TEST(pwa_stays_near_lru_on_derived_traces)
{
    struct uc_replay_options options = {.half = derived[_i].half,
            .thin = derived[_i].thin,
            .time_scale = derived[_i].time_scale,
            .policy = "lru,pwa",
            .capacities = {.blocks = {1000, 2500, 10000}, .count = 3}};

    if (!have_traces()) {
        return;
    }
    options.trace_path = paths[derived[_i].trace];
    options.mix_path = derived[_i].mix == NONE ? NULL : paths[derived[_i].mix];
    run_curve(&options);
    for (size_t idx = 0; idx < options.capacities.count; idx++) {
        double lru = uc_curve_hit_pct(curve, curve->counts[0][idx].prefix_hits);
        double pwa = uc_curve_hit_pct(curve, curve->counts[1][idx].prefix_hits);

        ck_assert_msg(pwa >= lru - BELOW_LRU_MAX, "%lu blocks: pwa %.2f, lru %.2f",
                (unsigned long)options.capacities.blocks[idx], pwa, lru);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_figures");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, policies_reach_their_figures, 0, 2);
    tcase_add_loop_test(
            tcase, pwa_stays_near_lru_on_derived_traces, 0, sizeof(derived) / sizeof(derived[0]));
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
