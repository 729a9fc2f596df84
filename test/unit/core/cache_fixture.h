/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file cache_fixture.h
 * One CacheBuffer on a clock that the case moves. Blocks are named by letters, as in section 20 of
 * core/CONTRACT.md; a list of blocks is a string. One thread.
 */

#ifndef UC_TEST_CACHE_FIXTURE_H
#define UC_TEST_CACHE_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/cache/cache_buffer.h"

#define NO_TTL UINT64_MAX

enum {
    LIST_MAX = 64
};

static struct uc_cache_buffer *buffer;
static uint64_t now_ms;
static struct uc_cache_slot slots[LIST_MAX];     /* of the last reserve or pin */
static enum uc_cache_outcome outcomes[LIST_MAX]; /* of the last commit */
static char evicted[LIST_MAX + 1];               /* letters, by the last reserve */

static inline uint64_t
fixture_now_ms(void *context)
{
    (void)context;
    return now_ms;
}

static inline struct uc_block_id
block(char letter)
{
    struct uc_block_id id = {{(uint8_t)letter}};

    return id;
}

static inline size_t
blocks(const char *letters, struct uc_block_id *ids)
{
    size_t count = strlen(letters);

    ck_assert_uint_le(count, LIST_MAX);
    for (size_t idx = 0; idx < count; idx++) {
        ids[idx] = block(letters[idx]);
    }
    return count;
}

static inline void
make_cache_with(size_t capacity, const struct uc_policy_ops *ops)
{
    struct uc_cache_config config = {
            .capacity = capacity,
            .ops = ops,
            .clock = {.now_ms = fixture_now_ms},
    };

    now_ms = 0;
    ck_assert_int_eq(uc_cache_buffer_create(&config, &buffer), UC_OK);
}

static inline void
make_cache(size_t capacity)
{
    make_cache_with(capacity, NULL);
}

static inline void
drop_cache(void)
{
    uc_cache_buffer_destroy(buffer);
    buffer = NULL;
}

static inline enum uc_status
reserve(const char *letters, uint64_t ttl_ms)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_block_id ids[LIST_MAX];
    struct uc_block_id victims[LIST_MAX];
    size_t victim_count = 0;
    enum uc_status status;

    if (ttl_ms != NO_TTL) {
        context.present = UC_REQUEST_TTL;
        context.ttl_ms = ttl_ms;
    }
    status = uc_cache_buffer_reserve(
            buffer, ids, blocks(letters, ids), &context, NULL, slots, victims, &victim_count);
    for (size_t idx = 0; idx < victim_count; idx++) {
        evicted[idx] = (char)victims[idx].bytes[0];
    }
    evicted[victim_count] = '\0';
    return status;
}

static inline enum uc_status
commit(const char *letters, bool success)
{
    struct uc_block_id ids[LIST_MAX];

    return uc_cache_buffer_commit(buffer, ids, blocks(letters, ids), success, outcomes);
}

/* Reserve and commit, which must both work. @return what was evicted */
static inline const char *
admit(const char *letters, uint64_t ttl_ms)
{
    ck_assert_int_eq(reserve(letters, ttl_ms), UC_OK);
    ck_assert_int_eq(commit(letters, true), UC_OK);
    return evicted;
}

static inline enum uc_status
pin(const char *letters)
{
    struct uc_block_id ids[LIST_MAX];

    return uc_cache_buffer_pin(buffer, ids, blocks(letters, ids), slots);
}

static inline void
unpin(const char *letters)
{
    struct uc_block_id ids[LIST_MAX];

    uc_cache_buffer_unpin(buffer, ids, blocks(letters, ids));
}

static inline void
touch(const char *letters, uint64_t ttl_ms)
{
    struct uc_request_context context = uc_request_context_init("r");
    struct uc_block_id ids[LIST_MAX];

    if (ttl_ms != NO_TTL) {
        context.present = UC_REQUEST_TTL;
        context.ttl_ms = ttl_ms;
    }
    uc_cache_buffer_touch(buffer, ids, blocks(letters, ids), &context);
}

/* "1101" for a list of four. */
static inline const char *
lookup(const char *letters)
{
    static char text[LIST_MAX + 1];
    struct uc_block_id ids[LIST_MAX];
    uint8_t hits[LIST_MAX];
    size_t count = blocks(letters, ids);

    uc_cache_buffer_lookup(buffer, ids, count, hits);
    for (size_t idx = 0; idx < count; idx++) {
        text[idx] = hits[idx] != 0 ? '1' : '0';
    }
    text[count] = '\0';
    return text;
}

/* A lookup at that time. */
static inline const char *
lookup_at(uint64_t time_ms, const char *letters)
{
    now_ms = time_ms;
    return lookup(letters);
}

static inline struct uc_cache_info
peek(char letter)
{
    struct uc_block_id id = block(letter);

    return uc_cache_buffer_peek(buffer, &id);
}

static inline struct uc_cache_stats
stats(void)
{
    return uc_cache_buffer_stats(buffer);
}

static inline int
run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif /* UC_TEST_CACHE_FIXTURE_H */
