/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/segment_device.h"

#include <ucm/clock.h>

enum {
    DEVICE_GRACE_MS = 1000 /* many times what all copies take that a worker has in flight */
};

void
uc_cache_segment_forget_device(const struct uc_cache_segment *segment, uint32_t row)
{
    (void)atomic_fetch_and(&segment->header->device_rows, ~(1u << row));
    atomic_store(&segment->header->dead_since_ms[row], 0);
}

static bool
has_device(const struct uc_cache_segment *segment, uint32_t row)
{
    return (atomic_load(&segment->header->device_rows) >> row & 1u) != 0;
}

void
uc_cache_segment_note_device(const struct uc_cache_segment *segment)
{
    (void)atomic_fetch_or(&segment->header->device_rows, 1u << segment->row);
}

/*
 * The kernel drops the lock of a killed worker and tells the driver of its device to stop, in an order of its own: a
 * slot is not given away before that is long over.
 */
bool
uc_cache_segment_may_still_copy(const struct uc_cache_segment *segment, uint32_t row)
{
    uint64_t now_ms = uc_clock_now_ns() / 1000000u;
    uint64_t since_ms = 0;

    if (!has_device(segment, row)) {
        return false;
    }
    if (atomic_compare_exchange_strong(
                &segment->header->dead_since_ms[row], &since_ms, now_ms + 1) ||
            now_ms < since_ms + DEVICE_GRACE_MS) {
        return true;
    }
    uc_cache_segment_forget_device(segment, row);
    return false;
}

/* Whoever had the row is dead; its owner has not struck out yet what it had in flight. */
bool
uc_cache_segment_is_left_to_the_owner(const struct uc_cache_segment *segment, uint32_t row)
{
    bool any = false;

    for (uint64_t slot = 0; slot < segment->slot_count && has_device(segment, row); slot++) {
        any = any || atomic_load(uc_cache_segment_count(segment, row, (uint32_t)slot)) != 0;
    }
    return any;
}
