/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/curve.h"

#include <stdlib.h>

#include <ucm/clock.h>

#include "tools/bench/optimum.h"
#include "tools/bench/simulate.h"

static enum uc_status
read_policies(struct uc_curve *curve, const char *list)
{
    while (list != NULL) {
        enum uc_status status;

        if (curve->policy_count == UC_CURVE_POLICIES_MAX) {
            return uc_error(
                    UC_ERR_INVALID_PARAM, "--policy: more than %d policies", UC_CURVE_POLICIES_MAX);
        }
        status = uc_policy_spec_take(&list, &curve->policies[curve->policy_count]);
        if (status != UC_OK) {
            return status;
        }
        curve->policy_count++;
    }

    return UC_OK;
}

static enum uc_status
run_policies(struct uc_curve *curve, const struct uc_trace *trace,
        const struct uc_replay_options *options)
{
    struct uc_replay_options one = *options;

    for (size_t policy = 0; policy < curve->policy_count; policy++) {
        for (size_t idx = 0; idx < curve->capacities.count; idx++) {
            enum uc_status status;

            one.policy = curve->policies[policy].text;
            one.capacity_blocks = curve->capacities.blocks[idx];
            status = uc_simulate_run(trace, &one, &curve->counts[policy][idx]);
            if (status != UC_OK) {
                return status;
            }
        }
    }

    return UC_OK;
}

static enum uc_status
run_optimum(struct uc_curve *curve, const struct uc_trace *trace)
{
    struct uc_optimum *optimum;
    enum uc_status status = uc_optimum_create(trace, &optimum);

    if (status != UC_OK) {
        return status;
    }

    for (size_t idx = 0; idx < curve->capacities.count; idx++) {
        curve->optimum_hits[idx] = uc_optimum_prefix_hits(optimum, curve->capacities.blocks[idx]);
    }
    uc_optimum_destroy(optimum);
    return UC_OK;
}

enum uc_status
uc_curve_run(const struct uc_trace *trace, const struct uc_replay_options *options,
        struct uc_curve **curve_out)
{
    struct uc_curve *curve = calloc(1, sizeof(*curve));
    uint64_t start_ns = uc_clock_now_ns();
    enum uc_status status;

    if (curve == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "curve: no memory");
    }

    curve->capacities = options->capacities;
    curve->requests = trace->request_count;
    curve->block_refs = trace->hash_id_count;
    status = read_policies(curve, options->policy);
    if (status == UC_OK) {
        status = run_policies(curve, trace, options);
    }
    if (status == UC_OK) {
        status = run_optimum(curve, trace);
    }
    if (status != UC_OK) {
        uc_curve_destroy(curve);
        return status;
    }

    curve->seconds = (double)(uc_clock_now_ns() - start_ns) / 1e9;
    *curve_out = curve;
    return UC_OK;
}

void
uc_curve_destroy(struct uc_curve *curve)
{
    if (curve == NULL) {
        return;
    }

    for (size_t policy = 0; policy < curve->policy_count; policy++) {
        uc_policy_spec_fini(&curve->policies[policy]);
    }
    free(curve);
}

double
uc_curve_hit_pct(const struct uc_curve *curve, uint64_t hits)
{
    return curve->block_refs == 0 ? 0 : 100.0 * (double)hits / (double)curve->block_refs;
}
