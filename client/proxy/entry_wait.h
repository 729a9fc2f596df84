/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file entry_wait.h
 * Collects events: the store's, and those of jobs that were finished without it.
 *
 * Threads: the data thread. Data path: memory is allocated only when a list of ids is longer than all
 * before.
 */

#ifndef UC_PROXY_ENTRY_WAIT_H
#define UC_PROXY_ENTRY_WAIT_H

#include "client/proxy/entry_internal.h"

UC_MUST_CHECK enum uc_status uc_entry_get_finished(
        struct uc_entry *entry, struct uc_io_result *results, size_t capacity, size_t *count_out);

/** Writes results and count on UC_ERR_TIMEOUT too. */
UC_MUST_CHECK enum uc_status uc_entry_wait(struct uc_entry *entry, const uint64_t *job_ids,
        size_t job_count, int64_t timeout_ms, struct uc_io_result *results, size_t capacity,
        size_t *count_out);

#endif /* UC_PROXY_ENTRY_WAIT_H */
