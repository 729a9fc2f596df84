/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file plane.h
 * The data side: accepts jobs, runs them through an engine, delivers their events. One progress thread owns
 * everything between submit and event.
 *
 * Threads: submit by the data thread; completions as completion_queue.h says; create and destroy while no
 * other call runs.
 */

#ifndef UC_POSIX_PLANE_H
#define UC_POSIX_PLANE_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/helper.h"
#include "client/stores/posix/op.h"
#include "core/base/completion_queue.h"

struct uc_posix_plane;

/** @retval UC_ERR_UNSUPPORTED, UC_ERR_OUT_OF_MEMORY, UC_ERR_OS_API */
UC_MUST_CHECK enum uc_status uc_posix_plane_create(const struct uc_posix_env *env,
        struct uc_posix_helper *helper, struct uc_posix_plane **plane_out);

/** Waits for what is in flight. NULL is allowed. */
void uc_posix_plane_destroy(struct uc_posix_plane *plane);

/** Accept a job whose payloads were checked. @retval UC_ERR_DUPLICATE_KEY, UC_ERR_RETRY, UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_posix_plane_submit(struct uc_posix_plane *plane, bool is_dump,
        uint64_t job_id, const struct uc_job_descriptor *job);

struct uc_completion_queue *uc_posix_plane_queue(struct uc_posix_plane *plane);

/** @return whether jobs that use memory of a device are in flight. Data thread. */
bool uc_posix_plane_uses_device(const struct uc_posix_plane *plane);

/** @return "uring" or "threads" */
const char *uc_posix_plane_engine(const struct uc_posix_plane *plane);

#endif /* UC_POSIX_PLANE_H */
