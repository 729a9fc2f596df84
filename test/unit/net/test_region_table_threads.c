/* SPDX-License-Identifier: Apache-2.0 */

/* Backs the promise of region_table.h about a lookup that races a change; worth most under TSan. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <check.h>

#include "net/region_table.h"

enum {
    CHANGE_COUNT = 20000,
};

/* Address and length that belong together, so that a mixture shows. */
static uint8_t memory[2][64];

struct race {
    struct uc_region_table *table;
    _Atomic bool stop;
    uint64_t found_count; /* the reader's until it is joined */
    uint64_t mixed_count; /* likewise */
};

static void *
look_up(void *argument)
{
    struct race *race = argument;

    while (!atomic_load_explicit(&race->stop, memory_order_acquire)) {
        struct uc_region region;

        if (uc_region_table_find(race->table, 5, &region) != UC_OK) {
            continue;
        }
        race->found_count++;
        if (region.length_bytes != (region.address == memory[0] ? 1 : 2) ||
                region.access != (region.address == memory[0] ? UC_FABRIC_READ_ONLY
                                                              : UC_FABRIC_READ_WRITE)) {
            race->mixed_count++;
        }
    }
    return NULL;
}

START_TEST(lookup_that_races_a_change_sees_old_or_new_or_none)
{
    struct race race = {.table = NULL};
    pthread_t thread;

    ck_assert_int_eq(uc_region_table_create(&race.table), UC_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, look_up, &race), 0);
    for (int count = 0; count < CHANGE_COUNT; count++) {
        struct uc_region region = {.address = memory[count % 2],
                .length_bytes = count % 2 == 0 ? 1 : 2,
                .access = count % 2 == 0 ? UC_FABRIC_READ_ONLY : UC_FABRIC_READ_WRITE};

        if (uc_region_table_add(race.table, 5, &region) != UC_OK) {
            ck_abort_msg("add failed");
        }
        uc_region_table_remove(race.table, 5);
    }
    atomic_store_explicit(&race.stop, true, memory_order_release);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(race.mixed_count, 0);
    uc_region_table_destroy(race.table);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("region_table_threads");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, lookup_that_races_a_change_sees_old_or_new_or_none);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
