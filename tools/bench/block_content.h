/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file block_content.h
 * Ids and bytes of blocks, made from the hash ids of a trace. The same on every host and in every run, so
 * that any process can check what another one wrote. Any thread.
 */

#ifndef UC_BENCH_BLOCK_CONTENT_H
#define UC_BENCH_BLOCK_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>

/**
 * @return the block id of a hash id: two finalised 64-bit words, little endian, from different constants.
 * The first word is a bijection of the hash id, so ids are distinct exactly if hash ids are.
 */
struct uc_block_id uc_block_id_from_hash(uint64_t hash_id);

/** Write the bytes of a block: word i is a mix of the hash id and i, little endian; the last may be cut. */
void uc_block_content_fill(uint64_t hash_id, void *block, size_t length_bytes);

/**
 * Compare a block with what fill wrote.
 *
 * @param[out] offset_out  first byte that differs; set only if one does
 * @return whether all bytes are right
 */
bool uc_block_content_check(
        uint64_t hash_id, const void *block, size_t length_bytes, uint64_t *offset_out);

#endif /* UC_BENCH_BLOCK_CONTENT_H */
