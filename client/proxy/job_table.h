/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file job_table.h
 * Ids of jobs in flight, all classes together, each with a value of the owner's.
 *
 * Threads: owned by the data thread. Data path: memory is allocated only while the number of jobs in
 * flight exceeds every earlier one.
 */

#ifndef UC_PROXY_JOB_TABLE_H
#define UC_PROXY_JOB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/status.h>

struct uc_job_slot {
    uint64_t job_id;
    uint64_t value;
    bool used; /* any id is legal, so none can mean empty */
};

/** Open addressing, linear probing, removal by shifting back: no tombstones to clean up. Zeroed is empty. */
struct uc_job_table {
    struct uc_job_slot *slots;
    size_t slot_count; /* 0 or a power of two */
    size_t count;
};

void uc_job_table_fini(struct uc_job_table *table);

/**
 * @retval UC_ERR_DUPLICATE_KEY  the id is in the table
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_job_table_add(
        struct uc_job_table *table, uint64_t job_id, uint64_t value);

/** @return whether the id was there. */
bool uc_job_table_remove(struct uc_job_table *table, uint64_t job_id);

/** @return the id's value, which may be changed until the table is, or NULL. */
uint64_t *uc_job_table_find(const struct uc_job_table *table, uint64_t job_id);

#endif /* UC_PROXY_JOB_TABLE_H */
