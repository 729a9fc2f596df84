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

static double
ratio(const struct uc_store_report *report, enum uc_store_phase_idx phase,
        enum uc_store_phase_idx yardstick)
{
    double whole = uc_store_phase_gb_per_s(&report->phases[yardstick]);

    return whole > 0 ? uc_store_phase_gb_per_s(&report->phases[phase]) / whole : 0;
}

static void
print_json(const struct uc_store_options *options, const struct uc_store_report *report, FILE *file)
{
    json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "mode", "store", "config",
            options->config_path, "blocks", (json_int_t)options->blocks, "block_bytes",
            (json_int_t)options->block_bytes, "depth", (json_int_t)options->depth, "sweeps",
            (json_int_t)report->sweeps);
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

    for (size_t idx = 0; idx < UC_STORE_PHASE_COUNT; idx++) {
        const struct uc_store_phase *phase = &report->phases[idx];

        if (phase->name != NULL) {
            (void)json_object_set_new(root, phase->name,
                    json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "ops", (json_int_t)phase->ops,
                            "bytes", (json_int_t)phase->bytes, "seconds", phase->seconds,
                            "gb_per_s", uc_store_phase_gb_per_s(phase), "ops_per_s",
                            ops_per_s(phase), "p50_us", phase->p50_us, "p99_us", phase->p99_us));
        }
    }
    (void)json_object_set_new(
            root, "put_of_memcpy", json_real(ratio(report, UC_STORE_PUT, UC_STORE_MEMCPY)));
    (void)json_object_set_new(
            root, "get_of_memcpy", json_real(ratio(report, UC_STORE_GET, UC_STORE_MEMCPY)));
    if (report->phases[UC_STORE_DIRECT_WRITE].name != NULL) {
        (void)json_object_set_new(root, "put_of_direct",
                json_real(ratio(report, UC_STORE_PUT, UC_STORE_DIRECT_WRITE)));
        (void)json_object_set_new(root, "get_of_direct",
                json_real(ratio(report, UC_STORE_GET, UC_STORE_DIRECT_READ)));
    }
    for (size_t idx = 0; idx < sizeof(counts) / sizeof(counts[0]); idx++) {
        (void)json_object_set_new(
                root, counts[idx].key, json_integer((json_int_t)counts[idx].value));
    }

    (void)json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(root);
}

static void
print_table(
        const struct uc_store_options *options, const struct uc_store_report *report, FILE *file)
{
    (void)fprintf(file,
            "topology %s, %" PRIu64 " blocks of %" PRIu64 " bytes, %" PRIu64 " in flight, %" PRIu64
            " sweeps\n\n%-14s %10s %12s %12s %12s %12s\n",
            options->config_path, options->blocks, options->block_bytes, options->depth,
            report->sweeps, "", "GB/s", "of memcpy", "blocks/s", "p50 (us)", "p99 (us)");
    for (size_t idx = 0; idx < UC_STORE_PHASE_COUNT; idx++) {
        const struct uc_store_phase *phase = &report->phases[idx];

        if (phase->name == NULL) {
            continue;
        }
        (void)fprintf(file, "%-14s %10.3f %12.3f %12.0f %12.1f %12.1f\n", phase->name,
                uc_store_phase_gb_per_s(phase),
                ratio(report, (enum uc_store_phase_idx)idx, UC_STORE_MEMCPY), ops_per_s(phase),
                phase->p50_us, phase->p99_us);
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
