/* SPDX-License-Identifier: Apache-2.0 */

/** @file null_regions.h The regions that a null store was told of. No locking. */

#ifndef UC_STORE_NULL_REGIONS_H
#define UC_STORE_NULL_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_null_region;

/** Zeroed = empty. */
struct uc_null_regions {
    struct uc_null_region *items;
    size_t count;
    size_t capacity;
};

void uc_null_regions_fini(struct uc_null_regions *regions);

/** InvalidParam: the index is taken, or the range is empty or wraps. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_null_regions_add(struct uc_null_regions *regions,
        uint32_t region_idx, const void *address, uint64_t length_bytes);

/** NotFound. */
UC_MUST_CHECK enum uc_status uc_null_regions_remove(
        struct uc_null_regions *regions, uint32_t region_idx);

/**
 * InvalidParam if a pointer is not inside the region it names. Indices that are not known are
 * accepted, since registration is not needed here.
 */
UC_MUST_CHECK enum uc_status uc_null_regions_check(
        const struct uc_null_regions *regions, const struct uc_block_payload *payload);

#endif /* UC_STORE_NULL_REGIONS_H */
