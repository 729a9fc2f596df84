/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/config/fields.h"
#include "core/config/units.h"

struct unit_case {
    const char *text;
    enum uc_status want;
    uint64_t value;
};

/* */
static const struct unit_case size_cases[] = {
        {"0", UC_OK, 0},
        {"64", UC_OK, 64}, /* a bare number is bytes */
        {"64B", UC_OK, 64},
        {"64MiB", UC_OK, UINT64_C(64) << 20},
        {"64 MiB", UC_OK, UINT64_C(64) << 20},
        {"1KiB", UC_OK, 1024},
        {"3GiB", UC_OK, UINT64_C(3) << 30},
        {"2TiB", UC_OK, UINT64_C(2) << 40},
        {"1kB", UC_OK, 1000},
        {"1MB", UC_OK, 1000000},
        {"1GB", UC_OK, 1000000000},
        {"1TB", UC_OK, UINT64_C(1000000000000)},
        {"18446744073709551615", UC_OK, UINT64_MAX},
        {"16777215TiB", UC_OK, UINT64_C(16777215) << 40},
        {"18446744073709551616", UC_ERR_INVALID_PARAM, 0}, /* one too many */
        {"16777216TiB", UC_ERR_INVALID_PARAM, 0},
        {"99999999999999999999999999999999", UC_ERR_INVALID_PARAM, 0},
        {"", UC_ERR_INVALID_PARAM, 0},
        {"-1", UC_ERR_INVALID_PARAM, 0},
        {"+1", UC_ERR_INVALID_PARAM, 0},
        {" 1", UC_ERR_INVALID_PARAM, 0},
        {"1.5GiB", UC_ERR_INVALID_PARAM, 0},
        {"1e3", UC_ERR_INVALID_PARAM, 0},
        {"0x10", UC_ERR_INVALID_PARAM, 0},
        {"MiB", UC_ERR_INVALID_PARAM, 0},
        {"1Mib", UC_ERR_INVALID_PARAM, 0},
        {"1M", UC_ERR_INVALID_PARAM, 0}, /* 10^6 or 2^20? */
        {"1MiBx", UC_ERR_INVALID_PARAM, 0},
        {"1MiB ", UC_ERR_INVALID_PARAM, 0},
        {"1s", UC_ERR_INVALID_PARAM, 0},
        {NULL, UC_ERR_INVALID_PARAM, 0},
};

static const struct unit_case time_cases[] = {
        {"0", UC_OK, 0},
        {"250", UC_OK, 250}, /* a bare number is milliseconds */
        {"250ms", UC_OK, 250},
        {"10s", UC_OK, 10000},
        {"5m", UC_OK, 300000},
        {"2h", UC_OK, 7200000},
        {"18446744073709551615ms", UC_OK, UINT64_MAX},
        {"18446744073709551615s", UC_ERR_INVALID_PARAM, 0},
        {"-1s", UC_ERR_INVALID_PARAM, 0},
        {"1d", UC_ERR_INVALID_PARAM, 0},
        {"1S", UC_ERR_INVALID_PARAM, 0},
        {"1.5s", UC_ERR_INVALID_PARAM, 0},
        {"1MiB", UC_ERR_INVALID_PARAM, 0},
        {"s", UC_ERR_INVALID_PARAM, 0},
};

static void
check_case(const struct unit_case *item, enum uc_status (*parse)(const char *, uint64_t *))
{
    uint64_t value = 42;

    ck_assert_int_eq(parse(item->text, &value), item->want);
    ck_assert_uint_eq(value, item->want == UC_OK ? item->value : 42); /* untouched on failure */
    if (item->want != UC_OK && item->text != NULL) {
        ck_assert_msg(strstr(uc_last_error(), item->text) != NULL, "%s", uc_last_error());
    }
}

START_TEST(parse_accepts_sizes_that_fit_and_nothing_else)
{
    check_case(&size_cases[_i], uc_bytes_parse);
}
END_TEST

START_TEST(parse_accepts_times_that_fit_and_nothing_else)
{
    check_case(&time_cases[_i], uc_config_parse_ms);
}
END_TEST

START_TEST(error_lists_the_units)
{
    uint64_t value = 0;

    ck_assert_int_eq(uc_bytes_parse("1M", &value), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "MiB"));
    ck_assert_int_eq(uc_config_parse_ms("1d", &value), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "ms s m h"));
}
END_TEST

START_TEST(largest_unit_divides_without_rest)
{
    ck_assert_str_eq(uc_unit_for_bytes(0).name, "B");
    ck_assert_str_eq(uc_unit_for_bytes(1000).name, "B");
    ck_assert_str_eq(uc_unit_for_bytes(1024).name, "KiB");
    ck_assert_str_eq(uc_unit_for_bytes(UINT64_C(3) << 30).name, "GiB");
    ck_assert_str_eq(uc_unit_for_bytes((UINT64_C(3) << 30) + 1024).name, "KiB");
    ck_assert_str_eq(uc_unit_for_bytes(UINT64_C(1) << 50).name, "TiB");
    ck_assert_str_eq(uc_unit_for_ms(0).name, "ms");
    ck_assert_str_eq(uc_unit_for_ms(1500).name, "ms");
    ck_assert_str_eq(uc_unit_for_ms(90000).name, "s");
    ck_assert_str_eq(uc_unit_for_ms(7200000).name, "h");
}
END_TEST

static Suite *
units_suite(void)
{
    Suite *suite = suite_create("units");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, parse_accepts_sizes_that_fit_and_nothing_else, 0,
            sizeof(size_cases) / sizeof(size_cases[0]));
    tcase_add_loop_test(tcase, parse_accepts_times_that_fit_and_nothing_else, 0,
            sizeof(time_cases) / sizeof(time_cases[0]));
    tcase_add_test(tcase, error_lists_the_units);
    tcase_add_test(tcase, largest_unit_divides_without_rest);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(units_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
