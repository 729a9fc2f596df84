/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/range_set.h"

#include <stdlib.h>
#include <string.h>

void
uc_range_set_fini(struct uc_range_set *set)
{
    free(set->ranges);
    memset(set, 0, sizeof(*set));
}

static enum uc_status
make_room(struct uc_range_set *set)
{
    size_t capacity = set->capacity == 0 ? 4 : set->capacity * 2;
    struct uc_range *ranges;

    if (set->count < set->capacity) {
        return UC_OK;
    }

    ranges = capacity > SIZE_MAX / sizeof(*ranges)
                     ? NULL
                     : realloc(set->ranges, capacity * sizeof(*ranges));
    if (ranges == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory to track %zu ranges", capacity);
    }

    set->ranges = ranges;
    set->capacity = capacity;
    return UC_OK;
}

enum uc_status
uc_range_set_add(struct uc_range_set *set, uint64_t first, uint64_t length)
{
    uint64_t end = first + length;
    size_t from = 0;
    size_t to;

    if (length > UINT64_MAX - first) {
        return uc_error(UC_ERR_INVALID_PARAM, "range of %llu bytes at %llu wraps",
                (unsigned long long)length, (unsigned long long)first);
    }
    if (length == 0) {
        return UC_OK;
    }

    /* [from, to) are the ranges that touch the new one and become part of it. */
    while (from < set->count && set->ranges[from].end < first) {
        from++;
    }
    to = from;
    while (to < set->count && set->ranges[to].first <= end) {
        to++;
    }

    if (from == to) {
        if (make_room(set) != UC_OK) {
            return UC_ERR_OUT_OF_MEMORY;
        }
        memmove(&set->ranges[from + 1], &set->ranges[from],
                (set->count - from) * sizeof(set->ranges[0]));
        set->count++;
    } else {
        first = first < set->ranges[from].first ? first : set->ranges[from].first;
        end = end > set->ranges[to - 1].end ? end : set->ranges[to - 1].end;
        memmove(&set->ranges[from + 1], &set->ranges[to],
                (set->count - to) * sizeof(set->ranges[0]));
        set->count -= to - from - 1;
    }
    set->ranges[from].first = first;
    set->ranges[from].end = end;
    return UC_OK;
}

bool
uc_range_set_covers(const struct uc_range_set *set, uint64_t length)
{
    return length == 0 ||
           (set->count > 0 && set->ranges[0].first == 0 && set->ranges[0].end >= length);
}
