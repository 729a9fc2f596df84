/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file simulate.h
 * Replay of a trace against the index alone: no server, no bytes. What a real replay of the same trace
 * with the same capacity and policy counts must be the same. One thread.
 */

#ifndef UC_BENCH_SIMULATE_H
#define UC_BENCH_SIMULATE_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "tools/bench/replay_report.h"
#include "tools/bench/trace.h"

/**
 * Requests go to `nodes` nodes in turn; each pins its contiguous present prefix, unpins it, and puts the
 * rest. The trace's timestamps drive the clock.
 *
 * @retval UC_ERR_INVALID_PARAM  nodes, capacity or policy
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_simulate_run(const struct uc_trace *trace,
        const struct uc_replay_options *options, struct uc_replay_counts *counts_out);

#endif /* UC_BENCH_SIMULATE_H */
