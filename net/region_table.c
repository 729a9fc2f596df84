/* SPDX-License-Identifier: Apache-2.0 */

#include "net/region_table.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    CHUNK_ENTRIES = 256,
    CHUNK_COUNT = UC_REGION_LIMIT / CHUNK_ENTRIES,
};

/*
 * The version is odd while a region is there. It is advanced before the fields change and after, and
 * every field is stored with release and loaded with acquire, so a reader that saw a newer field also
 * sees a newer version when it looks again.
 */
struct entry {
    _Atomic(uint64_t) version;
    _Atomic(uintptr_t) address;
    _Atomic(uint64_t) length_bytes;
    _Atomic(uint32_t) access;
};

struct chunk {
    struct entry entries[CHUNK_ENTRIES];
};

struct uc_region_table {
    _Atomic(struct chunk *) chunks[CHUNK_COUNT]; /* made on first use, live until destroy */
};

enum uc_status
uc_region_table_create(struct uc_region_table **table_out)
{
    struct uc_region_table *table = calloc(1, sizeof(*table));

    if (table == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "region table: no memory for %zu bytes; free some",
                sizeof(*table));
    }

    *table_out = table;
    return UC_OK;
}

void
uc_region_table_destroy(struct uc_region_table *table)
{
    if (table == NULL) {
        return;
    }

    for (size_t idx = 0; idx < CHUNK_COUNT; idx++) {
        free(atomic_load_explicit(&table->chunks[idx], memory_order_acquire));
    }
    free(table);
}

/* The entry of an index, its chunk made if needed; NULL when that fails. */
static struct entry *
entry_make(struct uc_region_table *table, uint32_t region_idx)
{
    _Atomic(struct chunk *) *place = &table->chunks[region_idx / CHUNK_ENTRIES];
    struct chunk *chunk = atomic_load_explicit(place, memory_order_acquire);

    if (chunk == NULL) {
        chunk = calloc(1, sizeof(*chunk));
        if (chunk == NULL) {
            return NULL;
        }
        /* Pairs with the acquire in entry_find: a reader sees the zeroes. */
        atomic_store_explicit(place, chunk, memory_order_release);
    }

    return &chunk->entries[region_idx % CHUNK_ENTRIES];
}

static struct entry *
entry_find(const struct uc_region_table *table, uint32_t region_idx)
{
    struct chunk *chunk;

    if (region_idx >= UC_REGION_LIMIT) {
        return NULL;
    }

    chunk = atomic_load_explicit(&table->chunks[region_idx / CHUNK_ENTRIES], memory_order_acquire);
    return chunk == NULL ? NULL : &chunk->entries[region_idx % CHUNK_ENTRIES];
}

enum uc_status
uc_region_table_add(
        struct uc_region_table *table, uint32_t region_idx, const struct uc_region *region)
{
    struct entry *entry;
    uint64_t version;

    if (region->address == NULL || region->length_bytes == 0 ||
            region->length_bytes > UINTPTR_MAX - (uintptr_t)region->address) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "region %" PRIu32 ": %" PRIu64 " bytes at %p are no memory; pass a mapped range",
                region_idx, region->length_bytes, (void *)region->address);
    }
    if (region_idx >= UC_REGION_LIMIT) {
        return uc_error(UC_ERR_NO_SPACE,
                "region %" PRIu32 ": a domain has at most %d regions; use larger ones", region_idx,
                UC_REGION_LIMIT);
    }

    entry = entry_make(table, region_idx);
    if (entry == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "region %" PRIu32 ": no memory for its entry", region_idx);
    }

    version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    if (version % 2 != 0) {
        return uc_error(UC_ERR_DUPLICATE_KEY,
                "region %" PRIu32 ": registered already; deregister it first", region_idx);
    }

    atomic_store_explicit(&entry->address, (uintptr_t)region->address, memory_order_release);
    atomic_store_explicit(&entry->length_bytes, region->length_bytes, memory_order_release);
    atomic_store_explicit(&entry->access, (uint32_t)region->access, memory_order_release);
    atomic_store_explicit(&entry->version, version + 1, memory_order_release);
    return UC_OK;
}

void
uc_region_table_remove(struct uc_region_table *table, uint32_t region_idx)
{
    struct entry *entry = entry_find(table, region_idx);
    uint64_t version;

    if (entry == NULL) {
        return;
    }

    version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    if (version % 2 != 0) {
        atomic_store_explicit(&entry->version, version + 1, memory_order_release);
    }
}

enum uc_status
uc_region_table_find(
        const struct uc_region_table *table, uint32_t region_idx, struct uc_region *region_out)
{
    struct entry *entry = entry_find(table, region_idx);
    struct uc_region region;
    uint64_t version;

    if (entry == NULL) {
        return UC_ERR_NOT_FOUND;
    }

    version = atomic_load_explicit(&entry->version, memory_order_acquire);
    region.address = (uint8_t *)atomic_load_explicit(&entry->address, memory_order_acquire);
    region.length_bytes = atomic_load_explicit(&entry->length_bytes, memory_order_acquire);
    region.access =
            (enum uc_fabric_access)atomic_load_explicit(&entry->access, memory_order_acquire);
    if (version % 2 == 0 ||
            atomic_load_explicit(&entry->version, memory_order_acquire) != version) {
        return UC_ERR_NOT_FOUND;
    }

    *region_out = region;
    return UC_OK;
}

static enum uc_status
sum_pieces(const struct uc_fabric_op *op, const struct uc_fabric_caps *caps, uint64_t *sum_out)
{
    uint64_t sum = 0;

    if (op->pieces == NULL || op->piece_count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "fabric post: operation without pieces");
    }
    if (op->piece_count > caps->max_piece_count) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "fabric post: %zu pieces, %" PRIu32 " are the most; split the operation",
                op->piece_count, caps->max_piece_count);
    }

    for (size_t idx = 0; idx < op->piece_count; idx++) {
        const struct uc_fabric_piece *piece = &op->pieces[idx];

        if (piece->address == NULL || piece->length_bytes == 0) {
            return uc_error(UC_ERR_INVALID_PARAM, "fabric post: piece %zu of %zu is empty", idx,
                    op->piece_count);
        }
        if (piece->length_bytes > caps->max_op_bytes - sum) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "fabric post: more than %" PRIu64 " bytes; split the operation",
                    caps->max_op_bytes);
        }
        sum += piece->length_bytes;
    }

    *sum_out = sum;
    return UC_OK;
}

enum uc_status
uc_fabric_op_check(const struct uc_fabric_op *op, const struct uc_fabric_region_key *regions,
        size_t region_count, const struct uc_fabric_caps *caps, uint64_t *length_bytes_out)
{
    uint64_t length_bytes = UC_FLUSH_BYTES;

    switch (op->opcode) {
    case UC_FABRIC_READ:
    case UC_FABRIC_WRITE: {
        enum uc_status status = sum_pieces(op, caps, &length_bytes);

        if (status != UC_OK) {
            return status;
        }
        break;
    }
    case UC_FABRIC_FLUSH:
        if (op->piece_count != 0) {
            return uc_error(UC_ERR_INVALID_PARAM, "fabric post: a flush has no pieces");
        }
        break;
    default:
        return uc_error(UC_ERR_INVALID_PARAM, "fabric post: unknown opcode %d", (int)op->opcode);
    }

    if (op->region_idx >= region_count) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "fabric post: region %" PRIu32 ", the peer offered %zu", op->region_idx,
                region_count);
    }
    if (!uc_region_range_fits(
                regions[op->region_idx].length_bytes, op->offset_bytes, length_bytes)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "fabric post: %" PRIu64 " bytes at %" PRIu64 " exceed region %" PRIu32
                " of %" PRIu64 " bytes",
                length_bytes, op->offset_bytes, op->region_idx,
                regions[op->region_idx].length_bytes);
    }

    *length_bytes_out = length_bytes;
    return UC_OK;
}

enum uc_status
uc_fabric_pieces_check(const struct uc_fabric_op *op, const struct uc_fabric_domain *domain)
{
    for (size_t idx = 0; idx < op->piece_count; idx++) {
        const struct uc_fabric_piece *piece = &op->pieces[idx];
        const struct uc_region_span *span = (const struct uc_region_span *)piece->region;

        if (span == NULL) {
            continue;
        }
        if (span->domain != domain ||
                !uc_region_covers_piece(span->address, span->length_bytes, piece)) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "fabric post: piece %zu of %zu is not inside its region; register the memory in "
                    "the endpoint's domain",
                    idx, op->piece_count);
        }
    }
    return UC_OK;
}
