/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/regions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct uc_posix_region {
    uint32_t idx;
    uintptr_t address;
    uint64_t length_bytes;
    bool is_device;
};

void
uc_posix_regions_fini(struct uc_posix_regions *regions)
{
    if (regions->device != NULL) {
        regions->device_ops->close(regions->device);
    }
    free(regions->items);
    memset(regions, 0, sizeof(*regions));
}

static struct uc_posix_region *
find(const struct uc_posix_regions *regions, uint32_t region_idx)
{
    for (size_t idx = 0; idx < regions->count; idx++) {
        if (regions->items[idx].idx == region_idx) {
            return &regions->items[idx];
        }
    }

    return NULL;
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
    if (length_bytes == 0 || length_bytes - 1 > UINTPTR_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM, "posix store: region %" PRIu32 " is empty or wraps",
                region_idx);
    }
    if (find(regions, region_idx) != NULL) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "posix store: region %" PRIu32 " is taken", region_idx);
    }
    if (regions->count == regions->room) {
        size_t room = regions->room * 2 + 4;
        struct uc_posix_region *items = realloc(regions->items, room * sizeof(*items));

        if (items == NULL) {
            return uc_error(
                    UC_ERR_OUT_OF_MEMORY, "posix store: no memory for region %" PRIu32, region_idx);
        }
        regions->items = items;
        regions->room = room;
    }
    if (kind != UC_MEMORY_HOST) {
        enum uc_status status = open_device(regions, address, length_bytes, kind);

        if (status != UC_OK) {
            return status;
        }
        regions->device_count++;
    }

    regions->items[regions->count++] = (struct uc_posix_region){
            .idx = region_idx,
            .address = (uintptr_t)address,
            .length_bytes = length_bytes,
            .is_device = kind != UC_MEMORY_HOST,
    };
    return UC_OK;
}

enum uc_status
uc_posix_regions_remove(struct uc_posix_regions *regions, uint32_t region_idx)
{
    struct uc_posix_region *region = find(regions, region_idx);

    if (region == NULL) {
        return uc_error(
                UC_ERR_NOT_FOUND, "posix store: region %" PRIu32 " is not registered", region_idx);
    }

    regions->device_count -= region->is_device ? 1 : 0;
    *region = regions->items[--regions->count];
    return UC_OK;
}

enum uc_status
uc_posix_regions_check(
        const struct uc_posix_regions *regions, const struct uc_block_payload *payload)
{
    for (size_t idx = 0; idx < payload->memory_region_index_count; idx++) {
        const struct uc_posix_region *region = find(regions, payload->memory_region_indices[idx]);
        uintptr_t address = (uintptr_t)payload->pointers[idx];

        if (region != NULL &&
                (address < region->address || address - region->address > region->length_bytes ||
                        payload->sizes[idx] > region->length_bytes - (address - region->address))) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "posix store: pointer %zu is not inside region %" PRIu32, idx, region->idx);
        }
    }

    return UC_OK;
}

bool
uc_posix_regions_is_device(const struct uc_posix_regions *regions, uint32_t region_idx)
{
    const struct uc_posix_region *region = find(regions, region_idx);

    return region != NULL && region->is_device;
}

enum uc_status
uc_posix_regions_locate(const struct uc_posix_regions *regions, const void *address,
        uint64_t length_bytes, bool *on_device_out)
{
    uintptr_t first = (uintptr_t)address;
    bool touches = false;

    for (size_t idx = 0; idx < regions->count && regions->device_count > 0; idx++) {
        const struct uc_posix_region *region = &regions->items[idx];

        if (!region->is_device || length_bytes == 0) {
            continue;
        }
        if (first >= region->address && first - region->address < region->length_bytes &&
                length_bytes <= region->length_bytes - (first - region->address)) {
            *on_device_out = true;
            return UC_OK;
        }
        touches = touches ||
                  (first <= region->address ? region->address - first < length_bytes
                                            : first - region->address < region->length_bytes);
    }
    if (touches) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "posix store: %" PRIu64 " bytes at %p lie in no region of a device as a whole; "
                "register the range they are in as one",
                length_bytes, address);
    }

    *on_device_out = false;
    return UC_OK;
}
