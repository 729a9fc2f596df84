/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file block.h
 * Values that describe blocks and transfers. All are plain values that
 * borrow what they point to.
 */

#ifndef UC_BLOCK_H
#define UC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_BLOCK_ID_BYTES = 16
};

/** Marks a pointer without region in memory_region_indices. */
#define UC_MEMORY_REGION_NONE UINT32_MAX

enum uc_memory_kind {
    UC_MEMORY_HOST = 0,
    UC_MEMORY_CUDA = 1, /* larger values are reserved for further devices */
};

/** Hash of a block's content and prefix; compared bytewise. */
struct uc_block_id {
    uint8_t bytes[UC_BLOCK_ID_BYTES];
};

/** Where one block lies in the engine's memory; may be scattered. */
struct uc_block_payload {
    void *const *pointers;
    const uint64_t *sizes; /* bytes, one per pointer */
    size_t pointer_count;
    const uint32_t *memory_region_indices; /* NULL, or one per pointer */
    size_t memory_region_index_count;      /* 0, or pointer_count */
    const uint64_t *group_sizes;           /* NULL, or pointer counts per group */
    size_t group_count;
    uint64_t block_offset; /* first byte of the stored block that this covers */
};

/** One transfer of several blocks: ids and payloads are paired by index. */
struct uc_job_descriptor {
    const struct uc_block_id *block_ids;
    const struct uc_block_payload *payloads; /* Load: destinations. Dump: sources. */
    size_t count;
    const char *description;      /* NULL or text for logs */
    uint64_t prerequisite_handle; /* 0 = none */
    uint64_t timeout_ms;          /* 0 = the store's default */
};

/** How a submit covers its token; zeroed = whole token, no prerequisite, default deadline. */
struct uc_io_context {
    uint64_t prerequisite_handle;
    uint64_t timeout_ms;
    uint64_t first_key;
    uint64_t key_count; /* 0 = all keys from first_key on */
};

/**
 * Completion of one job, delivered exactly once. `success` exactly if `code` is UC_OK; a bit of
 * `blocks` is 1 where the block of that index transferred completely.
 */
struct uc_io_result {
    uint64_t job_id;
    uint8_t *blocks; /* bit i at blocks[i / 8] & 1 << i % 8; NULL = all alike; released below */
    size_t block_count;
    enum uc_status code;
    bool success;
};

/** Free what results own. The array itself stays the caller's. NULL and 0 are allowed. */
UC_API void uc_io_results_release(struct uc_io_result *results, size_t count);

/** @return whether block @p idx of a result transferred. */
static inline bool
uc_io_result_block_ok(const struct uc_io_result *result, size_t idx)
{
    if (result->success || result->blocks == NULL) {
        return result->success;
    }

    return (result->blocks[idx / 8] >> (idx % 8) & 1u) != 0;
}

#endif /* UC_BLOCK_H */
