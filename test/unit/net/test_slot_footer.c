/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/slot_footer.h"

static const struct uc_block_id key = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

START_TEST(footer_comes_back_from_its_two_parts)
{
    uint8_t footer[UC_FOOTER_BYTES];
    struct uc_slot_footer out;

    memset(footer, 0xee, sizeof(footer));
    uc_slot_footer_put_server(footer, UC_FOOTER_RESERVED, 7, &key, true);
    uc_slot_footer_put_writer(
            footer + UC_FOOTER_WRITER_OFFSET, 1000, UC_CHECKSUM_XXH3_64, UINT64_MAX);
    ck_assert_int_eq(uc_slot_footer_get(footer, &out), UC_OK);
    ck_assert_uint_eq(out.state, UC_FOOTER_RESERVED);
    ck_assert_uint_eq(out.generation, 7);
    ck_assert_mem_eq(&out.key, &key, sizeof(key));
    ck_assert_uint_eq(out.length_bytes, 1000);
    ck_assert_uint_eq(out.checksum_kind, UC_CHECKSUM_XXH3_64);
    ck_assert_uint_eq(out.checksum, UINT64_MAX);
}
END_TEST

START_TEST(commit_leaves_the_writer_part_alone)
{
    uint8_t footer[UC_FOOTER_BYTES];
    struct uc_slot_footer out;

    uc_slot_footer_put_server(footer, UC_FOOTER_RESERVED, 7, &key, true);
    uc_slot_footer_put_writer(footer + UC_FOOTER_WRITER_OFFSET, 5, UC_CHECKSUM_NONE, 0);
    uc_slot_footer_put_server(footer, UC_FOOTER_COMMITTED, 7, &key, false);
    ck_assert_int_eq(uc_slot_footer_get(footer, &out), UC_OK);
    ck_assert_uint_eq(out.state, UC_FOOTER_COMMITTED);
    ck_assert_uint_eq(out.length_bytes, 5);
    ck_assert_uint_eq(out.checksum_kind, UC_CHECKSUM_NONE);
}
END_TEST

START_TEST(alloc_clears_the_writer_part)
{
    uint8_t footer[UC_FOOTER_BYTES];
    struct uc_slot_footer out;

    memset(footer, 0xff, sizeof(footer));
    uc_slot_footer_put_server(footer, UC_FOOTER_RESERVED, 8, &key, true);
    ck_assert_int_eq(uc_slot_footer_get(footer, &out), UC_OK);
    ck_assert_uint_eq(out.length_bytes, 0);
    ck_assert_uint_eq(out.checksum_kind, UC_CHECKSUM_UNWRITTEN);
    ck_assert_uint_eq(out.checksum, 0);
}
END_TEST

START_TEST(wrong_magic_is_not_found)
{
    uint8_t footer[UC_FOOTER_BYTES] = {0};
    struct uc_slot_footer out = {.generation = 42};

    ck_assert_int_eq(uc_slot_footer_get(footer, &out), UC_ERR_NOT_FOUND);
    ck_assert_uint_eq(out.generation, 42); /* untouched on failure */
}
END_TEST

static uint64_t
checksum(uint64_t generation, const uint8_t *bytes, size_t first, size_t second)
{
    struct uc_checksum_piece pieces[2] = {
            {.address = bytes, .length_bytes = first},
            {.address = bytes + first, .length_bytes = second},
    };

    return uc_slot_checksum(&key, generation, pieces, 2);
}

START_TEST(checksum_is_the_same_however_the_block_is_cut)
{
    static uint8_t bytes[5000];
    uint64_t whole;

    for (size_t idx = 0; idx < sizeof(bytes); idx++) {
        bytes[idx] = (uint8_t)(idx * 131 + idx / 256);
    }
    whole = checksum(3, bytes, sizeof(bytes), 0);
    for (size_t cut = 0; cut <= sizeof(bytes); cut += 7) {
        ck_assert_uint_eq(checksum(3, bytes, cut, sizeof(bytes) - cut), whole);
    }
}
END_TEST

START_TEST(checksum_of_a_stream_is_that_of_the_block)
{
    static uint8_t bytes[5000];
    struct uc_checksum_stream stream;

    for (size_t idx = 0; idx < sizeof(bytes); idx++) {
        bytes[idx] = (uint8_t)(idx * 131 + idx / 256);
    }
    for (size_t run = 1; run < sizeof(bytes); run += 97) {
        uc_checksum_stream_init(&stream, &key, 3);
        for (size_t at = 0; at < sizeof(bytes); at += run) {
            size_t left = sizeof(bytes) - at;

            uc_checksum_stream_add(&stream, bytes + at, left < run ? left : run);
        }
        ck_assert_uint_eq(uc_checksum_stream_value(&stream), checksum(3, bytes, sizeof(bytes), 0));
    }
}
END_TEST

START_TEST(checksum_covers_key_generation_and_every_bit)
{
    uint8_t bytes[300] = {0};
    struct uc_block_id other = key;
    struct uc_checksum_piece piece = {.address = bytes, .length_bytes = sizeof(bytes)};
    uint64_t plain = uc_slot_checksum(&key, 3, &piece, 1);

    ck_assert_uint_ne(uc_slot_checksum(&key, 4, &piece, 1), plain);
    other.bytes[15] ^= 1;
    ck_assert_uint_ne(uc_slot_checksum(&other, 3, &piece, 1), plain);
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_uint_ne(uc_slot_checksum(&key, 3, &piece, 1), plain);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}
END_TEST

static Suite *
slot_footer_suite(void)
{
    Suite *suite = suite_create("slot_footer");
    TCase *footer = tcase_create("footer");

    tcase_add_test(footer, footer_comes_back_from_its_two_parts);
    tcase_add_test(footer, commit_leaves_the_writer_part_alone);
    tcase_add_test(footer, alloc_clears_the_writer_part);
    tcase_add_test(footer, wrong_magic_is_not_found);
    tcase_add_test(footer, checksum_is_the_same_however_the_block_is_cut);
    tcase_add_test(footer, checksum_of_a_stream_is_that_of_the_block);
    tcase_add_test(footer, checksum_covers_key_generation_and_every_bit);
    suite_add_tcase(suite, footer);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(slot_footer_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
