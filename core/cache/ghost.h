/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file ghost.h
 * Ghost: remembers how often blocks were seen that have left the cache, the latest ones, in order of
 * leaving. Fixed memory of 11 bytes per id, one cache line per operation, whatever ids peers choose.
 *
 * It knows an id by a hash: now and then a strange block is taken for a known one, which costs a wrong hint
 * and nothing else. Order matters, though: the blocks of a chain leave together and have to be forgotten
 * together, or else some of them are kept without their ancestors.
 *
 * Threads: one at a time.
 */

#ifndef UC_CACHE_GHOST_H
#define UC_CACHE_GHOST_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_GHOST_SEEN_MAX = 3 /* times seen are counted up to this */
};

struct uc_ghost;

/**
 * @param[in] id_count  how many of the latest additions are remembered, at least 1
 * @retval UC_ERR_OUT_OF_MEMORY  also for more ids than can be addressed
 */
UC_MUST_CHECK enum uc_status uc_ghost_create(size_t id_count, struct uc_ghost **ghost_out);
void uc_ghost_destroy(struct uc_ghost *ghost);

/** Start loading what adding or taking the block will need. */
void uc_ghost_prefetch(const struct uc_ghost *ghost, const struct uc_block_id *id);

/** The block left the cache, seen that often (1 or more). Data path. */
void uc_ghost_add(struct uc_ghost *ghost, const struct uc_block_id *id, unsigned seen);

/** @return how often the block was seen, 0 = unknown; it is forgotten here. Data path. */
unsigned uc_ghost_take(struct uc_ghost *ghost, const struct uc_block_id *id);

/** NULL has none. */
size_t uc_ghost_memory_bytes(const struct uc_ghost *ghost);

#endif /* UC_CACHE_GHOST_H */
