/* SPDX-License-Identifier: Apache-2.0 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/config/fields.h"
#include "tools/bench/store.h"
#include "tools/bench/store_limit.h"

static const struct {
    const char *text;
    enum uc_store_limit_kind put;
    enum uc_store_limit_kind get;
    const char *medium;
    const char *reason; /* of the put */
} cases[] = {
        {"{type: store, store: cache}", UC_STORE_LIMIT_MEMORY, UC_STORE_LIMIT_MEMORY, "", NULL},
        {"{type: store, store: posix, config: {root: /a, direct_io: on}}", UC_STORE_LIMIT_MEDIUM,
                UC_STORE_LIMIT_MEDIUM, "/a", NULL},
        {"{type: store, store: posix, config: {root: [/a], direct_io: true}}",
                UC_STORE_LIMIT_MEDIUM, UC_STORE_LIMIT_MEDIUM, "/a", NULL},
        {"{type: store, store: posix, config: {root: /a}}", UC_STORE_LIMIT_NONE,
                UC_STORE_LIMIT_NONE, "", "page cache"},
        {"{type: store, store: posix}", UC_STORE_LIMIT_NONE, UC_STORE_LIMIT_NONE, "", "page cache"},
        {"{type: store, store: posix, config: {root: [/a, /b], direct_io: on}}",
                UC_STORE_LIMIT_NONE, UC_STORE_LIMIT_NONE, "", "several roots"},
        {"{type: store, store: remote}", UC_STORE_LIMIT_NONE, UC_STORE_LIMIT_NONE, "", "network"},
        {"{type: store, store: /lib/mine.so}", UC_STORE_LIMIT_NONE, UC_STORE_LIMIT_NONE, "",
                "known"},
        {"{type: pipe, stores: [{type: store, store: cache}, {type: store, store: remote}]}",
                UC_STORE_LIMIT_MEMORY, UC_STORE_LIMIT_MEMORY, "", NULL},
        {"{type: pipe, stores: [{type: store, store: cache, config: {write: through}}]}",
                UC_STORE_LIMIT_NONE, UC_STORE_LIMIT_MEMORY, "", "write: through"},
        {"{type: peer, branches: [{type: store, store: cache}]}", UC_STORE_LIMIT_NONE,
                UC_STORE_LIMIT_NONE, "", "peer"},
};

START_TEST(limit_follows_from_the_topology)
{
    struct uc_store_limits limits;
    struct uc_dict *topology = NULL;

    ck_assert_int_eq(
            uc_yaml_read_text(cases[_i].text, strlen(cases[_i].text), "t", &topology), UC_OK);
    uc_store_limits_find(topology, &limits);
    uc_dict_destroy(topology);
    ck_assert_int_eq(limits.put.kind, cases[_i].put);
    ck_assert_int_eq(limits.get.kind, cases[_i].get);
    ck_assert_str_eq(limits.medium, cases[_i].medium);
    ck_assert_int_eq(limits.put.reason == NULL, cases[_i].reason == NULL);
    if (cases[_i].reason != NULL) {
        ck_assert_ptr_nonnull(strstr(limits.put.reason, cases[_i].reason));
    }
}
END_TEST

static json_t *
print(const struct uc_store_report *report)
{
    struct uc_store_options options = {
            .config_path = "t.yaml", .blocks = 4, .block_bytes = 4096, .json = true};
    size_t bytes = 0;
    char *text = NULL;
    FILE *file = open_memstream(&text, &bytes);
    json_t *root;

    uc_store_report_print(&options, report, file);
    ck_assert_int_eq(fclose(file), 0);
    root = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(root);
    free(text);
    return root;
}

static double
number(const json_t *root, const char *direction, const char *key)
{
    const json_t *object = json_object_get(root, direction);

    return json_number_value(json_object_get(object, key));
}

static const char *
limit_name(const json_t *root, const char *direction)
{
    const json_t *object = json_object_get(root, direction);

    return json_string_value(json_object_get(json_object_get(object, "limit"), "name"));
}

/* One of what a direction is compared with. */
static double
limit_ratio(const json_t *root, const char *direction, size_t idx, const char *name)
{
    const json_t *limits = json_object_get(json_object_get(root, direction), "limits");
    const json_t *limit = json_array_get(limits, idx);

    ck_assert_str_eq(json_string_value(json_object_get(limit, "name")), name);
    return json_number_value(json_object_get(limit, "ratio"));
}

static void
add_round(struct uc_store_report *report, double put, double get, double new_files)
{
    struct uc_store_round round = {.rates = {[UC_STORE_PUT] = put,
                                           [UC_STORE_GET] = get,
                                           [UC_STORE_MEMCPY_COLD] = 2,
                                           [UC_STORE_NEW_FILES] = new_files,
                                           [UC_STORE_ONE_FILE] = 4,
                                           [UC_STORE_OVERWRITE] = 8}};

    ck_assert_int_eq(uc_store_rounds_add(&report->rounds, &round), UC_OK);
}

/* The ratio is the median of the rounds' own, not that of the medians: a pace that changes changes both sides. */
START_TEST(report_gives_rate_limit_and_ratio)
{
    struct uc_store_report report = {
            .limits = {.put = {.kind = UC_STORE_LIMIT_MEDIUM},
                    .get = {.kind = UC_STORE_LIMIT_MEMORY}},
    };
    json_t *root;

    add_round(&report, 1, 1, 4);
    add_round(&report, 2, 1, 4);
    add_round(&report, 4, 5, 2);
    root = print(&report);
    ck_assert_double_eq_tol(number(root, "put", "gbytes_per_s"), 2, 1e-9);
    ck_assert_double_eq_tol(number(root, "put", "gbytes_per_s_min"), 1, 1e-9);
    ck_assert_double_eq_tol(number(root, "put", "gbytes_per_s_max"), 4, 1e-9);
    ck_assert_double_eq_tol(number(root, "put", "ratio"), 0.5, 1e-9);
    ck_assert_str_eq(limit_name(root, "put"), "io_uring_new_files");
    ck_assert_double_eq_tol(limit_ratio(root, "put", 0, "io_uring_new_files"), 0.5, 1e-9);
    ck_assert_double_eq_tol(limit_ratio(root, "put", 1, "io_uring_one_file"), 0.5, 1e-9);
    ck_assert_double_eq_tol(limit_ratio(root, "put", 2, "io_uring_overwrite"), 0.25, 1e-9);
    ck_assert_double_eq_tol(number(root, "get", "ratio"), 0.5, 1e-9);
    ck_assert_str_eq(limit_name(root, "get"), "memcpy_cold");
    json_decref(root);
    report.is_fio = true;
    root = print(&report);
    ck_assert_str_eq(limit_name(root, "put"), "fio_new_files");
    json_decref(root);
    uc_store_rounds_fini(&report.rounds);
}
END_TEST

START_TEST(rounds_grow_and_those_that_measured_nothing_do_not_count)
{
    struct uc_store_report report = {.huge_pages = false};

    ck_assert_double_eq(uc_store_rounds_rate(&report.rounds, UC_STORE_PUT).median, 0);
    for (int idx = 0; idx < 100; idx++) {
        add_round(&report, idx, 1, idx % 2 == 0 ? 0 : idx);
    }
    ck_assert_double_eq_tol(
            uc_store_rounds_rate(&report.rounds, UC_STORE_NEW_FILES).median, 50, 1e-9);
    ck_assert_double_eq_tol(uc_store_rounds_rate(&report.rounds, UC_STORE_PUT).min, 1, 1e-9);
    ck_assert_double_eq_tol(
            uc_store_rounds_ratio(&report.rounds, UC_STORE_PUT, UC_STORE_NEW_FILES).max, 1, 1e-9);
    uc_store_rounds_fini(&report.rounds);
}
END_TEST

START_TEST(missing_limit_is_null_with_a_reason)
{
    struct uc_store_report report = {
            .phases = {[UC_STORE_PUT] = {.name = "put", .bytes = 1, .seconds = 1},
                    [UC_STORE_GET] = {.name = "get", .bytes = 1, .seconds = 1}},
            .limits = {.put = {.reason = "why"}, .get = {.kind = UC_STORE_LIMIT_MEDIUM}},
    };
    json_t *root = print(&report);
    json_t *put = json_object_get(root, "put");
    json_t *get = json_object_get(root, "get");

    ck_assert(json_is_null(json_object_get(put, "limit")));
    ck_assert(json_is_null(json_object_get(put, "ratio")));
    ck_assert_str_eq(json_string_value(json_object_get(put, "reason")), "why");
    ck_assert(json_is_null(json_object_get(get, "limit")));
    ck_assert_ptr_nonnull(
            strstr(json_string_value(json_object_get(get, "reason")), "could not be measured"));
    json_decref(root);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("store_limit");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(
            tcase, limit_follows_from_the_topology, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tcase, report_gives_rate_limit_and_ratio);
    tcase_add_test(tcase, rounds_grow_and_those_that_measured_nothing_do_not_count);
    tcase_add_test(tcase, missing_limit_is_null_with_a_reason);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
