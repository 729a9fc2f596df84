/* SPDX-License-Identifier: Apache-2.0 */

/** @file store_window.h One put or get window of ucm-bench store, in jobs of a block each. One thread. */

#ifndef UC_BENCH_STORE_WINDOW_H
#define UC_BENCH_STORE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/scheduler.h>
#include <ucm/status.h>
#include <ucm/worker.h>

#include "tools/bench/latency.h"
#include "tools/bench/store.h"

enum {
    UC_STORE_WINDOW_MAX = 256 /* blocks */
};

/** What puts or gets took. */
struct uc_store_moves {
    uint64_t bytes;
    uint64_t elapsed_ns; /* whole windows, from the first call to the last */
    struct uc_latency latency;
};

/** A topology under measurement. Scheduler and worker are borrowed from its assembler. */
struct uc_store_bench {
    const struct uc_store_options *options;
    struct uc_scheduler *scheduler;
    struct uc_worker *worker;
    uint8_t *source; /* all blocks of a sweep */
    uint8_t *target;
    uint8_t *got; /* a flag per block */
    uint32_t region_idx;
    bool is_registered;
    uint64_t first_id;   /* hash id of block 0 in this sweep */
    uint64_t next_block; /* hash id of the next sweep's first block */
    uint64_t next_job_id;
    uint64_t progress_ns; /* the last submit or event */
    uint64_t in_flight;   /* jobs; they use the memory until their events were taken */
    uint64_t next_request;
    struct uc_store_moves put;
    struct uc_store_moves get;
    struct uc_store_report report;
};

/**
 * Put the window's blocks from @p first on. What found no space or was not transferred is counted and no
 * failure.
 *
 * @retval UC_ERR_TIMEOUT  jobs are in flight and nothing has ended for so long as the options say
 */
UC_MUST_CHECK enum uc_status uc_store_window_put(struct uc_store_bench *bench, uint64_t first);

/** Get them back as far as they are present, lifting them from lower tiers first. @retval as put */
UC_MUST_CHECK enum uc_status uc_store_window_get(struct uc_store_bench *bench, uint64_t first);

/**
 * Take the events of what is in flight after a window has failed.
 *
 * @return whether nothing is in flight any more; false if nothing has ended for @p idle_ms
 */
bool uc_store_window_drain(struct uc_store_bench *bench, uint64_t idle_ms);

#endif /* UC_BENCH_STORE_WINDOW_H */
