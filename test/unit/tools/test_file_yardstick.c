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
    static const enum uc_file_yardstick_kind writes[] = {UC_FILE_ONE_FILE, UC_FILE_OVERWRITE};

    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "uring"), UC_OK);
    ck_assert(!yardstick.is_fio);
    for (size_t idx = 0; idx < 2; idx++) {
        if (uc_file_yardstick_run(&yardstick, writes[idx], &ns) != UC_OK) {
            (void)printf("skipped: %s\n", uc_last_error()); /* no O_DIRECT or no io_uring here */
            return;
        }
        ck_assert_uint_gt(ns, 0);
        ck_assert_msg(uc_file_yardstick_run(&yardstick, UC_FILE_READ, &ns) == UC_OK, "%s",
                uc_last_error());
        ck_assert_mem_eq(yardstick.source, yardstick.target, BYTES);
        yardstick.source[BYTES - 1] ^= 1; /* what is read next was written again */
    }
}
END_TEST

START_TEST(loop_writes_a_new_file_for_each_block)
{
    struct stat facts;
    char path[64 + UC_FILE_FOLDER_BYTES];

    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "uring"), UC_OK);
    if (uc_file_yardstick_run(&yardstick, UC_FILE_NEW_FILES, &ns) != UC_OK) {
        (void)printf("skipped: %s\n", uc_last_error()); /* no O_DIRECT or no io_uring here */
        return;
    }
    for (size_t idx = 0; idx < BLOCKS; idx++) {
        (void)snprintf(path, sizeof(path), "%s/limit.0.%zu", yardstick.folder, idx);
        ck_assert_msg(stat(path, &facts) == 0, "%s", path);
        ck_assert_int_eq(facts.st_size, BLOCK_BYTES);
    }
    /* They are not new a second time, and gone when they are cleared. */
    ck_assert_int_eq(uc_file_yardstick_run(&yardstick, UC_FILE_NEW_FILES, &ns), UC_ERR_OS_API);
    uc_file_yardstick_settle(&yardstick);
    uc_file_yardstick_clear(&yardstick);
    ck_assert_int_eq(stat(path, &facts), -1);
    ck_assert_int_eq(uc_file_yardstick_run(&yardstick, UC_FILE_NEW_FILES, &ns), UC_OK);
}
END_TEST

START_TEST(read_of_a_file_that_is_missing_fails)
{
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "uring"), UC_OK);
    ck_assert_int_eq(uc_file_yardstick_run(&yardstick, UC_FILE_READ, &ns), UC_ERR_OS_API);
    ck_assert_int_eq(uc_file_yardstick_run(&yardstick, UC_FILE_OVERWRITE, &ns), UC_ERR_OS_API);
}
END_TEST

START_TEST(directory_that_is_missing_is_named)
{
    yardstick.directory = "/nonexistent/place";
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "uring"), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "/nonexistent/place"));
}
END_TEST

/* A program called fio that prints this if it is asked exactly so, with these tunables of malloc. */
static void
make_fio(const char *arguments, const char *tunables, const char *report)
{
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/fio", folder);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file,
            "#!/bin/sh\ncase \"$GLIBC_TUNABLES $*\" in\n"
            "*' --version') exit 0 ;;\n"
            "'%s %s') echo '%s' ;;\n"
            "*) exit 3 ;;\nesac\n",
            tunables, arguments, report);
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

#define FIO_COMMON                                                                       \
    "--name=limit --direct=1 --ioengine=io_uring --thread --output-format=json --rw=%s " \
    "--bs=8192 --size=40960 --iodepth=2 "
#define FIO_ONE_FILE "--filename=limit --fallocate=native"
#define FIO_NEW_FILES                                                                \
    "--filesize=8192 --nrfiles=5 --openfiles=2 --create_on_open=1 --fallocate=none " \
    "--file_service_type=sequential"

static const struct {
    enum uc_file_yardstick_kind kind;
    const char *rw;
    const char *files;
} fio_cases[] = {
        {UC_FILE_NEW_FILES, "write", FIO_NEW_FILES},
        {UC_FILE_ONE_FILE, "write", FIO_ONE_FILE},
        {UC_FILE_OVERWRITE, "write", FIO_ONE_FILE},
        {UC_FILE_READ, "read", FIO_ONE_FILE},
};

START_TEST(fio_is_asked_for_each_kind)
{
    char arguments[512];
    char report[128];
    int length = snprintf(arguments, sizeof(arguments), FIO_COMMON, fio_cases[_i].rw);

    (void)snprintf(
            arguments + length, sizeof(arguments) - (size_t)length, "%s", fio_cases[_i].files);
    (void)snprintf(report, sizeof(report),
            "note: {\"jobs\": [{\"%s\": {\"io_bytes\": 40960, \"bw_bytes\": 40960000}}]}",
            fio_cases[_i].rw);
    make_fio(arguments, "glibc.malloc.hugetlb=1", report);
    ck_assert_int_eq(setenv("GLIBC_TUNABLES", "glibc.malloc.check=0", 1), 0);
    ck_assert_int_eq(uc_file_yardstick_open(&yardstick, "auto"), UC_OK);
    ck_assert(yardstick.is_fio);
    yardstick.huge_pages = true;
    ck_assert_msg(uc_file_yardstick_run(&yardstick, fio_cases[_i].kind, &ns) == UC_OK, "%s",
            uc_last_error());
    ck_assert_uint_eq(ns, 1000000);
    yardstick.huge_pages = false; /* then the tunables stay as they are, which this one refuses */
    ck_assert_int_eq(uc_file_yardstick_run(&yardstick, fio_cases[_i].kind, &ns), UC_ERR_OS_API);
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
    tcase_add_test(tcase, loop_writes_a_new_file_for_each_block);
    tcase_add_test(tcase, read_of_a_file_that_is_missing_fails);
    tcase_add_test(tcase, directory_that_is_missing_is_named);
    tcase_add_loop_test(
            tcase, fio_is_asked_for_each_kind, 0, sizeof(fio_cases) / sizeof(fio_cases[0]));
    tcase_add_test(tcase, loop_takes_over_where_fio_is_missing);
    tcase_add_test(tcase, report_of_fio_must_be_about_these_bytes);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
