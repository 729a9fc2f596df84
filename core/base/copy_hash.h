/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file copy_hash.h
 * Copies of blocks, alone and fused with their checksum (xxh3-64). Blocks stream through a processor once: from
 * 32 KiB on a copy leaves its destination out of the caches, which spares memory the reading of what is
 * overwritten anyway. That is faster than memcpy() whenever source and destination do not both lie in the second
 * level cache already.
 *
 * The sum is one of the bytes that were written, even where somebody changes the source meanwhile: each byte of it
 * is read once. So a reader that finds the sum right has the bytes the sum was made of (G14).
 *
 * Everything written is in place before anything that the calling thread writes afterwards, as with memcpy().
 *
 * Threads: no state but the caller's. Data path.
 */

#ifndef UC_BASE_COPY_HASH_H
#define UC_BASE_COPY_HASH_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>

enum {
    UC_COPY_HASH_STATE_BYTES = 576
};

/** A sum under way, on the stack or wherever the caller likes; there is nothing to release. */
struct uc_copy_hash {
    alignas(64) uint8_t state[UC_COPY_HASH_STATE_BYTES];
};

UC_PRIVATE_API void uc_copy_hash_init(struct uc_copy_hash *hash);

/** Sum up bytes that stay where they are. */
UC_PRIVATE_API void uc_copy_hash_add(struct uc_copy_hash *hash, const void *bytes, size_t length);

/** Copy and sum up. The two do not overlap; any alignment. */
UC_PRIVATE_API void uc_copy_hash_copy(
        struct uc_copy_hash *hash, void *to, const void *from, size_t length);

/** @return the sum of all that was added and copied so far. */
UC_PRIVATE_API uint64_t uc_copy_hash_sum(const struct uc_copy_hash *hash);

/** @return the sum of these bytes alone. */
UC_PRIVATE_API uint64_t uc_copy_hash_of(const void *bytes, size_t length);

/** Hears of bytes that are being copied, while they are in the cache. */
typedef void uc_copy_tell_fn(void *context, const void *bytes, size_t length);

/**
 * Copy and tell of every byte, in order, in runs of a few KiB: exactly what is written, though not necessarily
 * from where. The two do not overlap; any alignment.
 */
UC_PRIVATE_API void uc_copy_told(
        void *to, const void *from, size_t length, uc_copy_tell_fn *tell, void *context);

/** Copy without a sum. The two do not overlap; any alignment. */
UC_PRIVATE_API void uc_copy_stream(void *to, const void *from, size_t length);

/**
 * Copy one run of a long copy past the caches, however short the run is. What belongs to such a copy is in place
 * after uc_copy_runs_end(). As for the rest like uc_copy_stream() and uc_copy_told().
 */
UC_PRIVATE_API void uc_copy_run(void *to, const void *from, size_t length);
UC_PRIVATE_API void uc_copy_run_told(
        void *to, const void *from, size_t length, uc_copy_tell_fn *tell, void *context);
UC_PRIVATE_API void uc_copy_runs_end(void);

/** Bytes somewhere. A plain value. */
struct uc_copy_part {
    const void *bytes;
    size_t length;
};

/**
 * Copy parts to one place, one behind the other, past the caches if they are long together: each alone may be too
 * short for uc_copy_stream() to do so. No part overlaps the place; any alignment, any length.
 */
UC_PRIVATE_API void uc_copy_gather(void *to, const struct uc_copy_part *parts, size_t count);

#endif /* UC_BASE_COPY_HASH_H */
