/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/regions.h"

void
uc_posix_regions_fini(struct uc_posix_regions *regions)
{
    if (regions->device != NULL) {
        regions->device_ops->close(regions->device);
        regions->device = NULL;
    }
    uc_region_list_fini(&regions->list);
}

/* The first device stays open, so that what is registered with it lives as long as the buffers. */
static enum uc_status
open_device(struct uc_posix_regions *regions, const void *address, uint64_t length_bytes,
        enum uc_memory_kind kind)
{
    const struct uc_device_ops *ops = uc_device_find(kind);
    struct uc_device *device = NULL;
    enum uc_status status;

    if (ops == NULL || (regions->device_ops != NULL && regions->device_ops != ops)) {
        return uc_error(UC_ERR_UNSUPPORTED, "posix store: memory of kind %d cannot be copied%s",
                (int)kind, ops == NULL ? "" : " beside that of another kind of device");
    }
    status = ops->open(address, length_bytes, &device);
    if (status != UC_OK) {
        return status;
    }
    if (regions->device != NULL) {
        ops->close(device);
    } else {
        regions->device_ops = ops;
        regions->device = device;
    }
    return UC_OK;
}

enum uc_status
uc_posix_regions_add(struct uc_posix_regions *regions, uint32_t region_idx, const void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    enum uc_status status =
            uc_region_list_add(&regions->list, region_idx, address, length_bytes, kind);

    if (status == UC_OK && kind != UC_MEMORY_HOST) {
        status = open_device(regions, address, length_bytes, kind);
        if (status != UC_OK) {
            (void)!uc_region_list_remove(&regions->list, region_idx);
        }
    }
    return status;
}
