/* SPDX-License-Identifier: Apache-2.0 */

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "tools/bench/curve.h"
#include "tools/bench/simulate.h"

static struct uc_trace trace;
static struct uc_curve *curve;
static char *text;
static size_t text_bytes;

static struct uc_replay_options options = {
        .generate = {.seed = 1, .requests = 500},
        .thin = 1,
        .time_scale = 1,
        .nodes = 2,
        .policy = "lru,pwa,pwa:ghost=0",
        .capacities = {.blocks = {100, 1000}, .count = 2},
        .simulate = true,
};

static void
setup(void)
{
    ck_assert_int_eq(uc_trace_generate(1, 500, &trace), UC_OK);
}

static void
teardown(void)
{
    uc_curve_destroy(curve);
    uc_trace_fini(&trace);
    free(text);
    text = NULL;
    curve = NULL;
}

static void
print(void)
{
    FILE *file = open_memstream(&text, &text_bytes);

    uc_curve_print(&options, curve, file);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(points_are_those_of_single_runs)
{
    struct uc_replay_options one = options;
    struct uc_replay_counts counts;

    ck_assert_int_eq(uc_curve_run(&trace, &options, &curve), UC_OK);
    ck_assert_uint_eq(curve->policy_count, 3);
    one.policy = "pwa:ghost=0";
    one.capacity_blocks = 1000;
    ck_assert_int_eq(uc_simulate_run(&trace, &one, &counts), UC_OK);
    ck_assert_uint_eq(curve->counts[2][1].prefix_hits, counts.prefix_hits);
    for (size_t policy = 0; policy < 3; policy++) {
        for (size_t idx = 0; idx < 2; idx++) {
            ck_assert_uint_gt(curve->counts[policy][idx].prefix_hits, 0);
            ck_assert_uint_le(curve->counts[policy][idx].prefix_hits, curve->optimum_hits[idx]);
        }
    }
}
END_TEST

START_TEST(json_lists_every_point_and_the_optimum)
{
    json_t *root;
    json_t *points;
    json_t *last;

    options.json = true;
    ck_assert_int_eq(uc_curve_run(&trace, &options, &curve), UC_OK);
    print();
    root = json_loads(text, 0, NULL);
    points = json_object_get(root, "curve");
    ck_assert_str_eq(json_string_value(json_object_get(root, "mode")), "simulate");
    ck_assert_uint_eq(json_array_size(points), 8);
    last = json_array_get(points, 7);
    ck_assert_str_eq(json_string_value(json_object_get(last, "policy")), "optimum");
    ck_assert_int_eq(json_integer_value(json_object_get(last, "capacity_blocks")), 1000);
    ck_assert_uint_eq(
            json_integer_value(json_object_get(last, "prefix_hits")), curve->optimum_hits[1]);
    ck_assert(json_real_value(json_object_get(last, "hit_pct")) > 1);
    json_decref(root);
}
END_TEST

START_TEST(table_has_a_row_per_capacity)
{
    options.json = false;
    options.half = "first";
    options.thin = 2;
    ck_assert_int_eq(uc_curve_run(&trace, &options, &curve), UC_OK);
    print();
    ck_assert_ptr_nonnull(strstr(text, "generated trace 1:500, first half, one request in 2"));
    ck_assert_ptr_nonnull(strstr(text, "pwa:ghost=0"));
    ck_assert_ptr_nonnull(strstr(text, "optimum\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n        1000 "));
    options.half = NULL;
    options.thin = 1;
}
END_TEST

START_TEST(faults_in_the_list_are_named)
{
    static const struct {
        const char *policy;
        const char *named;
    } cases[] = {{"lru,nosuch", "nosuch"}, {"pwa:gohst=1", "gohst"}, {"lru,,pwa", "NAME"},
            {"lru,lru,lru,lru,lru,lru,lru,lru,lru,lru,lru,lru,lru,lru,lru,lru,lru", "16"}};

    options.policy = cases[_i].policy;
    ck_assert_int_eq(uc_curve_run(&trace, &options, &curve), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), cases[_i].named));
}
END_TEST

/* What is put into the program of gnuplot cannot leave its quotes, and no file is named there: it could be a pipe. */
START_TEST(names_in_the_plot_are_quoted)
{
    FILE *file = open_memstream(&text, &text_bytes);

    options.plot_path = "|exit";
    options.trace_path = "a'; exit;\n'b";
    ck_assert_int_eq(uc_curve_run(&trace, &options, &curve), UC_OK);
    uc_curve_write_gnuplot(&options, curve, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_ptr_null(strstr(text, "|exit"));
    ck_assert_ptr_nonnull(strstr(text, "set title 'a''; exit;?''b'\n"));
    ck_assert_ptr_nonnull(strstr(text, "$curve using 1:4 with linespoints"));
    ck_assert_ptr_nonnull(strstr(text, "$curve using 1:5 with lines"));
}
END_TEST

/* Plot with a gnuplot that is this script; NULL = there is none. */
static enum uc_status
plot_with(const char *script)
{
    char folder[] = "/tmp/ucm-gnuplot-XXXXXX";
    char path[64];
    enum uc_status status;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/gnuplot", folder);
    if (script != NULL) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, script, strlen(script)), (ssize_t)strlen(script));
        ck_assert_int_eq(close(fd), 0);
    }
    ck_assert_int_eq(setenv("PATH", folder, 1), 0);
    ck_assert_int_eq(uc_curve_run(&trace, &options, &curve), UC_OK);
    status = uc_curve_plot(&options, curve);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
    return status;
}

/* Neither is a new file left behind, nor is one that was there touched. */
START_TEST(plot_that_fails_leaves_files_alone)
{
    static const struct {
        const char *script;
        enum uc_status status;
        const char *named;
    } cases[] = {
            {NULL, UC_ERR_NOT_FOUND, "gnuplot-nox"},
            {"#!/bin/sh\necho half\nexit 1\n", UC_ERR_OS_API, "gnuplot failed"},
            {"#!/bin/sh\n", UC_ERR_OS_API, "drew nothing"},
    };
    char path[] = "/tmp/ucm-curve-XXXXXX";
    char kept[8] = "";
    int fd = mkstemp(path);

    options.plot_path = path;
    ck_assert_int_eq(write(fd, "former", 6), 6);
    ck_assert_int_eq(plot_with(cases[_i].script), cases[_i].status);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), cases[_i].named));
    ck_assert_int_eq(pread(fd, kept, sizeof(kept), 0), 6);
    ck_assert_str_eq(kept, "former");
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
    uc_curve_destroy(curve);

    ck_assert_int_eq(plot_with(cases[_i].script), cases[_i].status);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(file_that_cannot_be_written_is_named)
{
    options.plot_path = "/nonexistent/curve.png";
    ck_assert_int_eq(plot_with("#!/bin/sh\necho picture\n"), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "/nonexistent/curve.png: No such file"));
}
END_TEST

START_TEST(plot_is_a_png)
{
    static const unsigned char magic[4] = {0x89, 'P', 'N', 'G'};
    char path[] = "/tmp/ucm-curve-XXXXXX";
    unsigned char start[4] = {0};
    int fd = mkstemp(path);
    enum uc_status status;

    ck_assert_int_ge(fd, 0);
    options.plot_path = path;
    ck_assert_int_eq(uc_curve_run(&trace, &options, &curve), UC_OK);
    status = uc_curve_plot(&options, curve);
    ck_assert_int_eq(unlink(path), 0);
    if (status == UC_ERR_NOT_FOUND) {
        (void)printf("skipped: no gnuplot\n");
        (void)close(fd);
        return;
    }
    ck_assert_msg(status == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(pread(fd, start, 4, 0), 4);
    (void)close(fd);
    ck_assert_mem_eq(start, magic, 4);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("curve");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, points_are_those_of_single_runs);
    tcase_add_test(tcase, json_lists_every_point_and_the_optimum);
    tcase_add_test(tcase, table_has_a_row_per_capacity);
    tcase_add_test(tcase, names_in_the_plot_are_quoted);
    tcase_add_loop_test(tcase, plot_that_fails_leaves_files_alone, 0, 3);
    tcase_add_test(tcase, file_that_cannot_be_written_is_named);
    tcase_add_test(tcase, plot_is_a_png);
    tcase_add_loop_test(tcase, faults_in_the_list_are_named, 0, 4);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
