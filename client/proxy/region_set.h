/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file region_set.h
 * Registered memory by region index, for checking payloads and unknown indices.
 *
 * Threads: owned by the data thread.
 */

#ifndef UC_PROXY_REGION_SET_H
#define UC_PROXY_REGION_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/status.h>

struct uc_region {
    uint32_t region_idx;
    uint64_t address;
    uint64_t length_bytes;
    enum uc_memory_kind kind;
};

/** Sorted by index; the root counts indices up, so adding appends. */
struct uc_region_set {
    struct uc_region *regions;
    size_t capacity;
    size_t count;
};

/** Zeroed is empty, too. */
void uc_region_set_fini(struct uc_region_set *set);

/**
 * @retval UC_ERR_INVALID_PARAM  the index is taken
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_region_set_add(
        struct uc_region_set *set, const struct uc_region *region);

/** @return the region until the set changes, or NULL. Data path: logarithmic. */
const struct uc_region *uc_region_set_find(const struct uc_region_set *set, uint32_t region_idx);

/** @return whether it was there. */
bool uc_region_set_remove(struct uc_region_set *set, uint32_t region_idx);

#endif /* UC_PROXY_REGION_SET_H */
