/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file plane.h
 * Data side of the cache store: jobs, the threads that copy, and the segment that tokens lead to.
 *
 * Threads: submit, register and deregister are the data thread's; the plane's own threads do the rest.
 */

#ifndef UC_CACHE_STORE_PLANE_H
#define UC_CACHE_STORE_PLANE_H

#include <ucm/token.h>

#include "client/stores/cache/config.h"
#include "client/stores/cache/job.h"
#include "client/stores/cache/segment.h"
#include "core/base/completion_queue.h"

struct uc_cache_plane;

/** Since the plane was made; a plain value. Each piece of a block that moves alone counts as one. */
struct uc_cache_plane_stats {
    uint64_t blocks_loaded; /* out of slots */
    uint64_t blocks_dumped; /* into slots */
};

/**
 * @param[in] events   borrowed
 * @param[in] segment  NULL: attach to the one that tokens name; else borrowed from the index in this process
 * @retval UC_ERR_OS_API_ERROR  no threads
 */
UC_MUST_CHECK enum uc_status uc_cache_plane_create(const struct uc_cache_store_config *config,
        struct uc_completion_queue *events, struct uc_cache_segment *segment,
        struct uc_cache_plane **plane_out);

/** Jobs that were not waited for fail. NULL is allowed. */
void uc_cache_plane_destroy(struct uc_cache_plane *plane);

struct uc_cache_plane_stats uc_cache_plane_stats(struct uc_cache_plane *plane);

/** Start a job. As load and dump of the facet. */
UC_MUST_CHECK enum uc_status uc_cache_plane_submit(struct uc_cache_plane *plane, bool is_load,
        uint64_t job_id, const struct uc_job_descriptor *job, const struct uc_token *token,
        size_t first_key);

UC_MUST_CHECK enum uc_status uc_cache_plane_register(struct uc_cache_plane *plane,
        uint32_t region_idx, const void *address, uint64_t length_bytes, enum uc_memory_kind kind);
UC_MUST_CHECK enum uc_status uc_cache_plane_deregister(
        struct uc_cache_plane *plane, uint32_t region_idx);

/**
 * The segment that a checked token payload leads to, held until let go; NULL: that life is over.
 *
 * @retval UC_ERR_INVALID_PARAM  not a token of this domain, or a slot that there is not
 */
UC_MUST_CHECK enum uc_status uc_cache_plane_attach(struct uc_cache_plane *plane,
        const uint8_t *payload, size_t payload_bytes, size_t key_count,
        struct uc_cache_attachment **attachment_out);
void uc_cache_plane_hold(struct uc_cache_plane *plane, struct uc_cache_attachment *attachment);
/** NULL is allowed. */
void uc_cache_plane_let_go(struct uc_cache_plane *plane, struct uc_cache_attachment *attachment);

/** The latest attachment, held, or NULL. */
struct uc_cache_attachment *uc_cache_plane_current(struct uc_cache_plane *plane);

#endif /* UC_CACHE_STORE_PLANE_H */
