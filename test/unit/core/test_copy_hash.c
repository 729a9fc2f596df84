/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/base/copy_hash.h"

enum {
    ROOM = 192 * 1024,
    GUARD = 64,
    MARK = 0xa5,
    ROUNDS = 2000
};

static uint8_t *source;
static uint8_t *target;

static void
setup(void)
{
    uint64_t state = 88172645463325252u;

    source = malloc(ROOM + 2 * GUARD);
    target = malloc(ROOM + 2 * GUARD);
    ck_assert(source != NULL && target != NULL);
    for (size_t idx = 0; idx < ROOM + 2 * GUARD; idx++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        source[idx] = (uint8_t)state;
    }
}

static void
teardown(void)
{
    free(source);
    free(target);
}

/* Around every bound of the implementation: a line, a page, a piece, from where on it streams. */
static const size_t lengths[] = {0, 1, 63, 64, 65, 4095, 4096, 8191, 8192, 16384, 32767, 32768,
        32769, 32831, 40959, 40960, 49152, 65536, 65599, 98304, 131072, 131135, ROOM};

static const struct {
    size_t from;
    size_t to;
} offsets[] = {{0, 0}, {1, 0}, {0, 1}, {17, 33}, {63, 16}, {5, 5}, {48, 63}};

#define LENGTH_COUNT (sizeof(lengths) / sizeof(lengths[0]))
#define OFFSET_COUNT (sizeof(offsets) / sizeof(offsets[0]))

/* The target holds these bytes of the source, and around them nothing was touched. */
static void
assert_copied(const uint8_t *to, const uint8_t *from, size_t length)
{
    ck_assert_mem_eq(to, from, length);
    for (size_t idx = 0; idx < ROOM + 2 * GUARD; idx++) {
        bool is_outside = target + idx < to || target + idx >= to + length;

        if (is_outside && target[idx] != MARK) {
            ck_abort_msg("byte %zu: touched, but not asked for", idx);
        }
    }
}

static void
add_told(void *context, const void *bytes, size_t length)
{
    uc_copy_hash_add(context, bytes, length);
}

START_TEST(copies_any_length_at_any_alignment)
{
    uint8_t *to = target + offsets[_i % (int)OFFSET_COUNT].to;
    const uint8_t *from = source + offsets[_i % (int)OFFSET_COUNT].from;
    size_t length = lengths[_i / (int)OFFSET_COUNT];

    memset(target, MARK, ROOM + 2 * GUARD);
    uc_copy_stream(to, from, length);
    assert_copied(to, from, length);
}
END_TEST

/* A long copy in runs: told of or not, each run whole and nothing around it touched. */
START_TEST(runs_of_any_length_at_any_alignment)
{
    uint8_t *to = target + offsets[_i % (int)OFFSET_COUNT].to;
    const uint8_t *from = source + offsets[_i % (int)OFFSET_COUNT].from;
    size_t length = lengths[_i / (int)OFFSET_COUNT];
    struct uc_copy_hash hash;

    memset(target, MARK, ROOM + 2 * GUARD);
    uc_copy_run(to, from, length);
    uc_copy_runs_end();
    assert_copied(to, from, length);

    memset(target, MARK, ROOM + 2 * GUARD);
    uc_copy_hash_init(&hash);
    uc_copy_run_told(to, from, length, add_told, &hash);
    uc_copy_runs_end();
    assert_copied(to, from, length);
    ck_assert_uint_eq(uc_copy_hash_sum(&hash), uc_copy_hash_of(from, length));
}
END_TEST

/* Parts of all lengths, from places in reverse; starting with each, so that sums of parts are small and large. */
START_TEST(gathers_parts_of_any_length_at_any_alignment)
{
    struct uc_copy_part parts[3 * LENGTH_COUNT];
    uint8_t *to = target + offsets[_i % (int)OFFSET_COUNT].to;
    size_t first = (size_t)_i / OFFSET_COUNT;
    size_t count = 0;
    size_t total = 0;

    for (size_t idx = first; idx < first + LENGTH_COUNT / 2; idx++, count++) {
        size_t length = lengths[idx % LENGTH_COUNT] % (ROOM / LENGTH_COUNT);

        total += length;
        parts[count] = (struct uc_copy_part){source + ROOM - total, length};
    }
    memset(target, MARK, ROOM + 2 * GUARD);
    uc_copy_gather(to, parts, count);
    for (size_t idx = 0, at = 0; idx < count; at += parts[idx++].length) {
        ck_assert_mem_eq(to + at, parts[idx].bytes, parts[idx].length);
    }
    memcpy(source, to, total); /* ends before where the parts begin */
    assert_copied(to, source, total);
}
END_TEST

START_TEST(copies_and_sums_any_length_at_any_alignment)
{
    uint8_t *to = target + offsets[_i % (int)OFFSET_COUNT].to;
    const uint8_t *from = source + offsets[_i % (int)OFFSET_COUNT].from;
    size_t length = lengths[_i / (int)OFFSET_COUNT];
    struct uc_copy_hash hash;

    memset(target, MARK, ROOM + 2 * GUARD);
    uc_copy_hash_init(&hash);
    uc_copy_hash_copy(&hash, to, from, length);
    assert_copied(to, from, length);
    ck_assert_uint_eq(uc_copy_hash_sum(&hash), uc_copy_hash_of(from, length));
}
END_TEST

/* The sum is xxh3-64, which also stands in the footers of other stores: its published value for no bytes at all. */
START_TEST(the_sum_is_xxh3)
{
    struct uc_copy_hash hash;

    uc_copy_hash_init(&hash);
    ck_assert_uint_eq(uc_copy_hash_sum(&hash), 0x2d06800538d394c2u);
    ck_assert_uint_eq(uc_copy_hash_of(source, 0), 0x2d06800538d394c2u);
}
END_TEST

/* A block whose bytes lie apart has the sum of the whole. */
START_TEST(pieces_have_the_sum_of_the_whole)
{
    struct uc_copy_hash hash;
    size_t at = 0;

    uc_copy_hash_init(&hash);
    for (size_t idx = 0; idx < LENGTH_COUNT && lengths[idx] <= ROOM - at; idx++) {
        if (idx % 3 == 0) {
            uc_copy_hash_add(&hash, source + at, lengths[idx]);
        } else {
            uc_copy_hash_copy(&hash, target + at, source + at, lengths[idx]);
        }
        at += lengths[idx];
    }
    ck_assert_uint_gt(at, ROOM / 2);
    ck_assert_uint_eq(uc_copy_hash_sum(&hash), uc_copy_hash_of(source, at));
}
END_TEST

START_TEST(every_byte_counts)
{
    uint64_t whole = uc_copy_hash_of(source, ROOM);

    for (size_t at = 0; at < ROOM; at += 1021) {
        struct uc_copy_hash hash;

        source[at] ^= 1;
        uc_copy_hash_init(&hash);
        uc_copy_hash_copy(&hash, target, source, ROOM);
        ck_assert_uint_ne(uc_copy_hash_sum(&hash), whole);
        source[at] ^= 1;
    }
}
END_TEST

static _Atomic bool is_over;

static void *
scribble(void *argument)
{
    volatile uint8_t *bytes = source;

    (void)argument;
    for (size_t at = 0; !atomic_load_explicit(&is_over, memory_order_relaxed);
            at = (at + 64) % ROOM) {
        bytes[at]++;
    }
    return NULL;
}

/* G14: whatever came is what was summed up, also while another process writes the source. */
START_TEST(the_sum_is_one_of_what_came)
{
    pthread_t thread;

    atomic_store(&is_over, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, scribble, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct uc_copy_hash hash;

        uc_copy_hash_init(&hash);
        uc_copy_hash_copy(&hash, target, source, ROOM);
        if (uc_copy_hash_sum(&hash) != uc_copy_hash_of(target, ROOM)) {
            ck_abort_msg("round %d: summed up other bytes than it copied", round);
        }
    }
    atomic_store(&is_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

static Suite *
copy_hash_suite(void)
{
    Suite *suite = suite_create("copy_hash");
    TCase *cases = tcase_create("copies");

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, copies_any_length_at_any_alignment, 0, LENGTH_COUNT * OFFSET_COUNT);
    tcase_add_loop_test(cases, runs_of_any_length_at_any_alignment, 0, LENGTH_COUNT * OFFSET_COUNT);
    tcase_add_loop_test(
            cases, gathers_parts_of_any_length_at_any_alignment, 0, LENGTH_COUNT * OFFSET_COUNT);
    tcase_add_loop_test(
            cases, copies_and_sums_any_length_at_any_alignment, 0, LENGTH_COUNT * OFFSET_COUNT);
    tcase_add_test(cases, the_sum_is_xxh3);
    tcase_add_test(cases, pieces_have_the_sum_of_the_whole);
    tcase_add_test(cases, every_byte_counts);
#ifndef __SANITIZE_THREAD__ /* it would find the race that the case is about */
    tcase_add_test(cases, the_sum_is_one_of_what_came);
#endif
    suite_add_tcase(suite, cases);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(copy_hash_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
