/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file optimum.h
 * The most prefix hits that any policy could reach on a trace: it keeps the blocks whose next use is
 * nearest, and need not admit a block at all. An ancestor is never needed later than its descendants, so
 * if the deepest goes first among equals, no chain has a hole. One thread.
 */

#ifndef UC_BENCH_OPTIMUM_H
#define UC_BENCH_OPTIMUM_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "tools/bench/trace.h"

struct uc_optimum;

/** Find the next use of every reference, once for all capacities. The trace is borrowed. */
UC_MUST_CHECK enum uc_status uc_optimum_create(
        const struct uc_trace *trace, struct uc_optimum **optimum_out);
void uc_optimum_destroy(struct uc_optimum *optimum);

/** O(n log n) in the references. @return the prefix hits */
uint64_t uc_optimum_prefix_hits(struct uc_optimum *optimum, uint64_t capacity_blocks);

#endif /* UC_BENCH_OPTIMUM_H */
