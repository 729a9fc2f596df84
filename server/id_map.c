/* SPDX-License-Identifier: Apache-2.0 */

#include "server/id_map.h"

#include <stdlib.h>

enum {
    BUCKETS_FIRST = 16
};

static size_t
bucket_of(const struct uc_id_map *map, uint64_t id)
{
    uint64_t hash = (id ^ map->seed) * 0x9e3779b97f4a7c15u;

    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    hash ^= hash >> 32;
    return (size_t)hash & (map->bucket_count - 1);
}

enum uc_status
uc_id_map_init(struct uc_id_map *map, uint64_t seed)
{
    struct uc_id_node **buckets = calloc(BUCKETS_FIRST, sizeof(*buckets));

    if (buckets == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a session's table");
    }

    *map = (struct uc_id_map){.buckets = buckets, .bucket_count = BUCKETS_FIRST, .seed = seed};
    return UC_OK;
}

void
uc_id_map_fini(struct uc_id_map *map)
{
    free(map->buckets);
    *map = (struct uc_id_map){0};
}

struct uc_id_node *
uc_id_map_find(const struct uc_id_map *map, uint64_t id)
{
    struct uc_id_node *node = map->buckets[bucket_of(map, id)];

    while (node != NULL && node->id != id) {
        node = node->next;
    }
    return node;
}

static void
grow(struct uc_id_map *map)
{
    struct uc_id_map larger = *map;

    larger.bucket_count = map->bucket_count * 2;
    larger.buckets = calloc(larger.bucket_count, sizeof(*larger.buckets));
    if (larger.buckets == NULL) {
        return;
    }

    for (size_t idx = 0; idx < map->bucket_count; idx++) {
        struct uc_id_node *node = map->buckets[idx];

        while (node != NULL) {
            struct uc_id_node *next = node->next;
            size_t bucket = bucket_of(&larger, node->id);

            node->next = larger.buckets[bucket];
            larger.buckets[bucket] = node;
            node = next;
        }
    }
    free(map->buckets);
    *map = larger;
}

void
uc_id_map_add(struct uc_id_map *map, struct uc_id_node *node)
{
    size_t bucket;

    if (map->count >= map->bucket_count) {
        grow(map);
    }
    bucket = bucket_of(map, node->id);
    node->next = map->buckets[bucket];
    map->buckets[bucket] = node;
    map->count++;
}

void
uc_id_map_remove(struct uc_id_map *map, struct uc_id_node *node)
{
    struct uc_id_node **link = &map->buckets[bucket_of(map, node->id)];

    while (*link != NULL && *link != node) {
        link = &(*link)->next;
    }
    if (*link == node) {
        *link = node->next;
        node->next = NULL;
        map->count--;
    }
}

struct uc_id_node *
uc_id_map_any(const struct uc_id_map *map)
{
    for (size_t idx = 0; map->count > 0 && idx < map->bucket_count; idx++) {
        if (map->buckets[idx] != NULL) {
            return map->buckets[idx];
        }
    }
    return NULL;
}
