/* SPDX-License-Identifier: Apache-2.0 */

/** @file store_rounds.h What ucm-bench store measured, round by round, and the medians over the rounds. One thread. */

#ifndef UC_BENCH_STORE_ROUNDS_H
#define UC_BENCH_STORE_ROUNDS_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** Put and get, then the yardsticks. */
enum uc_store_phase_idx {
    UC_STORE_PUT,
    UC_STORE_GET,
    UC_STORE_MEMCPY_COLD,   /* into memory that left the processor's caches long ago */
    UC_STORE_MEMCPY_REUSED, /* into as many buffers as are in flight */
    UC_STORE_NEW_FILES,     /* the medium, see enum uc_file_yardstick_kind */
    UC_STORE_ONE_FILE,
    UC_STORE_OVERWRITE,
    UC_STORE_READ,
    UC_STORE_PHASE_COUNT,
};

/** GB/s (10⁹ bytes); 0 = not measured. */
struct uc_store_round {
    double rates[UC_STORE_PHASE_COUNT];
};

/** Zeroed: empty. */
struct uc_store_rounds {
    struct uc_store_round *list;
    double *scratch; /* as long as the list */
    size_t count;
    size_t capacity;
};

/** Over the rounds that measured it. */
struct uc_store_median {
    double median; /* 0 = no round did */
    double min;
    double max;
};

/** @retval UC_ERR_OUT_OF_MEMORY  nothing was added */
UC_MUST_CHECK enum uc_status uc_store_rounds_add(
        struct uc_store_rounds *rounds, const struct uc_store_round *round);
void uc_store_rounds_fini(struct uc_store_rounds *rounds);

/** Of the rates of one phase. */
struct uc_store_median uc_store_rounds_rate(
        const struct uc_store_rounds *rounds, enum uc_store_phase_idx idx);

/** Of the ratios of a phase to its limit in the same round. */
struct uc_store_median uc_store_rounds_ratio(const struct uc_store_rounds *rounds,
        enum uc_store_phase_idx idx, enum uc_store_phase_idx limit);

#endif /* UC_BENCH_STORE_ROUNDS_H */
