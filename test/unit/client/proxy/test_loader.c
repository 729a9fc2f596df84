/* SPDX-License-Identifier: Apache-2.0 */

/* Plugins: section 8 and V-57. The plugins are variants of plugin.c, their paths come from the build. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/proxy/loader.h"
#include "test/fake/fake_store.h"

static const struct {
    const char *path;
    enum uc_status want;
    const char *text; /* part of the message */
} load_cases[] = {
        {"/nonexistent/libucm_store_x.so", UC_ERR_OS_API, "/nonexistent"},    /* V-57 */
        {"libucm_store_nowhere.so", UC_ERR_OS_API, "./libucm_store_nowhere"}, /* a path as well */
        {PLUGIN_NOT_A_LIBRARY, UC_ERR_OS_API, "dlopen"},
        {PLUGIN_NO_ENTRIES, UC_ERR_NOT_FOUND, "UCCreateStore"},
        {PLUGIN_NO_DESTROY, UC_ERR_NOT_FOUND, "UCDestroyStore"},
        {PLUGIN_NULL_FACTORY, UC_ERR_GENERAL, "no instance"},
        {PLUGIN_NULL_TABLE, UC_ERR_GENERAL, "table"}, /* */
        {PLUGIN_OTHER_ABI, UC_ERR_UNSUPPORTED, "ABI"},
        {PLUGIN_SHORT_TABLE, UC_ERR_UNSUPPORTED, "table"},
        {PLUGIN_NULL_SLOT, UC_ERR_INVALID_PARAM, "wait"},
        {"nosuch", UC_ERR_INVALID_PARAM, "not built in"}, /* V-57, R-8.8 */
        {"", UC_ERR_INVALID_PARAM, "empty"},
        {NULL, UC_ERR_INVALID_PARAM, "empty"},
};

START_TEST(plugin_that_is_wrong_is_refused_by_kind)
{
    struct uc_loaded_store loaded = {.store = NULL, .library = &loaded};

    ck_assert_int_eq(uc_store_loader_load(load_cases[_i].path, &loaded), load_cases[_i].want);
    ck_assert_msg(strstr(uc_last_error(), load_cases[_i].text) != NULL, "%s", uc_last_error());
    ck_assert_ptr_null(loaded.store);
    ck_assert_ptr_eq(loaded.library, &loaded); /* untouched */
}
END_TEST

/* the text lists the names that are known. */
START_TEST(unknown_name_is_answered_with_the_known_ones)
{
    struct uc_loaded_store loaded;

    ck_assert_int_eq(uc_store_loader_load("nosuch", &loaded), UC_ERR_INVALID_PARAM);
    for (size_t idx = 0; uc_store_loader_name_at(idx) != NULL; idx++) {
        ck_assert_ptr_nonnull(strstr(uc_last_error(), uc_store_loader_name_at(idx)));
    }
}
END_TEST

/* every registered store lies beside the library and makes instances. */
START_TEST(built_in_stores_load_by_name)
{
    for (size_t idx = 0; uc_store_loader_name_at(idx) != NULL; idx++) {
        struct uc_loaded_store loaded;

        ck_assert_msg(uc_store_loader_load(uc_store_loader_name_at(idx), &loaded) == UC_OK, "%s",
                uc_last_error());
        uc_loaded_store_close(&loaded);
    }
}
END_TEST

/* */
START_TEST(each_load_makes_an_instance_and_closing_twice_is_harmless)
{
    struct uc_loaded_store first;
    struct uc_loaded_store second;

    ck_assert_int_eq(uc_store_loader_load(PLUGIN_GOOD, &first), UC_OK);
    ck_assert_int_eq(uc_store_loader_load(PLUGIN_GOOD, &second), UC_OK);
    ck_assert_ptr_ne(first.store, second.store);
    ck_assert_ptr_nonnull(first.library);
    uc_loaded_store_close(&first);
    uc_loaded_store_close(&first);
    ck_assert_ptr_null(first.store);
    ck_assert_int_eq(uc_store_check(second.store), UC_OK); /* still mapped */
    uc_loaded_store_close(&second);
    uc_loaded_store_close(NULL);
}
END_TEST

/* */
START_TEST(linked_in_instance_is_adopted)
{
    struct uc_fake_store *fake = uc_fake_store_create(false, false);
    struct uc_loaded_store loaded = {0};
    bool destroyed = false;

    ck_assert_ptr_nonnull(fake);
    fake->destroyed = &destroyed;
    ck_assert_int_eq(uc_loaded_store_adopt(&fake->base, uc_fake_store_destroy, &loaded), UC_OK);
    ck_assert_ptr_eq(loaded.store, &fake->base);
    uc_loaded_store_close(&loaded);
    ck_assert(destroyed);
    destroyed = false;
    uc_loaded_store_close(&loaded);
    ck_assert(!destroyed);
}
END_TEST

/* holds for adopted instances, too; they stay the caller's. */
START_TEST(instance_with_bad_table_is_not_adopted)
{
    struct uc_store_ops ops = {.abi_version = UC_STORE_ABI_VERSION + 1, .struct_size = sizeof(ops)};
    struct uc_store store = {.ops = &ops};
    struct uc_loaded_store loaded = {0};

    ck_assert_int_eq(
            uc_loaded_store_adopt(&store, uc_fake_store_destroy, &loaded), UC_ERR_UNSUPPORTED);
    ops.abi_version = UC_STORE_ABI_VERSION;
    ck_assert_int_eq(
            uc_loaded_store_adopt(&store, uc_fake_store_destroy, &loaded), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_loaded_store_adopt(&store, NULL, &loaded), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_loaded_store_adopt(NULL, uc_fake_store_destroy, &loaded), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(loaded.store);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("loader");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tcase, plugin_that_is_wrong_is_refused_by_kind, 0,
            sizeof(load_cases) / sizeof(load_cases[0]));
    tcase_add_test(tcase, unknown_name_is_answered_with_the_known_ones);
    tcase_add_test(tcase, built_in_stores_load_by_name);
    tcase_add_test(tcase, each_load_makes_an_instance_and_closing_twice_is_harmless);
    tcase_add_test(tcase, linked_in_instance_is_adopted);
    tcase_add_test(tcase, instance_with_bad_table_is_not_adopted);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
