/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file host_memory.h
 * Memory that every transport can use best: pages of a sealed file of its own, which a server on the same host can
 * be shown instead of being sent their bytes. Behind uc_memory_alloc() of ucm/worker.h.
 *
 * What was handed out is remembered by the process: whoever gets a pointer into it later finds the file again.
 * Threads: any.
 */

#ifndef UC_BASE_HOST_MEMORY_H
#define UC_BASE_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/**
 * Page-multiple, touched memory.
 *
 * @param[out] memory_out  freed with uc_host_memory_free() and the same length
 * @retval UC_ERR_INVALID_PARAM  0 bytes, or no memory_out
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_host_memory_alloc(
        uint64_t length_bytes, void **memory_out);

/** NULL is allowed. */
UC_PRIVATE_API void uc_host_memory_free(void *memory, uint64_t length_bytes);

/**
 * Find the file behind a range.
 *
 * @param[out] fd_out            stays the process's; valid until the memory is freed
 * @param[out] offset_bytes_out  of @p address in it
 * @return whether the whole range lies in one allocation
 */
UC_PRIVATE_API bool uc_host_memory_find(
        const void *address, uint64_t length_bytes, int *fd_out, uint64_t *offset_bytes_out);

#endif /* UC_BASE_HOST_MEMORY_H */
