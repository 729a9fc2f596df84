/* SPDX-License-Identifier: Apache-2.0 */

/** @file block_writers.h Which node wrote a block last, by hash id. One thread. */

#ifndef UC_BENCH_BLOCK_WRITERS_H
#define UC_BENCH_BLOCK_WRITERS_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_block_writers;

/** @param[in] capacity  most different hash ids, > 0 */
UC_MUST_CHECK enum uc_status uc_block_writers_create(
        size_t capacity, struct uc_block_writers **writers_out);
void uc_block_writers_destroy(struct uc_block_writers *writers);

void uc_block_writers_set(struct uc_block_writers *writers, uint64_t hash_id, uint32_t node);
/** @return the node, or UINT32_MAX if nobody wrote it. */
uint32_t uc_block_writers_get(const struct uc_block_writers *writers, uint64_t hash_id);

#endif /* UC_BENCH_BLOCK_WRITERS_H */
