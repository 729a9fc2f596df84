/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file wait_scratch.h
 * Working memory of Wait: the distinct ids of a call and room to put results into their order.
 *
 * Threads: owned by the data thread. Data path: memory is allocated only when a list is longer than all before.
 */

#ifndef UC_PROXY_WAIT_SCRATCH_H
#define UC_PROXY_WAIT_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/status.h>

#include "client/proxy/job_table.h"

/** Zeroed is empty. */
struct uc_wait_scratch {
    struct uc_job_table seen; /* distinct ids of the call; the value is the user's, 0 at first */
    uint64_t *ids; /* distinct ids in the order of the list, then room for as many again */
    struct uc_io_result *merged;
    size_t capacity;
    size_t distinct; /* ids of this call */
};

void uc_wait_scratch_fini(struct uc_wait_scratch *scratch);

/**
 * Take the distinct ids of a list. Ends with uc_wait_scratch_end(), also after a failure.
 *
 * @retval UC_ERR_INVALID_PARAM  room for fewer results than there are distinct ids
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_wait_scratch_begin(struct uc_wait_scratch *scratch,
        const uint64_t *job_ids, size_t job_count, size_t capacity);

void uc_wait_scratch_end(struct uc_wait_scratch *scratch);

#endif /* UC_PROXY_WAIT_SCRATCH_H */
