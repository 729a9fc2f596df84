/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store/region_list.h"

#include <inttypes.h>
#include <stdlib.h>

struct uc_listed_region {
    uint32_t idx;
    uintptr_t address;
    uint64_t length_bytes;
    bool is_device;
};

void
uc_region_list_init(struct uc_region_list *regions, const char *owner)
{
    *regions = (struct uc_region_list){.owner = owner};
}

void
uc_region_list_fini(struct uc_region_list *regions)
{
    free(regions->items);
    uc_region_list_init(regions, regions->owner);
}

static struct uc_listed_region *
find(const struct uc_region_list *regions, uint32_t region_idx)
{
    for (size_t idx = 0; idx < regions->count; idx++) {
        if (regions->items[idx].idx == region_idx) {
            return &regions->items[idx];
        }
    }

    return NULL;
}

enum uc_status
uc_region_list_add(struct uc_region_list *regions, uint32_t region_idx, const void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    if (length_bytes == 0 || length_bytes - 1 > UINTPTR_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: region %" PRIu32 " is empty or wraps",
                regions->owner, region_idx);
    }
    if (find(regions, region_idx) != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: region %" PRIu32 " is taken", regions->owner,
                region_idx);
    }
    if (regions->count == regions->capacity) {
        size_t capacity = regions->capacity * 2 + 4;
        struct uc_listed_region *items = realloc(regions->items, capacity * sizeof(*items));

        if (items == NULL) {
            return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory for region %" PRIu32,
                    regions->owner, region_idx);
        }
        regions->items = items;
        regions->capacity = capacity;
    }

    regions->items[regions->count++] = (struct uc_listed_region){
            .idx = region_idx,
            .address = (uintptr_t)address,
            .length_bytes = length_bytes,
            .is_device = kind != UC_MEMORY_HOST,
    };
    regions->device_count += kind != UC_MEMORY_HOST ? 1 : 0;
    return UC_OK;
}

enum uc_status
uc_region_list_remove(struct uc_region_list *regions, uint32_t region_idx)
{
    struct uc_listed_region *region = find(regions, region_idx);

    if (region == NULL) {
        return uc_error(UC_ERR_NOT_FOUND, "%s: region %" PRIu32 " is not registered",
                regions->owner, region_idx);
    }

    regions->device_count -= region->is_device ? 1 : 0;
    *region = regions->items[--regions->count];
    return UC_OK;
}

enum uc_status
uc_region_list_check(const struct uc_region_list *regions, const struct uc_block_payload *payload)
{
    for (size_t idx = 0; idx < payload->memory_region_index_count; idx++) {
        const struct uc_listed_region *region = find(regions, payload->memory_region_indices[idx]);
        uintptr_t address = (uintptr_t)payload->pointers[idx];

        if (region != NULL &&
                (address < region->address || address - region->address > region->length_bytes ||
                        payload->sizes[idx] > region->length_bytes - (address - region->address))) {
            return uc_error(UC_ERR_INVALID_PARAM, "%s: pointer %zu is not inside region %" PRIu32,
                    regions->owner, idx, region->idx);
        }
    }

    return UC_OK;
}

bool
uc_region_list_is_device(const struct uc_region_list *regions, uint32_t region_idx)
{
    const struct uc_listed_region *region = find(regions, region_idx);

    return region != NULL && region->is_device;
}

enum uc_status
uc_region_list_locate(const struct uc_region_list *regions, const void *address,
        uint64_t length_bytes, bool *on_device_out)
{
    uintptr_t first = (uintptr_t)address;
    bool touches = false;

    for (size_t idx = 0; idx < regions->count && regions->device_count > 0; idx++) {
        const struct uc_listed_region *region = &regions->items[idx];

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
                "%s: %" PRIu64 " bytes at %p lie in no region of a device as a whole; "
                "register the range they are in as one",
                regions->owner, length_bytes, address);
    }

    *on_device_out = false;
    return UC_OK;
}
