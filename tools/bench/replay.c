/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay.h"

enum uc_status
uc_replay_run(const struct uc_trace *trace, const struct uc_replay_options *options,
        struct uc_replay_report *report_out)
{
    (void)trace;
    (void)options;
    (void)report_out;
    return uc_error(UC_ERR_UNSUPPORTED,
            "a replay against a server needs the client library, which this build does not have; "
            "--simulate works without");
}
