/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file range_set.h
 * Which bytes of something arrived already: disjoint ranges in order, neighbours joined. Writers that fill a
 * block from front to back, in any number of pieces, need one range. No locking.
 */

#ifndef UC_BASE_RANGE_SET_H
#define UC_BASE_RANGE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_range {
    uint64_t first;
    uint64_t end; /* one past the last */
};

/** Zeroed = empty. */
struct uc_range_set {
    struct uc_range *ranges;
    size_t count;
    size_t capacity;
};

UC_PRIVATE_API void uc_range_set_fini(struct uc_range_set *set);

/**
 * Add [first, first + length); overlaps are joined.
 *
 * @retval UC_ERR_INVALID_PARAM  the range wraps
 * @retval UC_ERR_OUT_OF_MEMORY  nothing changed
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_range_set_add(
        struct uc_range_set *set, uint64_t first, uint64_t length);

/** @return whether all of [0, length) was added; true for 0. */
UC_PRIVATE_API bool uc_range_set_covers(const struct uc_range_set *set, uint64_t length);

#endif /* UC_BASE_RANGE_SET_H */
