/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store/null_regions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct uc_null_region {
    uint32_t idx;
    uintptr_t address;
    uint64_t length_bytes;
};

void
uc_null_regions_fini(struct uc_null_regions *regions)
{
    free(regions->items);
    memset(regions, 0, sizeof(*regions));
}

static struct uc_null_region *
find(const struct uc_null_regions *regions, uint32_t region_idx)
{
    for (size_t idx = 0; idx < regions->count; idx++) {
        if (regions->items[idx].idx == region_idx) {
            return &regions->items[idx];
        }
    }

    return NULL;
}

enum uc_status
uc_null_regions_add(struct uc_null_regions *regions, uint32_t region_idx, const void *address,
        uint64_t length_bytes)
{
    if (length_bytes == 0 || length_bytes - 1 > UINTPTR_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM, "null store: region %" PRIu32 " is empty or wraps",
                region_idx);
    }
    if (find(regions, region_idx) != NULL) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "null store: region %" PRIu32 " is taken", region_idx);
    }
    if (regions->count == regions->capacity) {
        size_t capacity = regions->capacity * 2 + 4;
        struct uc_null_region *items = realloc(regions->items, capacity * sizeof(*items));

        if (items == NULL) {
            return uc_error(UC_ERR_OUT_OF_MEMORY, "null store: region %" PRIu32 ": out of memory",
                    region_idx);
        }
        regions->items = items;
        regions->capacity = capacity;
    }

    regions->items[regions->count++] = (struct uc_null_region){
            .idx = region_idx,
            .address = (uintptr_t)address,
            .length_bytes = length_bytes,
    };
    return UC_OK;
}

enum uc_status
uc_null_regions_remove(struct uc_null_regions *regions, uint32_t region_idx)
{
    struct uc_null_region *region = find(regions, region_idx);

    if (region == NULL) {
        return uc_error(
                UC_ERR_NOT_FOUND, "null store: region %" PRIu32 " is not registered", region_idx);
    }

    *region = regions->items[--regions->count];
    return UC_OK;
}

enum uc_status
uc_null_regions_check(const struct uc_null_regions *regions, const struct uc_block_payload *payload)
{
    for (size_t idx = 0; idx < payload->memory_region_index_count; idx++) {
        const struct uc_null_region *region = find(regions, payload->memory_region_indices[idx]);
        uintptr_t address = (uintptr_t)payload->pointers[idx];

        if (region != NULL &&
                (address < region->address || address - region->address > region->length_bytes ||
                        payload->sizes[idx] > region->length_bytes - (address - region->address))) {
            return uc_error(UC_ERR_INVALID_PARAM, "pointer %zu is not inside region %" PRIu32, idx,
                    region->idx);
        }
    }

    return UC_OK;
}
