/* SPDX-License-Identifier: Apache-2.0 */

/** @file trace_load.h The trace that the options of a replay describe. One thread. */

#ifndef UC_BENCH_TRACE_LOAD_H
#define UC_BENCH_TRACE_LOAD_H

#include "tools/bench/replay_options.h"
#include "tools/bench/trace.h"

/** Read or generate it, then mix, halve, thin and stretch it, in this order. Errors of the steps. */
UC_MUST_CHECK enum uc_status uc_trace_load(
        const struct uc_replay_options *options, struct uc_trace *trace_out);

#endif /* UC_BENCH_TRACE_LOAD_H */
