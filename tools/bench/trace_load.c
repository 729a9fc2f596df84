/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/trace_load.h"

#include <string.h>

#include "tools/bench/trace_derive.h"

static enum uc_status
load_first(const struct uc_replay_options *options, struct uc_trace *trace_out)
{
    uint64_t requests = options->generate.requests;

    if (options->trace_path != NULL) {
        return uc_trace_read(options->trace_path, options->limit, trace_out);
    }

    if (options->limit > 0 && options->limit < requests) {
        requests = options->limit;
    }
    return uc_trace_generate(options->generate.seed, requests, trace_out);
}

/* Put @p derived in the place of @p trace if it was made. */
static enum uc_status
replace(struct uc_trace *trace, struct uc_trace *derived, enum uc_status status)
{
    if (status == UC_OK) {
        uc_trace_fini(trace);
        *trace = *derived;
    }
    return status;
}

static enum uc_status
mix(const struct uc_replay_options *options, struct uc_trace *trace)
{
    struct uc_trace second;
    struct uc_trace mixed;
    enum uc_status status = uc_trace_read(options->mix_path, options->limit, &second);

    if (status != UC_OK) {
        return status;
    }

    status = replace(trace, &mixed, uc_trace_mix(trace, &second, &mixed));
    uc_trace_fini(&second);
    return status;
}

static enum uc_status
derive(const struct uc_replay_options *options, struct uc_trace *trace)
{
    enum uc_status status = options->mix_path == NULL ? UC_OK : mix(options, trace);
    struct uc_trace picked;
    size_t first = 0;
    size_t end;

    if (status != UC_OK) {
        return status;
    }

    end = trace->request_count;
    if (strcmp(options->half, "first") == 0) {
        end = end / 2;
    } else if (strcmp(options->half, "second") == 0) {
        first = end / 2;
    }
    if (first > 0 || end < trace->request_count || options->thin > 1) {
        status = replace(
                trace, &picked, uc_trace_pick(trace, first, end, (size_t)options->thin, &picked));
    }
    if (status == UC_OK) {
        uc_trace_scale_time(trace, options->time_scale);
    }
    return status;
}

enum uc_status
uc_trace_load(const struct uc_replay_options *options, struct uc_trace *trace_out)
{
    struct uc_trace trace;
    enum uc_status status = load_first(options, &trace);

    if (status != UC_OK) {
        return status;
    }

    status = derive(options, &trace);
    if (status != UC_OK) {
        uc_trace_fini(&trace);
        return status;
    }

    *trace_out = trace;
    return UC_OK;
}
