/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file worker.h
 * The data interface as an operations table: entry, pipe and peer implement it, worker.c checks what the
 * engine passes in and dispatches (section 9.2 of core/CONTRACT.md).
 *
 * Threads: as ucm/worker.h. The implementations see checked arguments only: no null outputs, a token, an
 * io context that is there, arrays that are there when their count is not 0.
 */

#ifndef UC_PROXY_WORKER_H
#define UC_PROXY_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/dict.h>
#include <ucm/status.h>
#include <ucm/token.h>
#include <ucm/worker.h>

/** Indices from here up belong to tiers that register memory with the tier below them. */
#define UC_REGION_IDX_END (UINT32_C(1) << 31)

/** All slots are mandatory: the table never leaves libucm_proxy.so. */
struct uc_worker_ops {
    enum uc_status (*submit_prefetch)(
            struct uc_worker *worker, uint64_t job_id, const struct uc_token *token);
    enum uc_status (*submit_get)(struct uc_worker *worker, uint64_t job_id,
            const struct uc_block_payload *payloads, size_t count, const struct uc_token *token,
            const struct uc_io_context *io);
    enum uc_status (*submit_put)(struct uc_worker *worker, uint64_t job_id,
            const struct uc_block_payload *payloads, size_t count, const struct uc_token *token,
            const struct uc_io_context *io);
    enum uc_status (*get_finished)(struct uc_worker *worker, struct uc_io_result *results,
            size_t capacity, size_t *count_out);
    /** Writes results and count on UC_ERR_TIMEOUT too. */
    enum uc_status (*wait)(struct uc_worker *worker, const uint64_t *job_ids, size_t job_count,
            int64_t timeout_ms, struct uc_io_result *results, size_t capacity, size_t *count_out);
    /** The index was assigned by the root; the range is neither empty nor wrapping. */
    enum uc_status (*register_memory)(struct uc_worker *worker, uint32_t region_idx, void *address,
            uint64_t length_bytes, enum uc_memory_kind kind);
    enum uc_status (*deregister_memory)(struct uc_worker *worker, uint32_t region_idx);
    int (*event_fd)(struct uc_worker *worker);
    enum uc_status (*health)(struct uc_worker *worker);
    enum uc_status (*describe)(struct uc_worker *worker, struct uc_dict *description);
};

/** Member of whatever implements it. */
struct uc_worker {
    const struct uc_worker_ops *ops;
    uint32_t next_region_idx; /* used in the root only, which is the one the engine calls */
};

#endif /* UC_PROXY_WORKER_H */
