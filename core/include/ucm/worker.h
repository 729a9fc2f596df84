/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file worker.h
 * Data plane of an inference engine (section 9.2 of core/CONTRACT.md).
 *
 * Threads: one thread at a time; it may run beside the thread that uses the scheduler.
 * Buffers named by payloads stay valid, and for puts unchanged, until the job's event was consumed.
 */

#ifndef UC_WORKER_H
#define UC_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>
#include <ucm/token.h>

/** Borrowed from an assembler, see uc_assembler_worker(). */
struct uc_worker;

/** Submit a prefetch plan. */
UC_API UC_MUST_CHECK enum uc_status uc_worker_submit_prefetch(
        struct uc_worker *worker, uint64_t job_id, const struct uc_token *token);

/**
 * Load the token's blocks (or the sub-range that @p io names) into payloads, one per key. Token and
 * payload descriptions are borrowed for the call. @p io may be NULL.
 *
 * @retval UC_ERR_DUPLICATE_KEY  the job id is in flight
 * @retval UC_ERR_INVALID_PARAM  token, range or payloads do not fit together
 */
UC_API UC_MUST_CHECK enum uc_status uc_worker_submit_get(struct uc_worker *worker, uint64_t job_id,
        const struct uc_block_payload *payloads, size_t count, const struct uc_token *token,
        const struct uc_io_context *io);

/** Dump payloads into the token's blocks; otherwise as uc_worker_submit_get(). */
UC_API UC_MUST_CHECK enum uc_status uc_worker_submit_put(struct uc_worker *worker, uint64_t job_id,
        const struct uc_block_payload *payloads, size_t count, const struct uc_token *token,
        const struct uc_io_context *io);

/** Collect what is ready, never blocks. Release with uc_io_results_release(). */
UC_API UC_MUST_CHECK enum uc_status uc_worker_get_finished(
        struct uc_worker *worker, struct uc_io_result *results, size_t capacity, size_t *count_out);

/**
 * Wait for the listed jobs; −1 = no limit, 0 = poll. Writes results and count on UC_ERR_TIMEOUT too
 * . Unknown ids are ignored.
 */
UC_API UC_MUST_CHECK enum uc_status uc_worker_wait(struct uc_worker *worker,
        const uint64_t *job_ids, size_t job_count, int64_t timeout_ms, struct uc_io_result *results,
        size_t capacity, size_t *count_out);

/** Make memory usable for transfers under an index that all tiers share. */
UC_API UC_MUST_CHECK enum uc_status uc_worker_register_memory(struct uc_worker *worker,
        void *address, uint64_t length_bytes, enum uc_memory_kind kind, uint32_t *region_idx_out);
/** NotFound; Retry while a job uses it. */
UC_API enum uc_status uc_worker_deregister_memory(struct uc_worker *worker, uint32_t region_idx);

/** Descriptor that is readable while get_finished has something; owned by the worker. */
UC_API int uc_worker_event_fd(struct uc_worker *worker);

UC_API UC_MUST_CHECK enum uc_status uc_worker_health(struct uc_worker *worker);
UC_API UC_MUST_CHECK enum uc_status uc_worker_describe(
        struct uc_worker *worker, struct uc_dict *description);

/** Page-multiple, touched memory that every transport can use; free with uc_memory_free(). */
UC_API UC_MUST_CHECK enum uc_status uc_memory_alloc(uint64_t length_bytes, void **memory_out);
UC_API void uc_memory_free(void *memory, uint64_t length_bytes);

#endif /* UC_WORKER_H */
