/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file text_map.h
 * Records by text, e.g. by request id. A record embeds a node; the map allocates nothing but longer tables.
 *
 * Texts come from users: they are hashed under a random key, so that nobody outside can make them collide.
 *
 * Threads: one at a time.
 */

#ifndef UC_BASE_TEXT_MAP_H
#define UC_BASE_TEXT_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>

enum {
    UC_TEXT_MAP_FIRST_BUCKETS = 16 /* a power of two, as all later counts */
};

/** Member of a record; the record behind it: uc_list_entry() of core/base/list.h. */
struct uc_text_node {
    struct uc_text_node *next; /* in its bucket */
    uint64_t hash;
    const char *text; /* the record's own, unchanged while it is in the map */
};

/** In place; must not be moved once it is initialised. */
struct uc_text_map {
    uint64_t seed;
    size_t count;
    size_t bucket_count;
    struct uc_text_node **buckets;
    struct uc_text_node *first_buckets[UC_TEXT_MAP_FIRST_BUCKETS];
};

UC_PRIVATE_API void uc_text_map_init(struct uc_text_map *map);

/** The records are their owner's: removed before, or forgotten here. */
UC_PRIVATE_API void uc_text_map_fini(struct uc_text_map *map);

/** @return the node, or NULL. */
UC_PRIVATE_API struct uc_text_node *uc_text_map_find(
        const struct uc_text_map *map, const char *text);

/** Add a record whose text is not in the map. Never fails: without memory for a longer table, chains grow. */
UC_PRIVATE_API void uc_text_map_add(
        struct uc_text_map *map, struct uc_text_node *node, const char *text);

/** Remove a record that is in the map. */
UC_PRIVATE_API void uc_text_map_remove(struct uc_text_map *map, struct uc_text_node *node);

/** Walk in any order: @return the node behind @p node, the first for NULL, NULL at the end. */
UC_PRIVATE_API struct uc_text_node *uc_text_map_next(
        const struct uc_text_map *map, const struct uc_text_node *node);

#endif /* UC_BASE_TEXT_MAP_H */
