/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/index_cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>

#include "core/cache/cache_buffer.h"
#include "tools/bench/block_content.h"

enum {
    SAMPLE = 16384, /* blocks per measurement, if the cache holds as many */
    FILL_BATCH = 256
};

/* Names of blocks that never were in a cache. */
#define ABSENT_FIRST (1ull << 62)

struct uc_index_cache {
    struct uc_cache_buffer *buffer;
    size_t blocks;
    uint64_t *names; /* per slot: the number behind the id of its block */
    uint64_t next_name;
    uint64_t random_state;
    size_t sample; /* elements of the arrays below */
    struct uc_block_id *ids;
    uint64_t *sample_names;
    struct uc_cache_slot *slots;
    uint8_t *hits;
};

static uint64_t
no_time(void *context)
{
    (void)context;
    return 0;
}

static uint64_t
draw(struct uc_index_cache *cache)
{
    cache->random_state ^= cache->random_state << 13;
    cache->random_state ^= cache->random_state >> 7;
    cache->random_state ^= cache->random_state << 17;
    return cache->random_state;
}

static enum uc_status
allocate(struct uc_index_cache *cache)
{
    cache->names = calloc(cache->blocks, sizeof(cache->names[0]));
    cache->ids = calloc(cache->sample, sizeof(cache->ids[0]));
    cache->sample_names = calloc(cache->sample, sizeof(cache->sample_names[0]));
    cache->slots = calloc(cache->sample, sizeof(cache->slots[0]));
    cache->hits = calloc(cache->sample, sizeof(cache->hits[0]));
    if (cache->names == NULL || cache->ids == NULL || cache->sample_names == NULL ||
            cache->slots == NULL || cache->hits == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "index: no memory for the names of %zu blocks",
                cache->blocks);
    }

    return UC_OK;
}

/* Ids that the cache has never seen. */
static void
name_new_blocks(struct uc_index_cache *cache, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        cache->sample_names[idx] = cache->next_name++;
        cache->ids[idx] = uc_block_id_from_hash(cache->sample_names[idx]);
    }
}

static void
pick_present_blocks(struct uc_index_cache *cache, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        size_t slot = (size_t)((draw(cache) >> 32) * cache->blocks >> 32);

        cache->ids[idx] = uc_block_id_from_hash(cache->names[slot]);
    }
}

/* Admit the first @p count ids. @param[out] ns_out time of the calls alone */
static enum uc_status
admit(struct uc_index_cache *cache, size_t count, size_t batch, uint64_t *ns_out)
{
    uint64_t start_ns = uc_clock_now_ns();

    for (size_t first = 0; first < count; first += batch) {
        size_t part = count - first < batch ? count - first : batch;
        enum uc_status status = uc_cache_buffer_reserve(cache->buffer, cache->ids + first, part,
                NULL, NULL, cache->slots + first, NULL, NULL);

        if (status == UC_OK) {
            status = uc_cache_buffer_commit(cache->buffer, cache->ids + first, part, true, NULL);
        }
        if (status != UC_OK) {
            return status;
        }
    }
    *ns_out = uc_clock_now_ns() - start_ns;

    for (size_t idx = 0; idx < count; idx++) {
        cache->names[cache->slots[idx].slot] = cache->sample_names[idx];
    }
    return UC_OK;
}

/* A permutation of the numbers below 2^bits without order that a machine could guess. */
static uint64_t
scatter(uint64_t number, unsigned bits)
{
    uint64_t mask = (1ull << bits) - 1;

    for (unsigned round = 0; round < 3; round++) {
        number = number * 0x9e3779b97f4a7c15ull & mask; /* odd: nothing is lost */
        number ^= number >> (bits / 2 + 1);
    }
    return number;
}

/* Touch every block once. Otherwise they would leave in the order of their slots, side by side in memory. */
static void
shuffle(struct uc_index_cache *cache)
{
    size_t picked = 0;
    unsigned bits = 1;

    while (1ull << bits < cache->blocks) {
        bits++;
    }
    for (uint64_t number = 0; number < 1ull << bits; number++) {
        uint64_t slot = scatter(number, bits);

        if (slot < cache->blocks) {
            cache->ids[picked++] = uc_block_id_from_hash(cache->names[slot]);
        }
        if (picked == cache->sample) {
            uc_cache_buffer_touch(cache->buffer, cache->ids, picked, NULL);
            picked = 0;
        }
    }
    uc_cache_buffer_touch(cache->buffer, cache->ids, picked, NULL);
}

static enum uc_status
fill(struct uc_index_cache *cache)
{
    for (size_t done = 0; done < cache->blocks;) {
        size_t left = cache->blocks - done;
        size_t count = left < cache->sample ? left : cache->sample;
        enum uc_status status;
        uint64_t ns;

        name_new_blocks(cache, count);
        status = admit(cache, count, FILL_BATCH, &ns);
        if (status != UC_OK) {
            return status;
        }
        done += count;
    }

    shuffle(cache);
    return UC_OK;
}

enum uc_status
uc_index_cache_create(const char *policy, size_t blocks, struct uc_index_cache **cache_out)
{
    struct uc_index_cache *cache = calloc(1, sizeof(*cache));
    struct uc_cache_config config = {
            .capacity = blocks,
            .policy = policy,
            .clock = {.now_ms = no_time},
    };
    enum uc_status status;

    if (cache == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "index: no memory");
    }

    cache->blocks = blocks;
    cache->sample = blocks < SAMPLE ? blocks : SAMPLE;
    cache->random_state = 0x9e3779b97f4a7c15ull;
    status = allocate(cache);
    if (status == UC_OK) {
        status = uc_cache_buffer_create(&config, &cache->buffer);
    }
    if (status == UC_OK) {
        status = fill(cache);
    }
    if (status != UC_OK) {
        goto err_destroy;
    }

    *cache_out = cache;
    return UC_OK;

err_destroy:
    uc_index_cache_destroy(cache); /* copes with any part missing */
    return status;
}

void
uc_index_cache_destroy(struct uc_index_cache *cache)
{
    if (cache == NULL) {
        return;
    }

    uc_cache_buffer_destroy(cache->buffer);
    free(cache->hits);
    free(cache->slots);
    free(cache->sample_names);
    free(cache->ids);
    free(cache->names);
    free(cache);
}

size_t
uc_index_cache_memory_bytes(const struct uc_index_cache *cache)
{
    return uc_cache_buffer_stats(cache->buffer).memory_bytes;
}

static enum uc_status
look_up(struct uc_index_cache *cache, size_t batch, uint8_t want, uint64_t *ns_out,
        uint64_t *count_out)
{
    uint64_t start_ns = uc_clock_now_ns();

    for (size_t first = 0; first < cache->sample; first += batch) {
        size_t left = cache->sample - first;

        uc_cache_buffer_lookup(cache->buffer, cache->ids + first, left < batch ? left : batch,
                cache->hits + first);
    }
    *ns_out = uc_clock_now_ns() - start_ns;
    *count_out = cache->sample;

    for (size_t idx = 0; idx < cache->sample; idx++) {
        if (cache->hits[idx] != want) {
            return uc_error(UC_ERR_GENERAL, "index: a lookup answered %u", cache->hits[idx]);
        }
    }
    return UC_OK;
}

enum uc_status
uc_index_lookup_hit(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out)
{
    pick_present_blocks(cache, cache->sample);
    return look_up(cache, batch, 1, ns_out, count_out);
}

enum uc_status
uc_index_lookup_miss(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out)
{
    for (size_t idx = 0; idx < cache->sample; idx++) {
        cache->ids[idx] = uc_block_id_from_hash(ABSENT_FIRST | draw(cache) >> 2);
    }
    return look_up(cache, batch, 0, ns_out, count_out);
}

/* Free as many slots as a measurement takes, all over the memory. */
static enum uc_status
make_room(struct uc_index_cache *cache)
{
    size_t free_count = uc_cache_buffer_stats(cache->buffer).free;

    while (free_count < cache->sample) {
        size_t count = cache->sample - free_count;

        pick_present_blocks(cache, count);
        for (size_t idx = 0; idx < count; idx++) {
            struct uc_cache_info info = uc_cache_buffer_peek(cache->buffer, &cache->ids[idx]);
            enum uc_status status;

            if (info.state != UC_CACHE_VISIBLE) {
                continue; /* drawn twice */
            }
            status = uc_cache_buffer_revoke(cache->buffer, &cache->ids[idx], info.generation);
            if (status != UC_OK) {
                return status;
            }
        }
        uc_cache_buffer_lookup(cache->buffer, cache->ids, count, cache->hits); /* removes them */
        free_count = uc_cache_buffer_stats(cache->buffer).free;
    }

    return UC_OK;
}

static enum uc_status
check_evictions(const struct uc_index_cache *cache, uint64_t before, uint64_t want)
{
    uint64_t evicted = uc_cache_buffer_stats(cache->buffer).evicted_total - before;

    if (evicted != want) {
        return uc_error(UC_ERR_GENERAL, "index: %lu blocks were evicted, not %lu",
                (unsigned long)evicted, (unsigned long)want);
    }

    return UC_OK;
}

enum uc_status
uc_index_alloc_commit(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out)
{
    uint64_t before = uc_cache_buffer_stats(cache->buffer).evicted_total;
    enum uc_status status = make_room(cache);

    if (status != UC_OK) {
        return status;
    }

    name_new_blocks(cache, cache->sample);
    *count_out = cache->sample;
    status = admit(cache, cache->sample, batch, ns_out);
    return status == UC_OK ? check_evictions(cache, before, 0) : status;
}

enum uc_status
uc_index_alloc_commit_evict(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out)
{
    uint64_t before = uc_cache_buffer_stats(cache->buffer).evicted_total;
    enum uc_status status;

    name_new_blocks(cache, cache->sample);
    *count_out = cache->sample;
    status = admit(cache, cache->sample, batch, ns_out);
    return status == UC_OK ? check_evictions(cache, before, cache->sample) : status;
}

enum uc_status
uc_index_pin_unpin(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out)
{
    uint64_t start_ns;

    pick_present_blocks(cache, cache->sample);
    start_ns = uc_clock_now_ns();
    for (size_t first = 0; first < cache->sample; first += batch) {
        size_t part = cache->sample - first < batch ? cache->sample - first : batch;
        enum uc_status status =
                uc_cache_buffer_pin(cache->buffer, cache->ids + first, part, cache->slots + first);

        if (status != UC_OK) {
            return status;
        }
        uc_cache_buffer_unpin(cache->buffer, cache->ids + first, part);
    }
    *ns_out = uc_clock_now_ns() - start_ns;
    *count_out = cache->sample;
    return UC_OK;
}
