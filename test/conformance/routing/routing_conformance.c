/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What every routing strategy has to keep (section 13 of core/CONTRACT.md, R-18.7): the cases of the first part run on
 * every strategy of the registry, those of the second on the two that cut a number into ranges.
 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/proxy/routing.h"
#include "core/config/fields.h"

enum {
    NAMES_BYTES = 256,
    BRANCHES_MAX = 9,
    SELECTIONS = 20000
};

static uint64_t state = 20260101;

static uint64_t
draw(void)
{
    state += 0x9e3779b97f4a7c15ull;
    return (state ^ state >> 31) * 0xbf58476d1ce4e5b9ull;
}

static const struct uc_routing_ops *
strategy(int idx)
{
    const struct uc_routing_ops *ops = uc_routing_builtin_at((size_t)idx);

    ck_assert_ptr_nonnull(ops);
    return ops;
}

static struct uc_dict *
parse(const char *yaml)
{
    struct uc_dict *config = NULL;

    ck_assert_msg(
            uc_yaml_read_text(yaml, strlen(yaml), "case", &config) == UC_OK, "%s", uc_last_error());
    return config;
}

/* Parameters that every built-in strategy accepts for that many branches. */
static struct uc_dict *
parameters(size_t branch_count)
{
    struct uc_dict *config = parse("{thresholds: []}");

    for (size_t idx = 1; idx < branch_count; idx++) {
        ck_assert_int_eq(
                uc_dict_append_int(config, "thresholds", (int64_t)(branch_count - idx) * 1000),
                UC_OK);
    }
    return config;
}

static struct uc_routing *
create(const struct uc_routing_ops *ops, size_t branch_count)
{
    struct uc_routing *routing = NULL;
    struct uc_dict *config = parameters(branch_count);

    ck_assert_msg(ops->create(config, branch_count, &routing) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config); /* borrowed for the call only */
    return routing;
}

static void
destroy(const struct uc_routing_ops *ops, struct uc_routing *routing)
{
    if (ops->destroy != NULL) {
        ops->destroy(routing);
    }
}

static struct uc_request_context
random_context(void)
{
    static const uint64_t scales[] = {1, 3000, 20000, UINT64_MAX};
    struct uc_request_context context = uc_request_context_init("request");

    context.present = draw(); /* bits that nobody knows, too */
    context.ttl_ms = draw() % scales[draw() >> 62];
    context.total_block_count = draw() % scales[draw() >> 62];
    return context;
}

/* */
START_TEST(strategy_is_found_by_its_name)
{
    const struct uc_routing_ops *ops = strategy(_i);
    char names[NAMES_BYTES];

    ck_assert_str_ne(ops->name, "");
    ck_assert_ptr_eq(uc_routing_find(NULL, ops->name), ops);
    uc_routing_names(NULL, names, sizeof(names));
    ck_assert_ptr_nonnull(strstr(names, ops->name));
    ck_assert_uint_ge(ops->struct_size, sizeof(*ops));
}
END_TEST

/* */
START_TEST(every_choice_is_a_branch)
{
    const struct uc_routing_ops *ops = strategy(_i);

    for (size_t branch_count = 1; branch_count <= BRANCHES_MAX; branch_count++) {
        struct uc_routing *routing = create(ops, branch_count);

        for (size_t idx = 0; idx < SELECTIONS / BRANCHES_MAX; idx++) {
            struct uc_request_context context = random_context();

            ck_assert_uint_lt(ops->select(routing, &context), branch_count);
        }
        destroy(ops, routing);
    }
}
END_TEST

/* the same facts and parameters give the same branch, in another instance and in any order. */
START_TEST(choices_depend_on_facts_and_parameters_alone)
{
    const struct uc_routing_ops *ops = strategy(_i);
    struct uc_routing *first = create(ops, 4);
    struct uc_routing *second = create(ops, 4);

    for (size_t idx = 0; idx < SELECTIONS; idx++) {
        struct uc_request_context context = random_context();
        struct uc_request_context other = random_context();
        size_t branch = ops->select(first, &context);

        (void)ops->select(second, &other);
        ck_assert_uint_eq(ops->select(second, &context), branch);
        ck_assert_uint_eq(ops->select(first, &context), branch);
    }
    destroy(ops, second);
    destroy(ops, first);
}
END_TEST

/* */
START_TEST(facts_without_their_bit_are_not_read)
{
    const struct uc_routing_ops *ops = strategy(_i);
    struct uc_routing *routing = create(ops, 3);
    struct uc_request_context bare = uc_request_context_init("request");
    struct uc_request_context loud = bare;

    loud.ttl_ms = UINT64_MAX;
    loud.total_block_count = UINT64_MAX;
    loud.present = ~(UC_REQUEST_TTL | UC_REQUEST_TOTAL_BLOCK_COUNT);
    ck_assert_uint_eq(ops->select(routing, &loud), ops->select(routing, &bare));
    destroy(ops, routing);
}
END_TEST

/* V-13 */
START_TEST(one_branch_needs_no_parameters)
{
    static const char *const texts[] = {"{}", "{thresholds: []}"};
    const struct uc_routing_ops *ops = strategy(_i);

    for (size_t idx = 0; idx < 2; idx++) {
        struct uc_dict *config = parse(texts[idx]);
        struct uc_routing *routing = NULL;

        ck_assert_int_eq(ops->create(config, 1, &routing), UC_OK);
        for (size_t count = 0; count < 100; count++) {
            struct uc_request_context context = random_context();

            ck_assert_uint_eq(ops->select(routing, &context), 0);
        }
        destroy(ops, routing);
        uc_dict_destroy(config);
    }
}
END_TEST

/* V-10, V-11, R-13.6 to: facts and the branch of each; −1 = no fact. */
static const struct {
    const char *name;
    const char *parameters;
    int64_t facts[8];
    size_t branches[8];
} select_cases[] = {
        {"ttl", "{thresholds: [60000, 10000]}", {-1, 0, 10000, 10001, 60000, 60001, -1, -1},
                {2, 2, 2, 1, 1, 0, 2, 2}}, /* V-10 */
        {"length", "{thresholds: [1024, 128]}", {-1, 0, 128, 129, 1024, 1025, -1, -1},
                {2, 2, 2, 1, 1, 0, 2, 2}}, /* V-11 */
        {"ttl", "{thresholds: [9223372036854775807, 1]}",
                {INT64_MAX, INT64_MAX - 1, 2, 1, 0, -1, -1, -1}, {1, 1, 1, 2, 2, 2, 2, 2}},
        {"length", "{thresholds: [3, 2]}", {4, 3, 2, 1, 0, -1, -1, -1}, {0, 1, 2, 2, 2, 2, 2, 2}},
};

START_TEST(thresholds_cut_the_range)
{
    const struct uc_routing_ops *ops = uc_routing_find(NULL, select_cases[_i].name);
    struct uc_dict *config = parse(select_cases[_i].parameters);
    struct uc_routing *routing = NULL;

    ck_assert_ptr_nonnull(ops);
    ck_assert_int_eq(ops->create(config, 3, &routing), UC_OK);
    for (size_t idx = 0; idx < 8; idx++) {
        struct uc_request_context context = uc_request_context_init("request");
        int64_t fact = select_cases[_i].facts[idx];
        bool is_ttl = strcmp(ops->name, "ttl") == 0;

        if (fact >= 0) {
            context.present = is_ttl ? UC_REQUEST_TTL : UC_REQUEST_TOTAL_BLOCK_COUNT;
        }
        context.ttl_ms = is_ttl ? (uint64_t)fact : 1ull << 40;
        context.total_block_count = is_ttl ? 1ull << 40 : (uint64_t)fact;
        ck_assert_uint_eq(ops->select(routing, &context), select_cases[_i].branches[idx]);
    }
    destroy(ops, routing);
    uc_dict_destroy(config);
}
END_TEST

/* V-12, R-13.5, for both strategies */
static const struct {
    const char *parameters;
    size_t branch_count;
} refused_cases[] = {
        {"{thresholds: [10, 10]}", 3},     /* V-12: not decreasing */
        {"{thresholds: [10, 20]}", 3},     /* V-12 */
        {"{thresholds: [0]}", 2},          /* V-12: not above 0 */
        {"{thresholds: [-1]}", 2},         /* V-12 */
        {"{thresholds: [1.5]}", 2},        /* V-12: a double */
        {"{thresholds: [10]}", 3},         /* V-12: too few */
        {"{thresholds: [30, 20, 10]}", 3}, /* too many */
        {"{thresholds: [10.0]}", 2},       /* a double, whole or not */
        {"{thresholds: ['10']}", 2},       /* a text */
        {"{thresholds: 10}", 2},           /* no list */
        {"{}", 2},                         /* absent counts as empty */
        {"{thresholds: [10]}", 1},
};

START_TEST(bad_thresholds_are_refused_and_named)
{
    static const char *const names[] = {"ttl", "length"};

    for (size_t idx = 0; idx < 2; idx++) {
        const struct uc_routing_ops *ops = uc_routing_find(NULL, names[idx]);
        struct uc_dict *config = parse(refused_cases[_i].parameters);
        struct uc_routing *routing = NULL;

        ck_assert_int_eq(ops->create(config, refused_cases[_i].branch_count, &routing),
                UC_ERR_INVALID_PARAM);
        ck_assert_ptr_null(routing);
        ck_assert_msg(strstr(uc_last_error(), "'thresholds'") != NULL, "%s", uc_last_error());
        uc_dict_destroy(config);
    }
}
END_TEST

static enum uc_status
create_nothing(const struct uc_dict *config, size_t branch_count, struct uc_routing **routing_out)
{
    (void)config;
    (void)branch_count;
    *routing_out = NULL;
    return UC_OK;
}

static size_t
select_first(const struct uc_routing *routing, const struct uc_request_context *context)
{
    (void)routing;
    (void)context;
    return 0;
}

/* tables of a host. */
START_TEST(tables_of_a_host_are_found_beside_ours)
{
    struct uc_routing_ops ops = {.struct_size = sizeof(ops),
            .name = "first",
            .create = create_nothing,
            .select = select_first};
    const struct uc_routing_ops *tables[2] = {&ops, &ops};
    struct uc_routing_extra extra = {.tables = tables, .count = 1};
    char names[NAMES_BYTES];

    ck_assert_int_eq(uc_routing_check_extra(&extra), UC_OK);
    ck_assert_ptr_eq(uc_routing_find(&extra, "first"), &ops);
    ck_assert_ptr_null(uc_routing_find(NULL, "first"));
    uc_routing_names(&extra, names, sizeof(names));
    ck_assert_str_eq(names, "ttl, length, first");
    uc_routing_names(&extra, names, 5);
    ck_assert_str_eq(names, "ttl,");
    extra.count = 2; /* the name twice */
    ck_assert_int_eq(uc_routing_check_extra(&extra), UC_ERR_DUPLICATE_KEY);
    extra.count = 1;
    ops.name = "ttl";
    ck_assert_int_eq(uc_routing_check_extra(&extra), UC_ERR_DUPLICATE_KEY);
}
END_TEST

START_TEST(incomplete_tables_of_a_host_are_refused)
{
    struct uc_routing_ops ops = {.struct_size = sizeof(ops),
            .name = "first",
            .create = create_nothing,
            .select = select_first};
    const struct uc_routing_ops *tables[1] = {_i == 0 ? NULL : &ops};
    struct uc_routing_extra extra = {.tables = _i == 6 ? NULL : tables, .count = 1};

    ops.struct_size = _i == 1 ? 8 : ops.struct_size;
    ops.name = _i == 2 ? NULL : _i == 3 ? "" : ops.name;
    ops.create = _i == 4 ? NULL : ops.create;
    ops.select = _i == 5 ? NULL : ops.select;
    ck_assert_int_eq(uc_routing_check_extra(&extra), UC_ERR_INVALID_PARAM);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("routing_conformance");
    TCase *every = tcase_create("every strategy");
    TCase *ours = tcase_create("thresholds and tables");
    SRunner *runner;
    int strategies = 0;
    int failed;

    while (uc_routing_builtin_at((size_t)strategies) != NULL) {
        strategies++;
    }
    tcase_add_loop_test(every, strategy_is_found_by_its_name, 0, strategies);
    tcase_add_loop_test(every, every_choice_is_a_branch, 0, strategies);
    tcase_add_loop_test(every, choices_depend_on_facts_and_parameters_alone, 0, strategies);
    tcase_add_loop_test(every, facts_without_their_bit_are_not_read, 0, strategies);
    tcase_add_loop_test(every, one_branch_needs_no_parameters, 0, strategies);
    tcase_add_loop_test(
            ours, thresholds_cut_the_range, 0, sizeof(select_cases) / sizeof(select_cases[0]));
    tcase_add_loop_test(ours, bad_thresholds_are_refused_and_named, 0,
            sizeof(refused_cases) / sizeof(refused_cases[0]));
    tcase_add_test(ours, tables_of_a_host_are_found_beside_ours);
    tcase_add_loop_test(ours, incomplete_tables_of_a_host_are_refused, 0, 7);
    suite_add_tcase(suite, every);
    suite_add_tcase(suite, ours);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
