/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>

#include <check.h>

#include "core/base/bytes.h"
#include "core/base/list.h"

/* */
START_TEST(numbers_are_little_endian)
{
    uint8_t bytes[8];

    uc_put_le32(bytes, 0x04030201);
    ck_assert_mem_eq(bytes, "\x01\x02\x03\x04", 4);
    ck_assert_uint_eq(uc_get_le32(bytes), 0x04030201);
    uc_put_le64(bytes, UINT64_C(0x8807060504030201));
    ck_assert_mem_eq(bytes, "\x01\x02\x03\x04\x05\x06\x07\x88", 8);
    ck_assert_uint_eq(uc_get_le64(bytes), UINT64_C(0x8807060504030201));
}
END_TEST

START_TEST(reader_takes_exactly_what_is_there)
{
    static const uint8_t bytes[13] = {1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7};
    struct uc_reader reader = uc_reader_init(bytes, sizeof(bytes));
    uint8_t last = 0;

    ck_assert_uint_eq(uc_reader_le32(&reader), 1);
    ck_assert_uint_eq(uc_reader_le64(&reader), 2);
    uc_reader_copy(&reader, &last, 1);
    ck_assert_uint_eq(last, 7);
    ck_assert_uint_eq(reader.left, 0);
    ck_assert(!reader.failed);
}
END_TEST

/* */
START_TEST(reader_fails_for_good_past_the_end)
{
    static const uint8_t bytes[6] = {1, 2, 3, 4, 5, 6};
    struct uc_reader reader = uc_reader_init(bytes, sizeof(bytes));
    uint8_t copy[2] = {9, 9};

    ck_assert_uint_eq(uc_reader_le64(&reader), 0);
    ck_assert(reader.failed);
    ck_assert_ptr_null(uc_reader_take(&reader, 1)); /* would fit, but the position is lost */
    uc_reader_copy(&reader, copy, 2);
    ck_assert_mem_eq(copy, "\0\0", 2);
}
END_TEST

START_TEST(reader_refuses_a_length_that_wraps)
{
    static const uint8_t bytes[2] = {1, 2};
    struct uc_reader reader = uc_reader_init(bytes + 1, 1);

    ck_assert_ptr_null(uc_reader_take(&reader, SIZE_MAX));
    ck_assert(reader.failed);
}
END_TEST

struct item {
    int number;
    struct uc_list node;
};

START_TEST(list_gives_back_in_order_of_adding)
{
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    struct uc_list head;
    int expected = 0;

    uc_list_init(&head);
    ck_assert(uc_list_is_empty(&head));
    for (size_t idx = 0; idx < 3; idx++) {
        uc_list_add(&head, &items[idx].node);
    }
    uc_list_for_each (node, &head) {
        ck_assert_int_eq(uc_list_entry(node, struct item, node)->number, expected++);
    }
    ck_assert_int_eq(expected, 3);
    ck_assert_ptr_eq(uc_list_take(&head), &items[0].node);
}
END_TEST

START_TEST(list_survives_removal_while_walking_and_twice)
{
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    struct uc_list head;

    uc_list_init(&head);
    for (size_t idx = 0; idx < 3; idx++) {
        uc_list_add(&head, &items[idx].node);
    }
    uc_list_for_each_safe (node, following, &head) {
        uc_list_remove(node);
        uc_list_remove(node);
    }
    ck_assert(uc_list_is_empty(&head));
    ck_assert_ptr_null(uc_list_take(&head));
}
END_TEST

static Suite *
bytes_suite(void)
{
    Suite *suite = suite_create("bytes");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, numbers_are_little_endian);
    tcase_add_test(tcase, reader_takes_exactly_what_is_there);
    tcase_add_test(tcase, reader_fails_for_good_past_the_end);
    tcase_add_test(tcase, reader_refuses_a_length_that_wraps);
    tcase_add_test(tcase, list_gives_back_in_order_of_adding);
    tcase_add_test(tcase, list_survives_removal_while_walking_and_twice);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(bytes_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
