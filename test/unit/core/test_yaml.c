/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "core/config/fields.h"
#include "test/fake/fake_alloc.h"

static struct uc_dict *dict;

static void
setup(void)
{
    dict = NULL;
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_dict_destroy(dict);
}

static enum uc_status
read_text(const char *text)
{
    return uc_yaml_read_text(text, strlen(text), "t.yaml", &dict);
}

/* YAML's core rules for plain scalars. */
static const struct {
    const char *text;
    enum uc_dict_type type;
} scalar_cases[] = {
        {"true", UC_DICT_BOOL},
        {"True", UC_DICT_BOOL},
        {"FALSE", UC_DICT_BOOL},
        {"yes", UC_DICT_STRING}, /* no bool any more since YAML 1.2 */
        {"on", UC_DICT_STRING},
        {"0", UC_DICT_INT},
        {"-12", UC_DICT_INT},
        {"+12", UC_DICT_INT},
        {"007", UC_DICT_INT},
        {"0x1F", UC_DICT_INT},
        {"0o17", UC_DICT_INT},
        {"9223372036854775807", UC_DICT_INT},
        {"-9223372036854775808", UC_DICT_INT},
        {"0x", UC_DICT_STRING},
        {"0o8", UC_DICT_STRING},
        {"12a", UC_DICT_STRING},
        {"-", UC_DICT_LIST}, /* an empty entry of a sequence: refused below */
        {"1.5", UC_DICT_DOUBLE},
        {"1.", UC_DICT_DOUBLE},
        {".5", UC_DICT_DOUBLE},
        {"1e3", UC_DICT_DOUBLE},
        {"-1.5E-3", UC_DICT_DOUBLE},
        {".inf", UC_DICT_DOUBLE},
        {"-.Inf", UC_DICT_DOUBLE},
        {".nan", UC_DICT_DOUBLE},
        {".", UC_DICT_STRING},
        {"1e", UC_DICT_STRING},
        {"1.2.3", UC_DICT_STRING},
        {"127.0.0.1:7470", UC_DICT_STRING},
        {"64MiB", UC_DICT_STRING},
        {"10s", UC_DICT_STRING},
        {"\"true\"", UC_DICT_STRING},
        {"'12'", UC_DICT_STRING},
        {"\"\"", UC_DICT_STRING},
};

START_TEST(plain_scalar_gets_the_type_of_the_core_rules)
{
    char text[128];
    enum uc_dict_type type;

    (void)snprintf(text, sizeof(text), "k: %s", scalar_cases[_i].text);
    if (scalar_cases[_i].type == UC_DICT_LIST) {
        ck_assert_int_eq(read_text(text), UC_ERR_INVALID_PARAM);
        return;
    }
    ck_assert_int_eq(read_text(text), UC_OK);
    ck_assert_int_eq(uc_dict_get_type(dict, "k", &type), UC_OK);
    ck_assert_int_eq(type, scalar_cases[_i].type);
}
END_TEST

START_TEST(numbers_have_their_values)
{
    int64_t number = 0;
    double fraction = 0;

    ck_assert_int_eq(
            read_text("a: -12\nb: 0x1F\nc: 0o17\nd: 1.5e2\ne: -.inf\nf: .nan\ng: 010"), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(dict, "a", &number), UC_OK);
    ck_assert_int_eq(number, -12);
    ck_assert_int_eq(uc_dict_get_int(dict, "b", &number), UC_OK);
    ck_assert_int_eq(number, 31);
    ck_assert_int_eq(uc_dict_get_int(dict, "c", &number), UC_OK);
    ck_assert_int_eq(number, 15);
    ck_assert_int_eq(uc_dict_get_int(dict, "g", &number), UC_OK);
    ck_assert_int_eq(number, 10);
    ck_assert_int_eq(uc_dict_get_double(dict, "d", &fraction), UC_OK);
    ck_assert(fraction == 150.0);
    ck_assert_int_eq(uc_dict_get_double(dict, "e", &fraction), UC_OK);
    ck_assert(isinf(fraction) && fraction < 0);
    ck_assert_int_eq(uc_dict_get_double(dict, "f", &fraction), UC_OK);
    ck_assert(isnan(fraction));
}
END_TEST

START_TEST(structure_and_lines_are_kept)
{
    const struct uc_dict *sub = NULL;
    const char *text = NULL;
    size_t count = 0;

    ck_assert_int_eq(read_text("# comment\n"
                               "listen: [\"a:1\", b]\n"
                               "\n"
                               "namespaces:\n"
                               "  - name: one\n"
                               "    capacity: 1GiB\n"
                               "  - name: two\n"
                               "log:\n"
                               "  level: debug\n"),
            UC_OK);
    ck_assert_uint_eq(uc_dict_line(dict, "listen"), 2);
    ck_assert_uint_eq(uc_dict_line(dict, "namespaces"), 4);
    ck_assert_uint_eq(uc_dict_line(dict, "log"), 8);
    ck_assert_int_eq(uc_dict_get_string_at(dict, "listen", 1, &text), UC_OK);
    ck_assert_str_eq(text, "b");
    ck_assert_int_eq(uc_dict_get_list_count(dict, "namespaces", &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(uc_dict_get_dict_at(dict, "namespaces", 0, &sub), UC_OK);
    ck_assert_uint_eq(uc_dict_line(sub, "capacity"), 6);
    ck_assert_int_eq(uc_dict_get_dict(dict, "log", &sub), UC_OK);
    ck_assert_uint_eq(uc_dict_line(sub, "level"), 9);
}
END_TEST

START_TEST(numbers_of_a_list_become_alike)
{
    double fraction = 0;
    int64_t number = 0;

    ck_assert_int_eq(read_text("a: [1, 2.5, 3]\nb: [1, 2]\n"), UC_OK);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(uc_dict_get_double_at(dict, "a", idx, &fraction), UC_OK);
        ck_assert(fraction == (idx == 1 ? 2.5 : (double)idx + 1));
    }
    ck_assert_int_eq(uc_dict_get_int_at(dict, "b", 1, &number), UC_OK);
    ck_assert_int_eq(number, 2);
}
END_TEST

static const char *const empty_cases[] = {"", "# only a comment\n", "---\n", "{}", "\n\n"};

START_TEST(nothing_is_an_empty_dictionary)
{
    ck_assert_int_eq(read_text(empty_cases[_i]), UC_OK);
    ck_assert_uint_eq(uc_dict_count(dict), 0);
}
END_TEST

static const struct {
    const char *text;
    const char *want;
} bad_cases[] = {
        {"a: 1\nb: 2\na: 3", "t.yaml:3: key 'a' is given twice, first in line 1"},
        {"a: &x 1", "t.yaml:1: anchors are not supported"},
        {"a: &x [1]", "anchors are not supported"},
        {"a: &x {b: 1}", "anchors are not supported"},
        {"a: *x", "aliases are not supported"},
        {"a: !!int 1", "tags are not supported"},
        {"a: !x [1]", "tags are not supported"},
        {"a: !x {b: 1}", "tags are not supported"},
        {"a: 1\n---\nb: 2", "t.yaml:2: a second document"},
        {"---\n---\n", "a second document"},
        {"- 1\n- 2", "t.yaml:1: expected 'key: value' lines"},
        {"just text", "expected 'key: value' lines"},
        {"a:\nb: 1", "t.yaml:1: no value"},
        {"a: ~", "no value"},
        {"a: null", "no value"},
        {"a: [1, x]", "t.yaml:1: text in a list whose elements are each an integer"},
        {"a: [x, {b: 1}]", "in a list whose elements are each text"},
        {"a: [[1]]", "a list cannot hold lists"},
        {"a: [1, ]\nb: [", "t.yaml:"},
        {"? [1]\n: 2", "a key must be plain text"},
        {"\"\": 1", "a key must have 1 to 255 bytes"},
        {"\"a\\0b\": 1", "a key must have 1 to 255 bytes"},
        {"a: \"b\\0c\"", "value contains a zero byte"},
        {"a: 9223372036854775808", "t.yaml:1: '9223372036854775808' is more than 64 bits hold"},
        {"a: 0xffffffffffffffffff", "more than 64 bits"},
        {"a: b: c", "t.yaml:1: "},
        {"a: 1\n\tb: 2", "t.yaml:2: "},
        {"a: \"open", "t.yaml:1: "},
        {"a: \xff\xfe", "t.yaml:1: "},
        {"a: {b: 1, b: 2}", "key 'b' is given twice"},
};

START_TEST(fault_is_named_with_its_line)
{
    ck_assert_int_eq(read_text(bad_cases[_i].text), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), bad_cases[_i].want) != NULL, "%s", uc_last_error());
    ck_assert_ptr_null(dict);
}
END_TEST

START_TEST(depth_is_bounded)
{
    char text[256] = "a: ";
    size_t length = strlen(text);

    for (int depth = 0; depth < 15; depth++) {
        length += (size_t)sprintf(text + length, "{a: ");
    }
    (void)sprintf(text + length, "1}}}}}}}}}}}}}}}");
    ck_assert_int_eq(read_text(text), UC_OK);
    uc_dict_destroy(dict);
    dict = NULL;
    (void)sprintf(text + length, "{a: 1}}}}}}}}}}}}}}}}");
    ck_assert_int_eq(read_text(text), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "nested too deeply"));
}
END_TEST

START_TEST(very_deep_text_does_not_overrun_the_stack)
{
    const size_t length = 200000;
    char *text = malloc(length + 1);

    memset(text, '[', length);
    text[length] = '\0';
    memcpy(text, "a: ", 3);
    ck_assert_int_eq(read_text(text), UC_ERR_INVALID_PARAM);
    memset(text + 3, '{', length - 3);
    ck_assert_int_eq(read_text(text), UC_ERR_INVALID_PARAM);
    free(text);
}
END_TEST

START_TEST(size_and_number_of_keys_are_bounded)
{
    const size_t length = (1 << 20) + 1;
    char *text = malloc(length + 1);
    size_t used = 0;

    memset(text, '#', length);
    text[length] = '\0';
    ck_assert_int_eq(read_text(text), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_yaml_read_text(text, length - 1, "t.yaml", &dict), UC_OK);
    uc_dict_destroy(dict);
    dict = NULL;
    for (unsigned key = 0; key < 4097; key++) {
        used += (size_t)sprintf(text + used, "k%u: 1\n", key);
    }
    ck_assert_int_eq(read_text(text), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "t.yaml:4097: too many keys"));
    free(text);
}
END_TEST

START_TEST(file_is_read_and_named_in_errors)
{
    char path[] = "/tmp/ucm-test-yaml-XXXXXX";
    int fd = mkstemp(path);
    int64_t number = 0;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "a: 1\n", 5), 5);
    ck_assert_int_eq(uc_yaml_read_file(path, &dict), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(dict, "a", &number), UC_OK);
    uc_dict_destroy(dict);
    dict = NULL;
    ck_assert_int_eq(write(fd, "a: 2\n", 5), 5);
    ck_assert_int_eq(uc_yaml_read_file(path, &dict), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), path));
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(uc_yaml_read_file(path, &dict), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "No such file"));
    ck_assert_int_eq(uc_yaml_read_file("/", &dict), UC_ERR_OS_API);
}
END_TEST

START_TEST(every_failed_allocation_is_undone)
{
    const char *text = "a: [x, y]\nb: {c: 1, d: text}\ne: [{f: 1}]\n";
    enum uc_status status;

    /* The allocations of libyaml itself are not counted: it lies in a library of its own. */
    uc_fake_alloc_fail_after((size_t)_i);
    status = read_text(text);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(dict);
}
END_TEST

static Suite *
yaml_suite(void)
{
    Suite *suite = suite_create("yaml");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, plain_scalar_gets_the_type_of_the_core_rules, 0,
            sizeof(scalar_cases) / sizeof(scalar_cases[0]));
    tcase_add_test(tcase, numbers_have_their_values);
    tcase_add_test(tcase, structure_and_lines_are_kept);
    tcase_add_test(tcase, numbers_of_a_list_become_alike);
    tcase_add_loop_test(
            tcase, nothing_is_an_empty_dictionary, 0, sizeof(empty_cases) / sizeof(empty_cases[0]));
    tcase_add_loop_test(
            tcase, fault_is_named_with_its_line, 0, sizeof(bad_cases) / sizeof(bad_cases[0]));
    tcase_add_test(tcase, depth_is_bounded);
    tcase_add_test(tcase, very_deep_text_does_not_overrun_the_stack);
    tcase_add_test(tcase, size_and_number_of_keys_are_bounded);
    tcase_add_test(tcase, file_is_read_and_named_in_errors);
    tcase_add_loop_test(tcase, every_failed_allocation_is_undone, 0, 14);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(yaml_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
