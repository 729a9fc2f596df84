/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file slot_table.h
 * The slots of a slot store: a file that every process maps. The control process owns the table; data
 * processes read generation and state of a slot, and move bytes.
 */

#ifndef UC_TEST_SLOT_TABLE_H
#define UC_TEST_SLOT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/status.h>

enum slot_state {
    SLOT_FREE,
    SLOT_PENDING,
    SLOT_COMMITTED,
};

/* In the file. The control process changes it; data processes read generation and state. */
struct slot {
    _Atomic uint32_t generation; /* never 0; raised when the slot changes owner */
    _Atomic uint32_t state;
    uint32_t pins;
    uint32_t refs; /* reservations of a pending block, readmissions of a committed one */
    uint32_t has_success;
    _Atomic uint32_t filled; /* generation of the owner whose bytes a prefetch has brought */
    struct uc_block_id id;
};

struct file_header {
    uint64_t identity;
};

struct slot_table {
    uint64_t block_bytes; /* these two are set before open */
    size_t slot_count;
    size_t mapped_bytes;
    struct file_header *header; /* start of the mapping; NULL = closed */
    struct slot *slots;
    uint8_t *data;
};

/** @return pins, and reservations, of all slots together: what is held. Control process. */
size_t slot_table_pins(const struct slot_table *table);
size_t slot_table_refs(const struct slot_table *table);

/** Map the file, made if it is not there. OsApiError and its kin. */
UC_MUST_CHECK enum uc_status slot_table_open(struct slot_table *table, const char *path);

/** A table that is not open is allowed. */
void slot_table_close(struct slot_table *table);

/** Empty it: tokens of an earlier control process are stale from now on. */
UC_MUST_CHECK enum uc_status slot_table_clear(struct slot_table *table);

/** @return the slot of a block, pending or committed, or NULL. */
struct slot *slot_table_find(const struct slot_table *table, const struct uc_block_id *id);

/** @return whether a block with this slot (may be NULL) is a hit. */
bool slot_is_visible(const struct slot *slot);

/** One reference more to the block, on a free slot if it is new. @return NULL without one */
struct slot *slot_table_reserve(struct slot_table *table, const struct uc_block_id *id);

/** One commit of one key (table 4.5). NotFound without an outstanding reference. */
enum uc_status slot_table_conclude(
        struct slot_table *table, const struct uc_block_id *id, bool success);

#endif /* UC_TEST_SLOT_TABLE_H */
