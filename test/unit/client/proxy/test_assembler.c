/* SPDX-License-Identifier: Apache-2.0 */

/* Assembly of single stores: section 14 and V-58. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/assembler.h>

#include "core/config/fields.h"
#include "test/unit/client/proxy/plugin.h"

static struct plugin_report report;

static void
setup(void)
{
    report = (struct plugin_report){.tiers_below = -2};
}

static struct uc_dict *
parse(const char *text)
{
    struct uc_dict *dict = NULL;

    ck_assert_msg(uc_yaml_read_text(text, strlen(text), "case", &dict) == UC_OK, "%s: %s", text,
            uc_last_error());
    return dict;
}

/* A configuration of the test plugin, whose report goes to `report`. */
static struct uc_dict *
plugin_config(bool fail)
{
    struct uc_dict *config = NULL;
    struct uc_dict *inner = NULL;

    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_dict_create(&inner), UC_OK);
    ck_assert_int_eq(uc_dict_set_pointer(inner, "report", &report), UC_OK);
    ck_assert_int_eq(uc_dict_set_bool(inner, "fail", fail), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "type", "store"), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "store", PLUGIN_GOOD), UC_OK);
    ck_assert_int_eq(uc_dict_set_dict(config, "config", inner), UC_OK);
    uc_dict_destroy(inner);
    return config;
}

/* V-58, rows as far as they concern single stores */
static const struct {
    const char *yaml;
    enum uc_status want;
    const char *text; /* part of the message */
} refused_cases[] = {
        {"store: x", UC_ERR_INVALID_PARAM, "'type' is missing"},               /* */
        {"{type: tree, store: x}", UC_ERR_INVALID_PARAM, "'tree' is unknown"}, /* */
        {"{type: 5, store: x}", UC_ERR_INVALID_PARAM, "'type'"},               /* */
        {"{type: store, store: 5}", UC_ERR_INVALID_PARAM, "'store'"},          /* */
        {"{type: store, store: " PLUGIN_GOOD ", config: 7}", UC_ERR_INVALID_PARAM,
                "'config'"}, /* */
        {"{type: store, store: x, config: {}, stores: 1}", UC_ERR_INVALID_PARAM,
                "'stores' is unknown: did you mean 'store'"},                     /* */
        {"{type: store, store: x, colour: 1}", UC_ERR_INVALID_PARAM, "'colour'"}, /* */
        {"{type: store}", UC_ERR_INVALID_PARAM, "'store' is missing"},            /* */
        {"{type: store, store: ''}", UC_ERR_INVALID_PARAM, "'store' is empty"},   /* */
        {"{type: store, store: nosuch}", UC_ERR_INVALID_PARAM, "known are"},      /* */
        {"{type: store, store: /no/such.so}", UC_ERR_OS_API, "/no/such.so"},      /* */
        {"{type: store, store: " PLUGIN_GOOD ", config: {fail: true}}", UC_ERR_NO_SPACE,
                "told to fail"}, /* */
        {"{type: store, store: " PLUGIN_GOOD ", config: {piped_lower_store: 1}}",
                UC_ERR_INVALID_PARAM, "piped_lower_store"}, /* */
        {"{type: store, store: " PLUGIN_GOOD ", config: {tiers_below: 1}}", UC_ERR_INVALID_PARAM,
                "tiers_below"}, /* */
        {"{type: store, store: " PLUGIN_GOOD ", config: {node_path: x}}", UC_ERR_INVALID_PARAM,
                "node_path"}, /* */
        {"{type: store, store: " PLUGIN_GOOD ", config: {store_role: both}}", UC_ERR_INVALID_PARAM,
                "store_role"}, /* */
        {"{type: store, store: " PLUGIN_GOOD ", config: {prerequisite_hook: 1}}",
                UC_ERR_INVALID_PARAM, "prerequisite_hook"}, /* */
};

#define GOOD_PIPE    "{type: pipe, stores: [{store: " PLUGIN_GOOD "}]}"
#define GOOD_STORE   "{type: store, store: " PLUGIN_GOOD "}"
#define GOOD_ROUTING "routing: {strategy: ttl}"

/* V-58 for pipes and peers; the text has the path of the key, then what is wrong */
static const struct {
    const char *yaml;
    enum uc_status want;
    const char *path; /* start of the message */
    const char *text; /* part of it */
} refused_tree_cases[] = {
        /* */
        {"{type: peer, branches: [{store: x}], " GOOD_ROUTING "}", UC_ERR_INVALID_PARAM,
                "branches[0].type: ", "is missing"},
        {"{type: peer, branches: [" GOOD_STORE ", {type: tree}], " GOOD_ROUTING "}",
                UC_ERR_INVALID_PARAM, "branches[1].type: ", "'tree' is unknown"},
        /* */
        {"{type: pipe, stores: 5}", UC_ERR_INVALID_PARAM, "stores: ", "list"},
        {"{type: pipe, stores: {store: x}}", UC_ERR_INVALID_PARAM, "stores: ", "list"},
        {"{type: pipe, stores: [x, y]}", UC_ERR_INVALID_PARAM, "stores: ", "element 0"},
        {"{type: pipe, stores: [{store: 5}]}", UC_ERR_INVALID_PARAM, "stores[0].store: ", "text"},
        {"{type: pipe, stores: [{store: x}, {store: y, config: []}]}", UC_ERR_INVALID_PARAM,
                "stores[1].config: ", "dictionary"},
        {"{type: pipe, stores: [{type: 5, store: x}]}", UC_ERR_INVALID_PARAM,
                "stores[0].type: ", "text"},
        {"{type: peer, branches: x, " GOOD_ROUTING "}", UC_ERR_INVALID_PARAM, "branches: ", "list"},
        {"{type: peer, branches: [1], " GOOD_ROUTING "}", UC_ERR_INVALID_PARAM,
                "branches: ", "element 0"},
        {"{type: peer, branches: [" GOOD_STORE "], routing: ttl}", UC_ERR_INVALID_PARAM,
                "routing: ", "dictionary"},
        {"{type: peer, branches: [" GOOD_STORE "], routing: {strategy: 5}}", UC_ERR_INVALID_PARAM,
                "routing.strategy: ", "text"},
        {"{type: peer, branches: [" GOOD_STORE "], routing: {strategy: ttl, config: 5}}",
                UC_ERR_INVALID_PARAM, "routing.config: ", "dictionary"},
        /* */
        {"{type: pipe, stores: [{store: x}], store: y}", UC_ERR_INVALID_PARAM,
                "store: ", "'store' is unknown: did you mean 'stores'"},
        {"{type: pipe, stores: [{store: x, tier: 1}]}", UC_ERR_INVALID_PARAM,
                "stores[0].tier: ", "'tier' is unknown"},
        {"{type: peer, branch: [], " GOOD_ROUTING "}", UC_ERR_INVALID_PARAM,
                "branch: ", "did you mean 'branches'"},
        {"{type: peer, branches: [" GOOD_STORE "], routing: {strategy: ttl, thresholds: []}}",
                UC_ERR_INVALID_PARAM, "routing.thresholds: ", "is unknown"},
        /* */
        {"{type: pipe, stores: [{store: x}, {config: {}}]}", UC_ERR_INVALID_PARAM,
                "stores[1].store: ", "is missing"},
        {"{type: peer, branches: [" GOOD_STORE
         ", {type: pipe, stores: [{store: ''}]}], " GOOD_ROUTING "}",
                UC_ERR_INVALID_PARAM, "branches[1].stores[0].store: ", "is empty"},
        {"{type: peer, branches: [{type: pipe, stores: [{store: " PLUGIN_GOOD
         "}, {store: nosuch}]}], " GOOD_ROUTING "}",
                UC_ERR_INVALID_PARAM, "branches[0].stores[1].store: ", "known are"},
        /* */
        {"{type: pipe}", UC_ERR_INVALID_PARAM, "stores: ", "is missing"},
        {"{type: pipe, stores: []}", UC_ERR_INVALID_PARAM, "stores: ", "is empty"},
        {"{type: pipe, stores: [" GOOD_PIPE "]}", UC_ERR_INVALID_PARAM,
                "stores[0].type: ", "are stores"},
        {"{type: pipe, stores: [{store: x}, {type: peer}]}", UC_ERR_INVALID_PARAM,
                "stores[1].type: ", "are stores"},
        /* */
        {"{type: peer, " GOOD_ROUTING "}", UC_ERR_INVALID_PARAM, "branches: ", "is missing"},
        {"{type: peer, branches: [], " GOOD_ROUTING "}", UC_ERR_INVALID_PARAM,
                "branches: ", "is empty"},
        {"{type: peer, branches: [" GOOD_STORE "]}", UC_ERR_INVALID_PARAM,
                "routing: ", "is missing"},
        {"{type: peer, branches: [" GOOD_STORE "], routing: {}}", UC_ERR_INVALID_PARAM,
                "routing.strategy: ", "is missing: known strategies are ttl, length"},
        {"{type: peer, branches: [" GOOD_STORE "], routing: {strategy: ''}}", UC_ERR_INVALID_PARAM,
                "routing.strategy: ", "is empty"},
        {"{type: peer, branches: [" GOOD_STORE "], routing: {strategy: dice}}",
                UC_ERR_INVALID_PARAM, "routing.strategy: ", "'dice' is unknown: known"},
        /* */
        {"{type: peer, branches: [{type: peer}], " GOOD_ROUTING "}", UC_ERR_INVALID_PARAM,
                "branches[0].type: ", "flatten"},
        /* */
        {"{type: peer, branches: [" GOOD_STORE ", " GOOD_STORE "], " GOOD_ROUTING "}",
                UC_ERR_INVALID_PARAM, "routing.config: ", "'thresholds'"},
        /* */
        {"{type: pipe, stores: [{store: /no/such.so}]}", UC_ERR_OS_API,
                "stores[0].store: ", "/no/such.so"},
        {"{type: peer, branches: [" GOOD_STORE ", {type: pipe, stores: [{store: " PLUGIN_GOOD
         ", config: {fail: true}}, {store: " PLUGIN_GOOD
         "}]}], routing: {strategy: ttl, config: {thresholds: [1]}}}",
                UC_ERR_NO_SPACE, "branches[1].stores[0].config: ", "told to fail"},
        /* */
        {"{type: pipe, stores: [{store: x, config: {piped_lower_store: 1}}]}", UC_ERR_INVALID_PARAM,
                "stores[0].config: ", "'piped_lower_store'"},
};

START_TEST(wrong_tree_is_refused_with_the_path_of_the_key)
{
    struct uc_dict *config = parse(refused_tree_cases[_i].yaml);
    struct uc_assembler *assembler = (struct uc_assembler *)&report;
    size_t path_length = strlen(refused_tree_cases[_i].path);

    ck_assert_msg(uc_assembler_create(config, NULL, &assembler) == refused_tree_cases[_i].want,
            "%s: %s", refused_tree_cases[_i].yaml, uc_last_error());
    ck_assert_msg(strncmp(uc_last_error(), refused_tree_cases[_i].path, path_length) == 0, "%s",
            uc_last_error());
    ck_assert_msg(
            strstr(uc_last_error(), refused_tree_cases[_i].text) != NULL, "%s", uc_last_error());
    ck_assert_ptr_eq(assembler, &report); /* untouched */
    uc_dict_destroy(config);
}
END_TEST

START_TEST(wrong_configuration_is_refused_with_path_and_key)
{
    struct uc_dict *config = parse(refused_cases[_i].yaml);
    struct uc_assembler *assembler = (struct uc_assembler *)&report;

    ck_assert_msg(uc_assembler_create(config, NULL, &assembler) == refused_cases[_i].want, "%s: %s",
            refused_cases[_i].yaml, uc_last_error());
    ck_assert_msg(strstr(uc_last_error(), refused_cases[_i].text) != NULL, "%s", uc_last_error());
    ck_assert_ptr_eq(assembler, &report); /* untouched */
    uc_dict_destroy(config);
}
END_TEST

/* what was built before the failure is destroyed. */
START_TEST(failed_setup_destroys_the_store)
{
    struct uc_dict *config = plugin_config(true);
    struct uc_assembler *assembler = NULL;

    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_ERR_NO_SPACE);
    ck_assert_int_eq(report.setup_count, 1);
    ck_assert_int_eq(report.destroy_count, 1);
    uc_dict_destroy(config);
}
END_TEST

/* */
START_TEST(setup_receives_the_injected_keys_in_a_copy)
{
    struct uc_dict *config = plugin_config(false);
    const struct uc_dict *inner = NULL;
    struct uc_assembler *assembler = NULL;

    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_OK);
    ck_assert_str_eq(report.node_path, "root");
    ck_assert_str_eq(report.role, "both");
    ck_assert_int_eq(report.tiers_below, 0);
    ck_assert(!report.has_lower);
    ck_assert_int_eq(uc_dict_get_dict(config, "config", &inner), UC_OK);
    ck_assert_uint_eq(uc_dict_count(inner), 2);
    uc_assembler_destroy(assembler);
    ck_assert_int_eq(report.destroy_count, 1);
    uc_dict_destroy(config);
}
END_TEST

static enum uc_status
answer_hook(void *context, uint64_t handle)
{
    return handle == 42 && context == &report ? UC_ERR_RETRY : UC_ERR_GENERAL;
}

/* */
START_TEST(prerequisite_hook_reaches_the_store)
{
    struct uc_assembler_options options = {
            .struct_size = sizeof(options),
            .prerequisite_hook = answer_hook,
            .prerequisite_context = &report,
    };
    struct uc_dict *config = plugin_config(false);
    struct uc_assembler *assembler = NULL;

    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_OK);
    ck_assert_int_eq(report.prerequisite_answer, UC_ERR_RETRY);
    uc_assembler_destroy(assembler);

    /* members beyond the caller's struct do not count. */
    report.prerequisite_answer = UC_OK;
    options.struct_size = offsetof(struct uc_assembler_options, prerequisite_hook);
    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_OK);
    ck_assert_int_eq(report.prerequisite_answer, UC_OK);
    uc_assembler_destroy(assembler);
    options.struct_size = 0;
    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_ERR_INVALID_PARAM);
    uc_dict_destroy(config);
}
END_TEST

/* */
static const struct {
    enum uc_role role;
    const char *name;
    enum uc_status scheduler_want;
    enum uc_status worker_want;
} role_cases[] = {
        {UC_ROLE_BOTH, "both", UC_OK, UC_OK},
        {UC_ROLE_SCHEDULER, "scheduler", UC_OK, UC_ERR_UNSUPPORTED},
        {UC_ROLE_WORKER, "worker", UC_ERR_UNSUPPORTED, UC_OK},
};

START_TEST(role_decides_about_the_interfaces)
{
    struct uc_assembler_options options = {
            .struct_size = sizeof(options), .role = role_cases[_i].role};
    struct uc_dict *config = plugin_config(false);
    struct uc_assembler *assembler = NULL;
    struct uc_scheduler *scheduler = NULL;
    struct uc_worker *worker = NULL;

    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_OK);
    ck_assert_str_eq(report.role, role_cases[_i].name);
    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), role_cases[_i].scheduler_want);
    ck_assert_int_eq(uc_assembler_worker(assembler, &worker), role_cases[_i].worker_want);
    ck_assert_int_eq(scheduler != NULL, role_cases[_i].scheduler_want == UC_OK);
    ck_assert_int_eq(worker != NULL, role_cases[_i].worker_want == UC_OK);
    uc_assembler_destroy(assembler);
    uc_dict_destroy(config);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    struct uc_assembler_options options = {.struct_size = sizeof(options), .role = (enum uc_role)7};
    struct uc_dict *config = plugin_config(false);
    struct uc_assembler *assembler = NULL;

    ck_assert_int_eq(uc_assembler_create(NULL, NULL, &assembler), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_assembler_create(config, NULL, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_assembler_scheduler(NULL, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_assembler_worker(NULL, NULL), UC_ERR_INVALID_PARAM);
    uc_assembler_destroy(NULL);
    ck_assert_int_eq(report.setup_count, 0);
    uc_dict_destroy(config);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("assembler");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, wrong_configuration_is_refused_with_path_and_key, 0,
            sizeof(refused_cases) / sizeof(refused_cases[0]));
    tcase_add_loop_test(tcase, wrong_tree_is_refused_with_the_path_of_the_key, 0,
            sizeof(refused_tree_cases) / sizeof(refused_tree_cases[0]));
    tcase_add_test(tcase, failed_setup_destroys_the_store);
    tcase_add_test(tcase, setup_receives_the_injected_keys_in_a_copy);
    tcase_add_test(tcase, prerequisite_hook_reaches_the_store);
    tcase_add_loop_test(tcase, role_decides_about_the_interfaces, 0,
            sizeof(role_cases) / sizeof(role_cases[0]));
    tcase_add_test(tcase, bad_arguments_are_refused);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
