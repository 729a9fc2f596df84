/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file alloc_count.h
 * How often the process allocates, whichever thread and library does it: the executable's malloc, calloc,
 * realloc and aligned forms stand before libc's. Free is not counted. Check's own assertions allocate:
 * none between start and stop.
 *
 * Added by uc_add_test(… ALLOC_COUNT). Any thread may allocate; one starts and stops.
 */

#ifndef UC_ALLOC_COUNT_H
#define UC_ALLOC_COUNT_H

#include <stdbool.h>
#include <stddef.h>

/** @return false where sanitizers own the allocator: then nothing is ever counted. */
bool uc_alloc_count_works(void);

/** Count from 0 on. */
void uc_alloc_count_start(void);

/** @return allocations since start. */
size_t uc_alloc_count_stop(void);

#endif /* UC_ALLOC_COUNT_H */
