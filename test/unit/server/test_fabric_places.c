/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses of the transfers and their devices, as lists of the configuration. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "server/fabric_places.h"

static struct uc_fabric_place places[UC_FABRIC_PLACES_MAX];
static size_t count;

static enum uc_status
read_places(const char *addresses, const char *devices)
{
    return uc_fabric_places_read(addresses, devices, "0.0.0.0", places, &count);
}

START_TEST(without_an_address_the_host_is_served_and_nothing_told)
{
    ck_assert_int_eq(read_places("", "mlx5_0:1"), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(places[0].address, "0.0.0.0");
    ck_assert_str_eq(places[0].told, "");
    ck_assert_str_eq(places[0].device, "mlx5_0:1");
}
END_TEST

START_TEST(each_address_is_a_place_with_its_device)
{
    ck_assert_int_eq(read_places("10.0.0.1, 10.0.1.1 ,fd00::1", "mlx5_0,mlx5_1:2"), UC_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(places[0].address, "10.0.0.1");
    ck_assert_str_eq(places[0].device, "mlx5_0");
    ck_assert_str_eq(places[1].address, "10.0.1.1");
    ck_assert_str_eq(places[1].told, "10.0.1.1");
    ck_assert_str_eq(places[1].device, "mlx5_1:2");
    ck_assert_str_eq(places[2].address, "fd00::1");
    ck_assert_str_eq(places[2].device, "");
}
END_TEST

START_TEST(lists_that_make_no_sense_are_refused_by_key)
{
    static const struct {
        const char *addresses;
        const char *devices;
        const char *text;
    } cases[] = {
            {"10.0.0.1,", "", "fabric_address"},
            {",", "", "fabric_address"},
            {"a,b,c,d,e", "", "fabric_address"},
            {"a,b", "x, ,y", "fabric_device"},
            {"a,b", "x,y,z", "address"},
            {"", "x,y", "address"},
            {"a,b,c,d", "1,2,3,4,5", "fabric_device"},
    };

    count = 77;
    ck_assert_int_eq(read_places(cases[_i].addresses, cases[_i].devices), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), cases[_i].text) != NULL, "%s", uc_last_error());
    ck_assert_uint_eq(count, 77);
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("places");
    Suite *suite = suite_create("fabric_places");
    SRunner *runner;
    int failed;

    tcase_add_test(cases, without_an_address_the_host_is_served_and_nothing_told);
    tcase_add_test(cases, each_address_is_a_place_with_its_device);
    tcase_add_loop_test(cases, lists_that_make_no_sense_are_refused_by_key, 0, 7);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
