/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file index_yardstick.h
 * What this machine can do at best: random reads of one cache line over a footprint, on memory that was asked
 * for as the cache asks for its own. One thread.
 */

#ifndef UC_BENCH_INDEX_YARDSTICK_H
#define UC_BENCH_INDEX_YARDSTICK_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_yardstick;

/** @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_yardstick_create(
        size_t footprint_bytes, struct uc_yardstick **yardstick_out);
void uc_yardstick_destroy(struct uc_yardstick *yardstick);

/** @return nanoseconds of @p count reads whose addresses are known beforehand: many are in flight. */
uint64_t uc_yardstick_independent_ns(struct uc_yardstick *yardstick, uint64_t count);

/** @return nanoseconds of @p count reads each of which decides the address of the next. */
uint64_t uc_yardstick_dependent_ns(struct uc_yardstick *yardstick, uint64_t count);

#endif /* UC_BENCH_INDEX_YARDSTICK_H */
