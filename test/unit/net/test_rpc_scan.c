/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/status.h>

#include "net/rpc/connection.h"
#include "net/rpc/item.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static const struct {
    const uint8_t *bytes;
    size_t length;
    enum uc_status want;
} scan_cases[] = {
        {BYTES("\xc0"), UC_OK},                  /* nil */
        {BYTES("\x7f"), UC_OK},                  /* positive fixint */
        {BYTES("\xe0"), UC_OK},                  /* negative fixint */
        {BYTES("\xcf\1\2\3\4\5\6\7\x8"), UC_OK}, /* uint64 */
        {BYTES("\xd3\1\2\3\4\5\6\7\x8"), UC_OK}, /* int64 */
        {BYTES("\xcb\1\2\3\4\5\6\7\x8"), UC_OK}, /* float64 */
        {BYTES("\xca\1\2\3\4"), UC_OK},          /* float32 */
        {BYTES("\xa3"
               "abc"),
                UC_OK}, /* fixstr */
        {BYTES("\xd9\x03"
               "abc"),
                UC_OK},                                                        /* str8 */
        {BYTES("\xc4\x02zz"), UC_OK},                                          /* bin8 */
        {BYTES("\xc6\0\0\0\x02zz"), UC_OK},                                    /* bin32 */
        {BYTES("\x90"), UC_OK},                                                /* [] */
        {BYTES("\x80"), UC_OK},                                                /* {} */
        {BYTES("\x93\1\2\3"), UC_OK},                                          /* [1,2,3] */
        {BYTES("\x82\1\2\3\4"), UC_OK},                                        /* {1:2,3:4} */
        {BYTES("\xdc\0\x02\1\2"), UC_OK},                                      /* array16 */
        {BYTES("\xde\0\x01\1\2"), UC_OK},                                      /* map16 */
        {BYTES("\x92\x90\x80"), UC_OK},                                        /* [[],{}] */
        {BYTES("\x91\x91\x91\x91\x91\x91\x91\x90"), UC_OK},                    /* depth 8 */
        {BYTES("\x91\x91\x91\x91\x91\x91\x91\x91\x90"), UC_ERR_INVALID_PARAM}, /* depth 9, empty */
        {BYTES("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x01"), UC_ERR_INVALID_PARAM}, /* depth 9 */
        {BYTES(""), UC_ERR_INVALID_PARAM},                                         /* nothing */
        {BYTES("\xdd\xff\xff\xff\xff"), UC_ERR_INVALID_PARAM}, /* array32 of 4 G */
        {BYTES("\xdf\xff\xff\xff\xff"), UC_ERR_INVALID_PARAM}, /* map32 of 4 G */
        {BYTES("\xdc\xff\xff\1\2"), UC_ERR_INVALID_PARAM},     /* array16, count above bytes */
        {BYTES("\x82\1\2\3"), UC_ERR_INVALID_PARAM},           /* map without last value */
        {BYTES("\x93\1\2"), UC_ERR_INVALID_PARAM},             /* array without last member */
        {BYTES("\xc6\xff\xff\xff\xff"
               "a"),
                UC_ERR_INVALID_PARAM}, /* bin32 above bytes */
        {BYTES("\xdb\x7f\xff\xff\xff"
               "a"),
                UC_ERR_INVALID_PARAM}, /* str32 above bytes */
        {BYTES("\xa5"
               "abc"),
                UC_ERR_INVALID_PARAM},               /* fixstr above bytes */
        {BYTES("\xcf\1\2\3"), UC_ERR_INVALID_PARAM}, /* number cut short */
        {BYTES("\xc6\0\0"), UC_ERR_INVALID_PARAM},   /* length cut short */
        {BYTES("\xc0\xc0"), UC_ERR_INVALID_PARAM},   /* two objects */
        {BYTES("\xc1"), UC_ERR_INVALID_PARAM},       /* never used */
        {BYTES("\xd4\1\2"), UC_ERR_INVALID_PARAM},   /* fixext1 */
        {BYTES("\xd8\1\2\2\2\2\2\2\2\2\2\2\2\2\2\2\2\2"), UC_ERR_INVALID_PARAM}, /* fixext16 */
        {BYTES("\xc7\x01\x01z"), UC_ERR_INVALID_PARAM},                          /* ext8 */
        {BYTES("\x91\xd6\xff\0\0\0\0"), UC_ERR_INVALID_PARAM}, /* timestamp inside an array */
};

/* bytes from outside are validated and bounded. */
START_TEST(scan_accepts_one_whole_object_and_nothing_else)
{
    ck_assert_int_eq(uc_rpc_scan(scan_cases[_i].bytes, scan_cases[_i].length), scan_cases[_i].want);
}
END_TEST

START_TEST(scan_refuses_every_prefix_of_a_message)
{
    static const char message[] = "\x94\x00\x05\xa6lookup\x91\xc4\x10"
                                  "0123456789abcdef";
    size_t length = sizeof(message) - 1;

    ck_assert_int_eq(uc_rpc_scan((const uint8_t *)message, length), UC_OK);
    for (size_t cut = 0; cut < length; cut++) {
        ck_assert_int_eq(uc_rpc_scan((const uint8_t *)message, cut), UC_ERR_INVALID_PARAM);
    }
}
END_TEST

START_TEST(scan_takes_time_linear_in_the_bytes_of_a_hostile_message)
{
    size_t length = 1u << 20;
    uint8_t *bytes = malloc(length);

    ck_assert_ptr_nonnull(bytes);
    /* [[[…],…],…]: counts as large as the bytes left allow, over and over. */
    memset(bytes, 0x91, length);
    ck_assert_int_eq(uc_rpc_scan(bytes, length), UC_ERR_INVALID_PARAM);
    memset(bytes, 0xc0, length);
    memcpy(bytes, "\xdd\x00\x0f\xff\xfb", 5);
    ck_assert_int_eq(uc_rpc_scan(bytes, length), UC_OK);
    free(bytes);
}
END_TEST

static const struct {
    const uint8_t *bytes;
    size_t length;
    enum uc_rpc_kind kind;
    uint64_t value;
} number_cases[] = {
        {BYTES("\x00"), UC_RPC_KIND_UINT, 0},
        {BYTES("\xcc\xff"), UC_RPC_KIND_UINT, 255},
        {BYTES("\xcd\x01\x02"), UC_RPC_KIND_UINT, 0x102},
        {BYTES("\xce\x01\x02\x03\x04"), UC_RPC_KIND_UINT, 0x1020304},
        {BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), UC_RPC_KIND_UINT, UINT64_MAX},
        {BYTES("\xd0\x05"), UC_RPC_KIND_UINT, 5}, /* signed form of a positive number */
        {BYTES("\xd0\x80"), UC_RPC_KIND_NEGATIVE, (uint64_t)-128},
        {BYTES("\xd1\x80\x00"), UC_RPC_KIND_NEGATIVE, (uint64_t)-32768},
        {BYTES("\xd2\xff\xff\x3c\xb0"), UC_RPC_KIND_NEGATIVE, (uint64_t)-50000},
        {BYTES("\xd3\x80\0\0\0\0\0\0\0"), UC_RPC_KIND_NEGATIVE, (uint64_t)INT64_MIN},
        {BYTES("\xd3\x7f\xff\xff\xff\xff\xff\xff\xff"), UC_RPC_KIND_UINT, INT64_MAX},
        {BYTES("\xff"), UC_RPC_KIND_NEGATIVE, (uint64_t)-1},
        {BYTES("\xc2"), UC_RPC_KIND_BOOL, 0},
        {BYTES("\xc3"), UC_RPC_KIND_BOOL, 1},
};

START_TEST(item_read_gives_numbers_of_every_width)
{
    struct uc_reader reader = uc_reader_init(number_cases[_i].bytes, number_cases[_i].length);
    struct uc_rpc_item item = uc_rpc_item_read(&reader);

    ck_assert_int_eq(item.kind, number_cases[_i].kind);
    ck_assert_uint_eq(item.value, number_cases[_i].value);
    ck_assert_uint_eq(reader.left, 0);
}
END_TEST

static Suite *
rpc_scan_suite(void)
{
    Suite *suite = suite_create("rpc_scan");
    TCase *scan = tcase_create("scan");

    tcase_add_loop_test(scan, scan_accepts_one_whole_object_and_nothing_else, 0,
            sizeof(scan_cases) / sizeof(scan_cases[0]));
    tcase_add_test(scan, scan_refuses_every_prefix_of_a_message);
    tcase_add_test(scan, scan_takes_time_linear_in_the_bytes_of_a_hostile_message);
    tcase_add_loop_test(scan, item_read_gives_numbers_of_every_width, 0,
            sizeof(number_cases) / sizeof(number_cases[0]));
    suite_add_tcase(suite, scan);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(rpc_scan_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
