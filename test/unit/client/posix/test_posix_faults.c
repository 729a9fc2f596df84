/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A medium that is full, fails, or hangs, G15, G19. The first and the
 * last need root for small file systems in a mount namespace of their own; skipped, visibly, where that is refused.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "client/stores/posix/store.h"
#include "test/unit/client/posix/posix_env.h"

enum {
    BLOCK = 65536,
    MODES = 2,
    FROZEN_JOB_MS = 500, /* long enough for a thread of a busy machine to get into the kernel */
    FROZEN_WAIT_MS = 1500,
};

static bool has_mounts;

static bool
skipped(const char *why)
{
    (void)fprintf(stderr, "SKIP: %s\n", why);
    return true;
}

static bool
eventually_healthy(struct uc_store *store)
{
    uint64_t limit_ns = uc_clock_now_ns() + 20000000000ull;
    static const struct timespec pause = {.tv_nsec = 20000000};

    while (uc_store_health(store) != UC_OK) {
        if (uc_clock_now_ns() > limit_ns) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

static void
remove_block(uint64_t number)
{
    char path[ENV_PATH_BYTES];

    env_block_path(env_folder, number, path);
    ck_assert_int_eq(unlink(path), 0);
}

/* the block that does not fit leaves nothing, the others stay; room makes it work again. */
START_TEST(full_disk_is_no_space_and_harms_nothing)
{
    const char *settings[] = {env_engine(_i), NULL};
    struct uc_dict *description = NULL;
    const char *last_error = "";
    struct uc_store *store;
    uint64_t stored = 0;
    enum uc_status status;
    char path[ENV_PATH_BYTES];

    if (!has_mounts || mount("none", env_folder, "tmpfs", 0, "size=1m") != 0) {
        (void)skipped("no mounts here: a full disk is not tried");
        return;
    }
    store = env_open(settings);
    while ((status = env_dump(store, stored, 0, BLOCK)) == UC_OK) {
        ck_assert_uint_lt(++stored, 100);
    }
    ck_assert_int_eq(status, UC_ERR_NO_SPACE);
    ck_assert_uint_gt(stored, 5);
    ck_assert(!env_is_present(store, stored));
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 1);
    ck_assert_int_eq(uc_store_health(store), UC_OK);

    env_block_path("", stored, path);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(store, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "last_error", &last_error), UC_OK);
    ck_assert_msg(strstr(last_error, path) != NULL, "%s", last_error);
    uc_dict_destroy(description);

    for (uint64_t number = 0; number < stored; number++) {
        ck_assert_int_eq(env_load(store, number, 0, BLOCK), UC_OK);
    }
    remove_block(0);
    remove_block(1);
    ck_assert_int_eq(env_dump(store, stored, 0, BLOCK), UC_OK);
    ck_assert_int_eq(env_load(store, stored, 0, BLOCK), UC_OK);
    uc_posix_store_destroy(store);
    ck_assert_int_eq(umount(env_folder), 0);
}
END_TEST

/* Run in a child whose system calls fail; the block 1 is there. @return whether all was as it should be */
static bool
run_child(bool (*body)(void))
{
    static const char *const settings[] = {"io=threads", NULL};
    struct uc_store *store = env_open(settings);
    int status = -1;
    pid_t child;

    ck_assert_int_eq(env_dump(store, 1, 0, BLOCK), UC_OK);
    uc_posix_store_destroy(store);
    child = fork();
    if (child == 0) {
        _exit(body() ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool
stays_unhealthy(void)
{
    static const char *const settings[] = {"io=threads", NULL};
    struct uc_store *store = env_open(settings);
    struct uc_io_result result;
    uint8_t bytes[100] = {0};
    size_t count = 9;
    bool good = env_load(store, 1, 0, BLOCK) == UC_OK;

    env_forbid(SYS_pwrite64, EIO); /* what a probe writes with */
    uc_posix_store_destroy(store);
    env_forbid(SYS_pwritev, EIO);
    store = env_open(settings);
    good = good && uc_store_health(store) == UC_OK && env_is_present(store, 1);
    good = good && env_dump(store, 2, 0, BLOCK) == UC_ERR_UNHEALTHY;
    good = good && uc_store_health(store) == UC_ERR_UNHEALTHY;
    good = good && strstr(uc_last_error(), env_folder) != NULL;
    good = good && !env_is_present(store, 1);
    good = good && env_load(store, 1, 0, BLOCK) == UC_ERR_UNHEALTHY;
    good = good && env_dump(store, 1, 0, BLOCK) == UC_ERR_UNHEALTHY;
    good = good && uc_store_register_memory(store, 1, bytes, 100, UC_MEMORY_HOST) == UC_OK;
    good = good && uc_store_deregister_memory(store, 1) == UC_OK;
    good = good && uc_store_get_finished(store, &result, 1, &count) == UC_OK && count == 0;
    good = good && env_count_files(env_folder, ".tmp/") == 1;
    uc_posix_store_destroy(store);
    return good;
}

/* V-60 */
START_TEST(failing_medium_is_unhealthy)
{
    ck_assert(run_child(stays_unhealthy));
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 0);
}
END_TEST

static bool
recovers(void)
{
    static const char *const settings[] = {"io=threads", NULL};
    struct uc_store *store;
    bool good;

    env_forbid(SYS_pwritev, EIO); /* of transfers; probes succeed */
    store = env_open(settings);
    good = env_dump(store, 2, 0, BLOCK) == UC_ERR_UNHEALTHY;
    good = good && eventually_healthy(store);
    good = good && env_is_present(store, 1) && env_load(store, 1, 0, BLOCK) == UC_OK;
    uc_posix_store_destroy(store);
    return good;
}

/* */
START_TEST(store_is_healthy_again_after_a_probe)
{
    ck_assert(run_child(recovers));
}
END_TEST

/* A file system on a loop device, which can be frozen. */
static bool
mount_loop(const char *image)
{
    char command[5 * ENV_PATH_BYTES];

    (void)snprintf(command, sizeof(command),
            "truncate -s 32M %s && mkfs.ext4 -q -F %s >/dev/null 2>&1 && mount -o loop %s %s 2>/dev/null",
            image, image, image, env_folder);
    return system(command) == 0; /* NOLINT: fixed text and a folder of our own making */
}

/* V-46: the event comes when nothing is in flight any more, and not with the deadline. */
START_TEST(hanging_medium_ends_jobs_when_it_lets_go)
{
    const char *settings[] = {env_engine(_i), NULL};
    char image[ENV_PATH_BYTES + 8];
    struct uc_io_result result;
    uint8_t *bytes = calloc(1, BLOCK);
    uint64_t job_id = 1;
    struct uc_block_id id = env_id(2);
    void *pointer = bytes;
    uint64_t length = BLOCK;
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &length, .pointer_count = 1};
    struct uc_job_descriptor job = {
            .block_ids = &id, .payloads = &payload, .count = 1, .timeout_ms = FROZEN_JOB_MS};
    enum uc_status submitted;
    enum uc_status waited;
    enum uc_status health;
    struct uc_store *store;
    size_t count = 9;
    bool is_present;
    int fd;

    (void)snprintf(image, sizeof(image), "%.500s.image", env_folder);
    if (!has_mounts || !mount_loop(image)) {
        (void)unlink(image);
        (void)skipped("no loop devices here: a hanging medium is not tried");
        free(bytes);
        return;
    }
    store = env_open(settings);
    ck_assert_int_eq(env_dump(store, 1, 0, BLOCK), UC_OK);
    fd = open(env_folder, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(ioctl(fd, FIFREEZE, 0), 0);
    submitted = uc_store_dump(store, job_id, &job);
    waited = uc_store_wait(store, &job_id, 1, FROZEN_WAIT_MS, &result, 1, &count);
    health = uc_store_health(store);
    is_present = env_is_present(store, 1);
    /* Nothing is asserted before: without a process of its own a failed case would hang when it cleans up. */
    ck_assert_int_eq(ioctl(fd, FITHAW, 0), 0);
    ck_assert_int_eq(submitted, UC_OK);
    ck_assert_int_eq(waited, UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 0); /* the kernel still had the buffer */
    ck_assert_int_eq(health, UC_ERR_UNHEALTHY);
    ck_assert(!is_present);
    ck_assert_int_eq(env_wait(store, job_id), UC_ERR_TIMEOUT);
    ck_assert(eventually_healthy(store));
    ck_assert(!env_is_present(store, 2));
    ck_assert_int_eq(env_load(store, 1, 0, BLOCK), UC_OK);
    ck_assert_int_eq(env_dump(store, 2, 0, BLOCK), UC_OK);
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 1);
    uc_posix_store_destroy(store);
    (void)close(fd);
    ck_assert_int_eq(umount(env_folder), 0);
    (void)unlink(image);
    free(bytes);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("posix_faults");
    TCase *tcase = tcase_create("faults");
    SRunner *runner = srunner_create(suite);
    int failed;

    /* Before there are threads, so that all share it; what is mounted goes with the process. */
    has_mounts =
            unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    tcase_add_checked_fixture(tcase, env_setup, env_teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, full_disk_is_no_space_and_harms_nothing, 0, MODES);
    tcase_add_test(tcase, failing_medium_is_unhealthy);
    tcase_add_test(tcase, store_is_healthy_again_after_a_probe);
    tcase_add_loop_test(tcase, hanging_medium_ends_jobs_when_it_lets_go, 0, MODES);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
