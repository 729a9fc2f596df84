/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file id_map.h
 * Intrusive hash map from a 64-bit id to the struct that holds the node. Ids may be chosen by a peer: the
 * hash is seeded. Control thread. When it cannot grow it becomes slower, never full.
 */

#ifndef UC_SERVER_ID_MAP_H
#define UC_SERVER_ID_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_id_node {
    struct uc_id_node *next;
    uint64_t id;
};

struct uc_id_map {
    struct uc_id_node **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
    uint64_t seed;
};

UC_MUST_CHECK enum uc_status uc_id_map_init(struct uc_id_map *map, uint64_t seed);
/** The nodes stay their owners'. */
void uc_id_map_fini(struct uc_id_map *map);

/** @return the node of that id, or NULL. */
struct uc_id_node *uc_id_map_find(const struct uc_id_map *map, uint64_t id);
/** @p node has its id set and is in no map; the id is not in this one. */
void uc_id_map_add(struct uc_id_map *map, struct uc_id_node *node);
void uc_id_map_remove(struct uc_id_map *map, struct uc_id_node *node);
/** @return some node, or NULL when the map is empty. */
struct uc_id_node *uc_id_map_any(const struct uc_id_map *map);

#endif /* UC_SERVER_ID_MAP_H */
