/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/latency.h"

#include <math.h>
#include <stdlib.h>

void
uc_latency_add(struct uc_latency *latency, uint64_t elapsed_ns)
{
    if (latency->count == latency->capacity) {
        size_t capacity = latency->capacity == 0 ? 1024 : latency->capacity * 2;
        uint64_t *samples = realloc(latency->samples_ns, capacity * sizeof(samples[0]));

        if (samples == NULL) {
            return;
        }
        latency->samples_ns = samples;
        latency->capacity = capacity;
    }

    latency->samples_ns[latency->count++] = elapsed_ns;
}

static int
compare_samples(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;

    return (*a > *b) - (*a < *b);
}

double
uc_latency_percentile_us(struct uc_latency *latency, double percent)
{
    size_t idx;

    if (latency->count == 0) {
        return 0;
    }

    qsort(latency->samples_ns, latency->count, sizeof(latency->samples_ns[0]), compare_samples);
    /* Nearest rank: the smallest sample that is not below @p percent of all. */
    idx = (size_t)ceil(percent / 100.0 * (double)latency->count);
    idx = idx == 0 ? 0 : idx - 1;
    return (double)latency->samples_ns[idx] / 1000.0;
}

void
uc_latency_fini(struct uc_latency *latency)
{
    free(latency->samples_ns);
    *latency = (struct uc_latency){0};
}
