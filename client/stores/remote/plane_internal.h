/* SPDX-License-Identifier: Apache-2.0 */

/** @file plane_internal.h What the files of the progress thread share. */

#ifndef UC_REMOTE_PLANE_INTERNAL_H
#define UC_REMOTE_PLANE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ucm/clock.h>

#include "client/stores/remote/bounce.h"
#include "client/stores/remote/config.h"
#include "client/stores/remote/data_plane.h"
#include "client/stores/remote/memory_table.h"
#include "client/stores/remote/transports.h"
#include "core/base/completion_queue.h"
#include "core/base/list.h"
#include "core/base/warn_gate.h"
#include "net/rpc/buffer.h"
#include "net/slot_footer.h"
#include "net/token_payload.h"

struct uc_job;
struct uc_part_plan;

/** Indices of the counters. */
#define UC_PLANE_COUNTER_ENUM_(field) UC_COUNT_##field,
enum uc_plane_counter {
    UC_PLANE_COUNTER_MAP(UC_PLANE_COUNTER_ENUM_) UC_PLANE_COUNTER_COUNT,
};
#undef UC_PLANE_COUNTER_ENUM_

/**
 * The checksum of the block whose bytes a transport tells of while it copies them. One is enough: blocks of one
 * server come one after the other. Where blocks of two take turns, one of them is summed up after the copy.
 */
struct uc_load_sum {
    struct uc_checksum_stream stream;
    const struct uc_job *job; /* NULL: of no block */
    size_t block_idx;
    uint64_t summed_bytes;
};

struct uc_data_plane {
    const struct uc_remote_config *config;
    uint64_t block_bytes;
    struct uc_clock clock;
    struct uc_transports transports;
    struct uc_completion_queue *queue;

    /* The data thread's. */
    struct uc_memory_table memory;
    struct uc_job *free_jobs;
    struct uc_job *made_jobs;
    uint64_t last_stamp;
    struct uc_part_plan *plans; /* one per server, for the job being built */

    /* Between the two threads: stacks that one pushes and the other takes as a whole. */
    _Atomic(struct uc_job *) submitted;
    _Atomic(struct uc_job *) recycled;
    atomic_bool sleeping; /* the progress thread wants a write to wake_fd */
    atomic_bool stopping;
    int wake_fd;

    /* The progress thread's; of the data thread, where that drives (config->caller_progresses). */
    pthread_t thread;
    int epoll_fd;
    struct uc_list attachments;
    struct uc_list prerequisites; /* jobs whose event has not fired */
    struct uc_list ready;         /* jobs to advance */
    struct uc_bounce bounce;
    uint64_t next_deadline_ms;        /* no job is due before */
    struct uc_warn_gate job_warnings; /* about single ones */
    uint64_t verbs_op_count;          /* posted and not done: worth spinning for */
    uint64_t accepted_count;          /* jobs there have been */
    uint64_t ended_count;             /* of these, their event has been delivered */
    int caller_fd;                    /* caller mode: what the engine sleeps on, -1 until it asks */
    int timer_fd;                     /* part of it */
    uint64_t timer_ms;                /* when that fires, or has fired */
    struct uc_rpc_buffer params;      /* of the call being made */
    struct uc_token_mac *mac;
    struct uc_load_sum *sum;

    /* Read by any thread. */
    atomic_uint *down_counts;   /* per server: attachments that are down */
    atomic_size_t down_servers; /* how many of these are not 0 */
    _Atomic(const char *) fabric_name;
    atomic_uint_least64_t counters[UC_PLANE_COUNTER_COUNT];
};

static inline uint64_t
uc_plane_now_ms(const struct uc_data_plane *plane)
{
    return uc_clock_now_ms(&plane->clock);
}

static inline void
uc_plane_count(struct uc_data_plane *plane, enum uc_plane_counter counter, uint64_t amount)
{
    (void)atomic_fetch_add_explicit(&plane->counters[counter], amount, memory_order_relaxed);
}

/** @return whether a warning about a single job may be logged: one a second. Progress thread. */
bool uc_plane_may_warn(struct uc_data_plane *plane);

/** Queue a job for uc_job_advance(); queued twice counts once. */
void uc_plane_make_ready(struct uc_data_plane *plane, struct uc_job *job);

/** Give a finished job back to the data thread. */
void uc_plane_recycle(struct uc_data_plane *plane, struct uc_job *job);

/** A job to fill: one that came back, else a new one; NULL without memory. Data thread. */
struct uc_job *uc_plane_take_job(struct uc_data_plane *plane);
/** Put a job back that was not submitted. Data thread. */
void uc_plane_return_job(struct uc_data_plane *plane, struct uc_job *job);

#endif /* UC_REMOTE_PLANE_INTERNAL_H */
