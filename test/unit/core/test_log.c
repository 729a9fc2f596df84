/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include <ucm/log.h>

static int saved_stderr;
static FILE *captured;
static char line[16384];

static void
setup(void)
{
    saved_stderr = dup(STDERR_FILENO);
    captured = tmpfile();
    ck_assert_ptr_nonnull(captured);
    ck_assert_int_ge(dup2(fileno(captured), STDERR_FILENO), 0);
}

static void
teardown(void)
{
    (void)dup2(saved_stderr, STDERR_FILENO);
    (void)close(saved_stderr);
    (void)fclose(captured);
    uc_log_set_json(false);
    uc_log_set_level(UC_LOG_INFO);
}

/* What was written since the last call. */
static const char *
written(void)
{
    ssize_t length = pread(fileno(captured), line, sizeof(line) - 1, 0);

    ck_assert_int_ge(length, 0);
    line[length] = '\0';
    ck_assert_int_eq(ftruncate(fileno(captured), 0), 0);
    (void)lseek(STDERR_FILENO, 0, SEEK_SET);
    return line;
}

START_TEST(line_has_time_level_and_message)
{
    uc_log_warn("conn %d: closed", 7);
    ck_assert_str_eq(written() + strlen("2026-01-01T00:00:00.000Z "), "warn  conn 7: closed\n");
}
END_TEST

START_TEST(levels_below_the_set_one_are_silent)
{
    uc_log_debug("hidden");
    uc_log_write(UC_LOG_TRACE, "hidden");
    ck_assert_str_eq(written(), "");
    uc_log_set_level(UC_LOG_DEBUG);
    uc_log_debug("shown");
    ck_assert_ptr_nonnull(strstr(written(), "debug shown\n"));
    uc_log_set_level(UC_LOG_ERROR);
    uc_log_warn("hidden");
    ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(text_of_a_peer_cannot_start_a_line)
{
    uc_log_warn("peer says %s", "x\n2026 error forged\x1b[0m\x7f");
    ck_assert_ptr_nonnull(strstr(written(), "peer says x?2026 error forged?[0m?\n"));
}
END_TEST

START_TEST(json_is_escaped)
{
    uc_log_set_json(true);
    uc_log_warn("say \"hi\\\" \n\x01 é \xff\xc3");
    ck_assert_ptr_nonnull(strstr(
            written(), "\"level\":\"warn\",\"msg\":\"say \\\"hi\\\\\\\" \\u000a\\u0001 é ??\"}\n"));
    ck_assert_int_eq(line[0], '{');
}
END_TEST

START_TEST(longest_message_fits_in_any_form)
{
    char message[6000];

    memset(message, 1, sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    uc_log_set_json(true);
    uc_log_warn("%s", message);
    ck_assert_ptr_nonnull(strstr(written(), "\\u0001\"}\n"));
}
END_TEST

static const struct {
    int errno_value;
    enum uc_status want;
} errno_cases[] = {
        {ENOMEM, UC_ERR_OUT_OF_MEMORY},
        {ENOSPC, UC_ERR_NO_SPACE},
        {EPERM, UC_ERR_PERMISSION_DENIED},
        {EACCES, UC_ERR_PERMISSION_DENIED},
        {ETIMEDOUT, UC_ERR_TIMEOUT},
        {ENOENT, UC_ERR_OS_API},
};

START_TEST(errno_becomes_a_status_a_line_and_the_error_text)
{
    char want[128];

    ck_assert_int_eq(
            uc_log_errno(errno_cases[_i].errno_value, "shm %s", "x"), errno_cases[_i].want);
    (void)snprintf(want, sizeof(want), "shm x: %s", strerror(errno_cases[_i].errno_value));
    ck_assert_str_eq(uc_last_error(), want);
    ck_assert_ptr_nonnull(strstr(written(), want));
}
END_TEST

START_TEST(logging_leaves_errno_alone)
{
    errno = EBUSY;
    uc_log_warn("x");
    ck_assert_int_eq(errno, EBUSY);
}
END_TEST

START_TEST(level_names_are_parsed)
{
    enum uc_log_level level = UC_LOG_INFO;

    ck_assert_int_eq(uc_log_level_parse("error", &level), UC_OK);
    ck_assert_int_eq(level, UC_LOG_ERROR);
    ck_assert_int_eq(uc_log_level_parse("trace", &level), UC_OK);
    ck_assert_int_eq(level, UC_LOG_TRACE);
    ck_assert_int_eq(uc_log_level_parse("loud", &level), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_log_level_parse(NULL, &level), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(level, UC_LOG_TRACE);
    ck_assert_int_eq(uc_log_level_parse("loud", &level), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "error, warn, info, debug or trace"));
}
END_TEST

static Suite *
log_suite(void)
{
    Suite *suite = suite_create("log");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, line_has_time_level_and_message);
    tcase_add_test(tcase, levels_below_the_set_one_are_silent);
    tcase_add_test(tcase, text_of_a_peer_cannot_start_a_line);
    tcase_add_test(tcase, json_is_escaped);
    tcase_add_test(tcase, longest_message_fits_in_any_form);
    tcase_add_loop_test(tcase, errno_becomes_a_status_a_line_and_the_error_text, 0,
            sizeof(errno_cases) / sizeof(errno_cases[0]));
    tcase_add_test(tcase, logging_leaves_errno_alone);
    tcase_add_test(tcase, level_names_are_parsed);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(log_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
