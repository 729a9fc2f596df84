/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tools/bench/block_content.h"

enum {
    BLOCK_BYTES = 4099 /* not a multiple of a word */
};

static uint8_t content[BLOCK_BYTES];
static uint64_t offset;

/* Written once, read by other versions and other hosts: the bytes never change. */
START_TEST(ids_and_bytes_are_pinned)
{
    static const uint8_t want_id[UC_BLOCK_ID_BYTES] = {0xc0, 0x40, 0x9c, 0x2d, 0x34, 0x77, 0x04,
            0x82, 0x0a, 0xa2, 0x13, 0xd9, 0x7b, 0x4d, 0x64, 0xe7};
    static const uint8_t want_bytes[16] = {0x05, 0xd7, 0x7c, 0xda, 0x00, 0x85, 0x04, 0x1c, 0xdb,
            0x8d, 0x3a, 0x6b, 0xe3, 0xb7, 0x2e, 0xcd};
    struct uc_block_id id = uc_block_id_from_hash(1);

    ck_assert_mem_eq(id.bytes, want_id, sizeof(want_id));
    uc_block_content_fill(1, content, 16);
    ck_assert_mem_eq(content, want_bytes, sizeof(want_bytes));
}
END_TEST

START_TEST(neighbouring_hash_ids_share_nothing)
{
    struct uc_block_id first = uc_block_id_from_hash(100);

    for (uint64_t hash_id = 101; hash_id < 1100; hash_id++) {
        struct uc_block_id id = uc_block_id_from_hash(hash_id);

        ck_assert_mem_ne(id.bytes, first.bytes, 8);
        ck_assert_mem_ne(id.bytes + 8, first.bytes + 8, 8);
    }
}
END_TEST

START_TEST(check_accepts_what_fill_wrote)
{
    for (size_t length = 0; length < 40; length++) {
        uc_block_content_fill(7, content, length);
        ck_assert(uc_block_content_check(7, content, length, &offset));
    }
}
END_TEST

static const size_t damage_cases[] = {0, 1, 7, 8, 2050, BLOCK_BYTES - 4, BLOCK_BYTES - 1};

START_TEST(check_finds_the_first_wrong_byte)
{
    uc_block_content_fill(7, content, BLOCK_BYTES);
    content[damage_cases[_i]] ^= 0x10;
    content[BLOCK_BYTES - 1] ^= 0x01;
    ck_assert(!uc_block_content_check(7, content, BLOCK_BYTES, &offset));
    ck_assert_uint_eq(offset, damage_cases[_i]);
}
END_TEST

START_TEST(check_rejects_other_blocks_shifted_words_and_zeroes)
{
    uc_block_content_fill(8, content, BLOCK_BYTES);
    ck_assert(!uc_block_content_check(7, content, BLOCK_BYTES, &offset));
    uc_block_content_fill(7, content, BLOCK_BYTES);
    ck_assert(!uc_block_content_check(7, content + 8, BLOCK_BYTES - 8, &offset));
    memset(content, 0, BLOCK_BYTES);
    ck_assert(!uc_block_content_check(7, content, BLOCK_BYTES, &offset));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("block_content");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, ids_and_bytes_are_pinned);
    tcase_add_test(tcase, neighbouring_hash_ids_share_nothing);
    tcase_add_test(tcase, check_accepts_what_fill_wrote);
    tcase_add_loop_test(tcase, check_finds_the_first_wrong_byte, 0,
            sizeof(damage_cases) / sizeof(damage_cases[0]));
    tcase_add_test(tcase, check_rejects_other_blocks_shifted_words_and_zeroes);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
