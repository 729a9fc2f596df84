/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file trace_derive.h
 * Traces made from traces, to see whether a result holds beyond the ones it was found on. One thread.
 */

#ifndef UC_BENCH_TRACE_DERIVE_H
#define UC_BENCH_TRACE_DERIVE_H

#include "tools/bench/trace.h"

/**
 * Every step-th request of those from @p first to before @p end, with their times.
 *
 * @retval UC_ERR_INVALID_PARAM  none is left
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_trace_pick(const struct uc_trace *trace, size_t first, size_t end,
        size_t step, struct uc_trace *picked_out);

/**
 * Both traces, merged by their times; of equal times the left one's first. Ids of the right one are moved
 * up, so that they share no block. @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_trace_mix(
        const struct uc_trace *left, const struct uc_trace *right, struct uc_trace *mixed_out);

/** All times by a factor of more than 0. */
void uc_trace_scale_time(struct uc_trace *trace, double factor);

#endif /* UC_BENCH_TRACE_DERIVE_H */
