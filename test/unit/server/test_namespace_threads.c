/* SPDX-License-Identifier: Apache-2.0 */

/* One control thread that opens, closes and commits against one fabric thread that wants to write. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "server/bracket.h"
#include "server/grant.h"
#include "server/namespace.h"

enum {
    ROUNDS = 20000,
    LOOKS = 100, /* long enough for a commit to be announced meanwhile */
    ROUNDS_MAX = 5000000,
    HOLDS_WANTED = 1000,
    BLOCK_BYTES = 512
};

static struct uc_namespace *ns;
static struct uc_scratch scratch;
static struct uc_counters counters;
static atomic_uint_fast64_t offered;   /* generation that the writer tries; 0 = stop */
static atomic_uint_fast64_t committed; /* generation that is visible now */
static atomic_uint_fast64_t held_count;

static void *
write_on_and_on(void *argument)
{
    uint64_t generation;

    (void)argument;
    while ((generation = atomic_load_explicit(&offered, memory_order_acquire)) != 0) {
        if (uc_namespace_hold(ns, UC_FABRIC_READ_WRITE, 0, 0, BLOCK_BYTES, generation,
                    UC_FABRIC_WRITE) != UC_OK) {
            continue;
        }
        /* Held: from here to the release this generation must not be visible. */
        for (int look = 0; look < LOOKS; look++) {
            ck_assert_uint_ne(atomic_load_explicit(&committed, memory_order_acquire), generation);
        }
        uc_arena_slot(ns->arena, 0)[0]++;
        atomic_fetch_add_explicit(&held_count, 1, memory_order_relaxed);
        uc_namespace_release(ns, 0, 0);
    }
    return NULL;
}

static void
setup(void)
{
    struct uc_namespace_config config = {
            .name = "test",
            .policy = "lru",
            .block_bytes = BLOCK_BYTES,
            .capacity_blocks = 1,
            .region_bytes = 1 << 20,
            .align_bytes = 64,
    };
    struct uc_clock clock = uc_clock_monotonic();

    counters = (struct uc_counters){0};
    ck_assert_int_eq(uc_namespace_create(&config, &clock, &ns), UC_OK);
}

static void
teardown(void)
{
    uc_namespace_destroy(ns);
    uc_scratch_fini(&scratch);
}

/* Whether the two threads have run against each other at all, on a machine that is busy. */
static bool
has_met(uint32_t round)
{
    return round >= ROUNDS_MAX ||
           atomic_load_explicit(&held_count, memory_order_relaxed) >= HOLDS_WANTED;
}

START_TEST(no_write_is_held_on_a_visible_block)
{
    static const struct uc_grant_verdict success = {.success = true};
    struct uc_grant_scope scope = {.ns = ns, .scratch = &scratch, .counters = &counters};
    struct uc_written_range range = {0, BLOCK_BYTES, BLOCK_BYTES};
    uint8_t packed[UC_WRITTEN_BYTES];
    uint64_t visible_count = 0;
    uint64_t refused_count = 0;
    pthread_t thread;

    uc_written_range_put(packed, &range);
    atomic_store_explicit(&offered, UINT64_MAX, memory_order_release);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_on_and_on, NULL), 0);
    for (uint32_t round = 0; round < ROUNDS || !has_met(round); round++) {
        struct uc_block_id id = {{0}};
        struct uc_bracket *bracket;
        struct uc_grant *grant;
        uint64_t generation;

        memcpy(id.bytes, &round, sizeof(round));
        if (uc_grant_alloc(&scope, round, &id, 1, NULL, &grant) != UC_OK) {
            continue; /* the slot is parked while the writer holds it */
        }
        generation = grant->writes[0].generation;
        ck_assert_int_eq(uc_bracket_open(ns, grant, 1, 0, 1, &bracket), UC_OK);
        atomic_store_explicit(&offered, generation, memory_order_release);
        ck_assert_int_eq(uc_bracket_record(ns, bracket, packed, 1), UC_OK);
        uc_bracket_close(ns, bracket);
        if (uc_grant_conclude(&scope, grant, &success) == UC_OK) {
            atomic_store_explicit(&committed, generation, memory_order_release);
            visible_count++;
        } else {
            refused_count++;
        }
    }
    atomic_store_explicit(&offered, 0, memory_order_release);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_gt(visible_count, 0);
    ck_assert_uint_ge(atomic_load_explicit(&held_count, memory_order_relaxed), HOLDS_WANTED);
    ck_assert_uint_eq(counters.released_blocks, refused_count);
    ck_assert_uint_eq(uc_cache_buffer_stats(ns->index).draining, 0);
    ck_assert_uint_eq(uc_cache_buffer_stats(ns->index).reserved, 0);
}
END_TEST

/* a write that is being served when its bracket closes keeps the block from showing. */
START_TEST(commit_under_a_served_write_fails_and_parks_the_slot)
{
    static const struct uc_grant_verdict success = {.success = true};
    struct uc_grant_scope scope = {.ns = ns, .scratch = &scratch, .counters = &counters};
    struct uc_written_range range = {0, BLOCK_BYTES, BLOCK_BYTES};
    uint8_t packed[UC_WRITTEN_BYTES];
    struct uc_block_id id = {{1}};
    struct uc_bracket *bracket;
    struct uc_grant *grant;
    uint64_t generation;

    uc_written_range_put(packed, &range);
    ck_assert_int_eq(uc_grant_alloc(&scope, 1, &id, 1, NULL, &grant), UC_OK);
    generation = grant->writes[0].generation;
    ck_assert_int_eq(uc_bracket_open(ns, grant, 1, 0, 1, &bracket), UC_OK);
    ck_assert_int_eq(
            uc_namespace_hold(ns, UC_FABRIC_READ_WRITE, 0, 0, 8, generation, UC_FABRIC_WRITE),
            UC_OK);
    ck_assert_int_eq(uc_bracket_record(ns, bracket, packed, 1), UC_OK);
    uc_bracket_close(ns, bracket);
    ck_assert_int_eq(
            uc_namespace_hold(ns, UC_FABRIC_READ_WRITE, 0, 0, 8, generation, UC_FABRIC_WRITE),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_grant_conclude(&scope, grant, &success), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(uc_cache_buffer_stats(ns->index).draining, 1);
    ck_assert_int_eq(uc_grant_alloc(&scope, 2, &id, 1, NULL, &grant), UC_ERR_NO_SPACE);
    uc_namespace_release(ns, 0, 0);
    ck_assert_uint_eq(uc_cache_buffer_stats(ns->index).draining, 0);
    ck_assert_uint_eq(uc_cache_buffer_stats(ns->index).free, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("server/namespace threads");
    TCase *tcase = tcase_create("threads");
    SRunner *runner;
    int failed_count;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, commit_under_a_served_write_fails_and_parks_the_slot);
    tcase_add_test(tcase, no_write_is_held_on_a_visible_block);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
