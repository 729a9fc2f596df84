/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file block_footer.h
 * A block file: the bytes, zeroes up to a multiple of 4096, and this footer of 64 bytes, little endian,
 * which may be followed by zeroes up to the end of its page:
 *
 *   0  u32 magic "UCB1"    4  u32 checksum kind   8  u64 generation   16  16 bytes key
 *  32  u64 length         40  u64 checksum       48  u64 zero         56  u64 xxh3-64 of bytes 0 to 55
 *
 * The checksum covers key, generation, length and the block's bytes. Pure functions; any thread.
 */

#ifndef UC_POSIX_BLOCK_FOOTER_H
#define UC_POSIX_BLOCK_FOOTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_BLOCK_FOOTER_BYTES = 64,
    UC_BLOCK_PAGE_BYTES = 4096,
};

enum uc_block_checksum {
    UC_BLOCK_CHECKSUM_NONE = 1,
    UC_BLOCK_CHECKSUM_XXH3_64 = 2,
};

/** A plain value. */
struct uc_block_footer {
    struct uc_block_id key;
    uint64_t generation; /* drawn by the instance that wrote the file; 0 is never valid */
    uint64_t length_bytes;
    uint64_t checksum;
    uint32_t checksum_kind;
};

/** Round up to whole pages; @p length_bytes is at most 2^63. */
static inline uint64_t
uc_block_padded(uint64_t length_bytes)
{
    return (length_bytes + UC_BLOCK_PAGE_BYTES - 1) / UC_BLOCK_PAGE_BYTES * UC_BLOCK_PAGE_BYTES;
}

void uc_block_footer_put(uint8_t *bytes, const struct uc_block_footer *footer);

/**
 * Parse 64 untrusted bytes.
 *
 * @retval UC_ERR_NOT_FOUND  no footer, or a damaged one
 */
UC_MUST_CHECK enum uc_status uc_block_footer_get(
        const uint8_t *bytes, struct uc_block_footer *footer_out);

/**
 * Where the footer of a file of that size begins.
 *
 * @retval UC_ERR_NOT_FOUND  no block file has this size
 */
UC_MUST_CHECK enum uc_status uc_block_footer_offset(uint64_t file_bytes, uint64_t *offset_out);

/** The checksum of a block whose bytes lie in pieces. */
uint64_t uc_block_checksum(const struct uc_block_id *key, uint64_t generation,
        void *const *pointers, const uint64_t *sizes, size_t piece_count);

#endif /* UC_POSIX_BLOCK_FOOTER_H */
