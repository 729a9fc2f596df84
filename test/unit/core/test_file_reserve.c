/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <check.h>

#include "core/base/file_reserve.h"

enum {
    FILE_BYTES = 128 << 20, /* many signals long */
    SIGNAL_US = 2000,
    STAT_BLOCK_BYTES = 512, /* unit of st_blocks */
};

static volatile sig_atomic_t signal_count;

static void
on_signal(int number)
{
    (void)number;
    signal_count++;
}

static void
signals_every(suseconds_t microseconds)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};

    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static int
make_file(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

static struct stat
stat_of(int fd)
{
    struct stat found;

    ck_assert_int_eq(fstat(fd, &found), 0);
    return found;
}

/* A profiler's timer, an ended child, a stop and continue: what fallocate does not survive by itself. */
START_TEST(signals_do_not_keep_a_file_from_its_storage)
{
    int fd = make_file();
    int error;

    signal_count = 0;
    signals_every(SIGNAL_US);
    error = uc_file_reserve(fd, 0, FILE_BYTES);
    signals_every(0);
    ck_assert_int_eq(error, 0);
    ck_assert_int_gt(signal_count, 0);
    ck_assert_int_eq(stat_of(fd).st_size, FILE_BYTES);
    ck_assert_int_eq(stat_of(fd).st_blocks, FILE_BYTES / STAT_BLOCK_BYTES);
    (void)close(fd);
}
END_TEST

START_TEST(a_range_in_the_middle_is_taken_alone)
{
    int fd = make_file();

    ck_assert_int_eq(uc_file_reserve(fd, 1 << 20, (3 << 20) + 4096), 0);
    ck_assert_int_eq(stat_of(fd).st_size, (4 << 20) + 4096);
    ck_assert_int_eq(stat_of(fd).st_blocks, ((3 << 20) + 4096) / STAT_BLOCK_BYTES);
    ck_assert_int_eq(uc_file_reserve(fd, 0, 0), 0);
    (void)close(fd);
}
END_TEST

START_TEST(what_cannot_be_taken_is_told_by_errno)
{
    int fd = make_file();

    ck_assert_int_eq(uc_file_reserve(-1, 0, 4096), EBADF);
    ck_assert_int_eq(uc_file_reserve(fd, (uint64_t)INT64_MAX + 1, 1), EFBIG);
    ck_assert_int_eq(uc_file_reserve(fd, INT64_MAX, 1), EFBIG);
    ck_assert_int_eq(uc_file_reserve(fd, 1, UINT64_MAX), EFBIG);
    ck_assert_int_eq(stat_of(fd).st_size, 0);
    (void)close(fd);
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("all");
    Suite *suite = suite_create("file_reserve");
    SRunner *runner;
    int failed;

    tcase_add_test(cases, signals_do_not_keep_a_file_from_its_storage);
    tcase_add_test(cases, a_range_in_the_middle_is_taken_alone);
    tcase_add_test(cases, what_cannot_be_taken_is_told_by_errno);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
