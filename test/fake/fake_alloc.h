/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fake_alloc.h
 * Make the n-th allocation of the code under test fail. Code that is linked into the test only: a shared
 * library's own calls are not wrapped, so link the objects under test.
 *
 * Added by uc_add_test(… FAKE_ALLOC). Thread model: one thread, one test at a time.
 */

#ifndef UC_FAKE_ALLOC_H
#define UC_FAKE_ALLOC_H

#include <stddef.h>

/** Let @p pass_count allocations succeed and every later one fail, until reset. */
void uc_fake_alloc_fail_after(size_t pass_count);

/** Let @p pass_count allocations succeed, the next one fail, and later ones succeed again. */
void uc_fake_alloc_fail_once(size_t pass_count);

/** Back to the real allocator: call it in every teardown. */
void uc_fake_alloc_reset(void);

#endif /* UC_FAKE_ALLOC_H */
