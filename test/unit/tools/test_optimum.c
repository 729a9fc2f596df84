/* SPDX-License-Identifier: Apache-2.0 */

/* The optimum against a search through everything that a cache could hold. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tools/bench/optimum.h"

enum {
    BLOCKS = 9, /* a set of them is a number below 1 << BLOCKS */
    SETS = 1 << BLOCKS,
    REQUESTS = 12,
    TREES = 60
};

static struct uc_trace trace;
static uint64_t state;

static unsigned
draw(unsigned count)
{
    state += 0x9e3779b97f4a7c15ull;
    return (unsigned)(((state ^ state >> 31) * 0xbf58476d1ce4e5b9ull >> 33) % count);
}

static void
teardown(void)
{
    uc_trace_fini(&trace);
}

/* Chains of a random tree: the parent of a block is some block before it, or none. */
static void
make_trace(uint64_t seed)
{
    unsigned parents[BLOCKS];

    state = seed;
    for (unsigned block = 0; block < BLOCKS; block++) {
        parents[block] = draw(block + 1); /* itself = none */
    }
    for (unsigned idx = 0; idx < REQUESTS; idx++) {
        struct uc_trace_request request = {0};
        uint64_t chain[BLOCKS];
        uint64_t ids[BLOCKS];
        unsigned block = draw(BLOCKS);
        size_t count = 0;

        for (; parents[block] != block; block = parents[block]) {
            chain[count++] = block;
        }
        chain[count++] = block;
        for (size_t at = 0; at < count; at++) {
            ids[at] = 1000 - chain[count - 1 - at]; /* ids have no order */
        }
        ck_assert_int_eq(uc_trace_add(&trace, &request, ids, count), UC_OK);
    }
}

static unsigned
bit_of(uint64_t id)
{
    return 1u << (1000 - id);
}

static unsigned
size_of(unsigned set)
{
    unsigned size = 0;

    for (; set != 0; set &= set - 1) {
        size++;
    }
    return size;
}

static int
best_from(size_t at, unsigned set, unsigned capacity, int memory[REQUESTS][SETS])
{
    const struct uc_trace_request *request;
    const uint64_t *ids;
    unsigned all = set;
    int best = 0;
    int hits = 0;

    if (at == trace.request_count) {
        return 0;
    }
    if (memory[at][set] >= 0) {
        return memory[at][set];
    }

    request = &trace.requests[at];
    ids = uc_trace_hash_ids(&trace, request);
    while ((size_t)hits < request->count && (set & bit_of(ids[hits])) != 0) {
        hits++;
    }
    for (size_t idx = 0; idx < request->count; idx++) {
        all |= bit_of(ids[idx]);
    }
    /* Every subset of what was there and what came. */
    for (unsigned next = all;; next = (next - 1) & all) {
        if (size_of(next) <= capacity) {
            int rest = best_from(at + 1, next, capacity, memory);

            best = rest > best ? rest : best;
        }
        if (next == 0) {
            break;
        }
    }

    memory[at][set] = hits + best;
    return hits + best;
}

START_TEST(optimum_is_what_a_search_finds)
{
    static int memory[REQUESTS][SETS];
    struct uc_optimum *optimum;

    make_trace((uint64_t)_i + 1);
    ck_assert_int_eq(uc_optimum_create(&trace, &optimum), UC_OK);
    for (unsigned capacity = 1; capacity <= 4; capacity++) {
        memset(memory, -1, sizeof(memory));
        ck_assert_int_eq(
                (int)uc_optimum_prefix_hits(optimum, capacity), best_from(0, 0, capacity, memory));
    }
    uc_optimum_destroy(optimum);
}
END_TEST

START_TEST(room_for_all_hits_all_but_the_first_time)
{
    struct uc_optimum *optimum;

    ck_assert_int_eq(uc_trace_generate(1, 3000, &trace), UC_OK);
    ck_assert_int_eq(uc_optimum_create(&trace, &optimum), UC_OK);
    ck_assert_uint_eq(uc_optimum_prefix_hits(optimum, 100000), 32026); /* as lru with that room */
    ck_assert_uint_eq(uc_optimum_prefix_hits(optimum, 100000), 32026); /* runs are independent */
    uc_optimum_destroy(optimum);
}
END_TEST

START_TEST(empty_requests_do_no_harm)
{
    struct uc_trace_request request = {0};
    struct uc_optimum *optimum;

    ck_assert_int_eq(uc_trace_add(&trace, &request, NULL, 0), UC_OK);
    ck_assert_int_eq(uc_optimum_create(&trace, &optimum), UC_OK);
    ck_assert_uint_eq(uc_optimum_prefix_hits(optimum, 1), 0);
    uc_optimum_destroy(optimum);
    uc_optimum_destroy(NULL);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("optimum");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, optimum_is_what_a_search_finds, 0, TREES);
    tcase_add_test(tcase, room_for_all_hits_all_but_the_first_time);
    tcase_add_test(tcase, empty_requests_do_no_harm);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
