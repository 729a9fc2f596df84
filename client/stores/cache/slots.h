/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file slots.h
 * What happens to one slot of the segment: the owner opens and closes it, workers count themselves in and out,
 * copy, and record what they wrote.
 *
 * A worker adds itself to its own row of counts, then looks whether the slot is open; the owner closes the slot,
 * then adds up the rows. Whichever comes second sees the other.
 *
 * Threads: open, close and reset are the control thread's; everything else is any thread's of any process.
 */

#ifndef UC_CACHE_STORE_SLOTS_H
#define UC_CACHE_STORE_SLOTS_H

#include "client/stores/cache/segment.h"

/** Control: forget what the slot held, before it is opened for a new generation. Nobody transfers. */
void uc_cache_slot_reset(const struct uc_cache_segment *segment, uint32_t slot);

/** Control: transfers of this generation may begin. */
void uc_cache_slot_open(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation);

/** Control: no transfer begins any more. @return whether some are in flight */
bool uc_cache_slot_close(const struct uc_cache_segment *segment, uint32_t slot);

/** @return whether transfers of live processes are in flight; those of dead ones are struck out (owner). */
bool uc_cache_slot_is_busy(const struct uc_cache_segment *segment, uint32_t slot);

/** @return whether all bytes of that generation came. */
bool uc_cache_slot_is_complete(
        const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation);

/**
 * Count in. @retval UC_ERR_NOT_FOUND stale or concluded @retval UC_ERR_RETRY counter full
 */
UC_MUST_CHECK enum uc_status uc_cache_slot_begin(
        const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation);
void uc_cache_slot_end(const struct uc_cache_segment *segment, uint32_t slot);

/**
 * Copy a block out and verify it. The caller is counted in.
 *
 * @retval UC_ERR_NOT_FOUND      not complete, or damaged: then it is marked so
 * @retval UC_ERR_INVALID_PARAM  beyond the stored length
 */
UC_MUST_CHECK enum uc_status uc_cache_slot_load(const struct uc_cache_segment *segment,
        uint32_t slot, uint64_t generation, const struct uc_block_id *id,
        const struct uc_block_payload *payload);

/**
 * Copy bytes in; what came already is not copied again. The caller is counted in.
 *
 * @retval UC_ERR_INVALID_PARAM  beyond the reserved length
 * @retval UC_ERR_RETRY          damaged and held, or too many pieces apart
 */
UC_MUST_CHECK enum uc_status uc_cache_slot_dump(const struct uc_cache_segment *segment,
        uint32_t slot, uint64_t generation, const struct uc_block_id *id,
        const struct uc_block_payload *payload);

/**
 * The same in steps, for bytes that somebody else copies, a device for instance: start says where they are in the slot,
 * or NULL where none have to move; check verifies a load, while they move or after; end records a dump when they are in
 * place. A block that such a dump completes has no checksum. The caller is counted in throughout.
 */
UC_MUST_CHECK enum uc_status uc_cache_slot_load_start(const struct uc_cache_segment *segment,
        uint32_t slot, uint64_t generation, const struct uc_block_id *id,
        const struct uc_block_payload *payload, uint8_t **bytes_out);
UC_MUST_CHECK enum uc_status uc_cache_slot_load_check(const struct uc_cache_segment *segment,
        uint32_t slot, uint64_t generation, const struct uc_block_payload *payload);
UC_MUST_CHECK enum uc_status uc_cache_slot_dump_start(const struct uc_cache_segment *segment,
        uint32_t slot, uint64_t generation, const struct uc_block_payload *payload,
        uint8_t **bytes_out);
UC_MUST_CHECK enum uc_status uc_cache_slot_dump_end(const struct uc_cache_segment *segment,
        uint32_t slot, uint64_t generation, const struct uc_block_id *id,
        const struct uc_block_payload *payload);

/**
 * The footer and, where there are checksums, the bytes are those of the block; else it is marked as damaged, unless it
 * is not whole. The caller is counted in.
 */
bool uc_cache_slot_is_intact(const struct uc_cache_segment *segment, uint32_t slot,
        uint64_t generation, const struct uc_block_id *id);

/** All bytes were put in place by somebody else: write the footer. The caller is counted in. */
void uc_cache_slot_seal(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id);

#endif /* UC_CACHE_STORE_SLOTS_H */
