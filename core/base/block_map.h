/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file block_map.h
 * Block id → slot index, for a fixed number of slots. The ids themselves stay in an array of the owner,
 * one per slot; the map keeps 16 bytes per slot beside them. No allocation after create.
 *
 * Ids are hashes already, but of the peers' choosing: they are hashed again under a random key, so that
 * nobody outside can make them collide.
 *
 * Threads: one at a time.
 */

#ifndef UC_BASE_BLOCK_MAP_H
#define UC_BASE_BLOCK_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#define UC_BLOCK_MAP_NONE         UINT32_MAX
#define UC_BLOCK_MAP_CAPACITY_MAX ((size_t)INT32_MAX)

struct uc_block_map;

/**
 * @param[in] capacity      slots, 1 to UC_BLOCK_MAP_CAPACITY_MAX
 * @param[in] ids           borrowed for the life of the map: the id of slot 0
 * @param[in] stride_bytes  from the id of one slot to the next
 * @retval UC_ERR_INVALID_PARAM  capacity out of range
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_block_map_create(
        size_t capacity, const void *ids, size_t stride_bytes, struct uc_block_map **map_out);
UC_PRIVATE_API void uc_block_map_destroy(struct uc_block_map *map);

/** Add the slot under the id that stands in its place; neither may be in the map. */
UC_PRIVATE_API void uc_block_map_add(struct uc_block_map *map, uint32_t slot);

/** Remove a slot that is in the map; its id must still stand in its place. */
UC_PRIVATE_API void uc_block_map_remove(struct uc_block_map *map, uint32_t slot);

/** Start loading what removing the slot will need. */
UC_PRIVATE_API void uc_block_map_prefetch(const struct uc_block_map *map, uint32_t slot);

/** @return the slot, or UC_BLOCK_MAP_NONE. Data path. */
UC_PRIVATE_API uint32_t uc_block_map_find(
        const struct uc_block_map *map, const struct uc_block_id *id);

/** Find many at once, loading what the next ones need meanwhile. Data path. */
UC_PRIVATE_API void uc_block_map_find_many(const struct uc_block_map *map,
        const struct uc_block_id *ids, size_t count, uint32_t *slots_out);

/** The keyed hash of an id, for tables of the owner's own. */
UC_PRIVATE_API uint32_t uc_block_map_hash(
        const struct uc_block_map *map, const struct uc_block_id *id);

UC_PRIVATE_API size_t uc_block_map_count(const struct uc_block_map *map);
UC_PRIVATE_API size_t uc_block_map_memory_bytes(const struct uc_block_map *map);

#endif /* UC_BASE_BLOCK_MAP_H */
