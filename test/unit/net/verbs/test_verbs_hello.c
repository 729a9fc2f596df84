/* SPDX-License-Identifier: Apache-2.0 */

/* The bytes a stranger sends before it is known: decoded by subtraction, never asserted. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/verbs/hello.h"
#include "test/unit/net/protocol_document.h"

static const struct uc_verbs_hello hello = {
        .nonce = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .idx = 1,
        .count = 3,
        .mtu_bytes = 4096,
};

START_TEST(hello_is_magic_version_nonce_and_wishes)
{
    static const uint8_t want[UC_VERBS_HELLO_BYTES] = {'U', 'C', 'V', '1', 1, 0, 0, 0, 1, 2, 3, 4,
            5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 3, 0, 16};
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    struct uc_verbs_hello read;

    uc_verbs_hello_encode(&hello, bytes);
    ck_assert_mem_eq(bytes, want, sizeof(want));
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), &read), UC_OK);
    ck_assert_mem_eq(read.nonce, hello.nonce, sizeof(read.nonce));
    ck_assert_uint_eq(read.idx, 1);
    ck_assert_uint_eq(read.count, 3);
    ck_assert_uint_eq(read.mtu_bytes, 4096);
}
END_TEST

/* rdma_cm hands over all 56 bytes of a request, whatever was sent. */
START_TEST(hello_of_a_nonce_and_padding_asks_for_one_queue_pair)
{
    uint8_t bytes[56] = {0};
    struct uc_verbs_hello read;

    uc_verbs_hello_encode(&hello, bytes);
    memset(bytes + UC_VERBS_HELLO_NONCE_END, 0, sizeof(bytes) - UC_VERBS_HELLO_NONCE_END);
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), &read), UC_OK);
    ck_assert_uint_eq(read.idx, 0);
    ck_assert_uint_eq(read.count, 1);
    ck_assert_uint_eq(read.mtu_bytes, 0);
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, UC_VERBS_HELLO_NONCE_END, &read), UC_OK);
    ck_assert_uint_eq(read.count, 1);
}
END_TEST

START_TEST(hello_that_asks_for_too_much_gets_what_there_is)
{
    struct uc_verbs_hello greedy = hello;
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    struct uc_verbs_hello read;

    greedy.count = UINT8_MAX;
    uc_verbs_hello_encode(&greedy, bytes);
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), &read), UC_OK);
    ck_assert_uint_eq(read.count, UC_VERBS_PAIRS_MAX);
    greedy.idx = UC_VERBS_PAIRS_MAX;
    uc_verbs_hello_encode(&greedy, bytes);
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), &read), UC_ERR_INVALID_PARAM);
    greedy = hello;
    greedy.idx = greedy.count;
    uc_verbs_hello_encode(&greedy, bytes);
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), &read), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(hello_cut_anywhere_is_refused)
{
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    struct uc_verbs_hello read;

    uc_verbs_hello_encode(&hello, bytes);
    memset(&read, 0x5a, sizeof(read));
    for (size_t length = 0; length < UC_VERBS_HELLO_NONCE_END; length++) {
        uint8_t *copy = malloc(length + 1); /* exact size: a sanitizer sees a byte too many */

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bytes, length);
        ck_assert_int_ne(uc_verbs_hello_decode(copy, length, &read), UC_OK);
        free(copy);
    }
    ck_assert_uint_eq(read.nonce[0], 0x5a);
}
END_TEST

START_TEST(hello_of_another_magic_or_version_is_refused)
{
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    struct uc_verbs_hello read;

    uc_verbs_hello_encode(&hello, bytes);
    bytes[0] ^= 1;
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), &read), UC_ERR_INVALID_PARAM);
    uc_verbs_hello_encode(&hello, bytes);
    bytes[4]++;
    ck_assert_int_eq(uc_verbs_hello_decode(bytes, sizeof(bytes), &read), UC_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(answer_is_magic_version_count_and_mtu)
{
    static const uint8_t want[UC_VERBS_ANSWER_BYTES] = {'U', 'C', 'V', '1', 1, 0, 0, 0, 3, 0, 0, 4};
    struct uc_verbs_answer answer = {.count = 3, .mtu_bytes = 1024};
    uint8_t bytes[UC_VERBS_ANSWER_BYTES];

    uc_verbs_answer_encode(&answer, bytes);
    ck_assert_mem_eq(bytes, want, sizeof(want));
    answer = uc_verbs_answer_decode(bytes, sizeof(bytes));
    ck_assert_uint_eq(answer.count, 3);
    ck_assert_uint_eq(answer.mtu_bytes, 1024);
}
END_TEST

/* A target that says nothing of it admits one queue pair. */
START_TEST(answer_that_says_nothing_grants_one_queue_pair)
{
    struct uc_verbs_answer many = {.count = 400, .mtu_bytes = 9};
    uint8_t bytes[UC_VERBS_ANSWER_BYTES];

    uc_verbs_answer_encode(&many, bytes);
    ck_assert_uint_eq(uc_verbs_answer_decode(bytes, sizeof(bytes)).count, UC_VERBS_PAIRS_MAX);
    for (size_t length = 0; length < sizeof(bytes); length++) {
        ck_assert_uint_eq(uc_verbs_answer_decode(bytes, length).count, 1);
        ck_assert_uint_eq(uc_verbs_answer_decode(bytes, length).mtu_bytes, 0);
    }
    bytes[8] = 0;
    bytes[9] = 0;
    ck_assert_uint_eq(uc_verbs_answer_decode(bytes, sizeof(bytes)).count, 1);
    bytes[0] ^= 1;
    ck_assert_uint_eq(uc_verbs_answer_decode(bytes, sizeof(bytes)).mtu_bytes, 0);
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

START_TEST(bytes_are_those_of_the_document)
{
    struct uc_verbs_hello first = {.count = 2, .mtu_bytes = 4096};
    struct uc_verbs_answer answer = {.count = 2, .mtu_bytes = 1024};
    uint8_t bytes[UC_VERBS_HELLO_BYTES];

    for (uint8_t idx = 0; idx < UC_FABRIC_NONCE_BYTES; idx++) {
        first.nonce[idx] = idx;
    }
    uc_verbs_hello_encode(&first, bytes);
    uc_protocol_compare("verbs-hello", bytes, UC_VERBS_HELLO_BYTES);
    first.idx = 1;
    uc_verbs_hello_encode(&first, bytes);
    uc_protocol_compare("verbs-hello-second", bytes, UC_VERBS_HELLO_BYTES);
    uc_verbs_answer_encode(&answer, bytes);
    uc_protocol_compare("verbs-answer", bytes, UC_VERBS_ANSWER_BYTES);
    uc_verbs_reject_encode(UC_ERR_PERMISSION_DENIED, bytes);
    uc_protocol_compare("verbs-refused", bytes, UC_VERBS_REJECT_BYTES);
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

    tcase_add_test(cases, hello_is_magic_version_nonce_and_wishes);
    tcase_add_test(cases, hello_of_a_nonce_and_padding_asks_for_one_queue_pair);
    tcase_add_test(cases, hello_that_asks_for_too_much_gets_what_there_is);
    tcase_add_test(cases, hello_cut_anywhere_is_refused);
    tcase_add_test(cases, hello_of_another_magic_or_version_is_refused);
    tcase_add_test(cases, answer_is_magic_version_count_and_mtu);
    tcase_add_test(cases, answer_that_says_nothing_grants_one_queue_pair);
    tcase_add_test(cases, bytes_are_those_of_the_document);
    tcase_add_test(cases, reject_carries_every_failure_we_know);
    tcase_add_test(cases, reject_that_says_nothing_is_unhealthy);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
