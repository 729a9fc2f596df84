/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <jansson.h>

#include "tools/bench/store.h"

double
uc_store_phase_gb_per_s(const struct uc_store_phase *phase)
{
    return phase->seconds > 0 ? (double)phase->bytes / phase->seconds / 1e9 : 0;
}

static double
ops_per_s(const struct uc_store_phase *phase)
{
    return phase->seconds > 0 ? (double)phase->ops / phase->seconds : 0;
}

const struct uc_store_phase *
uc_store_report_limit(
        const struct uc_store_report *report, enum uc_store_phase_idx idx, const char **reason_out)
{
    bool is_put = idx == UC_STORE_PUT;
    const struct uc_store_limit *limit = is_put ? &report->limits.put : &report->limits.get;
    enum uc_store_phase_idx yardstick = is_put ? UC_STORE_DIRECT_WRITE : UC_STORE_DIRECT_READ;

    if (limit->kind == UC_STORE_LIMIT_NONE) {
        *reason_out = limit->reason;
        return NULL;
    }
    if (limit->kind == UC_STORE_LIMIT_MEMORY) {
        yardstick = UC_STORE_MEMCPY_COLD;
    }
    if (uc_store_phase_gb_per_s(&report->phases[yardstick]) <= 0) {
        *reason_out = "the medium could not be measured, see standard error";
        return NULL;
    }
    return &report->phases[yardstick];
}

/* Who measured it, as a word. */
static const char *
limit_name(const struct uc_store_report *report, const struct uc_store_phase *limit)
{
    if (limit == &report->phases[UC_STORE_DIRECT_WRITE]) {
        return report->is_fio ? "fio_write" : "io_uring_write";
    }
    if (limit == &report->phases[UC_STORE_DIRECT_READ]) {
        return report->is_fio ? "fio_read" : "io_uring_read";
    }
    return limit->name;
}

static double
ratio(const struct uc_store_phase *phase, const struct uc_store_phase *limit)
{
    return uc_store_phase_gb_per_s(phase) / uc_store_phase_gb_per_s(limit);
}

static json_t *
phase_json(const struct uc_store_phase *phase)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:f}", "ops", (json_int_t)phase->ops, "bytes",
            (json_int_t)phase->bytes, "seconds", phase->seconds, "gbytes_per_s",
            uc_store_phase_gb_per_s(phase), "ops_per_s", ops_per_s(phase));
}

/* Put or get: latencies, and the limit beside it. */
static json_t *
direction_json(const struct uc_store_report *report, enum uc_store_phase_idx idx)
{
    const struct uc_store_phase *phase = &report->phases[idx];
    const char *reason = NULL;
    const struct uc_store_phase *limit = uc_store_report_limit(report, idx, &reason);
    json_t *object = phase_json(phase);

    (void)json_object_set_new(object, "p50_us", json_real(phase->p50_us));
    (void)json_object_set_new(object, "p99_us", json_real(phase->p99_us));
    if (limit == NULL) {
        (void)json_object_set_new(object, "limit", json_null());
        (void)json_object_set_new(object, "ratio", json_null());
        (void)json_object_set_new(object, "reason", json_string(reason));
    } else {
        (void)json_object_set_new(object, "limit",
                json_pack("{s:s, s:f}", "name", limit_name(report, limit), "gbytes_per_s",
                        uc_store_phase_gb_per_s(limit)));
        (void)json_object_set_new(object, "ratio", json_real(ratio(phase, limit)));
    }
    return object;
}

static void
add_counts(const struct uc_store_report *report, json_t *root)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
            {"verified_bytes", report->verified_bytes},
            {"missing_blocks", report->missing_blocks},
            {"refused_blocks", report->refused_blocks},
            {"failed_blocks", report->failed_blocks},
            {"mismatches", report->mismatches},
            {"errors", report->errors},
    };

    for (size_t idx = 0; idx < sizeof(counts) / sizeof(counts[0]); idx++) {
        (void)json_object_set_new(
                root, counts[idx].key, json_integer((json_int_t)counts[idx].value));
    }
}

static void
print_json(const struct uc_store_options *options, const struct uc_store_report *report, FILE *file)
{
    uint64_t working_set = 2 * options->blocks * options->block_bytes;
    json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "mode", "store", "config",
            options->config_path, "blocks", (json_int_t)options->blocks, "block_bytes",
            (json_int_t)options->block_bytes, "depth", (json_int_t)options->depth,
            "working_set_bytes", (json_int_t)working_set, "last_level_cache_bytes",
            (json_int_t)options->cache_bytes, "sweeps", (json_int_t)report->sweeps);

    (void)json_object_set_new(root, "put", direction_json(report, UC_STORE_PUT));
    (void)json_object_set_new(root, "get", direction_json(report, UC_STORE_GET));
    for (size_t idx = UC_STORE_GET + 1; idx < UC_STORE_PHASE_COUNT; idx++) {
        const struct uc_store_phase *phase = &report->phases[idx];

        if (phase->name != NULL) {
            (void)json_object_set_new(root, phase->name, phase_json(phase));
        }
    }
    add_counts(report, root);

    (void)json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(root);
}

/* What a row says beside its rate: percentiles and limit of put and get, nothing for yardsticks. */
static void
print_direction(const struct uc_store_report *report, enum uc_store_phase_idx idx, FILE *file)
{
    const struct uc_store_phase *phase = &report->phases[idx];
    const char *reason = NULL;
    const struct uc_store_phase *limit = uc_store_report_limit(report, idx, &reason);

    (void)fprintf(file, " %12.1f %12.1f", phase->p50_us, phase->p99_us);
    if (limit == NULL) {
        (void)fprintf(file, "  no limit (%s)\n", reason);
    } else {
        (void)fprintf(file, "  %.3f of %s\n", ratio(phase, limit), limit_name(report, limit));
    }
}

static void
print_table(
        const struct uc_store_options *options, const struct uc_store_report *report, FILE *file)
{
    (void)fprintf(file,
            "topology %s, %" PRIu64 " blocks of %" PRIu64 " bytes, %" PRIu64 " in flight, %" PRIu64
            " sweeps\n\n%-14s %10s %12s %12s %12s\n",
            options->config_path, options->blocks, options->block_bytes, options->depth,
            report->sweeps, "", "GB/s", "blocks/s", "p50 (us)", "p99 (us)");
    for (size_t idx = 0; idx < UC_STORE_PHASE_COUNT; idx++) {
        const struct uc_store_phase *phase = &report->phases[idx];

        if (phase->name == NULL) {
            continue;
        }
        (void)fprintf(file, "%-14s %10.3f %12.0f", phase->name, uc_store_phase_gb_per_s(phase),
                ops_per_s(phase));
        if (idx <= UC_STORE_GET) {
            print_direction(report, (enum uc_store_phase_idx)idx, file);
        } else {
            (void)fputc('\n', file);
        }
    }
    if (2 * options->blocks * options->block_bytes < 2 * options->cache_bytes) {
        (void)fputs("\nSource and target are less than twice the last-level cache: give more "
                    "--blocks.\n",
                file);
    }
    (void)fprintf(file,
            "\n%" PRIu64 " bytes read back and compared, %" PRIu64 " blocks wrong, %" PRIu64
            " missing, %" PRIu64 " refused, %" PRIu64 " not transferred, %" PRIu64
            " calls failed\n",
            report->verified_bytes, report->mismatches, report->missing_blocks,
            report->refused_blocks, report->failed_blocks, report->errors);
}

void
uc_store_report_print(
        const struct uc_store_options *options, const struct uc_store_report *report, FILE *file)
{
    if (options->json) {
        print_json(options, report, file);
    } else {
        print_table(options, report, file);
    }
}
