/* SPDX-License-Identifier: Apache-2.0 */

/** @file latency.h Samples of one kind of operation and their percentiles. One thread. */

#ifndef UC_BENCH_LATENCY_H
#define UC_BENCH_LATENCY_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** Zero-initialise; grows as needed. */
struct uc_latency {
    uint64_t *samples_ns;
    size_t count;
    size_t capacity;
};

/** Add a sample; dropped if memory is short. */
void uc_latency_add(struct uc_latency *latency, uint64_t elapsed_ns);

/** @return the @p percent percentile in microseconds, 0 without samples. Sorts the samples. */
double uc_latency_percentile_us(struct uc_latency *latency, double percent);

void uc_latency_fini(struct uc_latency *latency);

#endif /* UC_BENCH_LATENCY_H */
