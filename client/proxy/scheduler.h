/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file scheduler.h
 * The control interface as an operations table: entry, pipe and peer implement it, scheduler.c checks
 * what the engine passes in and dispatches (section 9.1 of core/CONTRACT.md).
 *
 * Threads: as ucm/scheduler.h. The implementations see checked arguments only: request ids of 1 to 1023
 * bytes, no null outputs, arrays that are there when their count is not 0.
 */

#ifndef UC_PROXY_SCHEDULER_H
#define UC_PROXY_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/dict.h>
#include <ucm/request.h>
#include <ucm/scheduler.h>
#include <ucm/status.h>
#include <ucm/token.h>

enum {
    /* A context is copied whole, facts of newer callers included; this bounds the copy. */
    UC_REQUEST_CONTEXT_MAX_BYTES = 1024
};

/** All slots are mandatory: the table never leaves libucm_proxy.so. */
struct uc_scheduler_ops {
    /** struct_size is between the members up to request_id and UC_REQUEST_CONTEXT_MAX_BYTES. */
    enum uc_status (*on_new_request)(
            struct uc_scheduler *scheduler, const struct uc_request_context *context);
    enum uc_status (*on_request_finished)(struct uc_scheduler *scheduler, const char *request_id);
    enum uc_status (*lookup)(struct uc_scheduler *scheduler, const char *request_id,
            const struct uc_block_id *ids, size_t count, uint8_t *hits_out,
            bool *prefetch_needed_out);
    enum uc_status (*lookup_on_prefix)(struct uc_scheduler *scheduler, const char *request_id,
            const struct uc_block_id *ids, size_t count, int64_t *index_out,
            bool *prefetch_needed_out);
    enum uc_status (*lookup_on_reverse)(struct uc_scheduler *scheduler, const char *request_id,
            const struct uc_block_id *ids, size_t count, int64_t *index_out,
            bool *prefetch_needed_out);
    enum uc_status (*touch)(struct uc_scheduler *scheduler, const char *request_id,
            const struct uc_block_id *ids, size_t count);
    enum uc_status (*prepare_prefetch)(
            struct uc_scheduler *scheduler, const char *request_id, struct uc_token **token_out);
    enum uc_status (*complete_prefetch)(
            struct uc_scheduler *scheduler, const char *request_id, bool success);
    /** count ≥ 1. */
    enum uc_status (*prepare_get)(struct uc_scheduler *scheduler, const char *request_id,
            const struct uc_block_id *ids, size_t count, struct uc_token **token_out);
    enum uc_status (*complete_get)(struct uc_scheduler *scheduler, const char *request_id);
    /** count ≥ 1, no duplicates. */
    enum uc_status (*prepare_put)(struct uc_scheduler *scheduler, const char *request_id,
            const struct uc_block_id *ids, size_t count, struct uc_token **token_out);
    /** One verdict per key in @p mask, of which there are @p mask_count; NULL = @p success for all. */
    enum uc_status (*complete_put)(struct uc_scheduler *scheduler, const char *request_id,
            const uint8_t *mask, size_t mask_count, bool success);
    enum uc_status (*health)(struct uc_scheduler *scheduler);
    enum uc_status (*describe)(struct uc_scheduler *scheduler, struct uc_dict *description);
};

/** First member of whatever implements it. */
struct uc_scheduler {
    const struct uc_scheduler_ops *ops;
};

#endif /* UC_PROXY_SCHEDULER_H */
