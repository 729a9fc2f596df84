/* SPDX-License-Identifier: Apache-2.0 */

/* Frames byte by byte, as net/PROTOCOL.md writes them down. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/tcp/tcp_wire.h"
#include "test/unit/net/protocol_document.h"

static const uint8_t hello_bytes[UC_TCP_HELLO_BYTES] = {
        'U', 'C', 'T', 'H', 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t answer_bytes[UC_TCP_ANSWER_BYTES] = {
        'U', 'C', 'T', 'A', 1, 0, 0, 0, 0xa4, 0x3c, 0xff, 0xff}; /* PermissionDenied, -50012 */
static const uint8_t request_bytes[UC_TCP_REQUEST_BYTES] = {'U', 'C', 'T', 'Q', 1, 0, 0, 0, 5, 0, 0,
        0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 1, 0, 0, 0, 0, 0,
        9, 0, 0, 0, 0, 0, 0, 0};
static const uint8_t response_bytes[UC_TCP_RESPONSE_BYTES] = {
        'U', 'C', 'T', 'P', 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 1};

START_TEST(hello_has_the_documented_bytes)
{
    struct uc_tcp_hello hello = {
            .nonce = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, .lane_count = 1};
    struct uc_tcp_hello got;
    uint8_t bytes[UC_TCP_HELLO_BYTES];

    uc_tcp_hello_put(bytes, &hello);
    ck_assert_mem_eq(bytes, hello_bytes, sizeof(bytes));
    uc_protocol_compare("tcp-hello", bytes, sizeof(bytes));
    ck_assert_int_eq(uc_tcp_hello_get(bytes, &got), UC_OK);
    ck_assert_mem_eq(got.nonce, hello.nonce, sizeof(hello.nonce));
    ck_assert_uint_eq(got.lane_idx, 0);
    ck_assert_uint_eq(got.lane_count, 1);

    hello.lane_idx = 2;
    hello.lane_count = 4;
    uc_tcp_hello_put(bytes, &hello);
    uc_protocol_compare("tcp-hello-lane", bytes, sizeof(bytes));
    ck_assert_int_eq(uc_tcp_hello_get(bytes, &got), UC_OK);
    ck_assert_mem_eq(got.nonce, hello.nonce, sizeof(hello.nonce));
    ck_assert_uint_eq(got.lane_idx, 2);
    ck_assert_uint_eq(got.lane_count, 4);
}
END_TEST

START_TEST(answer_has_the_documented_bytes)
{
    uint8_t bytes[UC_TCP_ANSWER_BYTES];
    enum uc_status status = UC_OK;

    uc_tcp_answer_put(bytes, UC_ERR_PERMISSION_DENIED);
    ck_assert_mem_eq(bytes, answer_bytes, sizeof(bytes));
    uc_protocol_compare("tcp-answer-refused", bytes, sizeof(bytes));
    ck_assert_int_eq(uc_tcp_answer_get(bytes, &status), UC_OK);
    ck_assert_int_eq(status, UC_ERR_PERMISSION_DENIED);
    uc_tcp_answer_put(bytes, UC_OK);
    uc_protocol_compare("tcp-answer-ok", bytes, sizeof(bytes));
}
END_TEST

START_TEST(request_has_the_documented_bytes)
{
    struct uc_tcp_request request = {.opcode = UC_FABRIC_READ,
            .sequence = 5,
            .region_idx = 2,
            .offset_bytes = 4096,
            .length_bytes = 65600,
            .generation = 9};
    struct uc_tcp_request got;
    uint8_t bytes[UC_TCP_REQUEST_BYTES];

    uc_tcp_request_put(bytes, &request);
    ck_assert_mem_eq(bytes, request_bytes, sizeof(bytes));
    uc_protocol_compare("tcp-request-read", bytes, sizeof(bytes));
    ck_assert_int_eq(uc_tcp_request_get(bytes, &got), UC_OK);
    ck_assert_int_eq(got.opcode, request.opcode);
    ck_assert_uint_eq(got.sequence, 5);
    ck_assert_uint_eq(got.region_idx, 2);
    ck_assert_uint_eq(got.offset_bytes, 4096);
    ck_assert_uint_eq(got.length_bytes, 65600);
    ck_assert_uint_eq(got.generation, 9);
}
END_TEST

START_TEST(response_has_the_documented_bytes)
{
    struct uc_tcp_response response = {.status = UC_OK, .sequence = 5, .length_bytes = 65600};
    struct uc_tcp_response got;
    uint8_t bytes[UC_TCP_RESPONSE_BYTES];

    uc_tcp_response_put(bytes, &response);
    ck_assert_mem_eq(bytes, response_bytes, sizeof(bytes));
    uc_protocol_compare("tcp-response-ok", bytes, sizeof(bytes));
    ck_assert_int_eq(uc_tcp_response_get(bytes, &got), UC_OK);
    ck_assert_int_eq(got.status, UC_OK);
    ck_assert_uint_eq(got.sequence, 5);
    ck_assert_uint_eq(got.length_bytes, 65600);
}
END_TEST

/* One byte of a good frame changed, and what the decoder says. */
static const struct {
    size_t at;
    uint8_t value;
    enum uc_status want;
} hello_cases[] =
        {
                {0, 'X', UC_ERR_INVALID_PARAM},
                {3, 'Q', UC_ERR_INVALID_PARAM}, /* another frame's magic */
                {4, 2, UC_ERR_UNSUPPORTED}, {7, 1, UC_ERR_UNSUPPORTED},
                {24, 1, UC_ERR_INVALID_PARAM},                 /* stream 1 of 1 */
                {25, 7, UC_OK}, {25, 8, UC_ERR_INVALID_PARAM}, /* 8 at most */
                {26, 1, UC_ERR_INVALID_PARAM},                 /* reserved */
                {27, 1, UC_ERR_INVALID_PARAM}, {31, 0x80, UC_ERR_INVALID_PARAM},
                {8, 99, UC_OK}, /* any nonce is well-formed */
},
  request_cases[] =
          {
                  {0, 'X', UC_ERR_INVALID_PARAM},
                  {4, 0, UC_ERR_INVALID_PARAM}, /* opcodes are 1, 2, 3 */
                  {4, 4, UC_ERR_INVALID_PARAM},
                  {5, 1, UC_ERR_INVALID_PARAM},
                  {4, 3, UC_ERR_INVALID_PARAM}, /* a flush has no length */
                  {4, 2, UC_OK},
                  {20, 1, UC_ERR_INVALID_PARAM},    /* reserved */
                  {37, 0x01, UC_ERR_INVALID_PARAM}, /* 2^40 and some */
                  {39, 0xff, UC_ERR_INVALID_PARAM},
                  {31, 0xff, UC_OK}, /* ranges are the target's to judge */
                  {19, 0xff, UC_OK},
},
  response_cases[] = {
          {0, 'X', UC_ERR_INVALID_PARAM},
          {4, 1, UC_ERR_INVALID_PARAM},  /* no such status */
          {21, 1, UC_ERR_INVALID_PARAM}, /* 2^40 and some */
          {8, 77, UC_OK},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

START_TEST(hello_get_checks_every_field)
{
    uint8_t bytes[UC_TCP_HELLO_BYTES];
    struct uc_tcp_hello hello;

    memcpy(bytes, hello_bytes, sizeof(bytes));
    bytes[hello_cases[_i].at] = hello_cases[_i].value;
    ck_assert_int_eq(uc_tcp_hello_get(bytes, &hello), hello_cases[_i].want);
}
END_TEST

START_TEST(request_get_checks_every_field)
{
    struct uc_tcp_request request = {.sequence = 42};
    uint8_t bytes[UC_TCP_REQUEST_BYTES];

    memcpy(bytes, request_bytes, sizeof(bytes));
    bytes[request_cases[_i].at] = request_cases[_i].value;
    ck_assert_int_eq(uc_tcp_request_get(bytes, &request), request_cases[_i].want);
    if (request_cases[_i].want != UC_OK) {
        ck_assert_uint_eq(request.sequence, 42); /* untouched on failure */
    }
}
END_TEST

START_TEST(response_get_checks_every_field)
{
    struct uc_tcp_response response = {.sequence = 42};
    uint8_t bytes[UC_TCP_RESPONSE_BYTES];

    memcpy(bytes, response_bytes, sizeof(bytes));
    bytes[response_cases[_i].at] = response_cases[_i].value;
    ck_assert_int_eq(uc_tcp_response_get(bytes, &response), response_cases[_i].want);
    if (response_cases[_i].want != UC_OK) {
        ck_assert_uint_eq(response.sequence, 42);
    }
}
END_TEST

START_TEST(failure_announces_no_data)
{
    struct uc_tcp_response response = {.status = UC_ERR_NOT_FOUND, .length_bytes = 1};
    uint8_t bytes[UC_TCP_RESPONSE_BYTES];

    uc_tcp_response_put(bytes, &response);
    ck_assert_int_eq(uc_tcp_response_get(bytes, &response), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(zero_length_is_for_flushes_alone)
{
    struct uc_tcp_request request = {.opcode = UC_FABRIC_WRITE};
    uint8_t bytes[UC_TCP_REQUEST_BYTES];

    uc_tcp_request_put(bytes, &request);
    ck_assert_int_eq(uc_tcp_request_get(bytes, &request), UC_ERR_INVALID_PARAM);
    request.opcode = UC_FABRIC_FLUSH;
    uc_tcp_request_put(bytes, &request);
    ck_assert_int_eq(uc_tcp_request_get(bytes, &request), UC_OK);
}
END_TEST

START_TEST(answer_get_checks_every_field)
{
    uint8_t bytes[UC_TCP_ANSWER_BYTES];
    enum uc_status status = UC_ERR_GENERAL;

    memcpy(bytes, answer_bytes, sizeof(bytes));
    bytes[3] = 'P';
    ck_assert_int_eq(uc_tcp_answer_get(bytes, &status), UC_ERR_INVALID_PARAM);
    memcpy(bytes, answer_bytes, sizeof(bytes));
    bytes[9] = 0;
    ck_assert_int_eq(uc_tcp_answer_get(bytes, &status), UC_ERR_INVALID_PARAM);
    memcpy(bytes, answer_bytes, sizeof(bytes));
    bytes[15] = 1;
    ck_assert_int_eq(uc_tcp_answer_get(bytes, &status), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(status, UC_ERR_GENERAL);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("tcp_wire");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, hello_has_the_documented_bytes);
    tcase_add_test(tcase, answer_has_the_documented_bytes);
    tcase_add_test(tcase, request_has_the_documented_bytes);
    tcase_add_test(tcase, response_has_the_documented_bytes);
    tcase_add_loop_test(tcase, hello_get_checks_every_field, 0, COUNT(hello_cases));
    tcase_add_loop_test(tcase, request_get_checks_every_field, 0, COUNT(request_cases));
    tcase_add_loop_test(tcase, response_get_checks_every_field, 0, COUNT(response_cases));
    tcase_add_test(tcase, failure_announces_no_data);
    tcase_add_test(tcase, zero_length_is_for_flushes_alone);
    tcase_add_test(tcase, answer_get_checks_every_field);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
