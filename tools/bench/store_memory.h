/* SPDX-License-Identifier: Apache-2.0 */

/** @file store_memory.h Where the blocks of ucm-bench store lie. One thread. */

#ifndef UC_BENCH_STORE_MEMORY_H
#define UC_BENCH_STORE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/**
 * Memory for blocks.
 *
 * @param[in] huge_pages  anonymous memory for which huge pages are asked (madvise), that no other process can map;
 *                        otherwise as uc_memory_alloc(), which small pages back on most hosts
 * @retval UC_ERR_OUT_OF_MEMORY, or as uc_memory_alloc()
 */
UC_MUST_CHECK enum uc_status uc_store_memory_alloc(
        uint64_t bytes, bool huge_pages, uint8_t **memory_out);

/** As it was allocated. NULL is ignored. */
void uc_store_memory_free(uint8_t *memory, uint64_t bytes, bool huge_pages);

#endif /* UC_BENCH_STORE_MEMORY_H */
