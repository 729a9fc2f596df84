/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/base/block_name.h"

START_TEST(hexadecimal_digits_are_the_id_itself)
{
    struct uc_block_id id = uc_block_name_parse("000102030405060708090A0B0C0d0e0f");
    char text[UC_BLOCK_NAME_BYTES];

    for (size_t idx = 0; idx < UC_BLOCK_ID_BYTES; idx++) {
        ck_assert_uint_eq(id.bytes[idx], idx);
    }
    uc_block_name_format(&id, text);
    ck_assert_str_eq(text, "000102030405060708090a0b0c0d0e0f");
}
END_TEST

/* Published test value of XXH3_128bits for no input: names must not change from release to release. */
START_TEST(other_texts_are_hashed)
{
    struct uc_block_id empty = uc_block_name_parse("");
    struct uc_block_id near = uc_block_name_parse("000102030405060708090a0b0c0d0e0g");
    char text[UC_BLOCK_NAME_BYTES];

    uc_block_name_format(&empty, text);
    ck_assert_str_eq(text, "99aa06d3014798d86001c324468d497f");
    uc_block_name_format(&near, text);
    ck_assert_str_ne(text, "000102030405060708090a0b0c0d0e0f");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("block_name");
    TCase *names = tcase_create("names");
    SRunner *runner;
    int failed;

    tcase_add_test(names, hexadecimal_digits_are_the_id_itself);
    tcase_add_test(names, other_texts_are_hashed);
    suite_add_tcase(suite, names);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
