/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file slot_store.h
 * The smallest honest tokened store, for the conformance suite and as a pattern: slots in a file that
 * every process maps, the index in the process of the scheduler, transfers by memcpy at submit.
 *
 * Keys: `path` of the file, `slots` (default 256), `block_bytes` (default 4KiB). Nothing is evicted: a full
 * store answers NoSpace. One control instance at a time per file; it empties the file at setup.
 *
 * Not covered: transfer counts, since no transfer outlives its submit.
 */

#ifndef UC_TEST_SLOT_STORE_H
#define UC_TEST_SLOT_STORE_H

#include <ucm/store.h>

/** @return a new, unconfigured instance, or NULL without memory. */
struct uc_store *uc_slot_store_create(void);

/** NULL is allowed. */
void uc_slot_store_destroy(struct uc_store *store);

#endif /* UC_TEST_SLOT_STORE_H */
