/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file regions.h
 * Registered memory. Files need no registration: the table checks that pointers lie
 * where their index says, and knows which of them a device has to copy. One thread, but for the device, which does not
 * change any more once a job uses it.
 */

#ifndef UC_POSIX_REGIONS_H
#define UC_POSIX_REGIONS_H

#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/device/device.h"
#include "core/store/region_list.h"

struct uc_posix_regions {
    struct uc_region_list list;
    const struct uc_device_ops *device_ops; /* NULL before the first memory of a device */
    struct uc_device *device; /* any: it reaches the memory of all of them by address */
};

void uc_posix_regions_fini(struct uc_posix_regions *regions);

/** @retval UC_ERR_INVALID_PARAM  the index is taken; empty or wrapping range
 *  @retval UC_ERR_UNSUPPORTED    neither host memory nor that of a device that there is
 *  @retval UC_ERR_OUT_OF_MEMORY, UC_ERR_OS_API */
UC_MUST_CHECK enum uc_status uc_posix_regions_add(struct uc_posix_regions *regions,
        uint32_t region_idx, const void *address, uint64_t length_bytes, enum uc_memory_kind kind);

#endif /* UC_POSIX_REGIONS_H */
