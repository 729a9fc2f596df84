/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_slots.h
 * Memory of ucm-bench fabric on both sides: slots with footers as a server has them, and the client's pieces.
 * Pure functions but for creating and filling; one thread.
 */

#ifndef UC_BENCH_FABRIC_SLOTS_H
#define UC_BENCH_FABRIC_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"

/** Shared memory with a file of its own, sealed, all pages there. Zero-initialise `fd` to -1. */
struct uc_fabric_bench_memory {
    uint8_t *base;
    uint64_t bytes;
    int fd;
};

/** @retval UC_ERR_OUT_OF_MEMORY, UC_ERR_OS_API */
UC_MUST_CHECK enum uc_status uc_fabric_bench_memory_create(
        uint64_t bytes, struct uc_fabric_bench_memory *memory_out);
void uc_fabric_bench_memory_destroy(struct uc_fabric_bench_memory *memory);
/** @return all of it, as the fabric takes it. */
struct uc_fabric_memory uc_fabric_bench_memory_range(const struct uc_fabric_bench_memory *memory);

/** The server's side: slot after slot, each a block, its footer, and padding to a page. A plain value. */
struct uc_fabric_bench_slots {
    uint64_t block_bytes;
    uint64_t slot_bytes;
    uint64_t count;
};

/** As many slots as the working set holds, @p at_least at least. */
struct uc_fabric_bench_slots uc_fabric_bench_slots_plan(
        uint64_t block_bytes, uint64_t working_set_bytes, uint64_t at_least);

static inline uint64_t
uc_fabric_bench_slot_offset(const struct uc_fabric_bench_slots *slots, uint64_t idx)
{
    return idx * slots->slot_bytes;
}

/** @return generation of a slot, never 0. */
static inline uint64_t
uc_fabric_bench_slot_generation(uint64_t idx)
{
    return idx + 1;
}

/** Contents and footers: committed blocks, or reserved slots that await their bytes. */
void uc_fabric_bench_slots_fill(
        const struct uc_fabric_bench_slots *slots, uint8_t *base, bool committed);

/** Check the slots that have been written with a checksum. @return how many are wrong */
uint64_t uc_fabric_bench_slots_check(
        const struct uc_fabric_bench_slots *slots, const uint8_t *base, uint64_t *checked_out);

/**
 * The client's side: piece j of every buffer lies in area j, so that the pieces of a block are far apart; behind
 * them a footer for each operation in flight. A plain value.
 */
struct uc_fabric_bench_buffers {
    uint64_t count;
    uint64_t piece_bytes;
    uint64_t pieces;
    uint64_t footer_count;
};

static inline uint64_t
uc_fabric_bench_piece_offset(
        const struct uc_fabric_bench_buffers *buffers, uint64_t buffer, uint64_t piece)
{
    return (piece * buffers->count + buffer) * buffers->piece_bytes;
}

/** @return where the footer of an operation lies; for footer_count, the size of the whole. */
uint64_t uc_fabric_bench_footer_offset(
        const struct uc_fabric_bench_buffers *buffers, uint64_t footer);

/**
 * Contents; the same in every piece, so that a slot keeps its checksum whatever buffer it is written from, and
 * also where a limit writes bytes that lie side by side there.
 */
void uc_fabric_bench_buffers_fill(const struct uc_fabric_bench_buffers *buffers, uint8_t *base);

/** @return bytes of the last-level cache, 0 if the system does not say. */
uint64_t uc_fabric_bench_cache_bytes(void);
/** @return the default working set. */
uint64_t uc_fabric_bench_working_set_bytes(void);

#endif /* UC_BENCH_FABRIC_SLOTS_H */
