/* SPDX-License-Identifier: Apache-2.0 */

/* Removal of the oldest blocks, G2. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/stores/posix/collect.h"
#include "client/stores/posix/store.h"
#include "test/unit/client/posix/posix_env.h"

static size_t
count_present(struct uc_store *store, uint64_t first, uint64_t count)
{
    size_t present = 0;

    for (uint64_t number = first; number < first + count; number++) {
        present += env_is_present(store, number) ? 1 : 0;
    }
    return present;
}

/* The smallest one: each block replaces the one before it, and is there when its event is. */
START_TEST(capacity_of_one_block_holds_the_last_one)
{
    const char *settings[] = {env_engine(_i), "capacity_blocks=1", NULL};
    struct uc_store *store = env_open(settings);

    for (uint64_t number = 0; number < 10; number++) {
        ck_assert_int_eq(env_dump(store, number, 0, 5000), UC_OK);
        ck_assert_int_eq(env_load(store, number, 0, 5000), UC_OK);
        ck_assert_uint_eq(count_present(store, 0, 10), 1);
    }
    ck_assert_int_eq(env_number(store, "collected_blocks"), 9);
    uc_posix_store_destroy(store);
}
END_TEST

START_TEST(oldest_blocks_go_first_and_touch_makes_young)
{
    const char *settings[] = {env_engine(_i), "capacity_blocks=3", "block_bytes=4KiB", NULL};
    struct uc_store *store = env_open(settings);
    struct uc_block_id id = env_id(0);

    for (uint64_t number = 0; number < 3; number++) {
        ck_assert_int_eq(env_dump(store, number, 0, 4096), UC_OK);
    }
    ck_assert_int_eq(uc_store_touch(store, &id, 1, NULL), UC_OK);
    ck_assert_int_eq(env_dump(store, 3, 0, 4096), UC_OK);
    ck_assert(env_is_present(store, 0)); /* touched */
    ck_assert(!env_is_present(store, 1));
    ck_assert_int_eq(env_dump(store, 2, 0, 4096), UC_OK); /* written again: young, and not moved */
    ck_assert_int_eq(env_number(store, "dumps_skipped"), 1);
    ck_assert_int_eq(env_dump(store, 4, 0, 4096), UC_OK);
    ck_assert(!env_is_present(store, 0));
    ck_assert(env_is_present(store, 2));
    ck_assert(env_is_present(store, 3));
    ck_assert(env_is_present(store, 4));
    uc_posix_store_destroy(store);
}
END_TEST

/* In bytes, over two roots: a file is its pages and one for the footer. */
START_TEST(capacity_in_bytes_counts_all_roots)
{
    char root[2][ENV_PATH_BYTES + 20];
    char path[2 * ENV_PATH_BYTES];
    size_t written[2] = {0};
    struct uc_store *store;

    for (size_t idx = 0; idx < 2; idx++) {
        (void)snprintf(root[idx], sizeof(root[idx]), "%s/%zu", env_folder, idx);
    }
    {
        struct uc_dict *config = NULL;

        ck_assert_int_eq(uc_dict_create(&config), UC_OK);
        ck_assert_int_eq(uc_dict_append_string(config, "root", root[0]), UC_OK);
        ck_assert_int_eq(uc_dict_append_string(config, "root", root[1]), UC_OK);
        ck_assert_int_eq(uc_dict_set_string(config, "capacity", "160KiB"), UC_OK);
        store = uc_posix_store_create();
        ck_assert_msg(uc_store_setup(store, config) == UC_OK, "%s", uc_last_error());
        uc_dict_destroy(config);
    }
    for (uint64_t number = 0; number < 60; number++) {
        ck_assert_int_eq(env_dump(store, number, 0, 12288), UC_OK); /* 16 KiB each */
        ck_assert_uint_le(count_present(store, 0, number + 1), 10);
        ck_assert(env_is_present(store, number));
        for (size_t idx = 0; idx < 2; idx++) {
            env_block_path(root[idx], number, path);
            written[idx] += access(path, F_OK) == 0 ? 1 : 0;
        }
    }
    ck_assert_uint_ge(count_present(store, 0, 60), 9);
    ck_assert_uint_gt(written[0], 5);
    ck_assert_uint_gt(written[1], 5);
    ck_assert_uint_eq(written[0] + written[1], 60);
    uc_posix_store_destroy(store);
}
END_TEST

/* What was there before this process is found and counted. */
START_TEST(blocks_of_earlier_runs_count)
{
    static const char *const settings[] = {"capacity_blocks=5", NULL};
    struct uc_store *store = env_open(NULL);

    for (uint64_t number = 0; number < 40; number++) {
        ck_assert_int_eq(env_dump(store, number, 0, 100), UC_OK);
    }
    uc_posix_store_destroy(store);
    store = env_open(settings);
    ck_assert_int_eq(env_dump(store, 40, 0, 100), UC_OK);
    ck_assert_uint_eq(count_present(store, 0, 41), 5);
    ck_assert(env_is_present(store, 40));
    uc_posix_store_destroy(store);
}
END_TEST

static int
write_many(uint64_t first, uint64_t count)
{
    static const char *const settings[] = {"capacity_blocks=8", "block_bytes=16KiB", NULL};
    struct uc_store *store = env_open(settings);
    int failed = 0;

    for (uint64_t number = first; number < first + count; number++) {
        enum uc_status loaded;

        failed += env_dump(store, number, 0, 8192) == UC_OK ? 0 : 1; /* in two parts */
        failed += env_dump(store, number, 8192, 8192) == UC_OK ? 0 : 1;
        loaded = env_load(store, number, 0, 16384); /* unless the other process removed it */
        failed += loaded == UC_OK || loaded == UC_ERR_NOT_FOUND ? 0 : 1;
    }
    uc_posix_store_destroy(store);
    return failed;
}

/* Two processes write and collect in one root: every dump succeeds, the sum stays within the capacity. */
START_TEST(two_processes_share_root_and_capacity)
{
    static const char *const settings[] = {"capacity_blocks=8", "block_bytes=16KiB", NULL};
    struct uc_store *store;
    pid_t children[2];
    size_t present = 0;

    for (size_t idx = 0; idx < 2; idx++) {
        children[idx] = fork();
        if (children[idx] == 0) {
            _exit(write_many(1000 * idx, 100) == 0 ? 0 : 1);
        }
    }
    for (size_t idx = 0; idx < 2; idx++) {
        int status = -1;

        ck_assert_int_eq(waitpid(children[idx], &status, 0), children[idx]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    store = env_open(settings);
    ck_assert_int_eq(env_dump(store, 5000, 0, 16384), UC_OK);
    present = count_present(store, 0, 100) + count_present(store, 1000, 100);
    ck_assert_uint_le(present + 1, 8);
    ck_assert_uint_ge(present + 1, 7);
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 1);
    uc_posix_store_destroy(store);
}
END_TEST

/* A stopped process that keeps the lock holds up one pass, not every block; when it lets go, passes go on. */
START_TEST(pass_of_another_process_is_waited_for_once)
{
    static const char *const settings[] = {"capacity_blocks=1", "block_bytes=4KiB", NULL};
    struct uc_store *store = env_open(settings); /* makes the folders */
    struct uc_dict *dict = env_config(settings);
    struct uc_posix_config config = {0};
    struct uc_posix_health health;
    struct uc_posix_roots roots = {0};
    struct uc_posix_env env = {.config = &config, .roots = &roots, .health = &health};
    struct uc_posix_collector collector = {.env = &env};
    char path[ENV_PATH_BYTES + 16];
    int fd;

    ck_assert_int_eq(env_dump(store, 1, 0, 4096), UC_OK);
    uc_posix_store_destroy(store);
    ck_assert_int_eq(uc_posix_config_read(dict, &config), UC_OK);
    uc_posix_health_init(&health);
    ck_assert_int_eq(uc_posix_roots_open(&config, &health, &roots), UC_OK);
    (void)snprintf(path, sizeof(path), "%s/.collect", env_folder);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    uc_posix_collector_pass(&collector);
    ck_assert(collector.is_elsewhere);
    ck_assert(uc_posix_collector_add(&collector, 4096)); /* the next block asks again */
    uc_posix_collector_pass(&collector);
    ck_assert(collector.is_elsewhere);
    ck_assert(!collector.is_known);
    (void)close(fd);
    uc_posix_collector_pass(&collector);
    ck_assert(!collector.is_elsewhere);
    ck_assert(collector.is_known);
    ck_assert_uint_eq(collector.found.blocks, 1);
    uc_posix_roots_close(&roots);
    uc_posix_health_fini(&health);
    uc_posix_config_fini(&config);
    uc_dict_destroy(dict);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("posix_capacity");
    TCase *tcase = tcase_create("capacity");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, env_setup, env_teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, capacity_of_one_block_holds_the_last_one, 0, 2);
    tcase_add_loop_test(tcase, oldest_blocks_go_first_and_touch_makes_young, 0, 2);
    tcase_add_test(tcase, capacity_in_bytes_counts_all_roots);
    tcase_add_test(tcase, blocks_of_earlier_runs_count);
    tcase_add_test(tcase, two_processes_share_root_and_capacity);
    tcase_add_test(tcase, pass_of_another_process_is_waited_for_once);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
