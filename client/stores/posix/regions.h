/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file regions.h
 * Registered memory. Files need no registration: the table only checks that
 * pointers lie where their index says. One thread.
 */

#ifndef UC_POSIX_REGIONS_H
#define UC_POSIX_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_posix_region;

/** Zeroed = empty. */
struct uc_posix_regions {
    struct uc_posix_region *items;
    size_t count;
    size_t room;
};

void uc_posix_regions_fini(struct uc_posix_regions *regions);

/** @retval UC_ERR_INVALID_PARAM  the index is taken; empty or wrapping range
 *  @retval UC_ERR_UNSUPPORTED    no host memory
 *  @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_posix_regions_add(struct uc_posix_regions *regions,
        uint32_t region_idx, const void *address, uint64_t length_bytes, enum uc_memory_kind kind);

/** @retval UC_ERR_NOT_FOUND */
UC_MUST_CHECK enum uc_status uc_posix_regions_remove(
        struct uc_posix_regions *regions, uint32_t region_idx);

/** @retval UC_ERR_INVALID_PARAM  a pointer is not inside the region it names */
UC_MUST_CHECK enum uc_status uc_posix_regions_check(
        const struct uc_posix_regions *regions, const struct uc_block_payload *payload);

#endif /* UC_POSIX_REGIONS_H */
