/* SPDX-License-Identifier: Apache-2.0 */

/* What moves, and that nothing else does. */

#include <stdlib.h>
#include <string.h>

#include "test/conformance/fabric/harness.h"

static struct link link0;
static struct test_op op;

static void
fill_local(size_t offset, size_t count, uint8_t seed)
{
    for (size_t idx = 0; idx < count; idx++) {
        initiator.memory[offset + idx] = pattern(seed, idx);
    }
}

static void
assert_local_is_remote(size_t local_offset, uint8_t seed, uint64_t remote_offset, size_t count)
{
    ck_assert_uint_eq(
            pattern_match(initiator.memory + local_offset, seed, remote_offset, count), count);
}

START_TEST(read_brings_the_remote_bytes)
{
    target_fill(0, 0, 1);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&op, UC_FABRIC_READ, 12345, 100, 70000);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    assert_local_is_remote(100, 1, 12345, 70000);
    ck_assert_int_eq(initiator.memory[99], 0);
    ck_assert_int_eq(initiator.memory[70100], 0);
    link_close(&link0);
}
END_TEST

START_TEST(flushed_write_is_visible_to_the_remote_cpu)
{
    uint8_t seen[1002];

    link_open(&link0, UC_FABRIC_READ_WRITE);
    fill_local(0, 1000, 9);
    ck_assert_int_eq(write_and_flush(&link0, 501, 0, 1000), UC_OK);
    target_peek(0, 0, 500, seen, sizeof(seen));
    ck_assert_int_eq(seen[0], 0);
    ck_assert_mem_eq(&seen[1], initiator.memory, 1000);
    ck_assert_int_eq(seen[1001], 0);
    link_close(&link0);
}
END_TEST

START_TEST(read_returns_what_was_written)
{
    static const size_t lengths[] = {1, 7, 64, 4095, 4096, 4097, 65536, 1 << 20, REGION_BYTES};

    link_open(&link0, UC_FABRIC_READ_WRITE);
    for (size_t idx = 0; idx < sizeof(lengths) / sizeof(lengths[0]); idx++) {
        fill_local(0, lengths[idx], (uint8_t)idx);
        ck_assert_int_eq(write_and_flush(&link0, 0, 0, lengths[idx]), UC_OK);
        memset(initiator.memory, 0xee, lengths[idx]);
        op_init(&op, UC_FABRIC_READ, 0, 0, lengths[idx]);
        ck_assert_int_eq(op_run(&link0, &op), UC_OK);
        assert_local_is_remote(0, (uint8_t)idx, 0, lengths[idx]);
    }
    link_close(&link0);
}
END_TEST

START_TEST(every_region_of_the_domain_can_be_reached)
{
    target_fill(0, 0, 1);
    target_fill(0, 1, 2);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&op, UC_FABRIC_READ, 77, 0, 5000);
    op.op.region_idx = 1;
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    assert_local_is_remote(0, 2, 77, 5000);
    link_close(&link0);
}
END_TEST

START_TEST(first_and_last_byte_of_a_region_can_be_reached)
{
    uint8_t last;

    target_fill(0, 0, 3);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_READ, 0, 0, 1);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    op_init(&op, UC_FABRIC_READ, REGION_BYTES - 1, 1, 1);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    ck_assert_int_eq(initiator.memory[0], pattern(3, 0));
    ck_assert_int_eq(initiator.memory[1], pattern(3, REGION_BYTES - 1));

    initiator.memory[0] = 0x77;
    ck_assert_int_eq(write_and_flush(&link0, REGION_BYTES - 1, 0, 1), UC_OK);
    target_peek(0, 0, REGION_BYTES - 1, &last, 1);
    ck_assert_int_eq(last, 0x77);
    op_init(&op, UC_FABRIC_FLUSH, REGION_BYTES - 8, 0, 0);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    link_close(&link0);
}
END_TEST

/* Ranges of many sizes that end exactly where the region ends. */
START_TEST(ranges_that_end_with_the_region_can_be_reached)
{
    static const size_t lengths[] = {2, 8, 4096, 65537, REGION_BYTES - 1, REGION_BYTES};

    link_open(&link0, UC_FABRIC_READ_WRITE);
    for (size_t idx = 0; idx < sizeof(lengths) / sizeof(lengths[0]); idx++) {
        uint64_t offset = REGION_BYTES - lengths[idx];

        target_fill(0, 0, (uint8_t)idx);
        op_init(&op, UC_FABRIC_READ, offset, 0, lengths[idx]);
        ck_assert_int_eq(op_run(&link0, &op), UC_OK);
        assert_local_is_remote(0, (uint8_t)idx, offset, lengths[idx]);
        ck_assert_int_eq(write_and_flush(&link0, offset, 0, lengths[idx]), UC_OK);
    }
    link_close(&link0);
}
END_TEST

/* A list of many operations: each completes once, and READs in the order posted. */
START_TEST(many_operations_in_one_list_complete_once_and_in_order)
{
    enum {
        LENGTH = 4096
    };
    const int count = scaled(1000);
    struct test_op *ops = calloc((size_t)count, sizeof(*ops));

    ck_assert_ptr_nonnull(ops);
    target_fill(0, 0, 5);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    for (int idx = 0; idx < count; idx++) {
        size_t place = (size_t)idx * LENGTH;

        op_init(&ops[idx], UC_FABRIC_READ, place % REGION_BYTES, place, LENGTH);
        ops[idx].op.generation = GENERATION;
        ops[idx].op.next = idx + 1 < count ? &ops[idx + 1].op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &ops[0].op), UC_OK);
    wait_until(ops[count - 1].done_count > 0);
    for (int idx = 0; idx < count; idx++) {
        size_t place = (size_t)idx * LENGTH;

        ck_assert_int_eq(ops[idx].done_count, 1);
        ck_assert_int_eq(ops[idx].status, UC_OK);
        ck_assert_int_eq(ops[idx].order, ops[0].order + idx);
        assert_local_is_remote(place, 5, place % REGION_BYTES, LENGTH);
    }
    link_close(&link0);
    free(ops);
}
END_TEST

/* Writes, flushes and reads of all sizes mixed in one list, both directions busy at once. */
START_TEST(mixed_operations_do_not_disturb_each_other)
{
    const int count = scaled(300);
    struct test_op *ops = calloc((size_t)count, sizeof(*ops));
    uint8_t *seen = malloc(REGION_BYTES);

    ck_assert_ptr_nonnull(ops);
    ck_assert_ptr_nonnull(seen);
    target_fill(0, 0, 1);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    fill_local(0, REGION_BYTES, 2); /* for region 1; reads of region 0 land behind it */
    for (int idx = 0; idx < count; idx++) {
        size_t place = (size_t)idx * (REGION_BYTES / 512);
        size_t length = (size_t)1 + (size_t)idx * 27;

        if (idx % 3 == 0) {
            op_init(&ops[idx], UC_FABRIC_WRITE, place, place, length);
            ops[idx].op.region_idx = 1;
        } else if (idx % 3 == 1) {
            op_init(&ops[idx], UC_FABRIC_READ, place, REGION_BYTES + place, length);
        } else {
            op_init(&ops[idx], UC_FABRIC_FLUSH, 0, 0, 0);
        }
        ops[idx].op.next = idx + 1 < count ? &ops[idx + 1].op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &ops[0].op), UC_OK);
    for (int idx = 0; idx < count; idx++) {
        wait_until(ops[idx].done_count > 0);
        ck_assert_int_eq(ops[idx].status, UC_OK);
    }
    op_init(&op, UC_FABRIC_FLUSH, 0, 0, 0);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    target_peek(0, 1, 0, seen, REGION_BYTES);
    for (int idx = 0; idx < count; idx++) {
        size_t place = (size_t)idx * (REGION_BYTES / 512);
        size_t length = (size_t)1 + (size_t)idx * 27;

        ck_assert_int_eq(ops[idx].done_count, 1);
        if (idx % 3 == 0) {
            ck_assert_mem_eq(seen + place, initiator.memory + place, length);
        } else if (idx % 3 == 1) {
            assert_local_is_remote(REGION_BYTES + place, 1, place, length);
        }
    }
    link_close(&link0);
    free(seen);
    free(ops);
}
END_TEST

struct chain {
    struct test_op op; /* first: on_done gets its address */
    int left;
};

static void
post_next(struct uc_fabric_op *done, enum uc_status status)
{
    struct chain *chain = (struct chain *)done;

    ck_assert_int_eq(status, UC_OK);
    if (--chain->left > 0) {
        done->next = NULL;
        ck_assert_int_eq(initiator.ops->post(link0.endpoint, done), UC_OK);
    }
}

START_TEST(completion_may_post_its_operation_again)
{
    static struct chain chain;

    chain.left = scaled(200);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&chain.op, UC_FABRIC_READ, 0, 0, 100);
    chain.op.op.on_done = post_next;
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &chain.op.op), UC_OK);
    wait_until(chain.left == 0);
    link_close(&link0);
}
END_TEST

START_TEST(poll_runs_no_more_completions_than_its_budget)
{
    static struct test_op ops[20];
    double give_up_s = now_s() + patience_s();
    size_t done = 0;

    link_open(&link0, UC_FABRIC_READ_ONLY);
    for (size_t idx = 0; idx < 20; idx++) {
        op_init(&ops[idx], UC_FABRIC_READ, idx, idx, 1);
        ops[idx].op.next = idx < 19 ? &ops[idx + 1].op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &ops[0].op), UC_OK);
    while (done < 20) {
        size_t before = done;

        ck_assert_msg(now_s() < give_up_s, "%zu of 20 completed", done);
        (void)initiator.ops->poll(initiator.fabric, 1);
        for (done = 0; done < 20 && ops[done].done_count > 0; done++) {
        }
        ck_assert_uint_le(done - before, 1);
    }
    link_close(&link0);
}
END_TEST

TCase *
transfer_cases(void)
{
    TCase *tcase = tcase_create("transfer");

    tcase_add_checked_fixture(tcase, both_open, both_close);
    tcase_add_test(tcase, read_brings_the_remote_bytes);
    tcase_add_test(tcase, flushed_write_is_visible_to_the_remote_cpu);
    tcase_add_test(tcase, read_returns_what_was_written);
    tcase_add_test(tcase, every_region_of_the_domain_can_be_reached);
    tcase_add_test(tcase, first_and_last_byte_of_a_region_can_be_reached);
    tcase_add_test(tcase, ranges_that_end_with_the_region_can_be_reached);
    tcase_add_test(tcase, many_operations_in_one_list_complete_once_and_in_order);
    tcase_add_test(tcase, mixed_operations_do_not_disturb_each_other);
    tcase_add_test(tcase, completion_may_post_its_operation_again);
    tcase_add_test(tcase, poll_runs_no_more_completions_than_its_budget);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
