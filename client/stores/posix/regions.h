/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file regions.h
 * Registered memory. Files need no registration: the table checks that pointers lie
 * where their index says, and knows which of them a device has to copy. One thread, but for the device, which does not
 * change any more once a job uses it.
 */

#ifndef UC_POSIX_REGIONS_H
#define UC_POSIX_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/device/device.h"

struct uc_posix_region;

/** Zeroed = empty. */
struct uc_posix_regions {
    struct uc_posix_region *items;
    size_t count;
    size_t room;
    size_t device_count;                    /* of memory that the processor cannot touch */
    const struct uc_device_ops *device_ops; /* NULL before the first of those */
    struct uc_device *device; /* any: it reaches the memory of all of them by address */
};

void uc_posix_regions_fini(struct uc_posix_regions *regions);

/** @retval UC_ERR_INVALID_PARAM  the index is taken; empty or wrapping range
 *  @retval UC_ERR_UNSUPPORTED    neither host memory nor that of a device that there is
 *  @retval UC_ERR_OUT_OF_MEMORY, UC_ERR_OS_API */
UC_MUST_CHECK enum uc_status uc_posix_regions_add(struct uc_posix_regions *regions,
        uint32_t region_idx, const void *address, uint64_t length_bytes, enum uc_memory_kind kind);

/** @retval UC_ERR_NOT_FOUND */
UC_MUST_CHECK enum uc_status uc_posix_regions_remove(
        struct uc_posix_regions *regions, uint32_t region_idx);

/** @retval UC_ERR_INVALID_PARAM  a pointer is not inside the region it names */
UC_MUST_CHECK enum uc_status uc_posix_regions_check(
        const struct uc_posix_regions *regions, const struct uc_block_payload *payload);

/** @return whether a region is memory of a device. */
bool uc_posix_regions_is_device(const struct uc_posix_regions *regions, uint32_t region_idx);

/**
 * @param[out] on_device_out  whether the range is memory of a device
 * @retval UC_ERR_INVALID_PARAM  a part of it is, but it lies in no region of one as a whole
 */
UC_MUST_CHECK enum uc_status uc_posix_regions_locate(const struct uc_posix_regions *regions,
        const void *address, uint64_t length_bytes, bool *on_device_out);

#endif /* UC_POSIX_REGIONS_H */
