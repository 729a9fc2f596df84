/* SPDX-License-Identifier: Apache-2.0 */

/* Which server holds a key: pinned, even, in proportion to weights, and still where others come and go. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/cluster/server_list.h"

enum {
    KEYS = 1000000,
    SERVERS = 16,
    NAME_BYTES = 40,
};

static char names[SERVERS + 1][NAME_BYTES];
static struct uc_placement_member members[SERVERS + 1];

/* Ids are hashes; a multiplication and a shift make numbers look like some. */
static struct uc_block_id
key_of(uint64_t number)
{
    struct uc_block_id key;
    uint64_t low = (number + 1) * 0x9e3779b97f4a7c15u;
    uint64_t high = (low ^ low >> 31) * 0xbf58476d1ce4e5b9u;

    for (size_t idx = 0; idx < 8; idx++) {
        key.bytes[idx] = (uint8_t)(low >> (8 * idx));
        key.bytes[8 + idx] = (uint8_t)(high >> (8 * idx));
    }
    return key;
}

static struct uc_placement_view
view_of(size_t count, const uint32_t *weights)
{
    for (size_t idx = 0; idx < count; idx++) {
        (void)snprintf(names[idx], NAME_BYTES, "10.0.0.%zu:7470", idx + 1);
        members[idx] = uc_placement_member_init(names[idx], weights == NULL ? 1 : weights[idx]);
    }
    return uc_placement_view_init(members, count);
}

static size_t
place(const struct uc_placement_view *view, uint64_t number)
{
    struct uc_block_id key = key_of(number);

    return uc_placement_place(view, &key);
}

/*
 * A compatibility promise: clients of different versions that share servers must agree. These tables must
 * never change; another method needs another name in the configuration.
 */
START_TEST(placements_are_pinned)
{
    static const uint32_t weights[] = {1, 2, 4, 65535, 30000};
    static const uint8_t equal[32] = {1, 3, 3, 1, 4, 2, 3, 1, 1, 2, 3, 0, 0, 0, 0, 4, 3, 4, 3, 3, 1,
            2, 3, 0, 4, 3, 4, 1, 3, 4, 3, 3};
    static const uint8_t weighted[32] = {3, 3, 3, 3, 4, 3, 3, 4, 4, 3, 3, 4, 4, 4, 3, 4, 3, 4, 3, 3,
            4, 4, 3, 3, 4, 3, 4, 3, 3, 4, 3, 3};
    static const uint32_t small_weights[] = {1, 2, 4, 3};
    static const uint8_t small[32] = {1, 3, 3, 1, 2, 2, 3, 1, 1, 2, 3, 2, 0, 0, 1, 1, 3, 3, 3, 3, 1,
            2, 3, 0, 2, 3, 3, 2, 2, 2, 3, 3};
    struct uc_placement_view view = view_of(5, NULL);

    ck_assert_uint_eq(members[0].seed, 0x2c8c08fcbe8ca829u);
    for (size_t idx = 0; idx < 32; idx++) {
        ck_assert_uint_eq(place(&view, idx), equal[idx]);
    }
    view = view_of(5, weights);
    for (size_t idx = 0; idx < 32; idx++) {
        ck_assert_uint_eq(place(&view, idx), weighted[idx]);
    }
    view = view_of(4, small_weights);
    for (size_t idx = 0; idx < 32; idx++) {
        ck_assert_uint_eq(place(&view, idx), small[idx]);
    }
}
END_TEST

START_TEST(equal_servers_hold_equal_shares)
{
    struct uc_placement_view view = view_of(SERVERS, NULL);
    size_t counts[SERVERS] = {0};

    for (uint64_t number = 0; number < KEYS; number++) {
        counts[place(&view, number)]++;
    }
    for (size_t idx = 0; idx < SERVERS; idx++) {
        ck_assert_uint_ge(counts[idx], KEYS / SERVERS * 97 / 100);
        ck_assert_uint_le(counts[idx], KEYS / SERVERS * 103 / 100);
    }
}
END_TEST

/* The other direction is a leave: the same keys go back. */
START_TEST(join_moves_its_own_share_and_nothing_else)
{
    struct uc_placement_view few = view_of(SERVERS, NULL);
    struct uc_placement_view more;
    size_t moved = 0;

    more = view_of(SERVERS + 1, NULL);
    few.members = more.members;
    for (uint64_t number = 0; number < KEYS; number++) {
        size_t before = place(&few, number);
        size_t after = place(&more, number);

        if (before != after) {
            ck_assert_uint_eq(after, SERVERS); /* only to the one that joined */
            moved++;
        }
    }
    ck_assert_uint_le(moved, (size_t)(KEYS * 1.05 / (SERVERS + 1)));
    ck_assert_uint_ge(moved, (size_t)(KEYS * 0.95 / (SERVERS + 1)));
}
END_TEST

START_TEST(order_of_the_list_does_not_matter)
{
    static const uint32_t weights[] = {1, 2, 4, 7, 3};
    struct uc_placement_view view = view_of(5, weights);
    struct uc_placement_member turned[5];
    struct uc_placement_view other;

    for (size_t idx = 0; idx < 5; idx++) {
        turned[idx] = members[4 - idx];
    }
    other = uc_placement_view_init(turned, 5);
    for (uint64_t number = 0; number < 10000; number++) {
        ck_assert_uint_eq(place(&view, number), 4 - place(&other, number));
    }
}
END_TEST

START_TEST(shares_are_in_proportion_to_weights)
{
    static const uint32_t weights[] = {1, 2, 4, 9};
    struct uc_placement_view view = view_of(4, weights);
    size_t counts[4] = {0};

    for (uint64_t number = 0; number < KEYS / 4; number++) {
        counts[place(&view, number)]++;
    }
    for (size_t idx = 0; idx < 4; idx++) {
        double wanted = KEYS / 4 * (double)weights[idx] / 16;

        ck_assert_double_ge((double)counts[idx], 0.97 * wanted);
        ck_assert_double_le((double)counts[idx], 1.03 * wanted);
    }
}
END_TEST

/* A weight that all share says nothing: integers decide as the hash alone does. */
START_TEST(equal_weights_of_any_size_place_alike)
{
    static const uint32_t heavy[] = {700, 700, 700, 700};
    struct uc_placement_view light = view_of(4, NULL);
    uint8_t places[2000];

    for (uint64_t number = 0; number < 2000; number++) {
        places[number] = (uint8_t)place(&light, number);
    }
    light = view_of(4, heavy);
    light.equal_weights = false; /* by way of the logarithms */
    for (uint64_t number = 0; number < 2000; number++) {
        ck_assert_uint_eq(place(&light, number), places[number]);
    }
}
END_TEST

static enum uc_status
read_one(const char *text, struct uc_server_list *list)
{
    struct uc_dict *config = NULL;
    enum uc_status status;

    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_dict_append_string(config, "servers", text), UC_OK);
    status = uc_server_list_read(config, "servers", list);
    uc_dict_destroy(config);
    return status;
}

START_TEST(weight_is_read_and_no_part_of_the_name)
{
    static const char *const wrong[] = {"a:1=0", "a:1=65536", "a:1=99999999999", "a:1=", "a:1=x"};
    struct uc_server_list list;

    ck_assert_int_eq(read_one("a:1=65535", &list), UC_OK);
    ck_assert_str_eq(list.servers[0].name, "a:1");
    ck_assert_uint_eq(list.members[0].weight, 65535);
    ck_assert_uint_eq(list.members[0].seed, uc_placement_member_init("a:1", 1).seed);
    uc_server_list_fini(&list);
    ck_assert_int_eq(read_one("/run/ucm=x/socket", &list), UC_OK);
    ck_assert_str_eq(list.servers[0].name, "/run/ucm=x/socket");
    ck_assert_uint_eq(list.members[0].weight, 1);
    uc_server_list_fini(&list);
    for (size_t idx = 0; idx < sizeof(wrong) / sizeof(wrong[0]); idx++) {
        ck_assert_int_eq(read_one(wrong[idx], &list), UC_ERR_INVALID_PARAM);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("placement");
    TCase *tcase = tcase_create("placement");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, placements_are_pinned);
    tcase_add_test(tcase, equal_servers_hold_equal_shares);
    tcase_add_test(tcase, join_moves_its_own_share_and_nothing_else);
    tcase_add_test(tcase, order_of_the_list_does_not_matter);
    tcase_add_test(tcase, shares_are_in_proportion_to_weights);
    tcase_add_test(tcase, equal_weights_of_any_size_place_alike);
    tcase_add_test(tcase, weight_is_read_and_no_part_of_the_name);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
