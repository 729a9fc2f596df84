/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/config/fields.h"
#include "test/fake/fake_alloc.h"

static const char base_text[] = "listen: a\n"
                                "hosts: [x, y]\n"
                                "ports: [1, 2]\n"
                                "log: {level: info}\n"
                                "namespaces: [{name: one}]\n";
static struct uc_dict *dict;

static void
setup(void)
{
    ck_assert_int_eq(uc_yaml_read_text(base_text, sizeof(base_text) - 1, "t.yaml", &dict), UC_OK);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_dict_destroy(dict);
}

START_TEST(value_is_typed_like_yaml)
{
    const char *text = NULL;
    int64_t number = 0;
    bool flag = false;

    ck_assert_int_eq(uc_config_set_text(dict, "--listen=b=c"), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(dict, "listen", &text), UC_OK);
    ck_assert_str_eq(text, "b=c");
    ck_assert_int_eq(uc_config_set_text(dict, "n=12"), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(dict, "n", &number), UC_OK);
    ck_assert_int_eq(number, 12);
    ck_assert_int_eq(uc_config_set_text(dict, "f=true"), UC_OK);
    ck_assert_int_eq(uc_dict_get_bool(dict, "f", &flag), UC_OK);
    ck_assert_int_eq(uc_config_set_text(dict, "s='12'"), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(dict, "s", &text), UC_OK);
    ck_assert_str_eq(text, "12");
    ck_assert_int_eq(uc_config_set_text(dict, "s=\"null\""), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(dict, "s", &text), UC_OK);
    ck_assert_str_eq(text, "null");
    ck_assert_int_eq(uc_config_set_text(dict, "s="), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(dict, "s", &text), UC_OK);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(path_reaches_into_dictionaries_and_lists)
{
    const struct uc_dict *sub = NULL;
    const char *text = NULL;
    uint64_t bytes = 0;
    size_t count = 0;

    ck_assert_int_eq(uc_config_set_text(dict, "log.level=debug"), UC_OK);
    ck_assert_int_eq(uc_dict_get_dict(dict, "log", &sub), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(sub, "level", &text), UC_OK);
    ck_assert_str_eq(text, "debug");

    ck_assert_int_eq(uc_config_set_text(dict, "namespaces.0.capacity=1GiB"), UC_OK);
    ck_assert_int_eq(uc_config_set_text(dict, "namespaces.1.name=two"), UC_OK); /* one more */
    ck_assert_int_eq(uc_dict_get_list_count(dict, "namespaces", &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(uc_dict_get_dict_at(dict, "namespaces", 0, &sub), UC_OK);
    ck_assert_int_eq(uc_dict_get_bytes(sub, "capacity", &bytes), UC_OK);
    ck_assert_uint_eq(bytes, 1 << 30);
    ck_assert_int_eq(uc_dict_get_string(sub, "name", &text), UC_OK);
    ck_assert_str_eq(text, "one");

    ck_assert_int_eq(uc_config_set_text(dict, "hosts.1=z"), UC_OK);
    ck_assert_int_eq(uc_config_set_text(dict, "hosts.2=w"), UC_OK);
    ck_assert_int_eq(uc_dict_get_string_at(dict, "hosts", 1, &text), UC_OK);
    ck_assert_str_eq(text, "z");
    ck_assert_int_eq(uc_dict_get_string_at(dict, "hosts", 2, &text), UC_OK);
    ck_assert_str_eq(text, "w");
}
END_TEST

START_TEST(missing_parents_are_made)
{
    const struct uc_dict *sub = NULL;
    const char *text = NULL;
    int64_t number = 0;

    ck_assert_int_eq(uc_config_set_text(dict, "a.b.c=1"), UC_OK);
    ck_assert_int_eq(uc_dict_get_dict(dict, "a", &sub), UC_OK);
    ck_assert_int_eq(uc_dict_get_dict(sub, "b", &sub), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(sub, "c", &number), UC_OK);
    ck_assert_int_eq(uc_config_set_text(dict, "servers.0=h:1"), UC_OK); /* a number makes a list */
    ck_assert_int_eq(uc_dict_get_string_at(dict, "servers", 0, &text), UC_OK);
    ck_assert_int_eq(uc_config_set_text(dict, "nodes.0.host=h"), UC_OK);
    ck_assert_int_eq(uc_dict_get_dict_at(dict, "nodes", 0, &sub), UC_OK);
    ck_assert_int_eq(uc_config_set_text(dict, "log.0=x"), UC_OK); /* a dictionary takes any key */
}
END_TEST

static const struct {
    const char *text;
    const char *want;
} bad_cases[] = {
        {NULL, "expected key=value"},
        {"", "expected key=value"},
        {"listen", "'listen': expected key=value"},
        {"=x", "expected key=value"},
        {"--=x", "expected key=value"},
        {".a=x", "expected key=value"},
        {"a.=x", "ends with a dot"},
        {"a..b=x", "expected key=value"},
        {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1", "expected key=value"},
        {"listen.port=1", "'listen' is text and has no keys"},
        {"hosts=~", "no value"},
        {"hosts.x=1", "addressed by number"},
        {"hosts.3=z", "the list has 2 elements"},
        {"hosts.99999999999999999999999=z", "the list has 2 elements"},
        {"hosts.0=7", "elements are each text, this is an integer"},
        {"hosts.2=7", "elements are each text"},
        {"hosts.0.a=7", "element 0 is text and has no keys"},
        {"ports.0=8x", "elements are each an integer, this is text"},
        {"namespaces.0=x", "elements are each a dictionary"},
        {"new.1=x", "the list has 0 elements"},
        {"new.0.0=x", NULL}, /* a dictionary with the key 0: allowed */
        {"n=9223372036854775808", "more than 64 bits"},
};

START_TEST(bad_assignment_is_explained_and_changes_nothing)
{
    if (bad_cases[_i].want == NULL) {
        ck_assert_int_eq(uc_config_set_text(dict, bad_cases[_i].text), UC_OK);
        return;
    }
    ck_assert_int_eq(uc_config_set_text(dict, bad_cases[_i].text), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), bad_cases[_i].want) != NULL, "%s", uc_last_error());
    ck_assert_uint_eq(uc_dict_count(dict), 5);
}
END_TEST

START_TEST(failed_allocation_changes_nothing)
{
    enum uc_status status;

    uc_fake_alloc_fail_after((size_t)_i);
    status = uc_config_set_text(dict, "a.b.0.c=text");
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_uint_eq(uc_dict_count(dict), 5);
}
END_TEST

static Suite *
set_text_suite(void)
{
    Suite *suite = suite_create("set_text");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, value_is_typed_like_yaml);
    tcase_add_test(tcase, path_reaches_into_dictionaries_and_lists);
    tcase_add_test(tcase, missing_parents_are_made);
    tcase_add_loop_test(tcase, bad_assignment_is_explained_and_changes_nothing, 0,
            sizeof(bad_cases) / sizeof(bad_cases[0]));
    tcase_add_loop_test(tcase, failed_allocation_changes_nothing, 0, 25);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(set_text_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
