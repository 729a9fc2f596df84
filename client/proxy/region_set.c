/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/region_set.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CAPACITY = 16
};

/* Position of the first region whose index is not below. */
static size_t
lower_bound(const struct uc_region_set *set, uint32_t region_idx)
{
    size_t low = 0;
    size_t high = set->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (set->regions[mid].region_idx < region_idx) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

void
uc_region_set_fini(struct uc_region_set *set)
{
    free(set->regions);
    *set = (struct uc_region_set){0};
}

enum uc_status
uc_region_set_add(struct uc_region_set *set, const struct uc_region *region)
{
    size_t pos = lower_bound(set, region->region_idx);

    if (pos < set->count && set->regions[pos].region_idx == region->region_idx) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "memory region %u is registered already", region->region_idx);
    }
    if (set->count == set->capacity) {
        size_t capacity = set->capacity == 0 ? FIRST_CAPACITY : set->capacity * 2;
        struct uc_region *regions = realloc(set->regions, capacity * sizeof(regions[0]));

        if (regions == NULL) {
            return uc_error(
                    UC_ERR_OUT_OF_MEMORY, "no memory for more than %zu memory regions", set->count);
        }
        set->regions = regions;
        set->capacity = capacity;
    }

    memmove(&set->regions[pos + 1], &set->regions[pos],
            (set->count - pos) * sizeof(set->regions[0]));
    set->regions[pos] = *region;
    set->count++;
    return UC_OK;
}

const struct uc_region *
uc_region_set_find(const struct uc_region_set *set, uint32_t region_idx)
{
    size_t pos = lower_bound(set, region_idx);

    return pos < set->count && set->regions[pos].region_idx == region_idx ? &set->regions[pos]
                                                                          : NULL;
}

bool
uc_region_set_remove(struct uc_region_set *set, uint32_t region_idx)
{
    size_t pos = lower_bound(set, region_idx);

    if (pos == set->count || set->regions[pos].region_idx != region_idx) {
        return false;
    }

    set->count--;
    memmove(&set->regions[pos], &set->regions[pos + 1],
            (set->count - pos) * sizeof(set->regions[0]));
    return true;
}
