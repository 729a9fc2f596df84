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
        {40, 33000}, /* not small at all */
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

/* A reader of bytes as they arrive. */
struct feed {
    struct test_op op; /* first: on_bytes gets its address */
    uint64_t told_bytes;
    uint64_t wrong_bytes;
    uint8_t seed;
    bool done_first; /* told something after its end, or before the end of the one before */
    const struct feed *before;
};

static uint64_t
length_of(const struct feed *feed)
{
    uint64_t length = 0;

    for (size_t idx = 0; idx < feed->op.op.piece_count; idx++) {
        length += feed->op.pieces[idx].length_bytes;
    }
    return length;
}

static void
take_bytes(struct uc_fabric_op *told, const void *bytes, size_t length_bytes)
{
    struct feed *feed = (struct feed *)(void *)told;
    uint64_t offset = feed->op.op.offset_bytes + feed->told_bytes;

    feed->wrong_bytes += length_bytes - pattern_match(bytes, feed->seed, offset, length_bytes);
    feed->told_bytes += length_bytes;
    feed->done_first = feed->done_first || feed->op.done_count > 0 ||
                       (feed->before != NULL && feed->before->told_bytes < length_of(feed->before));
}

static void
feed_init(struct feed *feed, uint64_t offset, uint8_t seed)
{
    op_init(&feed->op, UC_FABRIC_READ, offset, 0, 0);
    feed->op.op.on_bytes = take_bytes;
    feed->told_bytes = 0;
    feed->wrong_bytes = 0;
    feed->seed = seed;
    feed->done_first = false;
    feed->before = NULL;
}

/* Where the provider feeds bytes: every byte, in order, before on_done; elsewhere none at all. */
START_TEST(bytes_of_a_read_are_told_in_order_before_its_end)
{
    static struct feed feed;
    size_t place = LOCAL_BYTES / 2;
    uint64_t total = 0;

    target_fill(0, 0, 4);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    feed_init(&feed, REMOTE_OFFSET, 4);
    for (size_t idx = 0; idx < shapes[_i].piece_count; idx++) {
        place -= piece_bytes(_i, idx) + GAP_BYTES;
        op_add_piece(&feed.op, place, piece_bytes(_i, idx));
        total += piece_bytes(_i, idx);
    }
    ck_assert_int_eq(op_run(&link0, &feed.op), UC_OK);
    ck_assert_uint_eq(feed.told_bytes, initiator.caps.feeds_bytes ? total : 0);
    ck_assert_uint_eq(feed.wrong_bytes, 0);
    ck_assert(!feed.done_first);
    link_close(&link0);
}
END_TEST

START_TEST(bytes_of_one_read_are_told_before_those_of_the_next)
{
    enum {
        READ_COUNT = 40,
        READ_BYTES = 50000,
    };
    static struct feed feeds[READ_COUNT];

    target_fill(0, 0, 5);
    link_open(&link0, UC_FABRIC_READ_ONLY);
    for (size_t idx = 0; idx < READ_COUNT; idx++) {
        feed_init(&feeds[idx], idx * 1001, 5);
        op_add_piece(&feeds[idx].op, idx * READ_BYTES, READ_BYTES);
        feeds[idx].before = idx > 0 ? &feeds[idx - 1] : NULL;
        feeds[idx].op.op.next = idx + 1 < READ_COUNT ? &feeds[idx + 1].op.op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &feeds[0].op.op), UC_OK);
    wait_until(feeds[READ_COUNT - 1].op.done_count > 0);
    for (size_t idx = 0; idx < READ_COUNT; idx++) {
        ck_assert_int_eq(feeds[idx].op.status, UC_OK);
        ck_assert_uint_eq(feeds[idx].told_bytes, initiator.caps.feeds_bytes ? READ_BYTES : 0);
        ck_assert_uint_eq(feeds[idx].wrong_bytes, 0);
        ck_assert(!feeds[idx].done_first);
    }
    link_close(&link0);
}
END_TEST

static void
write_shape(int shape, uint8_t seed)
{
    static uint8_t seen[2 << 20];
    static struct test_op flush;
    uint64_t offset = REMOTE_OFFSET;
    size_t total;

    op_init(&op, UC_FABRIC_WRITE, REMOTE_OFFSET, 0, 0);
    memset(initiator.memory, FILL, LOCAL_BYTES);
    total = lay_out(shape);
    ck_assert_uint_lt(total + 1, sizeof(seen));
    for (size_t idx = 0; idx < shapes[shape].piece_count; idx++) {
        for (size_t at = 0; at < piece_bytes(shape, idx); at++) {
            ((uint8_t *)op.pieces[idx].address)[at] = pattern(seed, offset);
            offset++;
        }
    }
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    op_init(&flush, UC_FABRIC_FLUSH, 0, 0, 0);
    ck_assert_int_eq(op_run(&link0, &flush), UC_OK);

    target_peek(0, 0, REMOTE_OFFSET - 1, seen, total + 2);
    ck_assert_int_eq(seen[0], 0);
    ck_assert_uint_eq(pattern_match(&seen[1], seed, REMOTE_OFFSET, total), total);
    ck_assert_int_eq(seen[1 + total], 0);
}

/* Twice: a provider may take another way once the target knows the memory. */
START_TEST(write_gathers_pieces_in_order)
{
    link_open(&link0, UC_FABRIC_READ_WRITE);
    write_shape(_i, 8);
    write_shape(_i, 9);
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
    tcase_add_loop_test(tcase, bytes_of_a_read_are_told_in_order_before_its_end, 0, count);
    tcase_add_test(tcase, bytes_of_one_read_are_told_before_those_of_the_next);
    tcase_add_loop_test(tcase, write_gathers_pieces_in_order, 0, count);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
