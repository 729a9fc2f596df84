/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file entry.h
 * StoreEntry: one store behind both interfaces (section 10 of core/CONTRACT.md).
 *
 * Threads: one control thread and one data thread in parallel; the state of the two is disjoint,
 * so that either works in a process where the other is never used.
 */

#ifndef UC_PROXY_ENTRY_H
#define UC_PROXY_ENTRY_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/scheduler.h>
#include <ucm/status.h>
#include <ucm/store.h>
#include <ucm/worker.h>

struct uc_entry;

/**
 * @param[in]  store      set up; borrowed until the entry is destroyed
 * @param[out] entry_out  set on success only; the caller owns it
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_entry_create(
        struct uc_store *store, struct uc_entry **entry_out);

/**
 * The same over the head of a pipe, whose lower tiers see memory registration, health and describe.
 *
 * @param[in] tiers  head first, all set up; the array is borrowed for the call, the stores until the entry is
 *                   destroyed
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_entry_create_piped(
        struct uc_store *const *tiers, size_t tier_count, struct uc_entry **entry_out);

/** Concludes windows left open; jobs must be drained. NULL is allowed. */
UC_PRIVATE_API void uc_entry_destroy(struct uc_entry *entry);

/** Borrowed until the entry is destroyed. */
UC_PRIVATE_API struct uc_scheduler *uc_entry_scheduler(struct uc_entry *entry);
UC_PRIVATE_API struct uc_worker *uc_entry_worker(struct uc_entry *entry);

#endif /* UC_PROXY_ENTRY_H */
