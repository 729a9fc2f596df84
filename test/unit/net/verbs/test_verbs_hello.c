/* SPDX-License-Identifier: Apache-2.0 */

/* The bytes a stranger sends before it is known: decoded by subtraction, never asserted. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/verbs/hello.h"

static const uint8_t nonce[UC_FABRIC_NONCE_BYTES] = {
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

START_TEST(hello_is_magic_version_and_nonce)
{
    static const uint8_t want[UC_VERBS_HELLO_BYTES] = {
            'U', 'C', 'V', '1', 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    uint8_t read[UC_FABRIC_NONCE_BYTES];

    uc_verbs_hello_encode(nonce, bytes);
    ck_assert_mem_eq(bytes, want, sizeof(want));
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), read), UC_OK);
    ck_assert_mem_eq(read, nonce, sizeof(read));
}
END_TEST

/* rdma_cm hands over all 56 bytes of a request, whatever was sent. */
START_TEST(hello_may_be_followed_by_padding)
{
    uint8_t bytes[56] = {0};
    uint8_t read[UC_FABRIC_NONCE_BYTES];

    uc_verbs_hello_encode(nonce, bytes);
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), read), UC_OK);
}
END_TEST

START_TEST(hello_cut_anywhere_is_refused)
{
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    uint8_t read[UC_FABRIC_NONCE_BYTES] = {0};

    uc_verbs_hello_encode(nonce, bytes);
    for (size_t length = 0; length < sizeof(bytes); length++) {
        uint8_t *copy = malloc(length + 1); /* exact size: a sanitizer sees a byte too many */

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bytes, length);
        ck_assert_int_ne(uc_verbs_hello_decode(copy, length, read), UC_OK);
        free(copy);
    }
    for (size_t idx = 0; idx < sizeof(read); idx++) {
        ck_assert_uint_eq(read[idx], 0);
    }
}
END_TEST

START_TEST(hello_of_another_magic_or_version_is_refused)
{
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    uint8_t read[UC_FABRIC_NONCE_BYTES];

    uc_verbs_hello_encode(nonce, bytes);
    bytes[0] ^= 1;
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), read), UC_ERR_INVALID_PARAM);
    uc_verbs_hello_encode(nonce, bytes);
    bytes[4]++;
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), read), UC_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(reject_carries_every_failure_we_know)
{
    static const enum uc_status known[] = {UC_ERR_PERMISSION_DENIED, UC_ERR_DRAINING, UC_ERR_STALE,
            UC_ERR_GENERAL, UC_ERR_NO_SPACE};
    uint8_t bytes[UC_VERBS_REJECT_BYTES];

    for (size_t idx = 0; idx < sizeof(known) / sizeof(known[0]); idx++) {
        uc_verbs_reject_encode(known[idx], bytes);
        ck_assert_int_eq(uc_verbs_reject_decode(bytes, sizeof(bytes)), known[idx]);
    }
}
END_TEST

/* A refusal is never read as success, nor as a number we do not know. */
START_TEST(reject_that_says_nothing_is_unhealthy)
{
    uint8_t bytes[UC_VERBS_REJECT_BYTES];

    uc_verbs_reject_encode(UC_OK, bytes);
    ck_assert_int_eq(uc_verbs_reject_decode(bytes, sizeof(bytes)), UC_ERR_UNHEALTHY);
    uc_verbs_reject_encode((enum uc_status) - 12345, bytes);
    ck_assert_int_eq(uc_verbs_reject_decode(bytes, sizeof(bytes)), UC_ERR_UNHEALTHY);
    uc_verbs_reject_encode(UC_ERR_STALE, bytes);
    ck_assert_int_eq(uc_verbs_reject_decode(bytes, sizeof(bytes) - 1), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(uc_verbs_reject_decode(NULL, 0), UC_ERR_UNHEALTHY);
    bytes[0] ^= 1;
    ck_assert_int_eq(uc_verbs_reject_decode(bytes, sizeof(bytes)), UC_ERR_UNHEALTHY);
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("hello");
    Suite *suite = suite_create("verbs_hello");
    SRunner *runner;
    int failed;

    tcase_add_test(cases, hello_is_magic_version_and_nonce);
    tcase_add_test(cases, hello_may_be_followed_by_padding);
    tcase_add_test(cases, hello_cut_anywhere_is_refused);
    tcase_add_test(cases, hello_of_another_magic_or_version_is_refused);
    tcase_add_test(cases, reject_carries_every_failure_we_know);
    tcase_add_test(cases, reject_that_says_nothing_is_unhealthy);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
