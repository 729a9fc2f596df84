/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file completion_queue.h
 * Jobs in flight and their completion events, each delivered exactly once (section 5.3 of core/CONTRACT.md).
 * What load, dump, get_finished, wait and event_fd of a store need beside the transfer itself.
 *
 * A job is begun by the thread that submits it, finished once by whatever thread sees its end, and consumed
 * by get_finished or wait; its id is in use from begin until then.
 *
 * Threads: every function but create and destroy may be called from any thread. One thread at a time consumes
 * more of them are safe, but which one gets an event is open.
 *
 * Cost: one uncontended lock and one hash probe per call and event. Records are allocated in bulk at create
 * and doubled by begin when they run out; finish allocates only for the bitmap of a job that failed in part.
 */

#ifndef UC_BASE_COMPLETION_QUEUE_H
#define UC_BASE_COMPLETION_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_completion_queue;

/**
 * @param[in]  prepared_count  records to allocate now; 0 = a default that fits most workers
 * @param[in]  limit           most jobs between begin and consumption; 0 = no limit
 * @param[out] queue_out       set on success only; the caller owns it
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_completion_queue_create(
        size_t prepared_count, size_t limit, struct uc_completion_queue **queue_out);

/**
 * Let get_finished and wait do the work that ends jobs, for stores without a thread for it. Before the first job.
 *
 * @param[in] drive  does what there is to do, and sleeps for at most @p left_ms (−1 = no limit) if that is
 *                   nothing; calls uc_completion_queue_finish(). Without any lock, on the consuming thread
 */
UC_PRIVATE_API void uc_completion_queue_set_driver(struct uc_completion_queue *queue,
        void (*drive)(void *context, int64_t left_ms), void *context);

/** Drops what was not consumed. Nobody may be in a call. NULL is allowed. */
UC_PRIVATE_API void uc_completion_queue_destroy(struct uc_completion_queue *queue);

/**
 * Take a job id, before the first byte moves.
 *
 * @param[in] block_count  payloads of the job: bits of its bitmap
 * @retval UC_ERR_DUPLICATE_KEY  the id is in flight, or finished and not consumed
 * @retval UC_ERR_RETRY          the limit is reached
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_completion_queue_begin(
        struct uc_completion_queue *queue, uint64_t job_id, size_t block_count);

/** Undo begin where the submit fails: no event will come, the id is free. Unknown ids are ignored. */
UC_PRIVATE_API void uc_completion_queue_drop(struct uc_completion_queue *queue, uint64_t job_id);

/**
 * End a job: its event can be consumed from now on. The transfer has been quiesced or fenced.
 * An id that is unknown or finished already is ignored. Never fails; wakes a waiter.
 *
 * @param[in] code    UC_OK: every block transferred, @p blocks is ignored. Else
 * @param[in] blocks  copied; bit i at blocks[i / 8] & 1 << i % 8; NULL = no block transferred. If the copy
 *                    cannot be allocated the event reports every block as failed
 */
UC_PRIVATE_API void uc_completion_queue_finish(struct uc_completion_queue *queue, uint64_t job_id,
        enum uc_status code, const uint8_t *blocks);

/** Consume up to @p capacity events in the order in which they finished; never blocks. */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_completion_queue_get_finished(
        struct uc_completion_queue *queue, struct uc_io_result *results, size_t capacity,
        size_t *count_out);

/**
 * Wait for the listed jobs and consume their events, in the order of the list.
 *
 * @param[in] timeout_ms  −1 = no limit, 0 = poll
 * @retval UC_ERR_TIMEOUT        some are not finished; results and count are written all the same
 * @retval UC_ERR_INVALID_PARAM  @p capacity below the number of distinct ids, or timeout below −1;
 *                               nothing consumed
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_completion_queue_wait(
        struct uc_completion_queue *queue, const uint64_t *job_ids, size_t job_count,
        int64_t timeout_ms, struct uc_io_result *results, size_t capacity, size_t *count_out);

/**
 * Descriptor that is readable while events wait to be consumed, level triggered. Made by the first
 * call; until then nobody pays for it. Owned by the queue.
 *
 * @return the descriptor, or −1 if the system has none left (logged)
 */
UC_PRIVATE_API int uc_completion_queue_event_fd(struct uc_completion_queue *queue);

/** @return whether the id was begun and its event not consumed yet. */
UC_PRIVATE_API bool uc_completion_queue_has(struct uc_completion_queue *queue, uint64_t job_id);

/** @return jobs begun and not finished. */
UC_PRIVATE_API size_t uc_completion_queue_unfinished(struct uc_completion_queue *queue);

#endif /* UC_BASE_COMPLETION_QUEUE_H */
