/* SPDX-License-Identifier: Apache-2.0 */

/* What the setups of all stores share. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "core/config/store_config.h"
#include "test/fake/fake_alloc.h"

struct sample {
    uint64_t threads;
};

static const struct uc_field fields[] = {
        {
                .key = "threads",
                .type = UC_FIELD_COUNT,
                .default_text = "4",
                .min = 1,
                .max = 64,
                .offset = offsetof(struct sample, threads),
                .help = "threads that copy",
        },
};
static const char *const other_keys[] = {"root", NULL};

static struct uc_dict *dict;
static struct sample sample;
static char warnings[4096];

static void
setup(void)
{
    dict = NULL;
    sample = (struct sample){0};
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_dict_destroy(dict);
}

static void
read_text(const char *text)
{
    uc_dict_destroy(dict);
    dict = NULL;
    ck_assert_int_eq(uc_yaml_read_text(text, strlen(text), "t.yaml", &dict), UC_OK);
}

/* What goes to standard error meanwhile is in `warnings`. */
static enum uc_status
apply(const char *text)
{
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    enum uc_status status;
    ssize_t length;

    ck_assert_ptr_nonnull(file);
    read_text(text);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    status = uc_config_apply_store_fields(fields, 1, dict, "some store", other_keys, &sample);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    length = pread(fileno(file), warnings, sizeof(warnings) - 1, 0);
    ck_assert_int_ge(length, 0);
    warnings[length] = '\0';
    (void)fclose(file);
    return status;
}

/* */
START_TEST(unknown_keys_are_ignored_with_a_warning)
{
    ck_assert_int_eq(apply("thread: 5\nroot: /x\nzzzzzzzz: 1\nroots: 2\nthreads: 8\n"), UC_OK);
    ck_assert_uint_eq(sample.threads, 8);
    ck_assert_ptr_nonnull(strstr(warnings, "some store: unknown key \"thread\" is ignored; did you "
                                           "mean \"threads\"?\n"));
    ck_assert_ptr_nonnull(strstr(warnings, "unknown key \"zzzzzzzz\" is ignored\n"));
    ck_assert_ptr_nonnull(strstr(warnings, "\"roots\" is ignored; did you mean \"root\"?\n"));
    ck_assert_int_eq(apply("node_path: a\nstore_role: both\ntiers_below: 1\nroot: [1]\n"), UC_OK);
    ck_assert_str_eq(warnings, "");
    ck_assert_uint_eq(sample.threads, 4);
}
END_TEST

START_TEST(known_keys_are_checked)
{
    enum uc_status status;

    ck_assert_int_eq(apply("threads: 65"), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "some store:1: key 'threads' is 65"));
    uc_fake_alloc_fail_after(0);
    status = uc_config_apply_store_fields(fields, 1, dict, "some store", other_keys, &sample);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
}
END_TEST

static const struct {
    const char *text;
    enum uc_status status;
    bool value;
} switches[] = {
        {"other: 1", UC_OK, true}, /* stays as it was */
        {"key: true", UC_OK, true},
        {"key: false", UC_OK, false},
        {"key: \"on\"", UC_OK, true},
        {"key: \"off\"", UC_OK, false},
        {"key: offf", UC_ERR_INVALID_PARAM, true},
        {"key: 1", UC_ERR_INVALID_PARAM, true},
};

START_TEST(switch_is_a_boolean_or_a_word)
{
    bool value = true;

    read_text(switches[_i].text);
    ck_assert_int_eq(uc_config_read_switch(dict, "some store", "key", &value), switches[_i].status);
    ck_assert_int_eq(value, switches[_i].value);
    if (switches[_i].status != UC_OK) {
        ck_assert_ptr_nonnull(strstr(uc_last_error(), "some store: key is "));
        ck_assert_ptr_nonnull(strstr(uc_last_error(), "write on or off"));
    }
}
END_TEST

/* */
START_TEST(place_is_read_from_what_the_assembler_adds)
{
    struct uc_store_place place;
    int lower;
    int hook;

    read_text("store_role: worker\nnode_path: branches[1]\ntiers_below: 2\n");
    ck_assert_int_eq(uc_config_read_place(dict, "some store", &place), UC_OK);
    ck_assert_int_eq(place.role, UC_ROLE_WORKER);
    ck_assert_str_eq(place.node_path, "branches[1]");
    ck_assert_uint_eq(place.tiers_below, 2);
    ck_assert_ptr_null(place.lower);
    ck_assert_ptr_null(place.prerequisite);
    ck_assert_int_eq(uc_config_refuse_lower(&place, "some store"), UC_OK);

    read_text("store_role: scheduler\n");
    ck_assert_int_eq(uc_dict_set_pointer(dict, UC_SETUP_PIPED_LOWER_STORE, &lower), UC_OK);
    ck_assert_int_eq(uc_dict_set_pointer(dict, UC_SETUP_PREREQUISITE_HOOK, &hook), UC_OK);
    ck_assert_int_eq(uc_config_read_place(dict, "some store", &place), UC_OK);
    ck_assert_int_eq(place.role, UC_ROLE_SCHEDULER);
    ck_assert_ptr_eq(place.lower, &lower);
    ck_assert_ptr_eq(place.prerequisite, &hook);
    ck_assert_uint_eq(place.tiers_below, 1);
    ck_assert_int_eq(uc_config_refuse_lower(&place, "some store"), UC_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "put it last in the pipe"));
}
END_TEST

START_TEST(a_role_that_does_not_exist_is_refused)
{
    struct uc_store_place place = {.tiers_below = 7};

    read_text("store_role: boss\n");
    ck_assert_int_eq(uc_config_read_place(dict, "some store", &place), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "some store: store_role is \"boss\""));
    ck_assert_uint_eq(place.tiers_below, 7);
    read_text("a: 1\n");
    ck_assert_int_eq(uc_config_read_place(dict, "some store", &place), UC_OK);
    ck_assert_int_eq(place.role, UC_ROLE_BOTH);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("store_config");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, unknown_keys_are_ignored_with_a_warning);
    tcase_add_test(tcase, known_keys_are_checked);
    tcase_add_loop_test(
            tcase, switch_is_a_boolean_or_a_word, 0, sizeof(switches) / sizeof(switches[0]));
    tcase_add_test(tcase, place_is_read_from_what_the_assembler_adds);
    tcase_add_test(tcase, a_role_that_does_not_exist_is_refused);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
