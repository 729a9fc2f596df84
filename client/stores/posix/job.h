/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file job.h
 * A submitted job: a copy of its descriptor and one op per block. Belongs to the data thread until it is
 * pushed, then to the progress thread until its event, then it is used again, with its arrays.
 */

#ifndef UC_POSIX_JOB_H
#define UC_POSIX_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/op.h"
#include "core/base/list.h"

struct uc_posix_job {
    struct uc_list link; /* free, submitted, waiting for its prerequisite, or running */
    uint64_t job_id;
    uint64_t deadline_ms;
    uint64_t prerequisite_handle;
    bool is_dump;
    bool uses_device;  /* a device copies pieces of it */
    bool is_timed_out; /* its ops were told to end */
    size_t count;      /* blocks */
    size_t left;       /* blocks whose transfer has not ended */

    enum uc_status code; /* of the failed block with the lowest index */
    size_t code_block;
    bool has_timeout; /* a block failed by the deadline */

    struct uc_posix_op *ops;
    uint8_t *blocks; /* bitmap */
    void **pointers; /* of all blocks, as the two below */
    bool *on_device;
    uint64_t *sizes;
    size_t op_room;
    size_t pointer_room;
};

struct uc_posix_job *uc_posix_job_create(void);
void uc_posix_job_destroy(struct uc_posix_job *job);

/**
 * Copy a descriptor that was checked.
 *
 * @retval UC_ERR_OUT_OF_MEMORY
 * @retval UC_ERR_INVALID_PARAM  a piece is memory of a device in part only
 */
UC_MUST_CHECK enum uc_status uc_posix_job_fill(struct uc_posix_job *job,
        const struct uc_posix_env *env, bool is_dump, const struct uc_job_descriptor *descriptor);

/** Note how a block ended. @return whether it was the last one */
bool uc_posix_job_end_block(struct uc_posix_job *job, const struct uc_posix_op *op);

/** The code of the job's event. */
enum uc_status uc_posix_job_code(const struct uc_posix_job *job);

#endif /* UC_POSIX_JOB_H */
