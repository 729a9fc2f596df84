/* SPDX-License-Identifier: Apache-2.0 */

/* Plugins that know nothing of each other, and one from outside the tree. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/assembler.h>

#include "core/config/fields.h"

static struct uc_assembler *
assemble(const char *yaml)
{
    struct uc_assembler *assembler = NULL;
    struct uc_dict *config = NULL;

    ck_assert_msg(
            uc_yaml_read_text(yaml, strlen(yaml), "case", &config) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(uc_assembler_create(config, NULL, &assembler) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
    return assembler;
}

/* each calls its own function and counts in its own variable. */
START_TEST(plugins_with_clashing_symbols_load_side_by_side)
{
    static const char *const names[] = {"left", "right", "left"};
    static const int64_t instances[] = {2, 1, 2};
    struct uc_assembler *assembler =
            assemble("{type: peer, branches: [{type: store, store: " PLUGIN_CLASH_LEFT
                     "}, {type: store, store: " PLUGIN_CLASH_RIGHT
                     "}, {type: store, store: " PLUGIN_CLASH_LEFT
                     "}], routing: {strategy: length, config: {thresholds: [20, 10]}}}");
    struct uc_scheduler *scheduler = NULL;
    struct uc_dict *description = NULL;

    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_scheduler_describe(scheduler, description), UC_OK);
    for (size_t idx = 0; idx < 3; idx++) {
        const struct uc_dict *branch = NULL;
        const char *name = NULL;
        int64_t count = 0;

        ck_assert_int_eq(uc_dict_get_dict_at(description, "branches", idx, &branch), UC_OK);
        ck_assert_int_eq(uc_dict_get_string(branch, "name", &name), UC_OK);
        ck_assert_str_eq(name, names[idx]);
        ck_assert_int_eq(uc_dict_get_int(branch, "instances", &count), UC_OK);
        ck_assert_int_eq(count, instances[idx]);
    }
    uc_dict_destroy(description);
    uc_assembler_destroy(assembler);
}
END_TEST

/* by its path, with its own configuration; the conformance suite runs on it as well. */
START_TEST(store_from_outside_the_tree_loads_by_path)
{
    struct uc_assembler *assembler = assemble(
            "{type: pipe, stores: [{store: " PLUGIN_EXAMPLE ", config: {capacity_blocks: 3}}]}");
    struct uc_scheduler *scheduler = NULL;
    struct uc_dict *description = NULL;
    const char *text = NULL;

    ck_assert_int_eq(uc_assembler_scheduler(assembler, &scheduler), UC_OK);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_scheduler_describe(scheduler, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "name", &text), UC_OK);
    ck_assert_str_eq(text, "example");
    ck_assert_int_eq(uc_dict_get_string(description, "node_path", &text), UC_OK);
    ck_assert_str_eq(text, "stores[0]");
    uc_dict_destroy(description);
    uc_assembler_destroy(assembler);
}
END_TEST

START_TEST(configuration_of_the_example_is_checked)
{
    static const char *const texts[] = {"0", "-1", "many", "1048577"};
    char yaml[512];
    struct uc_assembler *assembler = NULL;
    struct uc_dict *config = NULL;

    (void)snprintf(yaml, sizeof(yaml),
            "{type: store, store: " PLUGIN_EXAMPLE ", config: {capacity_blocks: %s}}", texts[_i]);
    ck_assert_int_eq(uc_yaml_read_text(yaml, strlen(yaml), "case", &config), UC_OK);
    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), "capacity_blocks") != NULL, "%s", uc_last_error());
    uc_dict_destroy(config);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("plugins");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, plugins_with_clashing_symbols_load_side_by_side);
    tcase_add_test(tcase, store_from_outside_the_tree_loads_by_path);
    tcase_add_loop_test(tcase, configuration_of_the_example_is_checked, 0, 4);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
