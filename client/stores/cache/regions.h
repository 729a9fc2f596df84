/* SPDX-License-Identifier: Apache-2.0 */

/** @file regions.h Memory regions that the engine registered. No locking. */

#ifndef UC_CACHE_STORE_REGIONS_H
#define UC_CACHE_STORE_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_cache_region {
    uint32_t idx;
    uintptr_t address;
    uint64_t length_bytes;
    bool is_device; /* memory that the processor cannot touch */
};

/** Zeroed = empty. */
struct uc_cache_regions {
    struct uc_cache_region *items;
    size_t count;
    size_t capacity;
    size_t device_count; /* of them */
};

void uc_cache_regions_fini(struct uc_cache_regions *regions);

/** InvalidParam: the index is taken, or the range is empty or wraps. Whether the kind can be used is not looked at. */
UC_MUST_CHECK enum uc_status uc_cache_regions_add(struct uc_cache_regions *regions,
        uint32_t region_idx, const void *address, uint64_t length_bytes, enum uc_memory_kind kind);

/** NotFound. */
UC_MUST_CHECK enum uc_status uc_cache_regions_remove(
        struct uc_cache_regions *regions, uint32_t region_idx);

/** InvalidParam if a pointer is not inside the region it names. Unknown indices are accepted. */
UC_MUST_CHECK enum uc_status uc_cache_regions_check(
        const struct uc_cache_regions *regions, const struct uc_block_payload *payload);

/**
 * @param[out] on_device_out  whether the range is memory of a device
 * @retval UC_ERR_INVALID_PARAM  a part of it is, but it lies in no region of one as a whole
 */
UC_MUST_CHECK enum uc_status uc_cache_regions_locate(const struct uc_cache_regions *regions,
        const void *address, uint64_t length_bytes, bool *on_device_out);

#endif /* UC_CACHE_STORE_REGIONS_H */
