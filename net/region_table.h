/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file region_table.h
 * What every transport checks in the same way: ranges against regions, posted operations against the
 * regions a peer offered, and a domain's own regions found by region index.
 *
 * Nothing here adds an offset to a length before comparing: both may come from a peer and wrap.
 *
 * Threads: the pure functions, any. A table is changed by one thread at a time and may be looked up
 * by another meanwhile without a lock; a lookup that races a change finds the old region, the new
 * one or none, never a mixture.
 */

#ifndef UC_NET_REGION_TABLE_H
#define UC_NET_REGION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"

enum {
    UC_REGION_LIMIT = 1 << 16, /* region indices are below this */
    UC_FLUSH_BYTES = 8,        /* what a FLUSH must be able to read, see net/fabric.h */
};

/** One region as its domain knows it. A plain value. */
struct uc_region {
    uint8_t *address; /* borrowed from whoever registered it */
    uint64_t length_bytes;
    enum uc_fabric_access access; /* most that a peer may be granted */
};

/** @return whether [offset, offset + length) lies inside a region of @p region_bytes. */
static inline bool
uc_region_range_fits(uint64_t region_bytes, uint64_t offset_bytes, uint64_t length_bytes)
{
    return offset_bytes <= region_bytes && length_bytes <= region_bytes - offset_bytes;
}

/** @return whether the piece lies inside the memory that starts at @p address. */
static inline bool
uc_region_covers_piece(
        const void *address, uint64_t length_bytes, const struct uc_fabric_piece *piece)
{
    uintptr_t first = (uintptr_t)address;
    uintptr_t piece_first = (uintptr_t)piece->address;

    return piece_first >= first &&
           uc_region_range_fits(length_bytes, piece_first - first, piece->length_bytes);
}

/**
 * Check one operation the way post promises: known opcode, region known, pieces there and none of
 * them empty or too many, range inside the region. The provider checks what a piece's region is.
 *
 * @param[in]  regions           what the peer offered on connect
 * @param[out] length_bytes_out  sum of the pieces; UC_FLUSH_BYTES for a FLUSH
 *
 * @retval UC_ERR_INVALID_PARAM  the text says which rule was broken
 */
UC_MUST_CHECK enum uc_status uc_fabric_op_check(const struct uc_fabric_op *op,
        const struct uc_fabric_region_key *regions, size_t region_count,
        const struct uc_fabric_caps *caps, uint64_t *length_bytes_out);

/**
 * First member of struct uc_fabric_region where the provider checks pieces with uc_fabric_pieces_check().
 * A plain value.
 */
struct uc_region_span {
    struct uc_fabric_domain *domain;
    void *address; /* borrowed from whoever registered it */
    uint64_t length_bytes;
};

/**
 * Check the pieces that name a region: it is of the endpoint's domain, and they lie inside it. Others are
 * memory that is not registered.
 *
 * @retval UC_ERR_INVALID_PARAM  the text names the piece
 */
UC_MUST_CHECK enum uc_status uc_fabric_pieces_check(
        const struct uc_fabric_op *op, const struct uc_fabric_domain *domain);

/** A domain's regions by index. */
struct uc_region_table;

/** @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_region_table_create(struct uc_region_table **table_out);

/** Free the table, not the memory it names. NULL is allowed. */
void uc_region_table_destroy(struct uc_region_table *table);

/**
 * Put a region under an index.
 *
 * @retval UC_ERR_INVALID_PARAM  no memory, zero length, or the range wraps the address space
 * @retval UC_ERR_NO_SPACE       index not below UC_REGION_LIMIT
 * @retval UC_ERR_DUPLICATE_KEY  the index is taken
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_region_table_add(
        struct uc_region_table *table, uint32_t region_idx, const struct uc_region *region);

/** Free the index for another region. Nothing happens when there is none. */
void uc_region_table_remove(struct uc_region_table *table, uint32_t region_idx);

/**
 * Find a region. Data path: two loads, no lock.
 *
 * @param[in]  region_idx  any number a peer sent
 * @param[out] region_out  set on success only
 *
 * @retval UC_ERR_NOT_FOUND
 */
UC_MUST_CHECK enum uc_status uc_region_table_find(
        const struct uc_region_table *table, uint32_t region_idx, struct uc_region *region_out);

#endif /* UC_NET_REGION_TABLE_H */
