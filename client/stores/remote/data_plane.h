/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file data_plane.h
 * The worker side of the remote store: jobs, transports, attachments, and the progress thread that runs them.
 *
 * Threads: the data thread calls everything here but health, counters and the name of the fabric, which
 * any thread may ask for.
 */

#ifndef UC_REMOTE_DATA_PLANE_H
#define UC_REMOTE_DATA_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>
#include <ucm/token.h>

#include "client/stores/remote/config.h"
#include "core/base/completion_queue.h"

struct uc_data_plane;

/* X(field): what the progress thread counts. */
#define UC_PLANE_COUNTER_MAP(X) \
    X(loads)                    \
    X(dumps)                    \
    X(blocks_read)              \
    X(blocks_written)           \
    X(bytes_read)               \
    X(bytes_written)            \
    X(failed_blocks)            \
    X(mismatches)               \
    X(blocks_bounced)           \
    X(timeouts)                 \
    X(reconnects)

#define UC_PLANE_COUNTER_FIELD_(field) uint64_t field;
struct uc_plane_counters {
    UC_PLANE_COUNTER_MAP(UC_PLANE_COUNTER_FIELD_)
};
#undef UC_PLANE_COUNTER_FIELD_

/**
 * Open the transports and start the progress thread, if the configuration wants one.
 *
 * @param[in] config       borrowed for the plane's life
 * @param[in] block_bytes  of the namespace
 */
UC_MUST_CHECK enum uc_status uc_data_plane_create(const struct uc_remote_config *config,
        uint64_t block_bytes, struct uc_data_plane **plane_out);

/** Fences what is still in flight, stops the thread, drops events. NULL is allowed. */
void uc_data_plane_destroy(struct uc_data_plane *plane);

/**
 * Accept a job. Data path: no allocation once the job's arrays have grown.
 *
 * @retval UC_ERR_DUPLICATE_KEY, UC_ERR_INVALID_PARAM, UC_ERR_UNSUPPORTED (prerequisite without hook),
 *         UC_ERR_RETRY (too many jobs), UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_data_plane_submit(struct uc_data_plane *plane, bool is_dump,
        uint64_t job_id, const struct uc_job_descriptor *descriptor, const struct uc_token *token,
        size_t first_key);

/** */
UC_MUST_CHECK enum uc_status uc_data_plane_register(struct uc_data_plane *plane,
        uint32_t region_idx, void *address, uint64_t length_bytes, enum uc_memory_kind kind);
UC_MUST_CHECK enum uc_status uc_data_plane_deregister(
        struct uc_data_plane *plane, uint32_t region_idx);

/** Where the events of jobs are. */
struct uc_completion_queue *uc_data_plane_queue(struct uc_data_plane *plane);

/** @return what the engine can sleep on, -1 if the system has none left. Data thread. */
int uc_data_plane_event_fd(struct uc_data_plane *plane);

/** @return whether there is a server that attachments could be made to, or that none was tried with. */
bool uc_data_plane_is_healthy(const struct uc_data_plane *plane);

/** @return whether an attachment to this server could not be made or made again. */
bool uc_data_plane_is_down(const struct uc_data_plane *plane, size_t server);

void uc_data_plane_counters(
        const struct uc_data_plane *plane, struct uc_plane_counters *counters_out);

/** @return name of the transport used last, "" before any; static storage. */
const char *uc_data_plane_fabric(const struct uc_data_plane *plane);

#endif /* UC_REMOTE_DATA_PLANE_H */
