/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file coverage.h
 * Which bytes of a block were written: a sorted list of intervals that do not touch. Control thread.
 * One interval, the usual case, needs no memory of its own.
 */

#ifndef UC_SERVER_COVERAGE_H
#define UC_SERVER_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_COVERAGE_INTERVALS_MAX = 1024
};

struct uc_interval {
    uint64_t begin;
    uint64_t end; /* one past the last byte */
};

/** Zero-initialise. */
struct uc_coverage {
    struct uc_interval first;      /* while `intervals` is NULL */
    struct uc_interval *intervals; /* owned */
    uint32_t count;
    uint32_t capacity;
};

void uc_coverage_fini(struct uc_coverage *coverage);

/**
 * Merge [begin, end), begin ≤ end; an empty one changes nothing.
 *
 * @retval UC_ERR_NO_SPACE       more than UC_COVERAGE_INTERVALS_MAX pieces that do not touch
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_coverage_add(
        struct uc_coverage *coverage, uint64_t begin, uint64_t end);

/** @return whether [0, length) is covered and length is not 0. */
bool uc_coverage_is_complete(const struct uc_coverage *coverage, uint64_t length_bytes);

#endif /* UC_SERVER_COVERAGE_H */
