/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/text_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t
hash_text(uint64_t seed, const char *text)
{
    uint64_t hash = seed ^ 0xcbf29ce484222325ull;

    for (const char *at = text; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }

    return hash ^ hash >> 32;
}

static size_t
bucket_of(const struct uc_text_map *map, uint64_t hash)
{
    return (size_t)hash & (map->bucket_count - 1);
}

void
uc_text_map_init(struct uc_text_map *map)
{
    *map = (struct uc_text_map){.bucket_count = UC_TEXT_MAP_FIRST_BUCKETS};
    map->buckets = map->first_buckets;
    if (getrandom(&map->seed, sizeof(map->seed), GRND_NONBLOCK) != sizeof(map->seed)) {
        map->seed = (uint64_t)(uintptr_t)map; /* early in boot: better than nothing */
    }
}

static void
free_buckets(struct uc_text_map *map)
{
    if (map->buckets != map->first_buckets) {
        free(map->buckets);
    }
}

void
uc_text_map_fini(struct uc_text_map *map)
{
    free_buckets(map);
}

/* Longer chains are slower, nothing else: without memory the table stays as it is. */
static void
grow(struct uc_text_map *map)
{
    size_t new_count = map->bucket_count * 2;
    struct uc_text_node **buckets = calloc(new_count, sizeof(buckets[0]));

    if (buckets == NULL) {
        return;
    }

    for (size_t idx = 0; idx < map->bucket_count; idx++) {
        struct uc_text_node *node = map->buckets[idx];

        while (node != NULL) {
            struct uc_text_node *next = node->next;
            struct uc_text_node **bucket = &buckets[(size_t)node->hash & (new_count - 1)];

            node->next = *bucket;
            *bucket = node;
            node = next;
        }
    }
    free_buckets(map);
    map->buckets = buckets;
    map->bucket_count = new_count;
}

struct uc_text_node *
uc_text_map_find(const struct uc_text_map *map, const char *text)
{
    uint64_t hash = hash_text(map->seed, text);

    for (struct uc_text_node *at = map->buckets[bucket_of(map, hash)]; at != NULL; at = at->next) {
        if (at->hash == hash && strcmp(at->text, text) == 0) {
            return at;
        }
    }

    return NULL;
}

void
uc_text_map_add(struct uc_text_map *map, struct uc_text_node *node, const char *text)
{
    struct uc_text_node **bucket;

    if (map->count >= map->bucket_count) {
        grow(map);
    }
    node->text = text;
    node->hash = hash_text(map->seed, text);
    bucket = &map->buckets[bucket_of(map, node->hash)];
    node->next = *bucket;
    *bucket = node;
    map->count++;
}

void
uc_text_map_remove(struct uc_text_map *map, struct uc_text_node *node)
{
    struct uc_text_node **at = &map->buckets[bucket_of(map, node->hash)];

    while (*at != node) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    map->count--;
}

struct uc_text_node *
uc_text_map_next(const struct uc_text_map *map, const struct uc_text_node *node)
{
    size_t bucket = 0;

    if (node != NULL && node->next != NULL) {
        return node->next;
    }

    if (node != NULL) {
        bucket = bucket_of(map, node->hash) + 1;
    }
    while (bucket < map->bucket_count && map->buckets[bucket] == NULL) {
        bucket++;
    }
    return bucket < map->bucket_count ? map->buckets[bucket] : NULL;
}
