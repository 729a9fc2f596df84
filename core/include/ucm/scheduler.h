/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file scheduler.h
 * Control plane of an inference engine (section 9.1 of core/CONTRACT.md).
 *
 * Threads: one thread at a time; it may run beside the thread that uses the worker.
 * Every function but uc_scheduler_on_new_request(), _health() and _describe() answers
 * UC_ERR_NOT_FOUND for a request that is not registered. `*_out` is written on UC_OK only.
 */

#ifndef UC_SCHEDULER_H
#define UC_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/request.h>
#include <ucm/status.h>
#include <ucm/token.h>

/** Borrowed from an assembler, see uc_assembler_scheduler(). */
struct uc_scheduler;

/** Register a request and its facts (copied). DuplicateKey, InvalidParam. */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_on_new_request(
        struct uc_scheduler *scheduler, const struct uc_request_context *context);

/** Conclude windows left open, forget the request even if that fails. */
UC_API enum uc_status uc_scheduler_on_request_finished(
        struct uc_scheduler *scheduler, const char *request_id);

/**
 * Which blocks are present. If *prefetch_needed_out is set to true nothing else is written: blocks
 * can be prefetched from a lower tier. A NULL prefetch_needed_out is InvalidParam.
 */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_lookup(struct uc_scheduler *scheduler,
        const char *request_id, const struct uc_block_id *ids, size_t count, uint8_t *hits_out,
        bool *prefetch_needed_out);

/** Last index of the contiguous present prefix, −1 if there is none. */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_lookup_on_prefix(struct uc_scheduler *scheduler,
        const char *request_id, const struct uc_block_id *ids, size_t count, int64_t *index_out,
        bool *prefetch_needed_out);

/** Largest present index, −1 if there is none. */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_lookup_on_reverse(struct uc_scheduler *scheduler,
        const char *request_id, const struct uc_block_id *ids, size_t count, int64_t *index_out,
        bool *prefetch_needed_out);

/** Refresh hotness and, if the request has a TTL, extend retention. */
UC_API enum uc_status uc_scheduler_touch(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count);

/*
 * Windows. prepare_… opens one and mints a token that the caller owns (uc_token_destroy());
 * complete_… closes it, and is called only after the events of all jobs submitted with the token
 * were consumed.
 */

UC_API UC_MUST_CHECK enum uc_status uc_scheduler_prepare_prefetch(
        struct uc_scheduler *scheduler, const char *request_id, struct uc_token **token_out);
UC_API enum uc_status uc_scheduler_complete_prefetch(
        struct uc_scheduler *scheduler, const char *request_id, bool success);

/** Pin the blocks for reading; NotFound if one is absent, then nothing is pinned. */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_prepare_get(struct uc_scheduler *scheduler,
        const char *request_id, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out);
UC_API enum uc_status uc_scheduler_complete_get(
        struct uc_scheduler *scheduler, const char *request_id);

/** Reserve room for the blocks; NoSpace if they do not fit, then nothing is reserved. */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_prepare_put(struct uc_scheduler *scheduler,
        const char *request_id, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out);
UC_API enum uc_status uc_scheduler_complete_put(
        struct uc_scheduler *scheduler, const char *request_id, bool success);
/** One byte per key of the window: 1 = make visible, 0 = release. */
UC_API enum uc_status uc_scheduler_complete_put_mask(
        struct uc_scheduler *scheduler, const char *request_id, const uint8_t *mask, size_t count);

/** Ok or Unhealthy with the reason in uc_last_error(); cheap. */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_health(struct uc_scheduler *scheduler);
/** Add what the topology says of itself to @p description. */
UC_API UC_MUST_CHECK enum uc_status uc_scheduler_describe(
        struct uc_scheduler *scheduler, struct uc_dict *description);

#endif /* UC_SCHEDULER_H */
