/* SPDX-License-Identifier: Apache-2.0 */

/* The table, and what it says of the transport. */

#include <string.h>

#include "test/conformance/fabric/harness.h"

static struct link link0;
static struct test_op op;

START_TEST(table_is_complete)
{
    const struct uc_fabric_ops *ops = initiator.ops;

    ck_assert_uint_eq(ops->abi_version, UC_FABRIC_ABI_VERSION);
    ck_assert_uint_ge(ops->struct_size, sizeof(*ops));
    ck_assert_str_eq(ops->name, fabric_name());
    ck_assert(ops->open != NULL && ops->close != NULL && ops->caps != NULL);
    ck_assert(ops->domain_open != NULL && ops->domain_close != NULL);
    ck_assert(ops->region_register != NULL && ops->region_deregister != NULL);
    ck_assert(ops->region_key != NULL);
    ck_assert(ops->listen != NULL && ops->listener_port != NULL && ops->listener_close != NULL);
    ck_assert(ops->connect != NULL && ops->fence != NULL && ops->disconnect != NULL);
    ck_assert(ops->post != NULL && ops->poll != NULL && ops->arm != NULL);
    ck_assert(ops->event_fd != NULL && ops->next_deadline_ms != NULL);
    ck_assert_int_ge(ops->event_fd(initiator.fabric), 0);
    ops->disconnect(NULL); /* allowed */
}
END_TEST

START_TEST(capabilities_keep_the_least_that_is_promised)
{
    struct uc_fabric_caps again;

    ck_assert_uint_ge(initiator.caps.max_piece_count, 512);
    ck_assert_uint_ge(initiator.caps.max_op_bytes, REGION_BYTES);
    initiator.ops->caps(initiator.fabric, &again);
    ck_assert_int_eq(again.needs_registration, initiator.caps.needs_registration);
    ck_assert_int_eq(again.feeds_bytes, initiator.caps.feeds_bytes);
    ck_assert_int_eq(again.checks_generation, initiator.caps.checks_generation);
    ck_assert_uint_eq(again.max_piece_count, initiator.caps.max_piece_count);
    ck_assert_uint_eq(again.max_op_bytes, initiator.caps.max_op_bytes);
}
END_TEST

/* needs_registration says whether a piece must name a region. */
START_TEST(piece_without_a_region_is_taken_where_none_is_needed)
{
    target_fill(0, 0, 3);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&op, UC_FABRIC_READ, 5, 0, 100);
    op.pieces[0].region = NULL;
    if (initiator.caps.needs_registration) {
        ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    } else {
        ck_assert_int_eq(op_run(&link0, &op), UC_OK);
        ck_assert_uint_eq(pattern_match(initiator.memory, 3, 5, 100), 100);
    }
    link_close(&link0);
}
END_TEST

START_TEST(registration_refuses_what_is_no_memory)
{
    const struct uc_fabric_memory bad[] = {
            uc_fabric_host_memory(NULL, 4096),
            uc_fabric_host_memory(initiator.memory, 0),
            uc_fabric_host_memory(initiator.memory, UINT64_MAX),
    };
    struct uc_fabric_region *region = NULL;

    for (size_t idx = 0; idx < sizeof(bad) / sizeof(bad[0]); idx++) {
        ck_assert_int_ne(initiator.ops->region_register(initiator.domain, &bad[idx], UINT32_MAX,
                                 UC_FABRIC_READ_WRITE, &region),
                UC_OK);
        ck_assert_ptr_null(region);
        ck_assert_str_ne(uc_last_error(), "");
    }
}
END_TEST

TCase *
capability_cases(void)
{
    TCase *tcase = tcase_create("capabilities");

    tcase_add_checked_fixture(tcase, both_open, both_close);
    tcase_add_test(tcase, table_is_complete);
    tcase_add_test(tcase, capabilities_keep_the_least_that_is_promised);
    tcase_add_test(tcase, piece_without_a_region_is_taken_where_none_is_needed);
    tcase_add_test(tcase, registration_refuses_what_is_no_memory);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
