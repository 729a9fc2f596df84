/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tools/bench/file_yardstick.h"
#include "tools/bench/fio.h"

enum {
    BLOCKS = 5,
    BLOCK_BYTES = 8192,
    BYTES = BLOCKS * BLOCK_BYTES,
};

static char folder[32];
static struct uc_file_yardstick yardstick;
static uint64_t ns;

static void
setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/ucm-yard-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    yardstick = (struct uc_file_yardstick){.directory = folder,
            .source = aligned_alloc(4096, BYTES),
            .target = aligned_alloc(4096, BYTES),
            .block_bytes = BLOCK_BYTES,
            .blocks = BLOCKS,
            .depth = 2};
    for (size_t idx = 0; idx < BYTES; idx++) {
        yardstick.source[idx] = (uint8_t)(idx / 7);
    }
    memset(yardstick.target, 0, BYTES);
}

/* Nothing is left in the directory, whatever happened. */
static void
teardown(void)
{
    uc_file_yardstick_close(&yardstick);
    ck_assert_int_eq(rmdir(folder), 0);
    free(yardstick.source);
    free(yardstick.target);
}

START_TEST(loop_writes_every_block_and_reads_it_back)
{
    enum uc_status status;

    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "uring"), UC_OK);
    ck_assert(!yardstick.is_fio);
    status = uc_file_yardstick_write(&yardstick, &ns);
    if (status != UC_OK) {
        (void)printf("skipped: %s\n", uc_last_error()); /* no O_DIRECT or no io_uring here */
        return;
    }
    ck_assert_uint_gt(ns, 0);
    ck_assert_int_eq(uc_file_yardstick_read(&yardstick, &ns), UC_OK);
    ck_assert_mem_eq(yardstick.source, yardstick.target, BYTES);
}
END_TEST

START_TEST(read_of_a_file_that_is_missing_fails)
{
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "uring"), UC_OK);
    ck_assert_int_eq(uc_file_yardstick_read(&yardstick, &ns), UC_ERR_OS_API);
}
END_TEST

START_TEST(directory_that_is_missing_is_named)
{
    yardstick.directory = "/nonexistent/place";
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "uring"), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "/nonexistent/place"));
}
END_TEST

/* A program called fio that notes its arguments and prints this. */
static void
make_fio(const char *report)
{
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/fio", folder);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file,
            "#!/bin/sh\ncase \" $* \" in\n"
            "*' --version '*) exit 0 ;;\n"
            "*' --bs=8192 --size=40960 '*) echo '%s' ;;\n"
            "*) exit 3 ;;\nesac\n",
            report);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0700), 0);
    ck_assert_int_eq(setenv("PATH", folder, 1), 0);
}

static void
remove_fio(void)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/fio", folder);
    ck_assert_int_eq(unlink(path), 0);
}

START_TEST(fio_is_asked_where_it_is_installed)
{
    make_fio("note: {\"jobs\": [{\"write\": {\"io_bytes\": 40960, \"bw_bytes\": 40960000}}]}");
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "auto"), UC_OK);
    ck_assert(yardstick.is_fio);
    ck_assert_msg(uc_file_yardstick_write(&yardstick, &ns) == UC_OK, "%s", uc_last_error());
    ck_assert_uint_eq(ns, 1000000);
    /* The report says nothing about reads. */
    ck_assert_int_eq(uc_file_yardstick_read(&yardstick, &ns), UC_ERR_OS_API);
    yardstick.block_bytes = 4096;
    ck_assert_int_eq(uc_file_yardstick_write(&yardstick, &ns), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "fio"));
    remove_fio();
}
END_TEST

START_TEST(loop_takes_over_where_fio_is_missing)
{
    ck_assert_int_eq(setenv("PATH", "/nonexistent", 1), 0);
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "fio"), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "auto"), UC_OK);
    ck_assert(!yardstick.is_fio);
}
END_TEST

START_TEST(report_of_fio_must_be_about_these_bytes)
{
    static const char *const texts[] = {
            "",
            "no json",
            "{",
            "{}",
            "{\"jobs\": {}}",
            "{\"jobs\": []}",
            "{\"jobs\": [{\"read\": {\"io_bytes\": 9, \"bw_bytes\": 10}}]}",
            "{\"jobs\": [{\"read\": {\"io_bytes\": 10, \"bw_bytes\": 0}}]}",
            "{\"jobs\": [{\"read\": {\"io_bytes\": -10, \"bw_bytes\": 10}}]}",
            "{\"jobs\": [{\"write\": {\"io_bytes\": 10, \"bw_bytes\": 10}}]}",
    };

    for (size_t idx = 0; idx < sizeof(texts) / sizeof(texts[0]); idx++) {
        ck_assert_msg(
                uc_fio_read_report(texts[idx], false, 10, &ns) == UC_ERR_OS_API, "%s", texts[idx]);
    }
    ck_assert_int_eq(uc_fio_read_report("fio: {\"jobs\": [{\"read\": {\"io_bytes\": 10, "
                                        "\"bw_bytes\": 5}}]}\nbye",
                             false, 10, &ns),
            UC_OK);
    ck_assert_uint_eq(ns, 2000000000);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("file_yardstick");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, loop_writes_every_block_and_reads_it_back);
    tcase_add_test(tcase, read_of_a_file_that_is_missing_fails);
    tcase_add_test(tcase, directory_that_is_missing_is_named);
    tcase_add_test(tcase, fio_is_asked_where_it_is_installed);
    tcase_add_test(tcase, loop_takes_over_where_fio_is_missing);
    tcase_add_test(tcase, report_of_fio_must_be_about_these_bytes);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
