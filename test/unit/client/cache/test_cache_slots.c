/* SPDX-License-Identifier: Apache-2.0 */

/* The cache store in one process: coverage, damage, stale and foreign tokens, parked slots. */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ucm/clock.h>

#include "client/stores/cache/payload.h"
#include "client/stores/cache/segment.h"
#include "client/stores/cache/slots.h"
#include "test/unit/client/cache/cache_env.h"

static struct uc_store *store;
static const struct uc_token_addressed_ops *ops;
static struct uc_cache_segment *peer; /* another attachment to the same segment */
static uint8_t memory[ENV_BLOCKS * ENV_BLOCK_BYTES];

static void
start(void)
{
    struct env_options options = {.domain = env_domain()};

    store = env_store(&options);
    ops = uc_store_as_token_addressed(store);
    ck_assert_int_eq(uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &peer), UC_OK);
}

static void
stop(void)
{
    uc_cache_segment_close(peer);
    uc_cache_store_destroy(store);
}

static struct uc_token *
alloc(unsigned number)
{
    struct uc_block_id id = env_id(number);
    struct uc_token *token = NULL;

    ck_assert_msg(ops->alloc(store, &id, 1, NULL, &token) == UC_OK, "%s", uc_last_error());
    return token;
}

static struct uc_token *
pin(unsigned number)
{
    struct uc_block_id id = env_id(number);
    struct uc_token *token = NULL;

    ck_assert_msg(ops->pin(store, &id, 1, &token) == UC_OK, "%s", uc_last_error());
    return token;
}

static enum uc_status
move_part(
        bool is_load, const struct uc_token *token, uint64_t offset, uint64_t size, uint64_t job_id)
{
    void *pointer = memory + offset;
    struct uc_block_payload payload = {
            .pointers = &pointer, .sizes = &size, .pointer_count = 1, .block_offset = offset};
    struct uc_job_descriptor job = {.block_ids = token->keys, .payloads = &payload, .count = 1};
    enum uc_status status = is_load ? ops->load(store, job_id, &job, token, 0)
                                    : ops->dump(store, job_id, &job, token, 0);

    return status != UC_OK ? status : env_wait(store, job_id, NULL);
}

/* */
START_TEST(block_with_a_hole_does_not_become_visible)
{
    struct uc_token *token = alloc(1);

    ck_assert_int_eq(move_part(false, token, 0, 100, 900), UC_OK);
    ck_assert_int_eq(move_part(false, token, 200, ENV_BLOCK_BYTES - 200, 901), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_ERR_INVALID_PARAM);
    ck_assert(!env_is_hit(store, 1));
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS);
    uc_token_destroy(token);
    env_put(store, store, 1);
    ck_assert(env_can_get(store, store, 1));
}
END_TEST

/* parts in any order, some twice */
START_TEST(block_written_in_parts_is_whole)
{
    static const struct {
        uint64_t offset;
        uint64_t size;
    } parts[] = {{4096, 4096}, {0, 1000}, {0, 1000}, {3000, 1096}, {500, 2600}};
    struct uc_token *token = alloc(1);

    env_fill(1, memory);
    for (size_t idx = 0; idx < sizeof(parts) / sizeof(parts[0]); idx++) {
        ck_assert_int_eq(
                move_part(false, token, parts[idx].offset, parts[idx].size, 900 + idx), UC_OK);
    }
    ck_assert_msg(ops->commit(store, token, NULL, true) == UC_OK, "%s", uc_last_error());
    uc_token_destroy(token);
    ck_assert(env_can_get(store, store, 1));
}
END_TEST

/* */
START_TEST(range_beyond_the_block_fails_it)
{
    struct uc_token *token = alloc(1);

    ck_assert_int_eq(move_part(false, token, 1, ENV_BLOCK_BYTES, 900), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_OK);
    uc_token_destroy(token);
    env_put(store, store, 1);
    token = pin(1);
    ck_assert_int_eq(move_part(true, token, ENV_BLOCK_BYTES, 1, 901), UC_ERR_INVALID_PARAM);
    ops->unpin(store, token);
    uc_token_destroy(token);
    ck_assert(env_is_hit(store, 1));
}
END_TEST

/* V-39: the checksum finds it, other lookups see it */
START_TEST(damaged_block_is_withdrawn)
{
    struct uc_token *token;
    struct uc_cache_place place;

    env_put(store, store, 1);
    token = pin(1);
    place = uc_cache_payload_key(token->payload, 0);
    uc_cache_segment_bytes(peer, place.slot)[77] ^= 1;
    ck_assert_int_eq(env_move(store, true, token, memory, NULL), UC_ERR_NOT_FOUND);
    ck_assert(!env_is_hit(store, 1));
    ops->unpin(store, token);
    uc_token_destroy(token);
    ck_assert(!env_is_hit(store, 1));
    env_put(store, store, 1);
    ck_assert(env_can_get(store, store, 1));
}
END_TEST

/* while held, a readmission's dump fails with Retry */
START_TEST(damaged_block_in_use_is_not_written_again)
{
    struct uc_token *reader;
    struct uc_token *writer;

    env_put(store, store, 1);
    reader = pin(1);
    uc_cache_segment_bytes(peer, uc_cache_payload_key(reader->payload, 0).slot)[0] ^= 1;
    ck_assert_int_eq(env_move(store, true, reader, memory, NULL), UC_ERR_NOT_FOUND);
    writer = alloc(1);
    env_fill(1, memory);
    ck_assert_int_eq(env_move(store, false, writer, memory, NULL), UC_ERR_RETRY);
    ck_assert_int_eq(ops->commit(store, writer, NULL, false), UC_OK);
    ops->unpin(store, reader);
    uc_token_destroy(writer);
    uc_token_destroy(reader);
    env_put(store, store, 1);
    ck_assert(env_can_get(store, store, 1));
}
END_TEST

/* G17 */
START_TEST(stale_token_moves_nothing)
{
    struct uc_token *old = alloc(1);

    ck_assert_int_eq(ops->commit(store, old, NULL, false), UC_OK);
    for (unsigned number = 10; number < 10 + ENV_BLOCKS; number++) {
        env_put(store, store, number);
    }
    memset(memory, 0xff, ENV_BLOCK_BYTES);
    ck_assert_int_eq(env_move(store, false, old, memory, NULL), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(env_move(store, true, old, memory, NULL), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(ops->commit(store, old, NULL, true), UC_ERR_NOT_FOUND); /* */
    for (unsigned number = 10; number < 10 + ENV_BLOCKS; number++) {
        ck_assert(env_can_get(store, store, number));
    }
    uc_token_destroy(old);
}
END_TEST

/* */
START_TEST(foreign_payload_is_refused)
{
    struct uc_token *good = alloc(1);
    uint8_t *bytes = malloc(good->payload_bytes);

    ck_assert_ptr_nonnull(bytes);
    for (size_t cut = 0; cut < good->payload_bytes; cut++) {
        struct uc_token bad = *good;

        bad.payload_bytes = cut;
        ck_assert_int_eq(env_move(store, false, &bad, memory, NULL), UC_ERR_INVALID_PARAM);
    }
    for (size_t at = 0; at < good->payload_bytes; at++) {
        struct uc_token bad = *good;
        enum uc_status status;

        memcpy(bytes, good->payload, good->payload_bytes);
        bytes[at] ^= 0x80;
        bad.payload = bytes;
        status = env_move(store, true, &bad, memory, NULL);
        ck_assert(status == UC_ERR_INVALID_PARAM || status == UC_ERR_NOT_FOUND);
    }
    free(bytes);
    ck_assert_int_eq(ops->commit(store, good, NULL, false), UC_OK);
    uc_token_destroy(good);
}
END_TEST

/* a second unpin of the same token takes nothing from others */
START_TEST(unpin_never_drops_below_zero)
{
    struct uc_token *token;

    env_put(store, store, 1);
    token = pin(1);
    ops->unpin(store, token);
    ops->unpin(store, token);
    ck_assert_int_eq(env_number(store, "pinned"), 0);
    uc_token_destroy(token);
    ck_assert(env_can_get(store, store, 1));
}
END_TEST

/* */
START_TEST(slot_is_parked_while_a_transfer_runs)
{
    struct uc_token *token = alloc(1);
    struct uc_cache_place place = uc_cache_payload_key(token->payload, 0);

    ck_assert_int_eq(uc_cache_slot_begin(peer, place.slot, place.generation), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_OK);
    ck_assert_int_eq(env_number(store, "draining"), 1);
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS - 1);
    ck_assert_int_eq(
            uc_cache_slot_begin(peer, place.slot, place.generation), UC_ERR_NOT_FOUND); /* */
    uc_cache_slot_end(peer, place.slot);
    ck_assert_int_eq(env_number(store, "draining"), 0);
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS);
    uc_token_destroy(token);
}
END_TEST

/* */
START_TEST(commit_under_a_transfer_is_refused)
{
    struct uc_token *token = alloc(1);
    struct uc_cache_place place = uc_cache_payload_key(token->payload, 0);

    env_fill(1, memory);
    ck_assert_int_eq(env_move(store, false, token, memory, NULL), UC_OK);
    ck_assert_int_eq(uc_cache_slot_begin(peer, place.slot, place.generation), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_ERR_INVALID_PARAM);
    ck_assert(!env_is_hit(store, 1));
    uc_cache_slot_end(peer, place.slot);
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS);
    uc_token_destroy(token);
}
END_TEST

/* an unpinned block that is still read is no victim */
START_TEST(block_that_is_still_read_is_not_evicted)
{
    struct uc_token *token;
    struct uc_cache_place place;

    env_put(store, store, 1);
    token = pin(1);
    place = uc_cache_payload_key(token->payload, 0);
    ck_assert_int_eq(uc_cache_slot_begin(peer, place.slot, place.generation), UC_OK);
    ops->unpin(store, token);
    for (unsigned number = 10; number < 10 + 3 * ENV_BLOCKS; number++) {
        env_put(store, store, number);
    }
    ck_assert(env_is_hit(store, 1));
    uc_cache_slot_end(peer, place.slot);
    for (unsigned number = 30; number < 30 + 2 * ENV_BLOCKS; number++) {
        env_put(store, store, number);
    }
    ck_assert(!env_is_hit(store, 1));
    uc_token_destroy(token);
}
END_TEST

/* V-19: the success of any sharer makes the block visible, at the last commit */
START_TEST(sharers_conclude_together)
{
    struct uc_token *first = alloc(1);
    struct uc_token *second = alloc(1);

    env_fill(1, memory);
    ck_assert_int_eq(env_move(store, false, first, memory, NULL), UC_OK);
    ck_assert_int_eq(ops->commit(store, first, NULL, true), UC_OK);
    ck_assert(!env_is_hit(store, 1));
    ck_assert_int_eq(ops->commit(store, second, NULL, false), UC_OK);
    ck_assert(env_can_get(store, store, 1));
    uc_token_destroy(first);
    uc_token_destroy(second);
}
END_TEST

static enum uc_status
poll_hook(void *context, uint64_t handle)
{
    (void)handle;
    return *(enum uc_status *)context;
}

/* */
START_TEST(prerequisite_is_waited_for_within_the_deadline)
{
    static enum uc_status answer = UC_ERR_RETRY;
    struct uc_prerequisite hook = {.poll = poll_hook, .context = &answer};
    struct env_options options = {.prerequisite = &hook};
    struct uc_store *other = env_store(&options);
    const struct uc_token_addressed_ops *other_ops = uc_store_as_token_addressed(other);
    struct uc_block_id id = env_id(1);
    struct uc_token *token = NULL;
    void *pointer = memory;
    uint64_t size = ENV_BLOCK_BYTES;
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &size, .pointer_count = 1};
    struct uc_job_descriptor job = {.block_ids = &id,
            .payloads = &payload,
            .count = 1,
            .prerequisite_handle = 7,
            .timeout_ms = 20};

    ck_assert_int_eq(other_ops->alloc(other, &id, 1, NULL, &token), UC_OK);
    ck_assert_int_eq(other_ops->dump(other, 1, &job, token, 0), UC_OK);
    ck_assert_int_eq(env_wait(other, 1, NULL), UC_ERR_TIMEOUT);
    ck_assert_int_eq(other_ops->commit(other, token, NULL, true), UC_ERR_INVALID_PARAM);
    uc_token_destroy(token);
    uc_cache_store_destroy(other);
    token = alloc(1);
    ck_assert_int_eq(ops->dump(store, 1, &job, token, 0), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_OK);
    uc_token_destroy(token);
}
END_TEST

/* @return whether all pages of all segments of this process are there */
static bool
is_mapped(void)
{
    FILE *smaps = fopen("/proc/self/smaps", "r");
    unsigned long long size = 0;
    unsigned long long resident = 0;
    unsigned long long sum = 0;
    unsigned long long resident_sum = 0;
    bool is_ours = false;
    char line[512];

    ck_assert_ptr_nonnull(smaps);
    while (fgets(line, sizeof(line), smaps) != NULL) {
        if (sscanf(line, "%llx-%llx ", &size, &resident) == 2) { /* the head of a mapping */
            is_ours = strstr(line, "/dev/shm/") != NULL;
        } else if (is_ours && sscanf(line, "Size: %llu", &size) == 1) {
            sum += size;
        } else if (is_ours && sscanf(line, "Rss: %llu", &resident) == 1) {
            resident_sum += resident;
        }
    }
    (void)fclose(smaps);
    ck_assert_uint_gt(sum, 0);
    return resident_sum == sum;
}

/* The first block of a slot finds its memory ready, as every later one does. */
START_TEST(idle_threads_map_the_segment_ahead)
{
    struct env_options options = {.domain = env_domain(), .capacity_blocks = 1024};
    uint64_t until_ns = uc_clock_now_ns() + (uint64_t)ENV_WAIT_MS * 1000000u;
    struct uc_store *big;
    void *page;

    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    if (madvise(page, 4096, MADV_POPULATE_WRITE) == 0) { /* Linux 5.14 */
        big = env_store(&options);
        while (!is_mapped() && uc_clock_now_ns() < until_ns) {
            (void)sched_yield();
        }
        ck_assert(is_mapped());
        env_put(big, big, 1);
        ck_assert(env_can_get(big, big, 1));
        uc_cache_store_destroy(big);
    }
    (void)munmap(page, 4096);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_slots");
    TCase *tcase = tcase_create("slots");
    TCase *alone = tcase_create("alone");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, block_with_a_hole_does_not_become_visible);
    tcase_add_test(tcase, block_written_in_parts_is_whole);
    tcase_add_test(tcase, range_beyond_the_block_fails_it);
    tcase_add_test(tcase, damaged_block_is_withdrawn);
    tcase_add_test(tcase, damaged_block_in_use_is_not_written_again);
    tcase_add_test(tcase, stale_token_moves_nothing);
    tcase_add_test(tcase, foreign_payload_is_refused);
    tcase_add_test(tcase, unpin_never_drops_below_zero);
    tcase_add_test(tcase, slot_is_parked_while_a_transfer_runs);
    tcase_add_test(tcase, commit_under_a_transfer_is_refused);
    tcase_add_test(tcase, block_that_is_still_read_is_not_evicted);
    tcase_add_test(tcase, sharers_conclude_together);
    tcase_add_test(tcase, prerequisite_is_waited_for_within_the_deadline);
    suite_add_tcase(suite, tcase);
    tcase_add_test(alone, idle_threads_map_the_segment_ahead);
    suite_add_tcase(suite, alone);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
