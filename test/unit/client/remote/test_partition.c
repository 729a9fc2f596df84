/* SPDX-License-Identifier: Apache-2.0 */

/* The keys of a call, split by server. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/stores/remote/partition.h"
#include "test/fake/fake_alloc.h"

enum {
    KEYS = 1000,
    SERVERS = 5,
};

static struct uc_placement_member members[SERVERS];
static struct uc_block_id ids[KEYS];
static struct uc_partition partition;

static void
setup(void)
{
    static const char *const names[SERVERS] = {"a:1", "b:1", "c:1", "d:1", "e:1"};

    for (size_t idx = 0; idx < SERVERS; idx++) {
        members[idx] = uc_placement_member_init(names[idx], 1);
    }
    for (uint32_t idx = 0; idx < KEYS; idx++) {
        memset(&ids[idx], 0, sizeof(ids[idx]));
        memcpy(ids[idx].bytes, &idx, sizeof(idx));
    }
    memset(&partition, 0, sizeof(partition));
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_partition_fini(&partition);
}

START_TEST(every_key_is_in_the_share_of_its_server_in_order)
{
    struct uc_placement_view view = uc_placement_view_init(members, SERVERS);
    size_t seen = 0;

    ck_assert_int_eq(uc_partition_make(&partition, &view, ids, KEYS), UC_OK);
    for (size_t server = 0; server < SERVERS; server++) {
        const struct uc_share *share = &partition.shares[server];

        for (size_t idx = 0; idx < share->count; idx++) {
            size_t position = uc_share_position(share, idx);

            ck_assert_mem_eq(&share->ids[idx], &ids[position], sizeof(ids[0]));
            ck_assert_uint_eq(uc_placement_place(&view, &ids[position]), server);
            ck_assert(idx == 0 || position > uc_share_position(share, idx - 1));
        }
        seen += share->count;
    }
    ck_assert_uint_eq(seen, KEYS);
}
END_TEST

START_TEST(single_server_gets_the_callers_array)
{
    struct uc_placement_view view = uc_placement_view_init(members, 1);

    ck_assert_int_eq(uc_partition_make(&partition, &view, ids, KEYS), UC_OK);
    ck_assert_ptr_eq(partition.shares[0].ids, ids);
    ck_assert_uint_eq(partition.shares[0].count, KEYS);
    ck_assert_uint_eq(uc_share_position(&partition.shares[0], 17), 17);
}
END_TEST

START_TEST(partition_without_memory_fails_and_recovers)
{
    struct uc_placement_view view = uc_placement_view_init(members, SERVERS);

    for (size_t pass = 0; pass < 4; pass++) {
        uc_fake_alloc_fail_once(pass);
        ck_assert_int_eq(uc_partition_make(&partition, &view, ids, KEYS), UC_ERR_OUT_OF_MEMORY);
        uc_fake_alloc_reset();
        uc_partition_fini(&partition);
        memset(&partition, 0, sizeof(partition));
    }
    ck_assert_int_eq(uc_partition_make(&partition, &view, ids, 10), UC_OK);
    uc_fake_alloc_fail_once(1); /* while it grows */
    ck_assert_int_eq(uc_partition_make(&partition, &view, ids, KEYS), UC_ERR_OUT_OF_MEMORY);
    uc_fake_alloc_reset();
    ck_assert_int_eq(uc_partition_make(&partition, &view, ids, KEYS), UC_OK);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("partition");
    TCase *tcase = tcase_create("partition");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_key_is_in_the_share_of_its_server_in_order);
    tcase_add_test(tcase, single_server_gets_the_callers_array);
    tcase_add_test(tcase, partition_without_memory_fails_and_recovers);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
