/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>

#include <check.h>

#include <ucm/clock.h>

#include "core/base/warn_gate.h"

/* */
START_TEST(sums_of_times_saturate)
{
    ck_assert_uint_eq(uc_time_add_ms(1, 2), 3);
    ck_assert_uint_eq(uc_time_add_ms(UINT64_MAX - 1, 1), UC_TIME_NEVER_MS);
    ck_assert_uint_eq(uc_time_add_ms(UINT64_MAX - 1, 2), UC_TIME_NEVER_MS);
    ck_assert_uint_eq(uc_time_add_ms(UINT64_MAX, UINT64_MAX), UC_TIME_NEVER_MS);
    ck_assert_uint_eq(uc_time_add_ms(UINT64_MAX, 0), UC_TIME_NEVER_MS);
}
END_TEST

static uint64_t
fake_now_ms(void *context)
{
    return *(const uint64_t *)context;
}

/* */
START_TEST(clock_can_be_replaced)
{
    uint64_t now_ms = 5;
    struct uc_clock clock = {.now_ms = fake_now_ms, .context = &now_ms};

    ck_assert_uint_eq(uc_clock_now_ms(&clock), 5);
    now_ms = 6;
    ck_assert_uint_eq(uc_clock_now_ms(&clock), 6);
}
END_TEST

/* G12 */
START_TEST(monotonic_clock_never_goes_back)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t last_ms = uc_clock_now_ms(&clock);
    uint64_t last_ns = uc_clock_now_ns();

    for (int round = 0; round < 1000; round++) {
        ck_assert_uint_ge(uc_clock_now_ms(&clock), last_ms);
        ck_assert_uint_ge(uc_clock_now_ns(), last_ns);
        last_ms = uc_clock_now_ms(&clock);
        last_ns = uc_clock_now_ns();
    }
}
END_TEST

/* and what peers could cause again and again is said once in a while */
START_TEST(warnings_pass_once_in_a_while)
{
    struct uc_warn_gate gate = {0};

    ck_assert(uc_warn_gate_pass(&gate, 0, 1000));
    ck_assert(!uc_warn_gate_pass(&gate, 0, 1000));
    ck_assert(!uc_warn_gate_pass(&gate, 999, 1000));
    ck_assert(uc_warn_gate_pass(&gate, 1000, 1000));
    ck_assert(!uc_warn_gate_pass(&gate, 1999, 1000));

    ck_assert(uc_warn_gate_pass(&gate, UINT64_MAX - 1, 1000)); /* saturates: not before the end */
    ck_assert(!uc_warn_gate_pass(&gate, UINT64_MAX - 1, 1000));
}
END_TEST

static Suite *
clock_suite(void)
{
    Suite *suite = suite_create("clock");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, sums_of_times_saturate);
    tcase_add_test(tcase, clock_can_be_replaced);
    tcase_add_test(tcase, monotonic_clock_never_goes_back);
    tcase_add_test(tcase, warnings_pass_once_in_a_while);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(clock_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
