/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file arena.h
 * The memory of a namespace: one memfd, cut into regions that are registered with the fabric, cut into
 * slots. Immutable after creation; any thread may locate.
 */

#ifndef UC_SERVER_ARENA_H
#define UC_SERVER_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"
#include "server/config.h"

enum {
    UC_ARENA_REGIONS_MAX = 65536
};

/** Where slots lie; no slot crosses a region. A plain value. */
struct uc_arena_layout {
    uint64_t block_bytes;
    uint64_t slot_stride; /* block and footer, rounded up to the alignment */
    uint64_t region_span; /* from the start of one region to the next, whole pages */
    uint64_t total_bytes; /* of all regions */
    uint32_t slot_count;
    uint32_t slots_per_region; /* the last one may hold fewer */
    uint32_t region_count;
};

/** A place inside one slot. A plain value. */
struct uc_arena_place {
    uint32_t slot;
    uint64_t offset_bytes; /* from the start of the slot */
};

struct uc_arena;

/**
 * Cut a capacity into regions and slots; touches no memory.
 *
 * @retval UC_ERR_INVALID_PARAM  no room for one slot, too many slots or regions; the text names the key
 */
UC_MUST_CHECK enum uc_status uc_arena_plan(
        const struct uc_namespace_config *config, struct uc_arena_layout *layout_out);

/**
 * Whether host and cgroup have the memory, index included; touches none.
 *
 * @retval UC_ERR_NO_SPACE  the text names key, required and actual
 */
UC_MUST_CHECK enum uc_status uc_arena_check(
        const struct uc_arena_layout *layout, const struct uc_namespace_config *config);

/** Make the memory and fault it in (blocks; progress is logged when it is much). After the check. */
UC_MUST_CHECK enum uc_status uc_arena_create(const struct uc_arena_layout *layout,
        const struct uc_namespace_config *config, struct uc_arena **arena_out);
void uc_arena_destroy(struct uc_arena *arena);

/** Memory of a region as fabrics register it: its bytes, the memfd and where they lie in it. */
struct uc_fabric_memory uc_arena_region(const struct uc_arena *arena, uint32_t region_idx);
uint8_t *uc_arena_slot(const struct uc_arena *arena, uint32_t slot);

/** Bytes of a region that slots use. */
uint64_t uc_arena_layout_region_bytes(const struct uc_arena_layout *layout, uint32_t region_idx);
/** Region and offset of a slot's start. */
void uc_arena_layout_address(const struct uc_arena_layout *layout, uint32_t slot,
        uint32_t *region_idx_out, uint64_t *offset_out);
/** Find the slot of an untrusted range; false unless it lies inside block and footer of one slot. */
UC_MUST_CHECK bool uc_arena_layout_locate(const struct uc_arena_layout *layout, uint32_t region_idx,
        uint64_t offset_bytes, uint64_t length_bytes, struct uc_arena_place *place_out);

#endif /* UC_SERVER_ARENA_H */
