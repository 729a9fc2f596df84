/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Backs the promise of policy.h and: data threads begin and end transfers while the control
 * thread reserves, commits, pins and evicts. Worth most under ThreadSanitizer.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "test/unit/core/cache_fixture.h"

enum {
    DATA_THREADS = 3,
    CAPACITY = 8,
    BLOCKS = 24,
    ROUNDS = 20000,
    CONTENT_WORDS = 8
};

/* What a token tells a data thread about one slot, and the bytes in that slot. */
struct place {
    _Atomic uint64_t generation;
    uint64_t content
            [CONTENT_WORDS]; /* of whoever holds a transfer, or the slot while it is RESERVED */
};

static struct place places[CAPACITY];
static atomic_bool stop;

struct reader {
    _Atomic uint64_t begun;
    uint64_t torn; /* owned by the thread until it is joined */
};

static void *
read_slots(void *arg)
{
    struct reader *reader = arg;
    uint32_t slot = 0;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        uint64_t generation = atomic_load_explicit(&places[slot].generation, memory_order_acquire);

        if (generation != 0 && uc_cache_buffer_transfer_begin(buffer, slot, generation) == UC_OK) {
            (void)atomic_fetch_add_explicit(&reader->begun, 1, memory_order_relaxed);
            for (size_t idx = 1; idx < CONTENT_WORDS; idx++) {
                reader->torn += places[slot].content[idx] != places[slot].content[0] ? 1 : 0;
            }
            uc_cache_buffer_transfer_end(buffer, slot);
        }
        slot = (slot + 1) % CAPACITY;
    }

    return NULL;
}

/* A slot under its new owner: nobody else may touch its bytes until it is published. */
static void
write_slot(uint32_t slot, uint64_t value)
{
    for (size_t idx = 0; idx < CONTENT_WORDS; idx++) {
        places[slot].content[idx] = value;
    }
}

static void
churn(uint64_t round)
{
    char letters[2] = {(char)('A' + round % BLOCKS), '\0'};

    /* The generation travels before the commit, so that RESERVED slots are tried too. */
    if (reserve(letters, round % 3 == 0 ? 1 : NO_TTL) == UC_OK) {
        if (slots[0].admission == UC_CACHE_NEWCOMER) {
            write_slot(slots[0].slot, slots[0].generation);
            atomic_store_explicit(
                    &places[slots[0].slot].generation, slots[0].generation, memory_order_release);
        }
        (void)commit(letters, round % 7 != 0); /* may meet a transfer: then it is dropped */
    }
    if (round % 2 == 0 && pin(letters) == UC_OK) {
        unpin(letters);
    }
    if (round % 16 == 0) {
        now_ms++;
    }
}

static void
check_settled(void)
{
    struct uc_cache_stats now = stats();

    ck_assert_uint_eq(now.draining, 0);
    ck_assert_uint_eq(now.reserved, 0);
    ck_assert_uint_eq(now.pinned, 0);
    ck_assert_uint_eq(now.blocks, now.evictable);
    ck_assert_uint_eq(now.free + now.evictable, CAPACITY);
}

/* Whether every data thread has met the control thread at work. */
static bool
all_have_begun(struct reader *readers)
{
    for (size_t idx = 0; idx < DATA_THREADS; idx++) {
        if (atomic_load_explicit(&readers[idx].begun, memory_order_relaxed) == 0) {
            return false;
        }
    }
    return true;
}

/* */
START_TEST(transfers_may_run_beside_the_control_thread)
{
    static struct reader readers[DATA_THREADS];
    pthread_t threads[DATA_THREADS];

    make_cache(CAPACITY);
    for (size_t idx = 0; idx < DATA_THREADS; idx++) {
        ck_assert_int_eq(pthread_create(&threads[idx], NULL, read_slots, &readers[idx]), 0);
    }
    for (uint64_t round = 0; round < ROUNDS || !all_have_begun(readers); round++) {
        churn(round);
    }
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (size_t idx = 0; idx < DATA_THREADS; idx++) {
        ck_assert_int_eq(pthread_join(threads[idx], NULL), 0);
        ck_assert_uint_eq(
                readers[idx].torn, 0); /* no slot changes hands under a transfer */
    }

    /* Every transfer has ended: the counters have found their way back. */
    check_settled();
    drop_cache();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_threads");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, transfers_may_run_beside_the_control_thread);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
