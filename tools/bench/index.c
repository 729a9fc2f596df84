/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/index.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/index_cache.h"
#include "tools/bench/index_yardstick.h"

enum {
    YARDSTICK_READS = 65536
};

struct measurement {
    const char *operation;
    size_t batch;
    uc_index_measure_fn measure;
};

static const struct measurement measurements[] = {
        {"lookup_hit", 1, uc_index_lookup_hit},
        {"lookup_hit", 32, uc_index_lookup_hit},
        {"lookup_hit", 256, uc_index_lookup_hit},
        {"lookup_miss", 1, uc_index_lookup_miss},
        {"lookup_miss", 32, uc_index_lookup_miss},
        {"lookup_miss", 256, uc_index_lookup_miss},
        {"alloc_commit", 64, uc_index_alloc_commit},
        {"alloc_commit_evict", 64, uc_index_alloc_commit_evict},
        {"pin_unpin", 64, uc_index_pin_unpin},
};

enum {
    MEASUREMENT_COUNT = sizeof(measurements) / sizeof(measurements[0]),
    RUN_COUNT = MEASUREMENT_COUNT + 2 /* the yardstick */
};

/* Rates of one size, round by round. */
struct rates {
    double (*rounds)[RUN_COUNT];
    size_t count;
};

static double
rate(uint64_t count, uint64_t ns)
{
    return ns == 0 ? 0 : (double)count * 1e9 / (double)ns;
}

static enum uc_status
measure_one(struct uc_index_cache *cache, const struct measurement *measurement, uint64_t round_ns,
        double *per_s_out)
{
    uint64_t total_ns = 0;
    uint64_t total = 0;

    while (total_ns < round_ns) {
        uint64_t count = 0;
        uint64_t ns = 0;
        enum uc_status status = measurement->measure(cache, measurement->batch, &ns, &count);

        if (status != UC_OK) {
            return status;
        }
        total_ns += ns;
        total += count;
    }

    *per_s_out = rate(total, total_ns);
    return UC_OK;
}

static double
measure_reads(struct uc_yardstick *yardstick, uint64_t round_ns,
        uint64_t (*reads)(struct uc_yardstick *yardstick, uint64_t count))
{
    uint64_t total_ns = 0;
    uint64_t total = 0;

    while (total_ns < round_ns) {
        total_ns += reads(yardstick, YARDSTICK_READS);
        total += YARDSTICK_READS;
    }

    return rate(total, total_ns);
}

/* All measurements in turn: what disturbs the machine for a while disturbs the yardstick as well. */
static enum uc_status
measure_round(struct uc_index_cache *cache, struct uc_yardstick *yardstick, uint64_t round_ns,
        double *per_s)
{
    for (size_t idx = 0; idx < MEASUREMENT_COUNT; idx++) {
        enum uc_status status = measure_one(cache, &measurements[idx], round_ns, &per_s[idx]);

        if (status != UC_OK) {
            return status;
        }
    }

    per_s[MEASUREMENT_COUNT] = measure_reads(yardstick, round_ns, uc_yardstick_independent_ns);
    per_s[MEASUREMENT_COUNT + 1] = measure_reads(yardstick, round_ns, uc_yardstick_dependent_ns);
    return UC_OK;
}

static int
compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return a < b ? -1 : a > b ? 1 : 0;
}

static double
best_of(const struct rates *rates, size_t run)
{
    double best = 0;

    for (size_t round = 0; round < rates->count; round++) {
        best = rates->rounds[round][run] > best ? rates->rounds[round][run] : best;
    }
    return best;
}

static double
median_ratio(const struct rates *rates, size_t run)
{
    double ratios[UC_INDEX_ROUNDS_MAX];

    for (size_t round = 0; round < rates->count; round++) {
        ratios[round] = rates->rounds[round][run] / rates->rounds[round][MEASUREMENT_COUNT];
    }
    qsort(ratios, rates->count, sizeof(ratios[0]), compare_doubles);
    return ratios[rates->count / 2];
}

static void
summarise(const struct rates *rates, struct uc_index_size_report *report)
{
    report->run_count = RUN_COUNT;
    for (size_t run = 0; run < RUN_COUNT; run++) {
        report->runs[run] = (struct uc_index_run){
                .per_s = best_of(rates, run),
                .ratio = median_ratio(rates, run),
        };
        if (run < MEASUREMENT_COUNT) {
            report->runs[run].operation = measurements[run].operation;
            report->runs[run].batch = measurements[run].batch;
        }
    }
    report->runs[MEASUREMENT_COUNT].operation = "random_reads";
    report->runs[MEASUREMENT_COUNT + 1].operation = "random_reads_dependent";
}

static enum uc_status
measure_rounds(struct uc_index_cache *cache, struct uc_yardstick *yardstick,
        const struct uc_index_options *options, struct uc_index_size_report *report)
{
    struct rates rates = {.count = (size_t)options->rounds};
    enum uc_status status = UC_OK;

    rates.rounds = calloc(rates.count, sizeof(rates.rounds[0]));
    if (rates.rounds == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "index: no memory for %zu rounds", rates.count);
    }

    for (size_t round = 0; round < rates.count && status == UC_OK; round++) {
        status = measure_round(cache, yardstick, options->round_ms * 1000000, rates.rounds[round]);
    }
    if (status == UC_OK) {
        summarise(&rates, report);
    }
    free(rates.rounds);
    return status;
}

static enum uc_status
measure_size(const struct uc_index_options *options, uint64_t blocks,
        struct uc_index_size_report *report)
{
    struct uc_index_cache *cache;
    struct uc_yardstick *yardstick;
    enum uc_status status = uc_index_cache_create(options->policy, (size_t)blocks, &cache);
    size_t memory_bytes;

    if (status != UC_OK) {
        return status;
    }

    memory_bytes = uc_index_cache_memory_bytes(cache);
    status = uc_yardstick_create(memory_bytes, &yardstick);
    if (status != UC_OK) {
        goto out_destroy_cache;
    }

    report->blocks = blocks;
    report->bytes_per_block = (double)memory_bytes / (double)blocks;
    status = measure_rounds(cache, yardstick, options, report);
    uc_yardstick_destroy(yardstick);
out_destroy_cache:
    uc_index_cache_destroy(cache);
    return status;
}

enum uc_status
uc_index_run(const struct uc_index_options *options, struct uc_index_report *report_out)
{
    struct uc_index_report report = {.size_count = options->size_count};

    for (size_t idx = 0; idx < options->size_count; idx++) {
        enum uc_status status = measure_size(options, options->blocks[idx], &report.sizes[idx]);

        if (status != UC_OK) {
            return status;
        }
    }

    *report_out = report;
    return UC_OK;
}

const struct uc_index_run *
uc_index_find_run(const struct uc_index_size_report *report, const char *operation, uint64_t batch)
{
    for (size_t idx = 0; idx < report->run_count; idx++) {
        if (strcmp(report->runs[idx].operation, operation) == 0 &&
                report->runs[idx].batch == batch) {
            return &report->runs[idx];
        }
    }

    return NULL;
}
