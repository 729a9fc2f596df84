/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file lift.h
 * Data side of a cache store over a lower tier: one thread that is the only caller of the lower tier's data
 * operations in this process. It loads the blocks of plans straight into slots, and dumps slots below
 * for write-through.
 *
 * Threads: submit is the data thread's.
 */

#ifndef UC_CACHE_STORE_LIFT_H
#define UC_CACHE_STORE_LIFT_H

#include <ucm/store.h>

#include "client/stores/cache/config.h"
#include "client/stores/cache/plane.h"
#include "core/base/completion_queue.h"

struct uc_cache_lift;

/** @param[in] plane, events  borrowed */
UC_MUST_CHECK enum uc_status uc_cache_lift_create(const struct uc_cache_store_config *config,
        struct uc_cache_plane *plane, struct uc_completion_queue *events,
        struct uc_cache_lift **lift_out);

/** Waits for what the lower tier has not ended yet, which its own deadline bounds. NULL is allowed. */
void uc_cache_lift_destroy(struct uc_cache_lift *lift);

/** InvalidParam, DuplicateKey, OutOfMemory, Retry. */
UC_MUST_CHECK enum uc_status uc_cache_lift_submit(
        struct uc_cache_lift *lift, uint64_t job_id, const struct uc_token *plan);

/**
 * A registration goes to the tier below right after it came here, from the data thread, and must not meet
 * the lift's calls there. Pause returns when no call is running; the data thread's next call of any other
 * kind resumes. NULL is allowed.
 */
void uc_cache_lift_pause(struct uc_cache_lift *lift);
void uc_cache_lift_resume(struct uc_cache_lift *lift);

#endif /* UC_CACHE_STORE_LIFT_H */
