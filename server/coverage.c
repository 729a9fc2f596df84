/* SPDX-License-Identifier: Apache-2.0 */

#include "server/coverage.h"

#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY_FIRST = 4
};

static struct uc_interval *
intervals_of(struct uc_coverage *coverage)
{
    return coverage->intervals == NULL ? &coverage->first : coverage->intervals;
}

void
uc_coverage_fini(struct uc_coverage *coverage)
{
    free(coverage->intervals);
    *coverage = (struct uc_coverage){0};
}

/* Room for one interval more. */
static enum uc_status
grow(struct uc_coverage *coverage)
{
    uint32_t capacity = coverage->capacity == 0 ? CAPACITY_FIRST : coverage->capacity * 2;
    struct uc_interval *intervals;

    if (coverage->count == 0 || coverage->count < coverage->capacity) {
        return UC_OK;
    }
    if (coverage->count >= UC_COVERAGE_INTERVALS_MAX) {
        return uc_error(UC_ERR_NO_SPACE,
                "a block was written in more than %d separate pieces; write neighbours together",
                UC_COVERAGE_INTERVALS_MAX);
    }

    intervals = realloc(coverage->intervals, capacity * sizeof(*intervals));
    if (intervals == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the written ranges of a block");
    }
    if (coverage->intervals == NULL) {
        intervals[0] = coverage->first;
    }
    coverage->intervals = intervals;
    coverage->capacity = capacity;
    return UC_OK;
}

enum uc_status
uc_coverage_add(struct uc_coverage *coverage, uint64_t begin, uint64_t end)
{
    struct uc_interval *intervals = intervals_of(coverage);
    uint32_t low = 0;
    uint32_t high;
    enum uc_status status;

    if (begin >= end) {
        return UC_OK;
    }

    /* [low, high) are those that overlap or touch the new one. */
    while (low < coverage->count && intervals[low].end < begin) {
        low++;
    }
    high = low;
    while (high < coverage->count && intervals[high].begin <= end) {
        high++;
    }

    if (low == high) {
        status = grow(coverage);
        if (status != UC_OK) {
            return status;
        }
        intervals = intervals_of(coverage);
        memmove(&intervals[low + 1], &intervals[low],
                (coverage->count - low) * sizeof(intervals[0]));
        coverage->count++;
    } else {
        begin = begin < intervals[low].begin ? begin : intervals[low].begin;
        end = end > intervals[high - 1].end ? end : intervals[high - 1].end;
        memmove(&intervals[low + 1], &intervals[high],
                (coverage->count - high) * sizeof(intervals[0]));
        coverage->count -= high - low - 1;
    }
    intervals[low].begin = begin;
    intervals[low].end = end;
    return UC_OK;
}

bool
uc_coverage_is_complete(const struct uc_coverage *coverage, uint64_t length_bytes)
{
    const struct uc_interval *interval =
            coverage->intervals == NULL ? &coverage->first : coverage->intervals;

    /* The intervals do not touch, so only the first one can reach from 0 to the end. */
    return length_bytes > 0 && coverage->count > 0 && interval->begin == 0 &&
           interval->end >= length_bytes;
}
