/* SPDX-License-Identifier: Apache-2.0 */

/* Scattered pieces: order, gaps and odd sizes. */

#include <string.h>

#include "test/conformance/fabric/harness.h"

enum {
    GAP_BYTES = 13,
    FILL = 0xd7,
    REMOTE_OFFSET = 4099,
};

static const struct {
    size_t piece_count;
    size_t piece_bytes; /* of the first one; the others differ a little */
} shapes[] = {
        {1, 1},      /* the smallest */
        {2, 3000},   /* a header and a body */
        {16, 4096},  /* a layer per piece */
        {61, 10007}, /* more than a NIC scatters, and nothing is round */
        {512, 1},    /* one byte each */
        {512, 2048}, /* many and not small */
};

static struct link link0;
static struct test_op op;

/* The length of piece idx: neighbours differ, so that a mix-up of pieces shows. */
static size_t
piece_bytes(int shape, size_t idx)
{
    return shapes[shape].piece_bytes == 1 ? 1 : shapes[shape].piece_bytes + idx % 5;
}

/* Pieces with gaps, laid out backwards so that memory order is not wire order. @return bytes */
static size_t
lay_out(int shape)
{
    size_t place = LOCAL_BYTES / 2;
    size_t total = 0;

    for (size_t idx = 0; idx < shapes[shape].piece_count; idx++) {
        size_t length = piece_bytes(shape, idx);

        place -= length + GAP_BYTES;
        op_add_piece(&op, place, length);
        total += length;
    }
    return total;
}

/* Visit every byte of the operation in wire order. */
static void
assert_pieces_hold(int shape, uint8_t seed)
{
    uint64_t offset = REMOTE_OFFSET;

    for (size_t idx = 0; idx < shapes[shape].piece_count; idx++) {
        const uint8_t *bytes = op.pieces[idx].address;
        size_t length = piece_bytes(shape, idx);

        ck_assert_uint_eq(pattern_match(bytes, seed, offset, length), length);
        ck_assert_uint_eq(value_match(bytes + length, FILL, GAP_BYTES), GAP_BYTES);
        offset += length;
    }
}

START_TEST(read_scatters_over_pieces_in_order_and_spares_the_gaps)
{
    target_fill(0, 0, 4);
    memset(initiator.memory, FILL, LOCAL_BYTES);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&op, UC_FABRIC_READ, REMOTE_OFFSET, 0, 0);
    (void)lay_out(_i);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    assert_pieces_hold(_i, 4);
    link_close(&link0);
}
END_TEST

START_TEST(write_gathers_pieces_in_order)
{
    static uint8_t seen[2 << 20];
    static struct test_op flush;
    uint64_t offset = REMOTE_OFFSET;
    size_t total;

    link_open(&link0, UC_FABRIC_READ_WRITE);
    op_init(&op, UC_FABRIC_WRITE, REMOTE_OFFSET, 0, 0);
    memset(initiator.memory, FILL, LOCAL_BYTES);
    total = lay_out(_i);
    ck_assert_uint_lt(total + 1, sizeof(seen));
    for (size_t idx = 0; idx < shapes[_i].piece_count; idx++) {
        for (size_t at = 0; at < piece_bytes(_i, idx); at++) {
            ((uint8_t *)op.pieces[idx].address)[at] = pattern(8, offset);
            offset++;
        }
    }
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    op_init(&flush, UC_FABRIC_FLUSH, 0, 0, 0);
    ck_assert_int_eq(op_run(&link0, &flush), UC_OK);

    target_peek(0, 0, REMOTE_OFFSET - 1, seen, total + 2);
    ck_assert_int_eq(seen[0], 0);
    ck_assert_uint_eq(pattern_match(&seen[1], 8, REMOTE_OFFSET, total), total);
    ck_assert_int_eq(seen[1 + total], 0);
    link_close(&link0);
}
END_TEST

TCase *
shape_cases(void)
{
    TCase *tcase = tcase_create("shape");
    int count = sizeof(shapes) / sizeof(shapes[0]);

    tcase_add_checked_fixture(tcase, both_open, both_close);
    tcase_add_loop_test(tcase, read_scatters_over_pieces_in_order_and_spares_the_gaps, 0, count);
    tcase_add_loop_test(tcase, write_gathers_pieces_in_order, 0, count);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
