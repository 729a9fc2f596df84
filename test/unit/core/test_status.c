/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/status.h>

#define STATUS_CODE(name, number, text) UC_##name,
static const enum uc_status all_codes[] = {UC_STATUS_MAP(STATUS_CODE)};

/* */
static const struct {
    enum uc_status status;
    int number;
    const char *name;
} wire_cases[] = {
        {UC_OK, 0, "Ok"},
        {UC_ERR_GENERAL, -1, "General"},
        {UC_ERR_INVALID_PARAM, -50000, "InvalidParam"},
        {UC_ERR_OUT_OF_MEMORY, -50001, "OutOfMemory"},
        {UC_ERR_OS_API, -50002, "OsApiError"},
        {UC_ERR_DUPLICATE_KEY, -50003, "DuplicateKey"},
        {UC_ERR_RETRY, -50004, "Retry"},
        {UC_ERR_NOT_FOUND, -50005, "NotFound"},
        {UC_ERR_UNSUPPORTED, -50008, "Unsupported"},
        {UC_ERR_NO_SPACE, -50009, "NoSpace"},
        {UC_ERR_TIMEOUT, -50010, "Timeout"},
        {UC_ERR_UNHEALTHY, -50011, "Unhealthy"},
        {UC_ERR_PERMISSION_DENIED, -50012, "PermissionDenied"},
        {UC_ERR_STALE, -50013, "Stale"},
        {UC_ERR_DRAINING, -50014, "Draining"},
};

START_TEST(numbers_and_names_on_the_wire_do_not_move)
{
    ck_assert_int_eq(wire_cases[_i].status, wire_cases[_i].number);
    ck_assert_str_eq(uc_status_name(wire_cases[_i].status), wire_cases[_i].name);
    ck_assert_uint_eq(
            sizeof(wire_cases) / sizeof(wire_cases[0]), sizeof(all_codes) / sizeof(all_codes[0]));
}
END_TEST

START_TEST(every_code_has_its_own_name)
{
    for (int other = 0; other < _i; other++) {
        ck_assert_str_ne(uc_status_name(all_codes[_i]), uc_status_name(all_codes[other]));
    }
    ck_assert_str_ne(uc_status_name(all_codes[_i]), "Unknown");
}
END_TEST

/* V-7, R-3.4 */
static const struct {
    int number;
    const char *detail;
    const char *want;
} format_cases[] = {
        {-50005, NULL, "NotFound (-50005)"},
        {-50005, "", "NotFound (-50005)"},
        {-50005, "block", "NotFound (-50005): block"},
        {0, NULL, "Ok (0)"},
        {-50006, NULL, "Unknown (-50006)"}, /* reserved */
        {7, "x", "Unknown (7): x"},
};

START_TEST(text_form_names_number_and_detail)
{
    char buffer[64];

    ck_assert_str_eq(uc_status_format((enum uc_status)format_cases[_i].number,
                             format_cases[_i].detail, buffer, sizeof(buffer)),
            format_cases[_i].want);
}
END_TEST

START_TEST(text_form_is_cut_to_the_buffer)
{
    char buffer[4] = {'x', 'x', 'x', 'x'};

    ck_assert_str_eq(uc_status_format(UC_OK, NULL, buffer, 3), "Ok");
    ck_assert_int_eq(buffer[3], 'x');
    ck_assert_str_eq(uc_status_format(UC_OK, NULL, buffer, 0), "");
}
END_TEST

/* */
START_TEST(error_text_is_kept_and_the_status_handed_back)
{
    ck_assert_str_eq(uc_last_error(), "");
    ck_assert_int_eq(uc_error(UC_ERR_NO_SPACE, "slot %d of %s", 3, "x"), UC_ERR_NO_SPACE);
    ck_assert_str_eq(uc_last_error(), "slot 3 of x");
}
END_TEST

START_TEST(error_text_may_quote_the_one_before)
{
    (void)uc_error(UC_ERR_GENERAL, "inner");
    (void)uc_error(UC_ERR_GENERAL, "outer: %s", uc_last_error());
    ck_assert_str_eq(uc_last_error(), "outer: inner");
}
END_TEST

START_TEST(error_text_of_any_length_is_terminated)
{
    char longer[5000];

    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    (void)uc_error(UC_ERR_GENERAL, "%s", longer);
    ck_assert_uint_lt(strlen(uc_last_error()), sizeof(longer));
    ck_assert_uint_gt(strlen(uc_last_error()), 500);
}
END_TEST

static void *
fail_in_thread(void *arg)
{
    (void)uc_error(UC_ERR_GENERAL, "of the other thread");
    return arg;
}

START_TEST(error_text_belongs_to_its_thread)
{
    pthread_t thread;

    (void)uc_error(UC_ERR_GENERAL, "of this thread");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_in_thread, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(uc_last_error(), "of this thread");
}
END_TEST

START_TEST(error_text_is_one_printable_line_whatever_a_peer_says)
{
    (void)uc_error(UC_ERR_INVALID_PARAM, "server \"%s\"", "a\nb\x1b[2J\xb1\xc3\xa9");
    ck_assert_str_eq(uc_last_error(), "server \"a?b?[2J?\xc3\xa9\"");
}
END_TEST

static Suite *
status_suite(void)
{
    Suite *suite = suite_create("status");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, numbers_and_names_on_the_wire_do_not_move, 0,
            sizeof(wire_cases) / sizeof(wire_cases[0]));
    tcase_add_loop_test(
            tcase, every_code_has_its_own_name, 0, sizeof(all_codes) / sizeof(all_codes[0]));
    tcase_add_loop_test(tcase, text_form_names_number_and_detail, 0,
            sizeof(format_cases) / sizeof(format_cases[0]));
    tcase_add_test(tcase, text_form_is_cut_to_the_buffer);
    tcase_add_test(tcase, error_text_is_kept_and_the_status_handed_back);
    tcase_add_test(tcase, error_text_may_quote_the_one_before);
    tcase_add_test(tcase, error_text_of_any_length_is_terminated);
    tcase_add_test(tcase, error_text_belongs_to_its_thread);
    tcase_add_test(tcase, error_text_is_one_printable_line_whatever_a_peer_says);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(status_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
