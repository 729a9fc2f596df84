/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file scratch.h
 * Arrays that one call needs while it runs, kept between calls. Control thread; one user at a time.
 */

#ifndef UC_SERVER_SCRATCH_H
#define UC_SERVER_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/cache/cache_buffer.h"

/** Zero-initialise. Every array holds `capacity` elements. */
struct uc_scratch {
    struct uc_block_id *ids;
    struct uc_block_id *more_ids;
    struct uc_cache_slot *slots;
    enum uc_cache_outcome *outcomes;
    uint32_t *indices;
    uint32_t *more_indices;
    uint8_t *bytes;   /* one per key */
    uint8_t *entries; /* UC_ENTRY_BYTES per key */
    size_t capacity;
};

void uc_scratch_fini(struct uc_scratch *scratch);
/** Make room for @p count keys; never shrinks. @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_scratch_reserve(struct uc_scratch *scratch, size_t count);

#endif /* UC_SERVER_SCRATCH_H */
