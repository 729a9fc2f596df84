/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#include "core/base/list.h"
#include "core/base/text_map.h"
#include "test/fake/fake_alloc.h"

enum {
    RECORDS = 1000
};

struct record {
    char text[16];
    struct uc_text_node node;
    unsigned visits;
};

static struct uc_text_map map;
static struct record records[RECORDS];

static void
setup(void)
{
    uc_text_map_init(&map);
    for (size_t idx = 0; idx < RECORDS; idx++) {
        records[idx] = (struct record){0};
        (void)snprintf(records[idx].text, sizeof(records[idx].text), "record-%zu", idx);
    }
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_text_map_fini(&map);
}

static void
add(size_t idx)
{
    uc_text_map_add(&map, &records[idx].node, records[idx].text);
}

static bool
has(size_t idx)
{
    char copy[16]; /* the text counts, not its place */

    (void)snprintf(copy, sizeof(copy), "record-%zu", idx);
    return uc_text_map_find(&map, copy) == &records[idx].node;
}

/* Random adds and removes against an array of flags. */
START_TEST(map_agrees_with_a_model)
{
    bool model[RECORDS] = {false};
    uint32_t random = 1;
    size_t count = 0;

    for (int step = 0; step < 20 * RECORDS; step++) {
        random = random * 1664525u + 1013904223u;
        size_t idx = (random >> 8) % RECORDS;

        ck_assert_int_eq(has(idx), model[idx]);
        if (model[idx]) {
            uc_text_map_remove(&map, &records[idx].node);
            count--;
        } else {
            add(idx);
            count++;
        }
        model[idx] = !model[idx];
        ck_assert_uint_eq(map.count, count);
    }
    for (size_t idx = 0; idx < RECORDS; idx++) {
        ck_assert_int_eq(has(idx), model[idx]);
    }
    ck_assert_ptr_null(uc_text_map_find(&map, ""));
    ck_assert_ptr_null(uc_text_map_find(&map, "record-"));
}
END_TEST

START_TEST(walk_visits_each_record_once)
{
    struct uc_text_node *node = NULL;
    size_t visited = 0;

    ck_assert_ptr_null(uc_text_map_next(&map, NULL));
    for (size_t idx = 0; idx < RECORDS; idx++) {
        add(idx);
    }
    while ((node = uc_text_map_next(&map, node)) != NULL) {
        uc_list_entry(node, struct record, node)->visits++;
        visited++;
    }
    ck_assert_uint_eq(visited, RECORDS);
    for (size_t idx = 0; idx < RECORDS; idx++) {
        ck_assert_uint_eq(records[idx].visits, 1);
    }
}
END_TEST

/* Chains grow, nothing else; the table grows once there is memory again. */
START_TEST(map_without_memory_holds_as_many)
{
    uc_fake_alloc_fail_after(0);
    for (size_t idx = 0; idx < RECORDS - 1; idx++) {
        add(idx);
    }
    uc_fake_alloc_reset();
    ck_assert_uint_eq(map.bucket_count, UC_TEXT_MAP_FIRST_BUCKETS);
    add(RECORDS - 1);
    ck_assert_uint_gt(map.bucket_count, UC_TEXT_MAP_FIRST_BUCKETS);
    for (size_t idx = 0; idx < RECORDS; idx++) {
        ck_assert(has(idx));
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("text_map");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, map_agrees_with_a_model);
    tcase_add_test(tcase, walk_visits_each_record_once);
    tcase_add_test(tcase, map_without_memory_holds_as_many);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
