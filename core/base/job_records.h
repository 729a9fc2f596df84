/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file job_records.h
 * The jobs of a completion queue, found by id. Records never move, so lists may run through them. No locking.
 */

#ifndef UC_BASE_JOB_RECORDS_H
#define UC_BASE_JOB_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"

struct uc_job_record {
    struct uc_list node; /* in the list of free records, or the user's while in use */
    struct uc_job_record *bucket_next;
    uint64_t job_id;
    size_t block_count;
    uint8_t *blocks; /* the user's, as all that follows; released by uc_job_records_fini() */
    enum uc_status code;
    bool is_finished;
};

struct uc_job_chunk;

struct uc_job_records {
    struct uc_job_chunk *chunks;
    struct uc_list free_records;
    struct uc_job_record **buckets;
    size_t record_count; /* allocated = number of buckets, a power of two */
    size_t used_count;
};

/** Allocate at least @p prepared_count records. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_job_records_init(
        struct uc_job_records *records, size_t prepared_count);
void uc_job_records_fini(struct uc_job_records *records);

/** @return the link that points to the job's record; it points to NULL if there is none. */
struct uc_job_record **uc_job_records_find(const struct uc_job_records *records, uint64_t job_id);

/**
 * Give an unused id a record, with its node unlinked; doubles the records when they run out. OutOfMemory.
 */
UC_MUST_CHECK enum uc_status uc_job_records_add(
        struct uc_job_records *records, uint64_t job_id, struct uc_job_record **record_out);

/** Free the record behind a link of uc_job_records_find(); its node is unlinked from wherever it is. */
void uc_job_records_remove(struct uc_job_records *records, struct uc_job_record **link);

#endif /* UC_BASE_JOB_RECORDS_H */
