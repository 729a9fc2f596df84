/* SPDX-License-Identifier: Apache-2.0 */

/** @file replay.h Replay of a trace against a server, through the client library. */

#ifndef UC_BENCH_REPLAY_H
#define UC_BENCH_REPLAY_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "tools/bench/replay_report.h"
#include "tools/bench/trace.h"

/** @param[out] report_out  set on success only; wrong bytes and failed calls are counted in it */
UC_MUST_CHECK enum uc_status uc_replay_run(const struct uc_trace *trace,
        const struct uc_replay_options *options, struct uc_replay_report *report_out);

#endif /* UC_BENCH_REPLAY_H */
