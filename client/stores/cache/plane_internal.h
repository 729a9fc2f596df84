/* SPDX-License-Identifier: Apache-2.0 */

/** @file plane_internal.h What the files of the data side share. Everything but the regions: under the lock. */

#ifndef UC_CACHE_STORE_PLANE_INTERNAL_H
#define UC_CACHE_STORE_PLANE_INTERNAL_H

#include <pthread.h>

#include "client/stores/cache/plane.h"
#include "core/base/mutex.h"
#include "core/store/region_list.h"

enum {
    UC_CACHE_COPIES_MAX = 32 /* blocks that a device copies at a time */
};

/* A block that a device copies. */
struct uc_cache_copy {
    struct uc_list node; /* free or running; of a thread's own list while it looks */
    struct uc_device_ticket *ticket;
    struct uc_cache_job *job;
    size_t idx;
};

/* Jobs with memory of a device. Threads start copies and go on; one after the other looks what became of them. */
struct uc_cache_copies {
    const struct uc_device_ops *ops; /* NULL before the first region of a device */
    struct uc_device *device;        /* any: it reaches the memory of all of them by address */
    struct uc_list waiting;          /* jobs with items that nobody took */
    struct uc_list free;
    struct uc_list running;
    size_t running_count; /* those that a thread looks at included */
    unsigned idle_looks;  /* one after the other in vain */
    bool is_looked_at;    /* by a thread */
    bool is_watched;      /* a thread sleeps a moment only */
    struct uc_cache_copy places[UC_CACHE_COPIES_MAX];
};

struct uc_cache_plane {
    struct uc_mutex lock;
    pthread_cond_t wake;
    struct uc_list ready;   /* jobs with items that nobody took, but for those of a device */
    struct uc_list waiting; /* jobs whose prerequisite has not fired */
    bool is_stopping;
    struct uc_cache_attachment *attachment; /* the latest; NULL before the first token */
    bool is_mapping;                        /* a thread does so */
    struct uc_cache_copies copies;
    struct uc_region_list regions; /* data thread */
    struct uc_cache_plane_stats stats;
    struct uc_completion_queue *events;
    pthread_t *threads;
    size_t thread_count;
    const struct uc_prerequisite *prerequisite;
    uint64_t block_bytes;
    uint64_t timeout_ms;
    char domain[UC_CACHE_DOMAIN_MAX + 1];
};

/* plane.c; with the lock held: an item is through. The job may be gone afterwards. */
void uc_cache_plane_end_item_locked(
        struct uc_cache_plane *plane, struct uc_cache_job *job, size_t idx);

/* plane_device.c */

void uc_cache_copies_init(struct uc_cache_copies *copies);
/* No thread runs any more, and no attachment is left. */
void uc_cache_copies_fini(struct uc_cache_copies *copies);

/*
 * A region of a device is registered: with the first one, the segment is made known to the device, and what follows
 * copies is made. Unsupported: no such device here. InvalidParam: the range is not a device's.
 */
UC_MUST_CHECK enum uc_status uc_cache_plane_open_device(struct uc_cache_plane *plane,
        const void *address, uint64_t length_bytes, enum uc_memory_kind kind);

/* Make a segment known to the device, if it is not. With the lock held. */
UC_MUST_CHECK enum uc_status uc_cache_plane_show_locked(
        struct uc_cache_plane *plane, struct uc_cache_attachment *attachment);

/* Start a copy, or see what became of those that run. @return whether anything happened; the lock is open meanwhile */
bool uc_cache_plane_copy_locked(struct uc_cache_plane *plane) UC_REQUIRES(plane->lock);

/* plane_segment.c; with the lock held */

/* Map a segment from now on; the one before stays until the last job lets it go. OutOfMemory: not taken. */
UC_MUST_CHECK enum uc_status uc_cache_plane_adopt_locked(
        struct uc_cache_plane *plane, struct uc_cache_segment *segment, bool is_borrowed);

/*
 * The attachment for a token, counted for its job; NULL if the life that minted it is over: its blocks are
 * misses then, whoever owns the segment now.
 */
UC_MUST_CHECK enum uc_status uc_cache_plane_attach_locked(
        struct uc_cache_plane *plane, uint64_t incarnation, struct uc_cache_attachment **found_out);

/* NULL is allowed. */
void uc_cache_plane_let_go_locked(struct uc_cache_attachment *attachment);

/*
 * With nothing else to do: let the kernel clear and map another piece of the latest segment, so that the first block
 * of each slot need not wait for it. The lock is open meanwhile. @return whether there was a piece
 */
bool uc_cache_plane_map_ahead_locked(struct uc_cache_plane *plane) UC_REQUIRES(plane->lock);

#endif /* UC_CACHE_STORE_PLANE_INTERNAL_H */
