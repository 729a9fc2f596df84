/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file finished_queue.h
 * Jobs that are finished without a store's help: prefetches on a store that cannot prefetch.
 * First in, first out; an id that was consumed out of turn (by Wait) is skipped.
 *
 * Threads: owned by the data thread.
 */

#ifndef UC_PROXY_FINISHED_QUEUE_H
#define UC_PROXY_FINISHED_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/status.h>

#include "client/proxy/job_table.h"

/**
 * The job table decides what is alive: an element counts while the table's value of its id is its serial.
 */
struct uc_finished_queue {
    struct uc_finished_job {
        uint64_t job_id;
        uint64_t serial;
    } * jobs; /* [head, head + count) */
    size_t capacity;
    size_t head;
    size_t count;
    size_t alive_count;
    uint64_t last_serial; /* counts from 1; 0 in the job table marks a job of the store */
};

/** Zeroed is empty, too. */
void uc_finished_queue_fini(struct uc_finished_queue *queue);

/** Append; adds the id to @p table as well. DuplicateKey, OutOfMemory: nothing changed. */
UC_MUST_CHECK enum uc_status uc_finished_queue_add(
        struct uc_finished_queue *queue, struct uc_job_table *table, uint64_t job_id);

/** Take the oldest, which leaves the table as well. @return whether there was one. */
bool uc_finished_queue_take(
        struct uc_finished_queue *queue, struct uc_job_table *table, uint64_t *job_id_out);

/** Take this one, which must be in the queue. */
void uc_finished_queue_take_job(
        struct uc_finished_queue *queue, struct uc_job_table *table, uint64_t job_id);

#endif /* UC_PROXY_FINISHED_QUEUE_H */
