/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/block_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/huge_pages.h"

enum {
    HASH_KEY_COUNT = 5,
    FIND_CHUNK = 64 /* lines in flight at once */
};

/* slot_plus_one = 0 marks an empty bucket, so that fresh zero pages are an empty table. */
struct bucket {
    uint32_t hash;
    uint32_t slot_plus_one;
};

/* Linear probing, at most half full, removal by shifting back: no tombstones, no rebuild. */
struct uc_block_map {
    struct bucket *buckets;
    const uint8_t *ids; /* borrowed */
    size_t stride_bytes;
    size_t bucket_count; /* > capacity, so that a probe always meets an empty one */
    size_t count;
    uint64_t keys[HASH_KEY_COUNT];
};

static const struct uc_block_id *
slot_id(const struct uc_block_map *map, uint32_t slot)
{
    return (const void *)(map->ids + (size_t)slot * map->stride_bytes);
}

/*
 * Multilinear hashing over 32-bit words keeps the upper half of the sum: any two ids collide with
 * probability 2^-32 whatever they are, as long as the keys are secret. The bijection behind it breaks up
 * the arithmetic progressions that linear hashing preserves and linear probing suffers from.
 */
static uint32_t
hash_id(const struct uc_block_map *map, const struct uc_block_id *id)
{
    uint32_t words[4];
    uint64_t sum = map->keys[4];
    uint32_t hash;

    memcpy(words, id->bytes, sizeof(words));
    for (size_t idx = 0; idx < 4; idx++) {
        sum += map->keys[idx] * words[idx];
    }

    hash = (uint32_t)(sum >> 32);
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static size_t
home_of(const struct uc_block_map *map, uint32_t hash)
{
    return (size_t)((uint64_t)hash * map->bucket_count >> 32);
}

static size_t
next_bucket(const struct uc_block_map *map, size_t at)
{
    return at + 1 == map->bucket_count ? 0 : at + 1;
}

/* First bucket from @p at on that is empty or has this hash. */
static size_t
probe(const struct uc_block_map *map, size_t at, uint32_t hash)
{
    while (map->buckets[at].slot_plus_one != 0 && map->buckets[at].hash != hash) {
        at = next_bucket(map, at);
    }

    return at;
}

static uint32_t
settle(const struct uc_block_map *map, size_t at, uint32_t hash, const struct uc_block_id *id)
{
    while (map->buckets[at].slot_plus_one != 0) {
        uint32_t slot = map->buckets[at].slot_plus_one - 1;

        if (memcmp(slot_id(map, slot), id, sizeof(*id)) == 0) {
            return slot;
        }
        at = probe(map, next_bucket(map, at), hash);
    }

    return UC_BLOCK_MAP_NONE;
}

static enum uc_status
draw_keys(uint64_t *keys, size_t length_bytes)
{
    if (getrandom(keys, length_bytes, 0) != (ssize_t)length_bytes) {
        return uc_error(UC_ERR_OS_API, "block map: getrandom: %s", strerror(errno));
    }

    return UC_OK;
}

enum uc_status
uc_block_map_create(
        size_t capacity, const void *ids, size_t stride_bytes, struct uc_block_map **map_out)
{
    struct uc_block_map *map;
    enum uc_status status;

    if (capacity == 0 || capacity > UC_BLOCK_MAP_CAPACITY_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "block map: capacity %zu is not 1 to %zu blocks",
                capacity, UC_BLOCK_MAP_CAPACITY_MAX);
    }

    map = calloc(1, sizeof(*map));
    if (map == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "block map: no memory for %zu blocks", capacity);
    }

    map->ids = ids;
    map->stride_bytes = stride_bytes;
    map->bucket_count = 2 * capacity;
    status = draw_keys(map->keys, sizeof(map->keys));
    if (status != UC_OK) {
        goto err_free_map;
    }

    map->buckets = calloc(map->bucket_count, sizeof(map->buckets[0]));
    if (map->buckets == NULL) {
        status = uc_error(UC_ERR_OUT_OF_MEMORY, "block map: no memory for %zu blocks", capacity);
        goto err_free_map;
    }

    uc_huge_pages_advise(map->buckets, map->bucket_count * sizeof(map->buckets[0]));
    *map_out = map;
    return UC_OK;

err_free_map:
    free(map);
    return status;
}

void
uc_block_map_destroy(struct uc_block_map *map)
{
    if (map == NULL) {
        return;
    }

    free(map->buckets);
    free(map);
}

void
uc_block_map_add(struct uc_block_map *map, uint32_t slot)
{
    uint32_t hash = hash_id(map, slot_id(map, slot));
    size_t at = home_of(map, hash);

    assert(map->count < map->bucket_count / 2);
    while (map->buckets[at].slot_plus_one != 0) {
        at = next_bucket(map, at);
    }

    map->buckets[at] = (struct bucket){.hash = hash, .slot_plus_one = slot + 1};
    map->count++;
}

/* Whether the ring, walked from just behind @p hole to @p at, passes @p home. */
static bool
home_is_behind(size_t hole, size_t home, size_t at)
{
    return hole < at ? hole < home && home <= at : home > hole || home <= at;
}

void
uc_block_map_remove(struct uc_block_map *map, uint32_t slot)
{
    size_t hole = home_of(map, hash_id(map, slot_id(map, slot)));
    size_t at;

    while (map->buckets[hole].slot_plus_one != slot + 1) {
        assert(map->buckets[hole].slot_plus_one != 0);
        hole = next_bucket(map, hole);
    }

    for (at = next_bucket(map, hole); map->buckets[at].slot_plus_one != 0;
            at = next_bucket(map, at)) {
        if (!home_is_behind(hole, home_of(map, map->buckets[at].hash), at)) {
            map->buckets[hole] = map->buckets[at];
            hole = at;
        }
    }

    map->buckets[hole] = (struct bucket){0};
    map->count--;
}

void
uc_block_map_prefetch(const struct uc_block_map *map, uint32_t slot)
{
    UC_PREFETCH(&map->buckets[home_of(map, hash_id(map, slot_id(map, slot)))]);
}

uint32_t
uc_block_map_find(const struct uc_block_map *map, const struct uc_block_id *id)
{
    uint32_t hash = hash_id(map, id);

    return settle(map, probe(map, home_of(map, hash), hash), hash, id);
}

static void
find_chunk(const struct uc_block_map *map, const struct uc_block_id *ids, size_t count,
        uint32_t *slots_out)
{
    uint32_t hashes[FIND_CHUNK];
    size_t at[FIND_CHUNK];

    for (size_t idx = 0; idx < count; idx++) {
        hashes[idx] = hash_id(map, &ids[idx]);
        at[idx] = home_of(map, hashes[idx]);
        UC_PREFETCH(&map->buckets[at[idx]]);
    }
    for (size_t idx = 0; idx < count; idx++) {
        at[idx] = probe(map, at[idx], hashes[idx]);
        if (map->buckets[at[idx]].slot_plus_one != 0) {
            UC_PREFETCH(slot_id(map, map->buckets[at[idx]].slot_plus_one - 1));
        }
    }
    for (size_t idx = 0; idx < count; idx++) {
        slots_out[idx] = settle(map, at[idx], hashes[idx], &ids[idx]);
    }
}

void
uc_block_map_find_many(const struct uc_block_map *map, const struct uc_block_id *ids, size_t count,
        uint32_t *slots_out)
{
    while (count > 0) {
        size_t chunk = count < FIND_CHUNK ? count : FIND_CHUNK;

        find_chunk(map, ids, chunk, slots_out);
        ids += chunk;
        slots_out += chunk;
        count -= chunk;
    }
}

uint32_t
uc_block_map_hash(const struct uc_block_map *map, const struct uc_block_id *id)
{
    return hash_id(map, id);
}

size_t
uc_block_map_count(const struct uc_block_map *map)
{
    return map->count;
}

size_t
uc_block_map_memory_bytes(const struct uc_block_map *map)
{
    return sizeof(*map) + map->bucket_count * sizeof(map->buckets[0]);
}
