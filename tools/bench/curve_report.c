/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "tools/bench/curve.h"

enum {
    COLUMN_CHARACTERS = 10 /* at least */
};

static json_t *
describe_point(const struct uc_curve *curve, const char *policy, size_t idx, uint64_t hits)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:f}", "policy", policy, "capacity_blocks",
            (json_int_t)curve->capacities.blocks[idx], "block_refs", (json_int_t)curve->block_refs,
            "prefix_hits", (json_int_t)hits, "hit_pct", uc_curve_hit_pct(curve, hits));
}

static json_t *
describe_points(const struct uc_curve *curve)
{
    json_t *points = json_array();

    for (size_t policy = 0; policy < curve->policy_count; policy++) {
        for (size_t idx = 0; idx < curve->capacities.count; idx++) {
            const struct uc_replay_counts *counts = &curve->counts[policy][idx];
            json_t *point =
                    describe_point(curve, curve->policies[policy].text, idx, counts->prefix_hits);

            (void)json_object_set_new(
                    point, "written_blocks", json_integer((json_int_t)counts->written_blocks));
            (void)json_object_set_new(
                    point, "evicted_blocks", json_integer((json_int_t)counts->evicted_blocks));
            (void)json_object_set_new(
                    point, "refused_puts", json_integer((json_int_t)counts->refused_puts));
            (void)json_object_set_new(point, "seconds", json_real(counts->seconds));
            (void)json_array_append_new(points, point);
        }
    }
    for (size_t idx = 0; idx < curve->capacities.count; idx++) {
        (void)json_array_append_new(
                points, describe_point(curve, "optimum", idx, curve->optimum_hits[idx]));
    }
    return points;
}

static void
print_json(const struct uc_replay_options *options, const struct uc_curve *curve, FILE *file)
{
    json_t *root = json_pack("{s:s, s:I, s:I, s:I, s:f}", "mode", "simulate", "nodes",
            (json_int_t)options->nodes, "requests", (json_int_t)curve->requests, "block_refs",
            (json_int_t)curve->block_refs, "seconds", curve->seconds);

    uc_replay_describe_trace(options, root);
    (void)json_object_set_new(root, "curve", describe_points(curve));
    (void)json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(root);
}

static int
column_of(const struct uc_policy_spec *policy)
{
    size_t length = strlen(policy->text) + 2;

    return length > COLUMN_CHARACTERS ? (int)length : COLUMN_CHARACTERS;
}

static void
print_table(const struct uc_replay_options *options, const struct uc_curve *curve, FILE *file)
{
    uc_replay_print_trace(options, file);
    (void)fprintf(file,
            ": %" PRIu64 " requests, %" PRIu64 " block references\n"
            "prefix hits in %% of the references, index alone (simulated)\n\n%12s",
            curve->requests, curve->block_refs, "blocks");
    for (size_t policy = 0; policy < curve->policy_count; policy++) {
        (void)fprintf(
                file, "%*s", column_of(&curve->policies[policy]), curve->policies[policy].text);
    }
    (void)fprintf(file, "%*s\n", COLUMN_CHARACTERS, "optimum");

    for (size_t idx = 0; idx < curve->capacities.count; idx++) {
        (void)fprintf(file, "%12" PRIu64, curve->capacities.blocks[idx]);
        for (size_t policy = 0; policy < curve->policy_count; policy++) {
            (void)fprintf(file, "%*.2f", column_of(&curve->policies[policy]),
                    uc_curve_hit_pct(curve, curve->counts[policy][idx].prefix_hits));
        }
        (void)fprintf(file, "%*.2f\n", COLUMN_CHARACTERS,
                uc_curve_hit_pct(curve, curve->optimum_hits[idx]));
    }
    (void)fprintf(file, "\n%.1f s\n", curve->seconds);
}

void
uc_curve_print(const struct uc_replay_options *options, const struct uc_curve *curve, FILE *file)
{
    if (options->json) {
        print_json(options, curve, file);
    } else {
        print_table(options, curve, file);
    }
}
