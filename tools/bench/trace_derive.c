/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/trace_derive.h"

#include <stdbool.h>

enum uc_status
uc_trace_pick(const struct uc_trace *trace, size_t first, size_t end, size_t step,
        struct uc_trace *picked_out)
{
    struct uc_trace picked = {0};
    enum uc_status status = UC_OK;

    for (size_t idx = first; idx < end && status == UC_OK; idx += step) {
        const struct uc_trace_request *request = &trace->requests[idx];

        status = uc_trace_add(&picked, request, uc_trace_hash_ids(trace, request), request->count);
        if (end - idx <= step) {
            break; /* before the sum can wrap */
        }
    }
    if (status == UC_OK && picked.request_count == 0) {
        status = uc_error(
                UC_ERR_INVALID_PARAM, "trace: no request is left of %zu", trace->request_count);
    }
    if (status != UC_OK) {
        uc_trace_fini(&picked);
        return status;
    }

    *picked_out = picked;
    return UC_OK;
}

static uint64_t
first_unused_id(const struct uc_trace *trace)
{
    uint64_t unused = 0;

    for (size_t idx = 0; idx < trace->hash_id_count; idx++) {
        if (trace->hash_ids[idx] >= unused) {
            unused = trace->hash_ids[idx] + 1;
        }
    }
    return unused;
}

/* Add a request whose ids are moved up by @p offset. */
static enum uc_status
add_moved(struct uc_trace *mixed, const struct uc_trace *trace,
        const struct uc_trace_request *request, uint64_t offset)
{
    enum uc_status status =
            uc_trace_add(mixed, request, uc_trace_hash_ids(trace, request), request->count);
    uint64_t *ids;

    if (status != UC_OK) {
        return status;
    }

    ids = mixed->hash_ids + mixed->hash_id_count - request->count;
    for (size_t idx = 0; idx < request->count; idx++) {
        ids[idx] += offset;
    }
    return UC_OK;
}

enum uc_status
uc_trace_mix(const struct uc_trace *left, const struct uc_trace *right, struct uc_trace *mixed_out)
{
    uint64_t offset = first_unused_id(left);
    struct uc_trace mixed = {0};
    enum uc_status status = UC_OK;
    size_t at_left = 0;
    size_t at_right = 0;

    while (status == UC_OK && (at_left < left->request_count || at_right < right->request_count)) {
        bool is_left =
                at_right == right->request_count ||
                (at_left < left->request_count && left->requests[at_left].timestamp_ms <=
                                                          right->requests[at_right].timestamp_ms);

        status = is_left ? add_moved(&mixed, left, &left->requests[at_left++], 0)
                         : add_moved(&mixed, right, &right->requests[at_right++], offset);
    }
    if (status != UC_OK) {
        uc_trace_fini(&mixed);
        return status;
    }

    *mixed_out = mixed;
    return UC_OK;
}

void
uc_trace_scale_time(struct uc_trace *trace, double factor)
{
    for (size_t idx = 0; idx < trace->request_count; idx++) {
        double scaled_ms = (double)trace->requests[idx].timestamp_ms * factor;

        trace->requests[idx].timestamp_ms =
                scaled_ms < (double)INT64_MAX ? (uint64_t)scaled_ms : (uint64_t)INT64_MAX;
    }
}
