/* SPDX-License-Identifier: Apache-2.0 */

/* What must not be possible, whoever asks. */

#include <stdlib.h>
#include <string.h>

#include "test/conformance/fabric/harness.h"

static struct link link0;
static struct test_op op;

/* Where the provider sees the refusal at the remote side, verbs can say no more than "broken". */
static void
assert_refused(enum uc_status status, enum uc_status want)
{
    if (initiator.caps.checks_generation) {
        ck_assert_int_eq(status, want);
    } else {
        ck_assert_int_ne(status, UC_OK);
    }
}

static const struct {
    uint64_t offset;
    uint64_t length; /* of the one piece; the memory behind it does not matter */
    uint32_t region_idx;
} bad_ranges[] = {
        {0, 0, 0},                 /* nothing */
        {REGION_BYTES, 1, 0},      /* starts at the end */
        {REGION_BYTES - 1, 2, 0},  /* ends past the end */
        {REGION_BYTES + 1, 1, 0},  /* starts past the end */
        {UINT64_MAX, 1, 0},        /* offset + length wraps to 0 */
        {UINT64_MAX - 99, 200, 0}, /* … to inside the region */
        {0, REGION_BYTES + 1, 0},  /* longer than the region */
        {1, UINT64_MAX, 0},        /* wraps to 0 */
        {0, 1, REGION_COUNT},      /* no such region */
        {0, 1, UINT32_MAX},
};

START_TEST(post_refuses_ranges_outside_the_region)
{
    uint8_t zero[64] = {0};
    uint8_t seen[64];

    memset(initiator.memory, 0x11, 4096);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    for (int opcode = UC_FABRIC_READ; opcode <= UC_FABRIC_WRITE; opcode++) {
        op_init(&op, (enum uc_fabric_opcode)opcode, bad_ranges[_i].offset, 0, 1);
        op.pieces[0].length_bytes = bad_ranges[_i].length;
        op.op.region_idx = bad_ranges[_i].region_idx;
        ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    }

    /* Nothing ran and nothing moved; the endpoint is as good as before. */
    op_init(&op, UC_FABRIC_READ, 0, 0, 64);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    ck_assert_mem_eq(initiator.memory, zero, sizeof(zero));
    ck_assert_int_eq(initiator.memory[64], 0x11);
    target_peek(0, 0, 0, seen, sizeof(seen));
    ck_assert_mem_eq(seen, zero, sizeof(zero));
    link_close(&link0);
}
END_TEST

START_TEST(post_refuses_a_flush_that_cannot_read_8_bytes)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_FLUSH, REGION_BYTES - 7, 0, 0);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    op_init(&op, UC_FABRIC_FLUSH, UINT64_MAX, 0, 0);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    link_close(&link0);
}
END_TEST

START_TEST(post_refuses_operations_without_pieces)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_READ, 0, 0, 0);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    op_init(&op, UC_FABRIC_WRITE, 0, 0, 1);
    op.op.pieces = NULL;
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    link_close(&link0);
}
END_TEST

START_TEST(post_refuses_pieces_whose_sum_wraps)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_READ, 0, 0, 1);
    op_add_piece(&op, 8, 1);
    op.pieces[0].length_bytes = UINT64_MAX;
    op.pieces[1].length_bytes = 65; /* 64 in all, if nobody looks */
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    op.pieces[0].length_bytes = 0; /* an empty piece among others is no piece either */
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(op.done_count, 0);
    link_close(&link0);
}
END_TEST

START_TEST(post_refuses_more_pieces_than_the_provider_takes)
{
    size_t count = (size_t)initiator.caps.max_piece_count + 1;
    struct uc_fabric_piece *pieces;

    if (count > LOCAL_BYTES / 2) {
        return; /* more than memory holds */
    }
    pieces = calloc(count, sizeof(*pieces));
    ck_assert_ptr_nonnull(pieces);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    for (size_t idx = 0; idx < count; idx++) {
        pieces[idx] = (struct uc_fabric_piece){
                .address = initiator.memory + idx, .length_bytes = 1, .region = initiator.region};
    }
    op_init(&op, UC_FABRIC_READ, 0, 0, 0);
    op.op.pieces = pieces;
    op.op.piece_count = count;
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    op.op.piece_count = count - 1;
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    link_close(&link0);
    free(pieces);
}
END_TEST

START_TEST(post_refuses_a_piece_outside_its_local_region)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_READ, 0, LOCAL_BYTES - 1, 2);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    op_init(&op, UC_FABRIC_READ, 0, 0, 1);
    op.pieces[0].address = (uint8_t *)op.pieces[0].address - 1;
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_INVALID_PARAM);
    link_close(&link0);
}
END_TEST

START_TEST(list_with_one_bad_operation_posts_none)
{
    static struct test_op ops[3];

    memset(initiator.memory, 0x22, 64);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    for (size_t idx = 0; idx < 3; idx++) {
        op_init(&ops[idx], UC_FABRIC_READ, idx < 2 ? 0 : REGION_BYTES, idx * 8, 8);
        ops[idx].op.next = idx < 2 ? &ops[idx + 1].op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &ops[0].op), UC_ERR_INVALID_PARAM);

    op_init(&op, UC_FABRIC_READ, 0, 32, 8);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(ops[idx].done_count, 0);
        ck_assert_int_eq(initiator.memory[idx * 8], 0x22);
    }
    link_close(&link0);
}
END_TEST

START_TEST(write_on_a_read_only_endpoint_is_refused)
{
    uint8_t seen = 1;

    memset(initiator.memory, 0x33, 100000);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&op, UC_FABRIC_WRITE, 0, 0, 100000);
    assert_refused(op_run(&link0, &op), UC_ERR_PERMISSION_DENIED);
    target_peek(0, 0, 0, &seen, 1);
    ck_assert_int_eq(seen, 0);
    if (initiator.caps.checks_generation) { /* the stream is still in step */
        op_init(&op, UC_FABRIC_READ, 0, 0, 1000);
        ck_assert_int_eq(op_run(&link0, &op), UC_OK);
        ck_assert_int_eq(initiator.memory[999], 0);
    }
    link_close(&link0);
}
END_TEST

static void
renew_region(struct target *self, void *argument)
{
    enum uc_fabric_access access = *(enum uc_fabric_access *)argument;
    struct uc_fabric_memory range = target_memory(self, 0, 1);
    struct uc_fabric_region **region = &self->regions[0][1];

    self->ops->region_deregister(*region);
    *region = NULL;
    if (self->ops->region_register(self->domains[0], &range, 1, access, region) == UC_OK) {
        self->ops->region_key(*region, &self->keys[0][1]);
    }
}

START_TEST(write_to_a_read_only_region_is_refused)
{
    enum uc_fabric_access access = UC_FABRIC_READ_ONLY;
    uint8_t seen = 1;

    target_call(renew_region, &access);
    ck_assert_ptr_nonnull(target.regions[0][1]);
    memset(initiator.memory, 0x44, 64);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_READ, 0, 64, 64);
    op.op.region_idx = 1;
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    op_init(&op, UC_FABRIC_WRITE, 0, 0, 64);
    op.op.region_idx = 1;
    assert_refused(op_run(&link0, &op), UC_ERR_PERMISSION_DENIED);
    target_peek(0, 1, 0, &seen, 1);
    ck_assert_int_eq(seen, 0);
    link_close(&link0);
}
END_TEST

START_TEST(region_can_be_deregistered_and_registered_again)
{
    enum uc_fabric_access access = UC_FABRIC_READ_WRITE;

    for (int round = 0; round < 3; round++) {
        target_call(renew_region, &access);
        ck_assert_ptr_nonnull(target.regions[0][1]);
        target_fill(0, 1, (uint8_t)round);
        link_open(&link0, UC_FABRIC_READ_WRITE);
        op_init(&op, UC_FABRIC_READ, 3, 0, 1);
        op.op.region_idx = 1;
        ck_assert_int_eq(op_run(&link0, &op), UC_OK);
        ck_assert_int_eq(initiator.memory[0], pattern((uint8_t)round, 3));
        link_close(&link0);
    }
}
END_TEST

static void
drop_region(struct target *self, void *argument)
{
    (void)argument;
    self->ops->region_deregister(self->regions[0][1]);
    self->regions[0][1] = NULL;
}

START_TEST(deregistered_region_cannot_be_reached)
{
    memset(initiator.memory, 0x55, 64);
    target_fill(0, 1, 9);
    link_open(&link0, UC_FABRIC_READ_WRITE);
    target_call(drop_region, NULL);
    op_init(&op, UC_FABRIC_READ, 0, 0, 64);
    op.op.region_idx = 1;
    assert_refused(op_run(&link0, &op), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(initiator.memory[0], 0x55);
    link_close(&link0);
}
END_TEST

/* An initiator that believes in a longer region, or in one more, than the target has. */
START_TEST(target_refuses_what_only_the_initiator_believes_in)
{
    static struct uc_fabric_region_key keys[REGION_COUNT + 1];
    struct destination where = target_destination(0);
    struct grant *grant = grant_make(0, UC_FABRIC_READ_WRITE);

    memset(initiator.memory, 0x77, 64);
    memcpy(keys, where.keys, sizeof(where.keys));
    keys[_i].address = where.keys[0].address + (uint64_t)_i * (1ull << 40);
    keys[_i].key = _i == REGION_COUNT ? 0x7fffff00 : keys[_i].key;
    keys[_i].length_bytes = 1ull << 30;
    link_start_keys(&link0, grant, keys, REGION_COUNT + 1);
    wait_until(link0.ok_count + link0.failure_count > 0);
    if (link0.ok_count > 0) {
        op_init(&op, UC_FABRIC_READ, 1ull << 29, 0, 64);
        op.op.region_idx = (uint32_t)_i;
        if (initiator.ops->post(link0.endpoint, &op.op) == UC_OK) {
            wait_until(op.done_count > 0);
            assert_refused(op.status, UC_ERR_INVALID_PARAM);
        }
        ck_assert_int_eq(initiator.memory[0], 0x77);
    }
    ck_assert_int_eq(target.wrong_hold_count, 0);
    link_close(&link0);
}
END_TEST

START_TEST(endpoint_reaches_only_its_own_domain)
{
    uint8_t seen = 0;

    target_fill(0, 0, 1);
    target_fill(1, 0, 2);
    memset(initiator.memory, 0x66, 64);

    /* Region indices and keys of domain 1 on an endpoint of domain 0. */
    link_open_domain(&link0, 0, 1, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_READ, 0, 0, 64);
    if (op_run(&link0, &op) == UC_OK) { /* the index means its own region */
        ck_assert_int_eq(initiator.memory[5], pattern(1, 5));
    } else { /* the key is worth nothing there */
        ck_assert_int_eq(initiator.memory[5], 0x66);
    }
    link_close(&link0);

    link_open_domain(&link0, 0, 1, UC_FABRIC_READ_WRITE);
    memset(initiator.memory, 0x66, 64);
    op_init(&op, UC_FABRIC_WRITE, 0, 0, 64);
    (void)op_run(&link0, &op);
    target_peek(1, 0, 0, &seen, 1);
    ck_assert_int_eq(seen, pattern(2, 0));
    link_close(&link0);
}
END_TEST

START_TEST(stale_generation_is_refused_and_every_hold_released)
{
    static const struct {
        uint64_t generation;
        enum uc_status want;
    } rows[] = {{GENERATION, UC_OK}, {GENERATION - 1, UC_ERR_NOT_FOUND},
            {GENERATION + 1, UC_ERR_NOT_FOUND}, {0, UC_OK}};
    int held =
            initiator.caps.reads_locally ? 2 : 4; /* nobody holds for such a READ, or refuses it */
    uint8_t seen;

    if (!initiator.caps.checks_generation) {
        return;
    }

    link_open(&link0, UC_FABRIC_READ_WRITE);
    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]); idx++) {
        for (int opcode = UC_FABRIC_READ; opcode <= UC_FABRIC_WRITE; opcode++) {
            memset(initiator.memory, (int)idx + 1, 200000);
            op_init(&op, (enum uc_fabric_opcode)opcode, idx * 200000, 0, 200000);
            op.op.generation = rows[idx].generation;
            ck_assert_int_eq(op_run(&link0, &op),
                    initiator.caps.reads_locally && opcode == UC_FABRIC_READ ? UC_OK
                                                                             : rows[idx].want);
        }
        target_peek(0, 0, idx * 200000, &seen, 1);
        ck_assert_int_eq(seen, rows[idx].want == UC_OK ? (int)idx + 1 : 0);
    }
    wait_until(target.release_count == held);
    ck_assert_int_eq(target.hold_count, held);
    link_close(&link0);
}
END_TEST

START_TEST(unknown_nonce_is_refused)
{
    uint8_t nonce[UC_FABRIC_NONCE_BYTES] = {1, 2, 3};
    struct destination where = target_destination(0);

    link_start_nonce(&link0, nonce, &where, 20000);
    wait_until(link0.ok_count + link0.failure_count > 0);
    ck_assert_int_eq(link0.ok_count, 0);
    ck_assert_int_ne(link0.failure, UC_ERR_TIMEOUT);
    op_init(&op, UC_FABRIC_READ, 0, 0, 1);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_UNHEALTHY);
    link_close(&link0);
}
END_TEST

START_TEST(nonce_works_once)
{
    static struct link link1;

    link_open(&link0, UC_FABRIC_READ_ONLY);
    link_start(&link1, link0.grant, 0, 20000);
    wait_until(link1.ok_count + link1.failure_count > 0);
    ck_assert_int_eq(link1.ok_count, 0);
    link_close(&link1);

    op_init(&op, UC_FABRIC_READ, 0, 0, 1); /* the first one does not suffer */
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    ck_assert_int_eq(link0.grant->gone_count, 0);
    link_close(&link0);
}
END_TEST

TCase *
refusal_cases(void)
{
    TCase *tcase = tcase_create("refusal");

    tcase_add_checked_fixture(tcase, both_open, both_close);
    tcase_add_loop_test(tcase, post_refuses_ranges_outside_the_region, 0,
            sizeof(bad_ranges) / sizeof(bad_ranges[0]));
    tcase_add_test(tcase, post_refuses_a_flush_that_cannot_read_8_bytes);
    tcase_add_test(tcase, post_refuses_operations_without_pieces);
    tcase_add_test(tcase, post_refuses_pieces_whose_sum_wraps);
    tcase_add_test(tcase, post_refuses_more_pieces_than_the_provider_takes);
    tcase_add_test(tcase, post_refuses_a_piece_outside_its_local_region);
    tcase_add_test(tcase, list_with_one_bad_operation_posts_none);
    tcase_add_test(tcase, write_on_a_read_only_endpoint_is_refused);
    tcase_add_test(tcase, write_to_a_read_only_region_is_refused);
    tcase_add_test(tcase, region_can_be_deregistered_and_registered_again);
    tcase_add_test(tcase, deregistered_region_cannot_be_reached);
    tcase_add_loop_test(tcase, target_refuses_what_only_the_initiator_believes_in, 0, 3);
    tcase_add_test(tcase, endpoint_reaches_only_its_own_domain);
    tcase_add_test(tcase, stale_generation_is_refused_and_every_hold_released);
    tcase_add_test(tcase, unknown_nonce_is_refused);
    tcase_add_test(tcase, nonce_works_once);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
