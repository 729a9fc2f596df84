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

#include "client/device/device.h"
#include "client/stores/cache/payload.h"
#include "client/stores/cache/segment.h"
#include "core/base/list.h"

/** A mapping and how many jobs use it. */
struct uc_cache_attachment {
    struct uc_cache_segment *segment;
    size_t users;
    uint64_t mapped_bytes; /* from its start on, so far */
    bool is_borrowed;      /* the index in this process owns it */
    const struct uc_device_ops *device_ops;
    struct uc_device *device; /* that knows the bytes, borrowed; NULL = none */
};

struct uc_cache_item {
    struct uc_block_id id;
    struct uc_cache_place place;
    struct uc_block_payload payload; /* into the job's own arrays */
    bool *on_device;                 /* per pointer */
    enum uc_status code;
    bool is_device;  /* a pointer is: a device copies */
    bool is_counted; /* the slot counts this transfer */
};

/* Items of a job that nobody took yet; those that a device copies stand in a line of their own. */
struct uc_cache_line {
    struct uc_list node; /* while left > 0 */
    size_t next;         /* no item of the line is before it */
    size_t left;
};

struct uc_cache_job {
    struct uc_list node;           /* while it waits for its prerequisite */
    struct uc_cache_line lines[2]; /* by is_device */
    uint64_t id;
    uint64_t deadline_ms;
    uint64_t prerequisite_handle;
    struct uc_cache_attachment *attachment; /* NULL: the segment is gone, every block fails */
    size_t count;
    size_t done;
    enum uc_status verdict; /* not Ok: nothing moves, every block fails with it */
    bool is_load;
    uint8_t *blocks; /* bitmap */
    struct uc_cache_item *items;
};

/** Copy a checked descriptor. Its places and counts are left blank; every item is one for the processor. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_cache_job_create(
        uint64_t job_id, const struct uc_job_descriptor *job, struct uc_cache_job **job_out);
void uc_cache_job_destroy(struct uc_cache_job *job);

/** Note that a pointer of an item is memory of a device. Before the job is seen by a thread. */
void uc_cache_job_set_device(struct uc_cache_job *job, size_t idx, size_t pointer);

/** @return the next item of a line, which has one left. */
size_t uc_cache_job_take(struct uc_cache_job *job, bool is_device);

static inline struct uc_cache_job *
uc_cache_job_of(struct uc_list *node, bool is_device)
{
    return is_device ? uc_list_entry(node, struct uc_cache_job, lines[1].node)
                     : uc_list_entry(node, struct uc_cache_job, lines[0].node);
}

/** Move one block, or fail it, and count it out. Any thread, each item once. */
void uc_cache_job_run(struct uc_cache_job *job, size_t idx);

/** Fail one block without moving anything, and count it out. */
void uc_cache_job_fail(struct uc_cache_job *job, size_t idx, enum uc_status code);

/**
 * Start the copies of one block; what the processor can move of it, it has moved then.
 *
 * @return false: nothing is under way, and the item is through; else the ticket tells when to end it
 */
bool uc_cache_job_start(struct uc_cache_job *job, size_t idx, const struct uc_device_ops *ops,
        struct uc_device_ticket *ticket);
/** @param[in] copied  what the ticket said at last */
void uc_cache_job_end(struct uc_cache_job *job, size_t idx, enum uc_status copied);

/** @return the code of the event; fills the bitmap. */
enum uc_status uc_cache_job_sum_up(struct uc_cache_job *job);

#endif /* UC_CACHE_STORE_JOB_H */
