/* SPDX-License-Identifier: Apache-2.0 */

/** @file lift_internal.h What the files of the lift share. Threads: its own thread, but for the pending list. */

#ifndef UC_CACHE_STORE_LIFT_INTERNAL_H
#define UC_CACHE_STORE_LIFT_INTERNAL_H

#include <pthread.h>

#include "client/stores/cache/lift.h"
#include "core/base/mutex.h"

/* Blocks on their way between slots and the tier below. */
struct move {
    struct uc_list node;
    uint64_t job_id; /* of a plan */
    uint64_t lower_job_id;
    struct uc_cache_attachment *attachment; /* NULL: delegated, or the segment is gone */
    struct uc_cache_task *task;             /* of write-through; NULL = a plan */
    uint32_t task_state;                    /* our word in it */
    struct uc_token *lower;                 /* NULL: the tier below is plain */
    bool is_delegated;
    size_t count;
    struct uc_block_id *ids;
    struct uc_cache_place *places;
    uint8_t *is_counted;
    uint8_t *blocks; /* bitmap of what arrived */
    size_t first;    /* the blocks that are below just now: a run without a stale one */
    size_t run_count;
    enum uc_status code; /* of the first run that failed */
};

struct uc_cache_lift {
    struct uc_mutex lock;
    pthread_cond_t wake;
    struct uc_list pending; /* of submit */
    bool is_stopping;
    bool is_calling;        /* the thread may be in a call of the lower tier */
    pthread_cond_t quiet;   /* it is not any more */
    _Atomic bool is_paused; /* set and cleared by the data thread */
    bool is_running;
    pthread_t thread;
    struct uc_cache_plane *plane;
    struct uc_completion_queue *events;
    uint64_t timeout_ms;
    bool write_through;
    /* The thread's own. */
    struct uc_store *lower;
    const struct uc_token_addressed_ops *lower_tokens;
    const struct uc_prefetchable_ops *lower_facet;
    struct uc_list active;
    uint64_t last_job_id;
    struct uc_cache_attachment *registered; /* its bytes are a region of the lower tier */
    uint32_t region_idx;
    uint32_t next_region;
};

/* lift_move.c */

/* OutOfMemory: NULL. */
struct move *uc_cache_lift_create_move(size_t count);
void uc_cache_lift_destroy_move(struct uc_cache_lift *lift, struct move *move);

/* Count the transfer in on every slot that is not stale. */
void uc_cache_lift_count_in(struct move *move);

/* Hand a move to the lower tier; it ends by itself. */
void uc_cache_lift_start_move(struct uc_cache_lift *lift, struct move *move);

/* The lower tier is through with a run: hand it the next one, or end the move. */
void uc_cache_lift_go_on(struct uc_cache_lift *lift, struct move *move);

/* The lower tier has let go of the slots, or never had them: tell who waits, and free the move. */
void uc_cache_lift_end_move(struct uc_cache_lift *lift, struct move *move, enum uc_status code);

/* lift_tasks.c */

/* Take what the owner of the segment has queued. */
void uc_cache_lift_take_tasks(struct uc_cache_lift *lift);
/* Unless the owner gave the task up in the meantime. */
void uc_cache_lift_end_task(struct uc_cache_task *task, uint32_t state, uint8_t good);

#endif /* UC_CACHE_STORE_LIFT_INTERNAL_H */
