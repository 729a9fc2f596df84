/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file slot_footer.h
 * The 64 bytes that follow a block's data in its slot (ARCHITECTURE.md §2), little endian:
 *
 *   0  u32 magic "UCF1"     4  u32 state        8  u64 generation   16  16 bytes key     (server part)
 *  32  u64 length          40  u32 checksum kind 44 u32 zero        48  u64 checksum  56 u64 zero
 *                                                                                        (writer part)
 *
 * The server writes its part at alloc and at commit and zeroes the writer part at alloc; the client
 * writes the writer part after the data. Any thread; pure functions.
 */

#ifndef UC_NET_SLOT_FOOTER_H
#define UC_NET_SLOT_FOOTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/copy_hash.h"

enum {
    UC_FOOTER_BYTES = 64,
    UC_FOOTER_WRITER_OFFSET = 32,
    UC_FOOTER_WRITER_BYTES = 32,
};

enum uc_footer_state {
    UC_FOOTER_RESERVED = 1,
    UC_FOOTER_COMMITTED = 2,
    UC_FOOTER_FREE = 3,
};

enum uc_checksum_kind {
    UC_CHECKSUM_UNWRITTEN = 0, /* the writer part was never written */
    UC_CHECKSUM_NONE = 1,
    UC_CHECKSUM_XXH3_64 = 2,
};

/** A plain value. */
struct uc_slot_footer {
    struct uc_block_id key;
    uint64_t generation;
    uint64_t length_bytes;
    uint64_t checksum;
    uint32_t state;         /* enum uc_footer_state, or any number a peer wrote */
    uint32_t checksum_kind; /* enum uc_checksum_kind, likewise */
};

/** Write the server part; with @p clear_writer also zero the writer part. */
void uc_slot_footer_put_server(uint8_t *footer, enum uc_footer_state state, uint64_t generation,
        const struct uc_block_id *key, bool clear_writer);

/** Write the 32 bytes of the writer part to @p writer_part (not to the footer's start). */
void uc_slot_footer_put_writer(
        uint8_t *writer_part, uint64_t length_bytes, enum uc_checksum_kind kind, uint64_t checksum);

/** Parse 64 untrusted bytes. @retval UC_ERR_NOT_FOUND wrong magic */
UC_MUST_CHECK enum uc_status uc_slot_footer_get(
        const uint8_t *footer, struct uc_slot_footer *footer_out);

/** One contiguous piece of a block. */
struct uc_checksum_piece {
    const void *address;
    uint64_t length_bytes;
};

/** xxh3-64 over key, generation (8 bytes, little endian) and the pieces in order. */
uint64_t uc_slot_checksum(const struct uc_block_id *key, uint64_t generation,
        const struct uc_checksum_piece *pieces, size_t piece_count);

/** The same checksum over bytes that come one after the other. Caller's storage; nothing to free. */
struct uc_checksum_stream {
    struct uc_copy_hash hash;
};

/** Start with the key and generation of a block. */
void uc_checksum_stream_init(
        struct uc_checksum_stream *stream, const struct uc_block_id *key, uint64_t generation);

/** Add the next bytes of the block. Data path. */
void uc_checksum_stream_add(
        struct uc_checksum_stream *stream, const void *bytes, size_t length_bytes);

/** @return uc_slot_checksum() of what was added so far. */
uint64_t uc_checksum_stream_value(const struct uc_checksum_stream *stream);

#endif /* UC_NET_SLOT_FOOTER_H */
