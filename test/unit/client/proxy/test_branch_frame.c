/* SPDX-License-Identifier: Apache-2.0 */

/* The frame of a peer, V-1 to V-4. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/proxy/branch_frame.h"
#include "test/fake/fake_alloc.h"

static const uint8_t v1[] = {0x55, 0x43, 0x50, 0x31, 0, 0, 0, 0, 0, 0, 0, 0};
static const uint8_t v2[] = {0x55, 0x43, 0x50, 0x31, 2, 0, 0, 0, 0, 0, 0, 0, 0xde, 0xad};
static const uint8_t inner_payload[] = {0xde, 0xad};
static const struct uc_block_id keys[2] = {{.bytes = "a"}, {.bytes = "b"}};

static void
expect_payload(uint64_t branch, size_t payload_bytes, const uint8_t *want, size_t want_bytes)
{
    struct uc_token inner = {.keys = keys,
            .key_count = 2,
            .payload = payload_bytes == 0 ? NULL : inner_payload,
            .payload_bytes = payload_bytes};
    struct uc_token *framed = NULL;

    ck_assert_int_eq(uc_branch_frame_wrap(branch, &inner, &framed), UC_OK);
    ck_assert_uint_eq(framed->payload_bytes, want_bytes);
    ck_assert_mem_eq(framed->payload, want, want_bytes);
    ck_assert_uint_eq(framed->key_count, 2); /* unchanged */
    ck_assert_mem_eq(framed->keys, keys, sizeof(keys));
    uc_token_destroy(framed);
}

/* V-1, V-2, R-12.4, R-12.5 */
START_TEST(frames_are_bit_exact)
{
    static const uint8_t large[] = {0x55, 0x43, 0x50, 0x31, 8, 7, 6, 5, 4, 3, 2, 1, 0xde, 0xad};

    expect_payload(0, 0, v1, sizeof(v1));
    expect_payload(2, 2, v2, sizeof(v2));
    expect_payload(0x0102030405060708ull, 2, large, sizeof(large));
}
END_TEST

static enum uc_status
parse(const uint8_t *bytes, size_t length, size_t branch_count, size_t *branch,
        struct uc_token *inner)
{
    struct uc_token framed = {
            .keys = keys, .key_count = 2, .payload = bytes, .payload_bytes = length};

    return uc_branch_frame_parse(&framed, branch_count, branch, inner);
}

/* V-3, R-12.6 */
START_TEST(wrong_frames_are_refused)
{
    uint8_t wrong_magic[sizeof(v1)];
    uint8_t high_branch[sizeof(v1)];
    struct uc_token inner = {.payload_bytes = 77};
    size_t branch = 77;

    for (size_t length = 0; length < sizeof(v1); length++) {
        ck_assert_int_eq(
                parse(length == 0 ? NULL : v1, length, 1, &branch, &inner), UC_ERR_INVALID_PARAM);
    }
    for (size_t at = 0; at < 4; at++) {
        memcpy(wrong_magic, v1, sizeof(v1));
        wrong_magic[at] ^= 0x03; /* byte 3 becomes 32 */
        ck_assert_int_eq(parse(wrong_magic, sizeof(v1), 1, &branch, &inner), UC_ERR_INVALID_PARAM);
    }
    ck_assert_int_eq(parse(v2, sizeof(v2), 2, &branch, &inner), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(parse(v2, sizeof(v2), 0, &branch, &inner), UC_ERR_INVALID_PARAM);
    for (size_t at = 4; at < 12; at++) {
        memcpy(high_branch, v1, sizeof(v1));
        high_branch[at] = 0x80;
        ck_assert_int_eq(parse(high_branch, sizeof(v1), 3, &branch, &inner), UC_ERR_INVALID_PARAM);
    }
    ck_assert_uint_eq(branch, 77); /* outputs are untouched */
    ck_assert_uint_eq(inner.payload_bytes, 77);
}
END_TEST

/* V-4 */
START_TEST(frames_are_taken_off_again)
{
    struct uc_token inner;
    size_t branch = 77;

    ck_assert_int_eq(parse(v2, sizeof(v2), 3, &branch, &inner), UC_OK);
    ck_assert_uint_eq(branch, 2);
    ck_assert_uint_eq(inner.payload_bytes, 2);
    ck_assert_mem_eq(inner.payload, inner_payload, 2);
    ck_assert_ptr_eq(inner.keys, keys);
    ck_assert_int_eq(parse(v1, sizeof(v1), 1, &branch, &inner), UC_OK);
    ck_assert_uint_eq(branch, 0);
    ck_assert_uint_eq(inner.payload_bytes, 0);
    ck_assert_ptr_null(inner.payload);
}
END_TEST

START_TEST(frame_without_memory_is_an_error)
{
    struct uc_token inner = {.keys = keys, .key_count = 2};
    struct uc_token *framed = NULL;

    uc_fake_alloc_fail_once(0); /* reaches the objects of the proxy, not libucm_core.so */
    ck_assert_int_eq(uc_branch_frame_wrap(1, &inner, &framed), UC_ERR_OUT_OF_MEMORY);
    uc_fake_alloc_reset();
    ck_assert_ptr_null(framed);
    inner.payload_bytes = SIZE_MAX - 4;
    ck_assert_int_eq(uc_branch_frame_wrap(1, &inner, &framed), UC_ERR_OUT_OF_MEMORY);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("branch_frame");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, frames_are_bit_exact);
    tcase_add_test(tcase, wrong_frames_are_refused);
    tcase_add_test(tcase, frames_are_taken_off_again);
    tcase_add_test(tcase, frame_without_memory_is_an_error);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
