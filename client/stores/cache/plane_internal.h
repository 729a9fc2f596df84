/* SPDX-License-Identifier: Apache-2.0 */

/** @file plane_internal.h What the files of the data side share. Everything but the regions: under the lock. */

#ifndef UC_CACHE_STORE_PLANE_INTERNAL_H
#define UC_CACHE_STORE_PLANE_INTERNAL_H

#include <pthread.h>

#include "client/stores/cache/plane.h"
#include "client/stores/cache/regions.h"
#include "core/base/mutex.h"

struct uc_cache_plane {
    struct uc_mutex lock;
    pthread_cond_t wake;
    struct uc_list ready;   /* jobs with items that nobody took */
    struct uc_list waiting; /* jobs whose prerequisite has not fired */
    bool is_stopping;
    struct uc_cache_attachment *attachment; /* the latest; NULL before the first token */
    bool is_mapping;                        /* a thread does so */
    struct uc_cache_regions regions;        /* data thread */
    struct uc_cache_plane_stats stats;
    struct uc_completion_queue *events;
    pthread_t *threads;
    size_t thread_count;
    const struct uc_prerequisite *prerequisite;
    uint64_t block_bytes;
    uint64_t timeout_ms;
    char domain[UC_CACHE_DOMAIN_MAX + 1];
};

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
