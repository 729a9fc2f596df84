/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tools/bench/policy_spec.h"

START_TEST(names_are_taken_one_by_one)
{
    const char *list = "lru,pwa:ghost=0:floor=1.5,fifo";
    struct uc_policy_spec spec;
    int64_t ghost = -1;
    double floor = -1;

    ck_assert_int_eq(uc_policy_spec_take(&list, &spec), UC_OK);
    ck_assert_str_eq(spec.name, "lru");
    ck_assert_ptr_null(spec.parameters);
    ck_assert_int_eq(uc_policy_spec_take(&list, &spec), UC_OK);
    ck_assert_str_eq(spec.name, "pwa");
    ck_assert_str_eq(spec.text, "pwa:ghost=0:floor=1.5");
    ck_assert_int_eq(uc_dict_get_int(spec.parameters, "ghost", &ghost), UC_OK);
    ck_assert_int_eq(uc_dict_get_double(spec.parameters, "floor", &floor), UC_OK);
    ck_assert_int_eq((int)ghost, 0);
    ck_assert_double_eq(floor, 1.5);
    uc_policy_spec_fini(&spec);
    ck_assert_int_eq(uc_policy_spec_take(&list, &spec), UC_OK);
    ck_assert_str_eq(spec.name, "fifo");
    ck_assert_ptr_null(list);
}
END_TEST

static const char *const refused[] = {"", ",lru", "lru,", "a b", "pwa:", "pwa:ghost", "pwa:=1",
        "pwa:ghost=", "pwa:ghost=1:", "l'ru", "lru\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaa"};

START_TEST(faults_are_refused)
{
    const char *list = refused[_i];
    enum uc_status status = UC_OK;

    while (status == UC_OK) {
        struct uc_policy_spec spec;

        ck_assert_ptr_nonnull(list);
        status = uc_policy_spec_take(&list, &spec);
        if (status == UC_OK) {
            uc_policy_spec_fini(&spec);
        }
    }
    ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_spec");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, names_are_taken_one_by_one);
    tcase_add_loop_test(tcase, faults_are_refused, 0, sizeof(refused) / sizeof(refused[0]));
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
