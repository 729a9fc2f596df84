/* SPDX-License-Identifier: Apache-2.0 */

/** @file block_file.h One block from or to a file; "-" is standard input or output. */

#ifndef UC_TOOLS_UCM_BLOCK_FILE_H
#define UC_TOOLS_UCM_BLOCK_FILE_H

#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/**
 * Read a whole file of 1 to @p length_max bytes.
 *
 * @param[out] memory_out  the caller frees it with uc_memory_free(memory, length_max)
 * @retval UC_ERR_INVALID_PARAM  empty, or longer than a block; the text names both sizes
 * @retval UC_ERR_OS_API         cannot be opened or read
 */
UC_MUST_CHECK enum uc_status uc_block_file_read(
        const char *path, uint64_t length_max, void **memory_out, uint64_t *length_out);

UC_MUST_CHECK enum uc_status uc_block_file_write(
        const char *path, const void *memory, uint64_t length);

#endif /* UC_TOOLS_UCM_BLOCK_FILE_H */
