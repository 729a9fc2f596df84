/* SPDX-License-Identifier: Apache-2.0 */

/** @file job_check.h Checks of job descriptors that every store shares. Pure; any thread; data path. */

#ifndef UC_STORE_JOB_CHECK_H
#define UC_STORE_JOB_CHECK_H

#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

/**
 * Check the shape of a job: arrays present, region indices and groups fit the pointers, no
 * address range and no block range wraps. Block lengths and regions are left to the store.
 *
 * @param[in] what  named in the error text, e.g. "load"
 * @retval UC_ERR_INVALID_PARAM
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_job_check(
        const char *what, uint64_t job_id, const struct uc_job_descriptor *job);

/** Check one payload likewise and sum up its bytes; @p bytes_out may be NULL. */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_payload_check(
        const struct uc_block_payload *payload, uint64_t *bytes_out);

#endif /* UC_STORE_JOB_CHECK_H */
