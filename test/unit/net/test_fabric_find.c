/* SPDX-License-Identifier: Apache-2.0 */

/* Finding a transport by name. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/fabric.h"

static const struct {
    const char *name;
    bool has_address; /* the last slot, listener_address, is optional */
} built_in[] = {{"tcp", false}, {"shm", true}};

START_TEST(built_in_table_is_complete)
{
    const struct uc_fabric_ops *ops = NULL;
    /* Everything behind the name is a function: none may be missing. */
    void *slots[(sizeof(*ops) - offsetof(struct uc_fabric_ops, open)) / sizeof(void *)];

    ck_assert_int_eq(uc_fabric_find(built_in[_i].name, &ops), UC_OK);
    ck_assert_str_eq(ops->name, built_in[_i].name);
    ck_assert_uint_eq(ops->abi_version, UC_FABRIC_ABI_VERSION);
    ck_assert_uint_eq(ops->struct_size, sizeof(*ops));
    memcpy(slots, (const char *)ops + offsetof(struct uc_fabric_ops, open), sizeof(slots));
    for (size_t idx = 0; idx < sizeof(slots) / sizeof(slots[0]) - 1; idx++) {
        ck_assert_msg(slots[idx] != NULL, "slot %zu is empty", idx);
    }
    ck_assert_int_eq(ops->listener_address != NULL, built_in[_i].has_address);
}
END_TEST

START_TEST(unknown_name_is_refused_and_known_ones_listed)
{
    static const char *const names[] = {"", "TCP", "tcp ", "rdma", "../libucm_fabric_verbs.so"};
    const struct uc_fabric_ops *ops = NULL;

    for (size_t idx = 0; idx < sizeof(names) / sizeof(names[0]); idx++) {
        ck_assert_int_eq(uc_fabric_find(names[idx], &ops), UC_ERR_INVALID_PARAM);
        ck_assert_ptr_nonnull(strstr(uc_last_error(), "tcp"));
        ck_assert_ptr_nonnull(strstr(uc_last_error(), "shm"));
        ck_assert_ptr_nonnull(strstr(uc_last_error(), "verbs"));
    }
    ck_assert_int_eq(uc_fabric_find(NULL, &ops), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(ops);
}
END_TEST

/* With the module beside this program it is complete, without it the text says what to install. */
START_TEST(verbs_is_found_or_says_what_is_missing)
{
    const struct uc_fabric_ops *ops = NULL;
    enum uc_status status = uc_fabric_find("verbs", &ops);

    if (status == UC_OK) {
        ck_assert_str_eq(ops->name, "verbs");
        ck_assert_uint_eq(ops->abi_version, UC_FABRIC_ABI_VERSION);
        return;
    }
    ck_assert_int_eq(status, UC_ERR_UNSUPPORTED);
    ck_assert_ptr_null(ops);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "libucm_fabric_verbs.so"));
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "install"));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("fabric_find");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tcase, built_in_table_is_complete, 0, 2);
    tcase_add_test(tcase, unknown_name_is_refused_and_known_ones_listed);
    tcase_add_test(tcase, verbs_is_found_or_says_what_is_missing);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
