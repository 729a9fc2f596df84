/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <jansson.h>

#include "tools/bench/store.h"

static double
ops_per_s(const struct uc_store_report *report, enum uc_store_phase_idx idx)
{
    const struct uc_store_phase *phase = &report->phases[idx];
    double rate = uc_store_rounds_rate(&report->rounds, idx).median;

    return phase->bytes > 0 ? rate * 1e9 * (double)phase->ops / (double)phase->bytes : 0;
}

/*
 * What bounds put or get.
 *
 * @param[out] reason_out  why there is no limit, static storage; NULL if there is
 * @return the phase that measured it, UC_STORE_PHASE_COUNT = there is none
 */
static enum uc_store_phase_idx
limit_phase(
        const struct uc_store_report *report, enum uc_store_phase_idx idx, const char **reason_out)
{
    bool is_put = idx == UC_STORE_PUT;
    const struct uc_store_limit *limit = is_put ? &report->limits.put : &report->limits.get;
    enum uc_store_phase_idx yardstick = is_put ? UC_STORE_NEW_FILES : UC_STORE_READ;

    if (limit->kind == UC_STORE_LIMIT_NONE) {
        *reason_out = limit->reason;
        return UC_STORE_PHASE_COUNT;
    }
    if (limit->kind == UC_STORE_LIMIT_MEMORY) {
        yardstick = UC_STORE_MEMCPY_COLD;
    }
    if (uc_store_rounds_rate(&report->rounds, yardstick).median <= 0) {
        *reason_out = "the medium could not be measured, see standard error";
        return UC_STORE_PHASE_COUNT;
    }
    *reason_out = NULL;
    return yardstick;
}

/* Who measured it, as a word. */
static const char *
limit_name(const struct uc_store_report *report, enum uc_store_phase_idx limit)
{
    static const char *const names[UC_STORE_PHASE_COUNT][2] = {
            [UC_STORE_MEMCPY_COLD] = {"memcpy_cold", "memcpy_cold"},
            [UC_STORE_NEW_FILES] = {"io_uring_new_files", "fio_new_files"},
            [UC_STORE_ONE_FILE] = {"io_uring_one_file", "fio_one_file"},
            [UC_STORE_OVERWRITE] = {"io_uring_overwrite", "fio_overwrite"},
            [UC_STORE_READ] = {"io_uring_read", "fio_read"},
    };

    return names[limit][report->is_fio];
}

/*
 * The last of what a phase is compared with, from the limit on: puts to new files also with the two ways to write that
 * need no new space, which are no limit of theirs but tell what the space costs.
 */
static enum uc_store_phase_idx
last_limit(enum uc_store_phase_idx limit)
{
    return limit == UC_STORE_NEW_FILES ? UC_STORE_OVERWRITE : limit;
}

static json_t *
phase_json(const struct uc_store_report *report, enum uc_store_phase_idx idx)
{
    const struct uc_store_phase *phase = &report->phases[idx];
    struct uc_store_median rate = uc_store_rounds_rate(&report->rounds, idx);
    json_t *rounds = json_array();

    for (size_t at = 0; at < report->rounds.count; at++) {
        (void)json_array_append_new(rounds, json_real(report->rounds.list[at].rates[idx]));
    }
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o}", "ops", (json_int_t)phase->ops,
            "bytes", (json_int_t)phase->bytes, "seconds", phase->seconds, "gbytes_per_s",
            rate.median, "gbytes_per_s_min", rate.min, "gbytes_per_s_max", rate.max, "ops_per_s",
            ops_per_s(report, idx), "rounds", rounds);
}

static json_t *
limit_json(const struct uc_store_report *report, enum uc_store_phase_idx idx,
        enum uc_store_phase_idx limit)
{
    struct uc_store_median ratio = uc_store_rounds_ratio(&report->rounds, idx, limit);

    return json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", limit_name(report, limit), "gbytes_per_s",
            uc_store_rounds_rate(&report->rounds, limit).median, "ratio", ratio.median, "ratio_min",
            ratio.min, "ratio_max", ratio.max);
}

/* Put or get: latencies, and beside it the limit and what else it is compared with. */
static json_t *
direction_json(const struct uc_store_report *report, enum uc_store_phase_idx idx)
{
    const struct uc_store_phase *phase = &report->phases[idx];
    const char *reason = NULL;
    enum uc_store_phase_idx limit = limit_phase(report, idx, &reason);
    json_t *object = phase_json(report, idx);
    json_t *limits = json_array();

    (void)json_object_set_new(object, "p50_us", json_real(phase->p50_us));
    (void)json_object_set_new(object, "p99_us", json_real(phase->p99_us));
    if (reason != NULL) {
        (void)json_object_set_new(object, "limit", json_null());
        (void)json_object_set_new(object, "ratio", json_null());
        (void)json_object_set_new(object, "reason", json_string(reason));
    } else {
        json_t *first = limit_json(report, idx, limit);

        (void)json_object_set(object, "ratio", json_object_get(first, "ratio"));
        (void)json_object_set_new(object, "limit", first);
        for (size_t at = limit; at <= last_limit(limit); at++) {
            (void)json_array_append_new(
                    limits, limit_json(report, idx, (enum uc_store_phase_idx)at));
        }
    }
    (void)json_object_set_new(object, "limits", limits);
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
            (json_int_t)options->cache_bytes, "sweeps", (json_int_t)report->rounds.count);

    (void)json_object_set_new(root, "huge_pages", json_boolean(report->huge_pages));
    (void)json_object_set_new(root, "put", direction_json(report, UC_STORE_PUT));
    (void)json_object_set_new(root, "get", direction_json(report, UC_STORE_GET));
    for (size_t idx = UC_STORE_GET + 1; idx < UC_STORE_PHASE_COUNT; idx++) {
        const char *name = report->phases[idx].name;

        if (name != NULL) {
            (void)json_object_set_new(root, name, phase_json(report, (enum uc_store_phase_idx)idx));
        }
    }
    add_counts(report, root);

    (void)json_dumpf(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(root);
}

/* What a row says beside its rate: percentiles and limits of put and get, nothing for yardsticks. */
static void
print_direction(const struct uc_store_report *report, enum uc_store_phase_idx idx, FILE *file)
{
    const struct uc_store_phase *phase = &report->phases[idx];
    const char *reason = NULL;
    enum uc_store_phase_idx limit = limit_phase(report, idx, &reason);

    (void)fprintf(file, " %12.1f %12.1f", phase->p50_us, phase->p99_us);
    if (reason != NULL) {
        (void)fprintf(file, "  no limit (%s)\n", reason);
        return;
    }
    for (size_t at = limit; at <= last_limit(limit); at++) {
        (void)fprintf(file, "%s%.3f of %s", at == limit ? "  " : ", ",
                uc_store_rounds_ratio(&report->rounds, idx, (enum uc_store_phase_idx)at).median,
                limit_name(report, (enum uc_store_phase_idx)at));
    }
    (void)fputc('\n', file);
}

static void
print_table(
        const struct uc_store_options *options, const struct uc_store_report *report, FILE *file)
{
    (void)fprintf(file,
            "topology %s, %" PRIu64 " blocks of %" PRIu64 " bytes, %" PRIu64 " in flight, %" PRIu64
            " sweeps (medians)\n\n%-16s %10s %12s %12s %12s\n",
            options->config_path, options->blocks, options->block_bytes, options->depth,
            (uint64_t)report->rounds.count, "", "GB/s", "blocks/s", "p50 (us)", "p99 (us)");
    for (enum uc_store_phase_idx idx = UC_STORE_PUT; idx < UC_STORE_PHASE_COUNT; idx++) {
        const struct uc_store_phase *phase = &report->phases[idx];

        if (phase->name == NULL) {
            continue;
        }
        (void)fprintf(file, "%-16s %10.3f %12.0f", phase->name,
                uc_store_rounds_rate(&report->rounds, idx).median, ops_per_s(report, idx));
        if (idx <= UC_STORE_GET) {
            print_direction(report, idx, file);
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
