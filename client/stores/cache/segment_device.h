/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file segment_device.h
 * Workers whose device copies into and out of slots by itself. The kernel drops the lock of a killed one, and tells the
 * driver to stop, in an order of its own: what the worker had in flight is struck out a while later only.
 *
 * Threads: any, but for may_still_copy, which is the owner's.
 */

#ifndef UC_CACHE_STORE_SEGMENT_DEVICE_H
#define UC_CACHE_STORE_SEGMENT_DEVICE_H

#include "client/stores/cache/segment.h"

/** From now on a device copies for this worker. */
void uc_cache_segment_note_device(const struct uc_cache_segment *segment);

/** None does any more for the worker of a row. */
void uc_cache_segment_forget_device(const struct uc_cache_segment *segment, uint32_t row);

/** @return whether the device of a worker that died may still be at it, as far as time tells. */
bool uc_cache_segment_may_still_copy(const struct uc_cache_segment *segment, uint32_t row);

/** @return whether a row, whose worker died, still counts copies of a device: nobody else takes it then. */
bool uc_cache_segment_is_left_to_the_owner(const struct uc_cache_segment *segment, uint32_t row);

#endif /* UC_CACHE_STORE_SEGMENT_DEVICE_H */
