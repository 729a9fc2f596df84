/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of the posix store that need no data side: footer, paths, roots, configuration. */

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/stores/posix/block_footer.h"
#include "client/stores/posix/config.h"
#include "client/stores/posix/roots.h"
#include "client/stores/posix/store.h"
#include "test/unit/client/posix/posix_env.h"

static struct uc_block_footer
sample_footer(void)
{
    return (struct uc_block_footer){
            .key = env_id(7),
            .generation = 42,
            .length_bytes = 5000,
            .checksum = 0x1122334455667788ull,
            .checksum_kind = UC_BLOCK_CHECKSUM_XXH3_64,
    };
}

/* */
START_TEST(footer_comes_back_as_it_was_put)
{
    struct uc_block_footer footer = sample_footer();
    struct uc_block_footer again;
    uint8_t bytes[UC_BLOCK_FOOTER_BYTES];

    uc_block_footer_put(bytes, &footer);
    ck_assert_int_eq(uc_block_footer_get(bytes, &again), UC_OK);
    ck_assert_mem_eq(&again.key, &footer.key, sizeof(again.key));
    ck_assert_uint_eq(again.generation, 42);
    ck_assert_uint_eq(again.length_bytes, 5000);
    ck_assert_uint_eq(again.checksum, footer.checksum);
    ck_assert_uint_eq(again.checksum_kind, UC_BLOCK_CHECKSUM_XXH3_64);
}
END_TEST

/* whatever bit flips, it is no footer. */
START_TEST(footer_with_any_flipped_bit_is_refused)
{
    struct uc_block_footer footer = sample_footer();
    struct uc_block_footer again;
    uint8_t bytes[UC_BLOCK_FOOTER_BYTES];

    uc_block_footer_put(bytes, &footer);
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_int_eq(uc_block_footer_get(bytes, &again), UC_ERR_NOT_FOUND);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(bytes, 0, sizeof(bytes));
    ck_assert_int_eq(uc_block_footer_get(bytes, &again), UC_ERR_NOT_FOUND);
}
END_TEST

static const struct {
    uint64_t file_bytes;
    enum uc_status want;
    uint64_t offset;
} size_cases[] = {
        {0, UC_ERR_NOT_FOUND, 0},
        {1, UC_ERR_NOT_FOUND, 0},
        {63, UC_ERR_NOT_FOUND, 0},
        {64, UC_OK, 0}, /* an empty block */
        {65, UC_ERR_NOT_FOUND, 0},
        {4096, UC_OK, 0},
        {4097, UC_ERR_NOT_FOUND, 0},
        {4096 + 64, UC_OK, 4096},
        {8192, UC_OK, 4096},
        {UINT64_MAX, UC_ERR_NOT_FOUND, 0},
};

START_TEST(footer_is_found_by_the_size_of_the_file)
{
    uint64_t offset = 0;

    ck_assert_int_eq(
            uc_block_footer_offset(size_cases[_i].file_bytes, &offset), size_cases[_i].want);
    ck_assert_uint_eq(offset, size_cases[_i].offset);
}
END_TEST

/* The checksum is of the bytes, however they are cut; key, generation and length are in it. */
START_TEST(checksum_does_not_depend_on_the_pieces)
{
    struct uc_block_id key = env_id(1);
    struct uc_block_id other = env_id(2);
    uint8_t bytes[100];
    void *whole[1] = {bytes};
    uint64_t whole_size[1] = {100};
    void *cut[3] = {bytes, NULL, bytes + 33};
    uint64_t cut_sizes[3] = {33, 0, 67};
    uint64_t sum;

    env_fill(1, 0, bytes, sizeof(bytes));
    sum = uc_block_checksum(&key, 5, whole, whole_size, 1);
    ck_assert_uint_eq(uc_block_checksum(&key, 5, cut, cut_sizes, 3), sum);
    ck_assert_uint_ne(uc_block_checksum(&key, 6, whole, whole_size, 1), sum);
    ck_assert_uint_ne(uc_block_checksum(&other, 5, whole, whole_size, 1), sum);
    bytes[50] ^= 1;
    ck_assert_uint_ne(uc_block_checksum(&key, 5, whole, whole_size, 1), sum);
}
END_TEST

static const char *const refused_settings[][2] = {
        {"root=", "root"},
        {"root=17", "root"},
        {"fsync=sometimes", "fsync"},
        {"io=magic", "io"},
        {"threads=257", "threads"},
        {"io_depth=100000", "io_depth"},
        {"shards=1000", "shards"},
        {"direct_io=maybe", "direct_io"},
        {"checksum=7", "checksum"},
        {"block_bytes=2GiB", "block_bytes"},
        {"timeout_ms=0", "timeout_ms"},
        {"capacity=-1", "capacity"},
        {"store_role=boss", "store_role"},
};

/* */
START_TEST(wrong_value_is_refused_by_the_name_of_its_key)
{
    const char *settings[] = {refused_settings[_i][0], NULL};

    ck_assert_int_eq(env_open_status(settings), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), refused_settings[_i][1]) != NULL, "%s", uc_last_error());
}
END_TEST

START_TEST(capacity_below_one_block_is_refused)
{
    static const char *const settings[] = {"block_bytes=64KiB", "capacity=4KiB", NULL};

    ck_assert_int_eq(env_open_status(settings), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "capacity"));
}
END_TEST

START_TEST(root_that_cannot_be_made_is_named)
{
    static const char *const settings[] = {"root=/proc/no/such", NULL};

    ck_assert_int_ne(env_open_status(settings), UC_OK);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "/proc/no/such"));
}
END_TEST

START_TEST(root_keeps_its_number_of_shards)
{
    static const char *const wide[] = {"shards=65536", NULL};

    ck_assert_int_eq(env_open_status(NULL), UC_OK);
    ck_assert_int_eq(env_open_status(NULL), UC_OK);
    ck_assert_int_eq(env_open_status(wide), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "shards"));
}
END_TEST

static size_t
count_shards(void)
{
    char pattern[ENV_PATH_BYTES + 8];
    glob_t found = {0};
    size_t count = 0;

    (void)snprintf(pattern, sizeof(pattern), "%s/?/?", env_folder);
    if (glob(pattern, GLOB_ONLYDIR, NULL, &found) == 0) {
        count = found.gl_pathc;
    }
    globfree(&found);
    return count;
}

/* No dump waits for a folder there; later opens leave it alone, and what is missing then is made by the dump. */
START_TEST(new_root_has_its_shards_from_the_start)
{
    struct uc_store *store = env_open(NULL);
    char path[2 * ENV_PATH_BYTES];

    ck_assert_uint_eq(count_shards(), 256);
    uc_posix_store_destroy(store);

    env_block_path(env_folder, 7, path);
    *strrchr(path, '/') = '\0';
    ck_assert_int_eq(rmdir(path), 0);
    store = env_open(NULL);
    ck_assert_uint_eq(count_shards(), 255);
    ck_assert_int_eq(env_dump(store, 7, 0, 4096), UC_OK);
    ck_assert_int_eq(env_load(store, 7, 0, 4096), UC_OK);
    ck_assert_uint_eq(count_shards(), 256);
    uc_posix_store_destroy(store);
}
END_TEST

/* Another root takes its share of the blocks; the others keep theirs. */
START_TEST(roots_are_chosen_evenly_and_stay)
{
    struct uc_posix_root items[4] = {{.seed = 11}, {.seed = 22}, {.seed = 33}, {.seed = 44}};
    struct uc_posix_roots three = {.items = items, .count = 3, .shards = 256};
    struct uc_posix_roots four = {.items = items, .count = 4, .shards = 256};
    size_t counts[4] = {0};
    size_t moved = 0;

    for (uint64_t number = 0; number < 4000; number++) {
        struct uc_block_id id = env_id(number);
        const struct uc_posix_root *before = uc_posix_root_of(&three, &id);
        const struct uc_posix_root *after = uc_posix_root_of(&four, &id);

        counts[after - items]++;
        if (before != after) {
            ck_assert_ptr_eq(after, &items[3]);
            moved++;
        }
    }
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_uint_gt(counts[idx], 850);
        ck_assert_uint_lt(counts[idx], 1150);
    }
    ck_assert_uint_eq(moved, counts[3]);
}
END_TEST

START_TEST(paths_have_two_levels)
{
    struct uc_posix_roots roots = {.shards = 256};
    struct uc_block_id id = {.bytes = {0xab, 0xcd, 0xef}};
    char path[UC_POSIX_PATH_BYTES];

    uc_posix_block_path(&roots, &id, path);
    ck_assert_str_eq(path, "a/b/abcdef00000000000000000000000000");
    roots.shards = 65536;
    uc_posix_block_path(&roots, &id, path);
    ck_assert_str_eq(path, "ab/cd/abcdef00000000000000000000000000");
}
END_TEST

/* Files of a live owner stay, those of a dead one go, whoever opens the root next. */
START_TEST(leftovers_of_dead_owners_only_are_removed)
{
    static const char *const settings[] = {"block_bytes=64KiB", NULL};
    struct uc_store *next;
    int ready[2];
    char byte;
    pid_t child;

    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        struct uc_store *store = env_open(settings);

        if (env_dump(store, 1, 0, 4096) == UC_OK) { /* the first part: a temporary file */
            (void)!write(ready[1], "x", 1);
        }
        (void)pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);

    next = env_open(settings);
    ck_assert_int_eq(env_number(next, "leftovers_removed"), 0);
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 3); /* two locks and the part */
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 3);

    {
        struct uc_store *last = env_open(settings);

        ck_assert_int_eq(env_number(last, "leftovers_removed"), 1);
        ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 2);
        ck_assert(!env_is_present(last, 1));
        uc_posix_store_destroy(last);
    }
    uc_posix_store_destroy(next);
    ck_assert_uint_eq(env_count_files(env_folder, ".tmp/"), 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("posix_parts");
    TCase *tcase = tcase_create("parts");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, env_setup, env_teardown);
    tcase_add_test(tcase, footer_comes_back_as_it_was_put);
    tcase_add_test(tcase, footer_with_any_flipped_bit_is_refused);
    tcase_add_loop_test(tcase, footer_is_found_by_the_size_of_the_file, 0,
            sizeof(size_cases) / sizeof(size_cases[0]));
    tcase_add_test(tcase, checksum_does_not_depend_on_the_pieces);
    tcase_add_loop_test(tcase, wrong_value_is_refused_by_the_name_of_its_key, 0,
            sizeof(refused_settings) / sizeof(refused_settings[0]));
    tcase_add_test(tcase, capacity_below_one_block_is_refused);
    tcase_add_test(tcase, root_that_cannot_be_made_is_named);
    tcase_add_test(tcase, root_keeps_its_number_of_shards);
    tcase_add_test(tcase, new_root_has_its_shards_from_the_start);
    tcase_add_test(tcase, roots_are_chosen_evenly_and_stay);
    tcase_add_test(tcase, paths_have_two_levels);
    tcase_add_test(tcase, leftovers_of_dead_owners_only_are_removed);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
