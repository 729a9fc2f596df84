/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/dict.h>

#include "test/fake/fake_alloc.h"

static struct uc_dict *dict;
static struct uc_dict *other;

static void
setup(void)
{
    ck_assert_int_eq(uc_dict_create(&dict), UC_OK);
    ck_assert_int_eq(uc_dict_create(&other), UC_OK);
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_dict_destroy(dict);
    uc_dict_destroy(other);
}

/* */
static void
fill(struct uc_dict *target)
{
    ck_assert_int_eq(uc_dict_set_bool(target, "bool", true), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(target, "int", -5), UC_OK);
    ck_assert_int_eq(uc_dict_set_double(target, "double", 1.5), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(target, "string", "text"), UC_OK);
    ck_assert_int_eq(uc_dict_set_pointer(target, "pointer", target), UC_OK);
    ck_assert_int_eq(uc_dict_set_dict(target, "dict", other), UC_OK);
    ck_assert_int_eq(uc_dict_append_int(target, "list", 1), UC_OK);
    ck_assert_int_eq(uc_dict_append_int(target, "list", 2), UC_OK);
    ck_assert_int_eq(uc_dict_set_list(target, "empty"), UC_OK);
}

START_TEST(values_come_back_with_their_types)
{
    static const enum uc_dict_type types[] = {UC_DICT_BOOL, UC_DICT_INT, UC_DICT_DOUBLE,
            UC_DICT_STRING, UC_DICT_POINTER, UC_DICT_DICT, UC_DICT_LIST, UC_DICT_LIST};
    const struct uc_dict *sub = NULL;
    const char *text = NULL;
    void *pointer = NULL;
    bool flag = false;
    int64_t number = 0;
    double fraction = 0;

    fill(dict);
    ck_assert_int_eq(uc_dict_get_bool(dict, "bool", &flag), UC_OK);
    ck_assert(flag);
    ck_assert_int_eq(uc_dict_get_int(dict, "int", &number), UC_OK);
    ck_assert_int_eq(number, -5);
    ck_assert_int_eq(uc_dict_get_double(dict, "double", &fraction), UC_OK);
    ck_assert(fraction == 1.5);
    ck_assert_int_eq(uc_dict_get_string(dict, "string", &text), UC_OK);
    ck_assert_str_eq(text, "text");
    ck_assert_int_eq(uc_dict_get_pointer(dict, "pointer", &pointer), UC_OK);
    ck_assert_ptr_eq(pointer, dict);
    ck_assert_int_eq(uc_dict_get_dict(dict, "dict", &sub), UC_OK);
    ck_assert_ptr_ne(sub, other); /* copied in, R-2.24 */
    ck_assert_uint_eq(uc_dict_count(dict), 8);
    for (size_t idx = 0; idx < uc_dict_count(dict); idx++) {
        enum uc_dict_type type;

        ck_assert_int_eq(uc_dict_get_type(dict, uc_dict_key_at(dict, idx), &type), UC_OK);
        ck_assert_int_eq(type, types[idx]);
    }
    ck_assert_ptr_null(uc_dict_key_at(dict, 8));
}
END_TEST

typedef enum uc_status (*get_fn)(const char *key);

static enum uc_status
get_bool(const char *key)
{
    bool value = true;
    enum uc_status status = uc_dict_get_bool(dict, key, &value);

    ck_assert(status == UC_OK || value);
    return status;
}

static enum uc_status
get_int(const char *key)
{
    int64_t value = 42;
    enum uc_status status = uc_dict_get_int(dict, key, &value);

    ck_assert(status == UC_OK || value == 42);
    return status;
}

static enum uc_status
get_double(const char *key)
{
    double value = 42;
    enum uc_status status = uc_dict_get_double(dict, key, &value);

    ck_assert(status == UC_OK || value == 42);
    return status;
}

static enum uc_status
get_string(const char *key)
{
    const char *value = "x";
    enum uc_status status = uc_dict_get_string(dict, key, &value);

    ck_assert(status == UC_OK || strcmp(value, "x") == 0);
    return status;
}

static enum uc_status
get_pointer(const char *key)
{
    void *value = &dict;
    enum uc_status status = uc_dict_get_pointer(dict, key, &value);

    ck_assert(status == UC_OK || value == &dict);
    return status;
}

static enum uc_status
get_dict(const char *key)
{
    const struct uc_dict *value = other;
    enum uc_status status = uc_dict_get_dict(dict, key, &value);

    ck_assert(status == UC_OK || value == other);
    return status;
}

static enum uc_status
get_list_count(const char *key)
{
    size_t value = 42;
    enum uc_status status = uc_dict_get_list_count(dict, key, &value);

    ck_assert(status == UC_OK || value == 42);
    return status;
}

/* no silent conversion, but int64 widens to double. */
START_TEST(getter_of_another_type_is_refused_with_the_key)
{
    static const struct {
        const char *key;
        get_fn get;
    } getters[] = {
            {"bool", get_bool},
            {"int", get_int},
            {"double", get_double},
            {"string", get_string},
            {"pointer", get_pointer},
            {"dict", get_dict},
            {"list", get_list_count},
    };
    const size_t getter_count = sizeof(getters) / sizeof(getters[0]);

    fill(dict);
    for (size_t key = 0; key < getter_count; key++) {
        for (size_t idx = 0; idx < getter_count; idx++) {
            bool fits = idx == key ||
                        (getters[idx].get == get_double && strcmp(getters[key].key, "int") == 0);
            enum uc_status status = getters[idx].get(getters[key].key);

            ck_assert_int_eq(status, fits ? UC_OK : UC_ERR_INVALID_PARAM);
            ck_assert(fits || strstr(uc_last_error(), getters[key].key) != NULL);
        }
    }
}
END_TEST

START_TEST(missing_key_leaves_the_default)
{
    ck_assert_int_eq(get_bool("none"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(get_int("none"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(get_double("none"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(get_string("none"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(get_pointer("none"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(get_dict("none"), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(get_list_count("none"), UC_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "none"));
    ck_assert(!uc_dict_has(dict, "none"));
}
END_TEST

START_TEST(integer_widens_to_double)
{
    double value = 0;

    fill(dict);
    ck_assert_int_eq(uc_dict_get_double(dict, "int", &value), UC_OK);
    ck_assert(value == -5.0);
    ck_assert_int_eq(uc_dict_get_double_at(dict, "list", 1, &value), UC_OK);
    ck_assert(value == 2.0);
}
END_TEST

/* */
static const struct {
    const char *text; /* NULL: the number */
    int64_t number;
    enum uc_status bytes_status;
    uint64_t bytes;
    enum uc_status ms_status;
    uint64_t ms;
} quantity_cases[] = {
        {NULL, 0, UC_OK, 0, UC_OK, 0},
        {NULL, INT64_MAX, UC_OK, INT64_MAX, UC_OK, INT64_MAX},
        {NULL, -1, UC_ERR_INVALID_PARAM, 0, UC_ERR_INVALID_PARAM, 0},
        {"64MiB", 0, UC_OK, UINT64_C(64) << 20, UC_ERR_INVALID_PARAM, 0},
        {"10s", 0, UC_ERR_INVALID_PARAM, 0, UC_OK, 10000},
        {"-1", 0, UC_ERR_INVALID_PARAM, 0, UC_ERR_INVALID_PARAM, 0},
        {"", 0, UC_ERR_INVALID_PARAM, 0, UC_ERR_INVALID_PARAM, 0},
};

START_TEST(sizes_and_times_take_units)
{
    uint64_t value = 42;

    if (quantity_cases[_i].text == NULL) {
        ck_assert_int_eq(uc_dict_set_int(dict, "q", quantity_cases[_i].number), UC_OK);
    } else {
        ck_assert_int_eq(uc_dict_set_string(dict, "q", quantity_cases[_i].text), UC_OK);
    }
    ck_assert_int_eq(uc_dict_get_bytes(dict, "q", &value), quantity_cases[_i].bytes_status);
    ck_assert_uint_eq(
            value, quantity_cases[_i].bytes_status == UC_OK ? quantity_cases[_i].bytes : 42);
    value = 42;
    ck_assert_int_eq(uc_dict_get_ms(dict, "q", &value), quantity_cases[_i].ms_status);
    ck_assert_uint_eq(value, quantity_cases[_i].ms_status == UC_OK ? quantity_cases[_i].ms : 42);
}
END_TEST

START_TEST(sizes_are_no_fractions_and_no_bools)
{
    uint64_t value = 42;

    fill(dict);
    ck_assert_int_eq(uc_dict_get_bytes(dict, "double", &value), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_get_ms(dict, "bool", &value), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_get_ms(dict, "none", &value), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(value, 42);
}
END_TEST

/* */
START_TEST(list_takes_one_type_only)
{
    size_t count = 0;

    fill(dict);
    ck_assert_int_eq(uc_dict_append_string(dict, "list", "x"), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_append_double(dict, "list", 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_append_bool(dict, "list", true), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_append_dict(dict, "list", other), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "list"));
    ck_assert_int_eq(uc_dict_append_int(dict, "int", 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_get_list_count(dict, "list", &count), UC_OK);
    ck_assert_uint_eq(count, 2);
}
END_TEST

/* */
START_TEST(empty_list_satisfies_every_type)
{
    const struct uc_dict *sub = NULL;
    const char *text = NULL;
    bool flag = false;
    int64_t number = 0;
    double fraction = 0;
    size_t count = 42;

    fill(dict);
    ck_assert_int_eq(uc_dict_get_list_count(dict, "empty", &count), UC_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(uc_dict_get_bool_at(dict, "empty", 0, &flag), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_dict_get_int_at(dict, "empty", 0, &number), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_dict_get_double_at(dict, "empty", 0, &fraction), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_dict_get_string_at(dict, "empty", 0, &text), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_dict_get_dict_at(dict, "empty", 0, &sub), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_dict_append_string(dict, "empty", "now of text"), UC_OK);
    ck_assert_int_eq(uc_dict_get_int_at(dict, "empty", 0, &number), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_get_string_at(dict, "empty", 0, &text), UC_OK);
    ck_assert_str_eq(text, "now of text");
}
END_TEST

START_TEST(list_of_dictionaries_is_read_by_index)
{
    const struct uc_dict *sub = NULL;
    int64_t number = 0;

    for (int64_t idx = 0; idx < 20; idx++) {
        ck_assert_int_eq(uc_dict_set_int(other, "n", idx), UC_OK);
        ck_assert_int_eq(uc_dict_append_dict(dict, "subs", other), UC_OK);
    }
    for (int64_t idx = 0; idx < 20; idx++) {
        ck_assert_int_eq(uc_dict_get_dict_at(dict, "subs", (size_t)idx, &sub), UC_OK);
        ck_assert_int_eq(uc_dict_get_int(sub, "n", &number), UC_OK);
        ck_assert_int_eq(number, idx);
    }
    ck_assert_int_eq(uc_dict_get_dict_at(dict, "subs", 20, &sub), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_dict_get_dict_at(dict, "subs", SIZE_MAX, &sub), UC_ERR_NOT_FOUND);
}
END_TEST

START_TEST(setting_again_replaces_value_and_type)
{
    const char *text = NULL;

    fill(dict);
    uc_dict_set_line(dict, "list", 3);
    ck_assert_uint_eq(uc_dict_line(dict, "list"), 3);
    ck_assert_int_eq(uc_dict_set_string(dict, "list", "now text"), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(dict, "list", &text), UC_OK);
    ck_assert_str_eq(text, "now text");
    ck_assert_uint_eq(uc_dict_count(dict), 8);
    ck_assert_uint_eq(uc_dict_line(dict, "list"), 0); /* it does not come from there any more */
}
END_TEST

/* */
START_TEST(value_may_be_the_dictionary_itself)
{
    const struct uc_dict *sub = NULL;

    ck_assert_int_eq(uc_dict_set_int(dict, "n", 1), UC_OK);
    ck_assert_int_eq(uc_dict_set_dict(dict, "self", dict), UC_OK);
    ck_assert_int_eq(uc_dict_get_dict(dict, "self", &sub), UC_OK);
    ck_assert_uint_eq(uc_dict_count(sub), 1);
}
END_TEST

START_TEST(clone_is_deep_and_keeps_order_and_lines)
{
    struct uc_dict *copy = NULL;
    const char *text = NULL;
    const char *copied = NULL;

    ck_assert_int_eq(uc_dict_set_string(other, "inner", "x"), UC_OK);
    fill(dict);
    ck_assert_int_eq(uc_dict_append_dict(dict, "subs", other), UC_OK);
    uc_dict_set_line(dict, "string", 9);
    ck_assert_int_eq(uc_dict_clone(dict, &copy), UC_OK);
    ck_assert_uint_eq(uc_dict_count(copy), uc_dict_count(dict));
    for (size_t idx = 0; idx < uc_dict_count(copy); idx++) {
        ck_assert_str_eq(uc_dict_key_at(copy, idx), uc_dict_key_at(dict, idx));
        ck_assert_ptr_ne(uc_dict_key_at(copy, idx), uc_dict_key_at(dict, idx));
    }
    ck_assert_uint_eq(uc_dict_line(copy, "string"), 9);
    ck_assert_int_eq(uc_dict_get_string(dict, "string", &text), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(copy, "string", &copied), UC_OK);
    ck_assert_ptr_ne(text, copied);
    ck_assert_int_eq(uc_dict_set_int(copy, "int", 6), UC_OK);
    ck_assert_int_eq(get_int("int"), UC_OK);
    uc_dict_destroy(copy);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    struct uc_dict *copy = NULL;

    ck_assert_int_eq(uc_dict_set_int(dict, "", 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_int(dict, NULL, 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_int(NULL, "a", 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_string(dict, "a", NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_string(dict, "", "x"), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_append_string(dict, NULL, "x"), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_dict(dict, "a", NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_clone(NULL, &copy), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(get_int(NULL), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(uc_dict_count(dict), 0);
    ck_assert_uint_eq(uc_dict_count(NULL), 0);
    uc_dict_set_line(NULL, "a", 1);
    uc_dict_destroy(NULL);
}
END_TEST

/* A failure anywhere leaves the old value; the leak checker sees what was not undone. */
START_TEST(failed_allocation_leaves_the_old_value)
{
    enum uc_status statuses[4];
    const char *text = NULL;

    fill(dict);
    fill(other);
    ck_assert_int_eq(uc_dict_set_string(dict, "k", "old"), UC_OK);
    uc_fake_alloc_fail_after((size_t)_i); /* Check allocates too: no assertion until the reset */
    statuses[0] = uc_dict_set_dict(dict, "k", other);
    uc_fake_alloc_fail_after(0);
    statuses[1] = uc_dict_set_string(dict, "k", "new");
    statuses[2] = uc_dict_set_int(dict, "another", 1);
    statuses[3] = uc_dict_append_int(dict, "another", 1);
    uc_fake_alloc_reset();
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_int_eq(statuses[idx], UC_ERR_OUT_OF_MEMORY);
    }
    ck_assert_int_eq(uc_dict_get_string(dict, "k", &text), UC_OK);
    ck_assert_str_eq(text, "old");
    ck_assert(!uc_dict_has(dict, "another"));
}
END_TEST

START_TEST(create_without_memory_is_reported)
{
    struct uc_dict *none = NULL;
    enum uc_status status;

    uc_fake_alloc_fail_after(0);
    status = uc_dict_create(&none);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(none);
}
END_TEST

static Suite *
dict_suite(void)
{
    Suite *suite = suite_create("dict");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, values_come_back_with_their_types);
    tcase_add_test(tcase, getter_of_another_type_is_refused_with_the_key);
    tcase_add_test(tcase, missing_key_leaves_the_default);
    tcase_add_test(tcase, integer_widens_to_double);
    tcase_add_loop_test(tcase, sizes_and_times_take_units, 0,
            sizeof(quantity_cases) / sizeof(quantity_cases[0]));
    tcase_add_test(tcase, sizes_are_no_fractions_and_no_bools);
    tcase_add_test(tcase, list_takes_one_type_only);
    tcase_add_test(tcase, empty_list_satisfies_every_type);
    tcase_add_test(tcase, list_of_dictionaries_is_read_by_index);
    tcase_add_test(tcase, setting_again_replaces_value_and_type);
    tcase_add_test(tcase, value_may_be_the_dictionary_itself);
    tcase_add_test(tcase, clone_is_deep_and_keeps_order_and_lines);
    tcase_add_test(tcase, bad_arguments_are_refused);
    tcase_add_loop_test(tcase, failed_allocation_leaves_the_old_value, 0, 12);
    tcase_add_test(tcase, create_without_memory_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(dict_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
