/* SPDX-License-Identifier: Apache-2.0 */

/** @file job.h One job of the data side: one piece of memory with copies of all that its submit named. */

#ifndef UC_CACHE_STORE_JOB_H
#define UC_CACHE_STORE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/cache/payload.h"
#include "client/stores/cache/segment.h"
#include "core/base/list.h"

/** A mapping and how many jobs use it. */
struct uc_cache_attachment {
    struct uc_cache_segment *segment;
    size_t users;
    uint64_t mapped_bytes; /* from its start on, so far */
    bool is_borrowed;      /* the index in this process owns it */
};

struct uc_cache_item {
    struct uc_block_id id;
    struct uc_cache_place place;
    struct uc_block_payload payload; /* into the job's own arrays */
    enum uc_status code;
    bool is_counted; /* the slot counts this transfer */
};

struct uc_cache_job {
    struct uc_list node;
    uint64_t id;
    uint64_t deadline_ms;
    uint64_t prerequisite_handle;
    struct uc_cache_attachment *attachment; /* NULL: the segment is gone, every block fails */
    size_t count;
    size_t next; /* first item that nobody took yet */
    size_t done;
    enum uc_status verdict; /* not Ok: nothing moves, every block fails with it */
    bool is_load;
    uint8_t *blocks; /* bitmap */
    struct uc_cache_item *items;
};

/** Copy a checked descriptor. Its places and counts are left blank. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_cache_job_create(
        uint64_t job_id, const struct uc_job_descriptor *job, struct uc_cache_job **job_out);
void uc_cache_job_destroy(struct uc_cache_job *job);

/** Move one block, or fail it, and count it out. Any thread, each item once. */
void uc_cache_job_run(struct uc_cache_job *job, size_t idx);

/** @return the code of the event; fills the bitmap. */
enum uc_status uc_cache_job_sum_up(struct uc_cache_job *job);

#endif /* UC_CACHE_STORE_JOB_H */
