/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/token.h>

#include "test/fake/fake_alloc.h"

static const struct uc_block_id key = {{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
        0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f}};
static const uint8_t payload[] = {0xde, 0xad};

/* V-5 */
static const uint8_t v5[34] = {0x55, 0x43, 0x54, 0x31, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
        0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0xde, 0xad};

static struct uc_token *token;

static void
setup(void)
{
    token = NULL;
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_token_destroy(token);
}

START_TEST(serialised_form_is_that_of_v5)
{
    uint8_t bytes[sizeof(v5)] = {0};

    ck_assert_int_eq(uc_token_create(&key, 1, payload, sizeof(payload), &token), UC_OK);
    ck_assert_uint_eq(uc_token_serialized_bytes(token), sizeof(v5));
    uc_token_serialize(token, bytes);
    ck_assert_mem_eq(bytes, v5, sizeof(v5));
}
END_TEST

START_TEST(deserialise_gives_the_same_token)
{
    ck_assert_int_eq(uc_token_deserialize(v5, sizeof(v5), &token), UC_OK);
    ck_assert_uint_eq(token->key_count, 1);
    ck_assert_mem_eq(token->keys, &key, sizeof(key));
    ck_assert_uint_eq(token->payload_bytes, sizeof(payload));
    ck_assert_mem_eq(token->payload, payload, sizeof(payload));
}
END_TEST

START_TEST(token_without_keys_and_payload_survives_the_trip)
{
    uint8_t bytes[16];

    ck_assert_int_eq(uc_token_create(NULL, 0, NULL, 0, &token), UC_OK);
    ck_assert_uint_eq(uc_token_serialized_bytes(token), sizeof(bytes));
    uc_token_serialize(token, bytes);
    uc_token_destroy(token);
    token = NULL;
    ck_assert_int_eq(uc_token_deserialize(bytes, sizeof(bytes), &token), UC_OK);
    ck_assert_uint_eq(token->key_count, 0);
    ck_assert_uint_eq(token->payload_bytes, 0);
}
END_TEST

/* The copy has the exact size, so that a sanitizer sees every byte read too far. */
static enum uc_status
deserialize_copy(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length + (length == 0));
    enum uc_status status;

    memcpy(copy, bytes, length);
    status = uc_token_deserialize(copy, length, &token);
    free(copy);
    return status;
}

/* V-6, R-2.18 */
START_TEST(every_truncation_is_refused)
{
    ck_assert_int_eq(deserialize_copy(v5, (size_t)_i), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(token);
}
END_TEST

START_TEST(one_byte_too_many_is_refused)
{
    uint8_t bytes[sizeof(v5) + 1] = {0};

    memcpy(bytes, v5, sizeof(v5));
    ck_assert_int_eq(deserialize_copy(bytes, sizeof(bytes)), UC_ERR_INVALID_PARAM);
}
END_TEST

/* V-6: counts that no length backs; nothing is allocated by them. */
static const struct {
    size_t offset;
    uint8_t bytes[8];
    size_t count;
} header_cases[] = {
        {4, {0xff, 0xff, 0xff, 0xff}, 4},
        {8, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8},
        {4, {0x00, 0x00, 0x00, 0x00}, 4},
        {4, {0x02, 0x00, 0x00, 0x00}, 4},
        {8, {0x01}, 1},
        {8, {0x03}, 1},
        {8, {0x02, 0, 0, 0, 0, 0, 0, 0x80}, 8},
        {0, {'U', 'C', 'P', '1'}, 4},
        {0, {'u'}, 1},
};

START_TEST(header_that_lies_is_refused_before_any_allocation)
{
    uint8_t bytes[sizeof(v5)];
    enum uc_status status;

    memcpy(bytes, v5, sizeof(v5));
    memcpy(bytes + header_cases[_i].offset, header_cases[_i].bytes, header_cases[_i].count);
    uc_fake_alloc_fail_after(0); /* an allocation would answer OutOfMemory */
    status = uc_token_deserialize(bytes, sizeof(bytes), &token);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(token);
}
END_TEST

START_TEST(null_is_no_token)
{
    ck_assert_int_eq(uc_token_deserialize(NULL, 34, &token), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_token_create(NULL, 1, NULL, 0, &token), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_token_create(&key, 1, NULL, 1, &token), UC_ERR_INVALID_PARAM);
    uc_token_destroy(NULL);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
    ck_assert_int_eq(
            uc_token_create(&key, SIZE_MAX / 16, payload, 2, &token), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_token_create(&key, (size_t)UINT32_MAX + 1, payload, 2, &token),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_token_create(&key, 1, payload, SIZE_MAX - 16, &token), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(failed_allocation_is_reported)
{
    enum uc_status created;
    enum uc_status parsed;

    uc_fake_alloc_fail_after(0);
    created = uc_token_create(&key, 1, payload, 2, &token);
    parsed = uc_token_deserialize(v5, sizeof(v5), &token);
    uc_fake_alloc_reset();
    ck_assert_int_eq(created, UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_eq(parsed, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(token);
}
END_TEST

static Suite *
token_suite(void)
{
    Suite *suite = suite_create("token");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, serialised_form_is_that_of_v5);
    tcase_add_test(tcase, deserialise_gives_the_same_token);
    tcase_add_test(tcase, token_without_keys_and_payload_survives_the_trip);
    tcase_add_loop_test(tcase, every_truncation_is_refused, 0, 34);
    tcase_add_test(tcase, one_byte_too_many_is_refused);
    tcase_add_loop_test(tcase, header_that_lies_is_refused_before_any_allocation, 0,
            sizeof(header_cases) / sizeof(header_cases[0]));
    tcase_add_test(tcase, null_is_no_token);
    tcase_add_test(tcase, sizes_that_overflow_are_refused);
    tcase_add_test(tcase, failed_allocation_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(token_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
