/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/store_rounds.h"

#include <stdlib.h>

enum {
    CAPACITY_FIRST = 16
};

static enum uc_status
grow(struct uc_store_rounds *rounds)
{
    size_t capacity = rounds->capacity == 0 ? CAPACITY_FIRST : 2 * rounds->capacity;
    struct uc_store_round *list = reallocarray(rounds->list, capacity, sizeof(list[0]));
    double *scratch;

    if (list == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "store: no memory for %zu rounds", capacity);
    }
    rounds->list = list;
    scratch = reallocarray(rounds->scratch, capacity, sizeof(scratch[0]));
    if (scratch == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "store: no memory for %zu rounds", capacity);
    }
    rounds->scratch = scratch;
    rounds->capacity = capacity;
    return UC_OK;
}

enum uc_status
uc_store_rounds_add(struct uc_store_rounds *rounds, const struct uc_store_round *round)
{
    if (rounds->count == rounds->capacity) {
        enum uc_status status = grow(rounds);

        if (status != UC_OK) {
            return status;
        }
    }
    rounds->list[rounds->count++] = *round;
    return UC_OK;
}

void
uc_store_rounds_fini(struct uc_store_rounds *rounds)
{
    free(rounds->list);
    free(rounds->scratch);
    *rounds = (struct uc_store_rounds){0};
}

static int
compare(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static struct uc_store_median
median(double *values, size_t count)
{
    size_t half = count / 2;

    if (count == 0) {
        return (struct uc_store_median){0};
    }
    qsort(values, count, sizeof(values[0]), compare);
    return (struct uc_store_median){
            .median = count % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2,
            .min = values[0],
            .max = values[count - 1],
    };
}

struct uc_store_median
uc_store_rounds_rate(const struct uc_store_rounds *rounds, enum uc_store_phase_idx idx)
{
    size_t count = 0;

    for (size_t at = 0; at < rounds->count; at++) {
        if (rounds->list[at].rates[idx] > 0) {
            rounds->scratch[count++] = rounds->list[at].rates[idx];
        }
    }
    return median(rounds->scratch, count);
}

struct uc_store_median
uc_store_rounds_ratio(const struct uc_store_rounds *rounds, enum uc_store_phase_idx idx,
        enum uc_store_phase_idx limit)
{
    size_t count = 0;

    for (size_t at = 0; at < rounds->count; at++) {
        const double *rates = rounds->list[at].rates;

        if (rates[limit] > 0) {
            rounds->scratch[count++] = rates[idx] / rates[limit];
        }
    }
    return median(rounds->scratch, count);
}
