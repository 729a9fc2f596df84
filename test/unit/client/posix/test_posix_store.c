/* SPDX-License-Identifier: Apache-2.0 */

/* The posix store as a whole, on either engine, with and without O_DIRECT: .x. */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/setup.h>

#include "client/stores/posix/store.h"
#include "test/unit/client/posix/posix_env.h"

enum {
    MODES = 4,
    BLOCK = 20000, /* no multiple of a page */
};

static const char *const modes[MODES][2] = {
        {"io=threads", "direct_io=off"},
        {"io=threads", "direct_io=on"},
        {"io=uring", "direct_io=off"},
        {"io=uring", "direct_io=on"},
};

/* Open in mode _i; NULL, visibly, where the machine lacks it. */
static struct uc_store *
open_mode(int mode, const char *more, const char *yet_more)
{
    const char *settings[] = {modes[mode][0], modes[mode][1], more, yet_more, NULL};
    struct uc_dict *config = env_config(settings);
    struct uc_store *store = uc_posix_store_create();
    enum uc_status status = uc_store_setup(store, config);

    uc_dict_destroy(config);
    if (status == UC_ERR_UNSUPPORTED) {
        (void)fprintf(stderr, "SKIP: %s\n", uc_last_error());
        uc_posix_store_destroy(store);
        return NULL;
    }
    ck_assert_msg(status == UC_OK, "%s", uc_last_error());
    return store;
}

static const uint64_t lengths[] = {0, 1, 63, 64, 4095, 4096, 4097, 8192, BLOCK, 1000003};

/* Any length comes back, whole and in part; the file has a footer and is gone from .tmp. */
START_TEST(blocks_of_any_length_come_back)
{
    struct uc_store *store = open_mode(_i, NULL, NULL);

    if (store == NULL) {
        return;
    }
    for (size_t idx = 0; idx < sizeof(lengths) / sizeof(lengths[0]); idx++) {
        uint64_t length = lengths[idx];

        ck_assert(!env_is_present(store, idx));
        ck_assert_int_eq(env_dump(store, idx, 0, length), UC_OK);
        ck_assert(env_is_present(store, idx)); /* */
        ck_assert_int_eq(env_load(store, idx, 0, length), UC_OK);
        ck_assert_int_eq(env_load(store, idx, length / 3, length / 2), UC_OK);
        ck_assert_int_eq(env_load(store, idx, length, 0), UC_OK);
        ck_assert_int_eq(env_load(store, idx, 0, length + 1), UC_ERR_INVALID_PARAM); /* */
        ck_assert_int_eq(env_load(store, idx, 5 * length + 9000, 1), UC_ERR_INVALID_PARAM);
        ck_assert(env_is_present(store, idx)); /* a wrong range is not the block's fault */
    }
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 1);
    uc_posix_store_destroy(store);
}
END_TEST

/* What one mode wrote the others read. */
START_TEST(files_do_not_depend_on_the_mode)
{
    struct uc_store *writer = open_mode(_i, NULL, NULL);

    if (writer == NULL) {
        return;
    }
    ck_assert_int_eq(env_dump(writer, 1, 0, BLOCK), UC_OK);
    ck_assert_int_eq(env_dump(writer, 2, 0, 8192), UC_OK);
    for (int mode = 0; mode < MODES; mode++) {
        struct uc_store *reader = open_mode(mode, NULL, NULL);

        if (reader != NULL) {
            ck_assert_int_eq(env_load(reader, 1, 0, BLOCK), UC_OK);
            ck_assert_int_eq(env_load(reader, 2, 4096, 4096), UC_OK);
            uc_posix_store_destroy(reader);
        }
    }
    uc_posix_store_destroy(writer);
}
END_TEST

static void
flip_byte(uint64_t number, off_t at)
{
    char path[ENV_PATH_BYTES];
    uint8_t byte;
    int fd;

    env_block_path(env_folder, number, path);
    fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

/* V-39, R-2.30, R-5.14: the block fails alone and is absent afterwards, for other processes, too. */
START_TEST(damaged_block_is_not_found_and_removed)
{
    struct uc_store *store = open_mode(_i, NULL, NULL);
    struct uc_store *other = open_mode(_i, NULL, NULL);
    char path[ENV_PATH_BYTES];

    if (store == NULL) {
        return;
    }
    for (uint64_t number = 0; number < 5; number++) {
        ck_assert_int_eq(env_dump(store, number, 0, BLOCK), UC_OK);
    }
    flip_byte(0, 0);          /* data: the checksum */
    flip_byte(1, 20480 + 16); /* footer: the key */
    env_block_path(env_folder, 2, path);
    ck_assert_int_eq(truncate(path, 20480), 0); /* the footer is cut off */
    env_block_path(env_folder, 3, path);
    ck_assert_int_eq(truncate(path, 777), 0);
    for (uint64_t number = 0; number < 4; number++) {
        ck_assert_int_eq(env_load(store, number, 0, BLOCK), UC_ERR_NOT_FOUND);
        ck_assert(!env_is_present(store, number));
        ck_assert(!env_is_present(other, number));
        ck_assert_int_eq(env_dump(store, number, 0, BLOCK), UC_OK); /* until written again */
        ck_assert_int_eq(env_load(other, number, 0, BLOCK), UC_OK);
    }
    ck_assert_int_eq(env_number(store, "revoked_blocks"), 4);
    ck_assert_int_eq(env_load(store, 4, 0, BLOCK), UC_OK);
    uc_posix_store_destroy(other);
    uc_posix_store_destroy(store);
}
END_TEST

/* G14: a file under the name of another block. */
START_TEST(file_of_another_block_is_not_found)
{
    struct uc_store *store = open_mode(_i, NULL, NULL);
    char from[ENV_PATH_BYTES];
    char to[ENV_PATH_BYTES];

    if (store == NULL) {
        return;
    }
    ck_assert_int_eq(env_dump(store, 1, 0, 4096), UC_OK);
    ck_assert_int_eq(env_dump(store, 2, 0, 4096), UC_OK);
    env_block_path(env_folder, 1, from);
    env_block_path(env_folder, 2, to);
    ck_assert_int_eq(rename(from, to), 0);
    ck_assert_int_eq(env_load(store, 2, 0, 4096), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(env_load(store, 1, 0, 4096), UC_ERR_NOT_FOUND);
    ck_assert(!env_is_present(store, 2));
    uc_posix_store_destroy(store);
}
END_TEST

/* parts in any order, visible with the last byte and not before. */
START_TEST(parts_assemble_and_become_visible_together)
{
    static const uint64_t parts[][2] = {
            {12288, 7712}, {0, 100}, {4096, 8192}, {50, 4046}}; /* the last ones overlap */
    struct uc_store *store = open_mode(_i, "block_bytes=20000", NULL);
    size_t count = sizeof(parts) / sizeof(parts[0]);

    if (store == NULL) {
        return;
    }
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert(!env_is_present(store, 1));
        ck_assert_int_eq(env_load(store, 1, parts[0][0], parts[0][1]), UC_ERR_NOT_FOUND);
        ck_assert_int_eq(env_dump(store, 1, parts[idx][0], parts[idx][1]), UC_OK);
    }
    ck_assert(env_is_present(store, 1));
    ck_assert_int_eq(env_load(store, 1, 0, BLOCK), UC_OK);
    ck_assert_int_eq(env_load(store, 1, 4096, 8192), UC_OK);
    ck_assert_int_eq(env_dump(store, 1, 0, 100), UC_OK); /* again: moves nothing */
    ck_assert_int_eq(env_dump(store, 1, 1, BLOCK), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 1);
    uc_posix_store_destroy(store);
}
END_TEST

/* Many parts of many blocks at a time, submitted before any is awaited. */
START_TEST(parts_in_flight_together_make_whole_blocks)
{
    enum {
        BLOCKS = 20,
        PARTS = 5,
        PART = BLOCK / PARTS
    };
    struct uc_store *store = open_mode(_i, "block_bytes=20000", NULL);
    uint8_t *memory = malloc((size_t)BLOCKS * BLOCK);

    if (store == NULL) {
        free(memory);
        return;
    }
    for (size_t block = 0; block < BLOCKS; block++) {
        env_fill(block, 0, memory + block * BLOCK, BLOCK);
    }
    for (size_t part = 0; part < PARTS; part++) {
        for (size_t block = 0; block < BLOCKS; block++) {
            ck_assert_int_eq(env_submit(store, true, part * BLOCKS + block, block, part * PART,
                                     memory + block * BLOCK + part * PART, PART),
                    UC_OK);
        }
    }
    for (size_t job = 0; job < (size_t)BLOCKS * PARTS; job++) {
        ck_assert_int_eq(env_wait(store, job), UC_OK);
    }
    for (size_t block = 0; block < BLOCKS; block++) {
        ck_assert(env_is_present(store, block));
        ck_assert_int_eq(env_load(store, block, 0, BLOCK), UC_OK);
    }
    free(memory);
    uc_posix_store_destroy(store);
}
END_TEST

/* */
START_TEST(offset_without_block_bytes_is_unsupported)
{
    struct uc_store *store = open_mode(_i, NULL, NULL);

    if (store == NULL) {
        return;
    }
    ck_assert_int_eq(env_dump(store, 1, 100, 100), UC_ERR_UNSUPPORTED);
    uc_posix_store_destroy(store);
}
END_TEST

/* G10: without a configured length a block may be written anew; it is replaced as a whole. */
START_TEST(last_writer_replaces_the_whole_block)
{
    struct uc_store *store = open_mode(_i, NULL, NULL);

    if (store == NULL) {
        return;
    }
    ck_assert_int_eq(env_dump(store, 1, 0, 9000), UC_OK);
    ck_assert_int_eq(env_dump(store, 1, 0, 300), UC_OK);
    ck_assert_int_eq(env_load(store, 1, 0, 9000), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(env_load(store, 1, 0, 300), UC_OK);
    uc_posix_store_destroy(store);
}
END_TEST

/* more pieces than one call takes. */
START_TEST(payload_of_many_pieces_is_moved)
{
    enum {
        PIECES = 2000,
        PIECE = 13
    };
    struct uc_store *store = open_mode(_i, NULL, NULL);
    uint8_t *memory = malloc(2 * PIECES * PIECE);
    void *pointers[PIECES];
    uint64_t sizes[PIECES];
    struct uc_block_payload payload = {
            .pointers = pointers, .sizes = sizes, .pointer_count = PIECES};
    struct uc_block_id id = env_id(3);
    struct uc_job_descriptor job = {.block_ids = &id, .payloads = &payload, .count = 1};

    if (store == NULL) {
        free(memory);
        return;
    }
    for (size_t idx = 0; idx < PIECES; idx++) {
        pointers[idx] = memory + 2 * PIECE * idx;
        sizes[idx] = PIECE;
        env_fill(3, idx * PIECE, pointers[idx], PIECE);
    }
    ck_assert_int_eq(uc_store_dump(store, 1, &job), UC_OK);
    ck_assert_int_eq(env_wait(store, 1), UC_OK);
    ck_assert_int_eq(env_load(store, 3, 0, PIECES * PIECE), UC_OK);
    memset(memory, 0, 2 * PIECES * PIECE);
    ck_assert_int_eq(uc_store_load(store, 1, &job), UC_OK);
    ck_assert_int_eq(env_wait(store, 1), UC_OK);
    for (size_t idx = 0; idx < PIECES; idx++) {
        ck_assert(env_matches(3, idx * PIECE, pointers[idx], PIECE));
    }
    free(memory);
    uc_posix_store_destroy(store);
}
END_TEST

static atomic_int prerequisite_state;

static enum uc_status
poll_prerequisite(void *context, uint64_t handle)
{
    (void)context;
    (void)handle;
    return (enum uc_status)atomic_load(&prerequisite_state);
}

/* V-46: nothing moves before the event; the deadline counts the wait for it. */
START_TEST(prerequisite_is_awaited_within_the_deadline)
{
    struct uc_prerequisite hook = {.poll = poll_prerequisite};
    const char *settings[] = {modes[_i][0], modes[_i][1], "timeout_ms=20ms", NULL};
    struct uc_dict *config = env_config(settings);
    struct uc_store *store = uc_posix_store_create();
    uint8_t bytes[4096] = {0};
    void *pointer = bytes;
    uint64_t length = sizeof(bytes);
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &length, .pointer_count = 1};
    struct uc_block_id id = env_id(1);
    struct uc_job_descriptor job = {
            .block_ids = &id, .payloads = &payload, .count = 1, .prerequisite_handle = 9};

    ck_assert_int_eq(uc_dict_set_pointer(config, UC_SETUP_PREREQUISITE_HOOK, &hook), UC_OK);
    if (uc_store_setup(store, config) != UC_OK) {
        (void)fprintf(stderr, "SKIP: %s\n", uc_last_error());
    } else {
        atomic_store(&prerequisite_state, UC_ERR_RETRY);
        ck_assert_int_eq(uc_store_dump(store, 1, &job), UC_OK);
        ck_assert_int_eq(env_wait(store, 1), UC_ERR_TIMEOUT);
        ck_assert(!env_is_present(store, 1));
        atomic_store(&prerequisite_state, UC_ERR_GENERAL);
        ck_assert_int_eq(uc_store_dump(store, 2, &job), UC_OK);
        ck_assert_int_eq(env_wait(store, 2), UC_ERR_GENERAL);
        job.timeout_ms = 20000;
        atomic_store(&prerequisite_state, UC_ERR_RETRY);
        ck_assert_int_eq(uc_store_dump(store, 3, &job), UC_OK);
        atomic_store(&prerequisite_state, UC_OK);
        ck_assert_int_eq(env_wait(store, 3), UC_OK);
        ck_assert(env_is_present(store, 1));
        ck_assert_int_eq(uc_store_health(store), UC_OK);
    }
    uc_posix_store_destroy(store);
    uc_dict_destroy(config);
}
END_TEST

/* */
START_TEST(scheduler_instance_answers_but_moves_nothing)
{
    static const char *const worker_settings[] = {"store_role=worker", NULL};
    static const char *const scheduler_settings[] = {"store_role=scheduler", NULL};
    struct uc_store *worker = env_open(worker_settings);
    struct uc_store *scheduler = env_open(scheduler_settings);
    struct uc_block_id ids[3] = {env_id(1), env_id(2), env_id(3)};
    int64_t index = 9;

    ck_assert_int_eq(env_dump(scheduler, 1, 0, 100), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(env_load(scheduler, 1, 0, 100), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(env_dump(worker, 1, 0, 100), UC_OK);
    ck_assert_int_eq(env_dump(worker, 2, 0, 100), UC_OK);
    ck_assert(env_is_present(scheduler, 2));
    ck_assert_int_eq(uc_store_lookup_on_prefix(scheduler, ids, 3, &index), UC_OK);
    ck_assert_int_eq(index, 1);
    ck_assert_int_eq(uc_store_lookup_on_reverse(scheduler, ids, 3, &index), UC_OK);
    ck_assert_int_eq(index, 1);
    ck_assert_int_eq(uc_store_lookup_on_reverse(scheduler, &ids[2], 1, &index), UC_OK);
    ck_assert_int_eq(index, -1);
    ck_assert_int_eq(uc_store_event_fd(scheduler), -1);
    uc_posix_store_destroy(scheduler);
    uc_posix_store_destroy(worker);
}
END_TEST

/* In a child: io_uring_setup answers EPERM, as in many containers. */
static bool
works_without_io_uring(void)
{
    static const char *const only_uring[] = {"io=uring", NULL};
    static const char *const direct[] = {"direct_io=on", NULL};
    struct uc_dict *description = NULL;
    const char *engine = "";
    struct uc_store *store;
    bool works;

    env_forbid(SYS_io_uring_setup, EPERM);
    works = env_open_status(only_uring) == UC_ERR_UNSUPPORTED;
    if (env_open_status(direct) == UC_ERR_UNSUPPORTED) {
        (void)fprintf(stderr, "SKIP: %s\n", uc_last_error());
        return works;
    }
    store = env_open(direct);
    works = works && uc_dict_create(&description) == UC_OK &&
            uc_store_describe(store, description) == UC_OK &&
            uc_dict_get_string(description, "io", &engine) == UC_OK &&
            strcmp(engine, "threads") == 0 && env_dump(store, 1, 0, BLOCK) == UC_OK &&
            env_load(store, 1, 0, BLOCK) == UC_OK;
    uc_dict_destroy(description);
    uc_posix_store_destroy(store);
    return works;
}

START_TEST(threads_serve_where_io_uring_is_not_permitted)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        _exit(works_without_io_uring() ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

/* */
START_TEST(regions_are_checked_though_files_need_none)
{
    struct uc_store *store = env_open(NULL);
    uint8_t bytes[100];

    ck_assert_int_eq(uc_store_register_memory(store, 3, bytes, 100, UC_MEMORY_HOST), UC_OK);
    ck_assert_int_eq(
            uc_store_register_memory(store, 3, bytes, 100, UC_MEMORY_HOST), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(store, 4, bytes, 100, (enum uc_memory_kind)7),
            UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_store_deregister_memory(store, 4), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_store_deregister_memory(store, 3), UC_OK);
    uc_posix_store_destroy(store);
}
END_TEST

/* */
START_TEST(second_setup_is_refused_and_nothing_works_before_the_first)
{
    struct uc_dict *config = env_config(NULL);
    struct uc_store *store = uc_posix_store_create();
    struct uc_block_id id = env_id(1);
    uint8_t hit = 0;

    ck_assert_int_eq(uc_store_lookup(store, &id, 1, &hit), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_setup(store, config), UC_OK);
    ck_assert_int_eq(uc_store_setup(store, config), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(env_dump(store, 1, 0, 10), UC_OK);
    uc_posix_store_destroy(store);
    uc_dict_destroy(config);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("posix_store");
    TCase *tcase = tcase_create("store");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, env_setup, env_teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, blocks_of_any_length_come_back, 0, MODES);
    tcase_add_loop_test(tcase, files_do_not_depend_on_the_mode, 0, MODES);
    tcase_add_loop_test(tcase, damaged_block_is_not_found_and_removed, 0, MODES);
    tcase_add_loop_test(tcase, file_of_another_block_is_not_found, 0, MODES);
    tcase_add_loop_test(tcase, parts_assemble_and_become_visible_together, 0, MODES);
    tcase_add_loop_test(tcase, parts_in_flight_together_make_whole_blocks, 0, MODES);
    tcase_add_loop_test(tcase, offset_without_block_bytes_is_unsupported, 0, MODES);
    tcase_add_loop_test(tcase, last_writer_replaces_the_whole_block, 0, MODES);
    tcase_add_loop_test(tcase, payload_of_many_pieces_is_moved, 0, MODES);
    tcase_add_loop_test(tcase, prerequisite_is_awaited_within_the_deadline, 0, MODES);
    tcase_add_test(tcase, scheduler_instance_answers_but_moves_nothing);
    tcase_add_test(tcase, threads_serve_where_io_uring_is_not_permitted);
    tcase_add_test(tcase, regions_are_checked_though_files_need_none);
    tcase_add_test(tcase, second_setup_is_refused_and_nothing_works_before_the_first);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
