/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file segment.h
 * The memory that the processes of one node share: header, slots, transfer counts, bytes of the blocks.
 *
 * The owner (the control side) makes it, complete and locked, before it gets its name; it holds byte 0 of the
 * file locked for its life. Each worker holds one byte more and with it a row of transfer counts. The kernel
 * drops the locks of a process that dies, however it dies.
 *
 *     header | tasks[UC_CACHE_TASKS] | slots[slot_count] | counts[UC_CACHE_ROWS][slot_count]
 *     | bytes[slot_count][stride]
 *
 * Threads: create, attach and close by one thread; the rest as each function says.
 */

#ifndef UC_CACHE_STORE_SEGMENT_H
#define UC_CACHE_STORE_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_CACHE_ROWS = 32,   /* row 0 is the owner's, the others are workers' */
    UC_CACHE_RANGES = 12, /* pieces of a block that may be apart while it is written */
    UC_CACHE_TASKS = 16,
    UC_CACHE_TASK_BLOCKS = 8,
    UC_CACHE_TASK_TOKEN_BYTES = 3584
};

enum uc_cache_checksum {
    UC_CACHE_CHECKSUM_NONE = 1,
    UC_CACHE_CHECKSUM_XXH3_64 = 2,
};

enum uc_cache_task_state {
    UC_CACHE_TASK_FREE,   /* the owner's */
    UC_CACHE_TASK_QUEUED, /* for any worker */
    UC_CACHE_TASK_TAKEN,  /* the worker's of that row */
    UC_CACHE_TASK_DONE,   /* the owner's again */
};

/* The word of a task: kind, row of its worker, bit per block that was dumped, and which task this is. */
#define UC_CACHE_TASK_STATE(kind, row, good, sequence) \
    ((uint32_t)(kind) | (uint32_t)(row) << 8 | (uint32_t)(good) << 16 | (uint32_t)(sequence) << 24)
#define UC_CACHE_TASK_KIND(state)     ((state)&0xffu)
#define UC_CACHE_TASK_ROW(state)      ((state) >> 8 & 0xffu)
#define UC_CACHE_TASK_GOOD(state)     ((uint8_t)((state) >> 16))
#define UC_CACHE_TASK_SEQUENCE(state) ((uint8_t)((state) >> 24))

/* Blocks that a worker is to dump to the tier below. In shared memory. */
struct uc_cache_task {
    _Atomic uint32_t state; /* see UC_CACHE_TASK_STATE */
    uint32_t count;
    uint32_t token_bytes; /* of the serialised token below; 0 = the tier is plain */
    uint32_t slots[UC_CACHE_TASK_BLOCKS];
    uint64_t generations[UC_CACHE_TASK_BLOCKS];
    struct uc_block_id ids[UC_CACHE_TASK_BLOCKS];
    uint8_t token[UC_CACHE_TASK_TOKEN_BYTES];
};

struct uc_cache_range {
    uint32_t first;
    uint32_t end; /* one past the last */
};

/* In shared memory. The owner changes `word`, and resets the rest while nobody transfers. */
struct uc_cache_seg_slot {
    _Atomic uint64_t word;               /* generation << 1 | open */
    _Atomic uint64_t footer_generation;  /* of the complete block; 0 = not complete */
    _Atomic uint64_t damaged_generation; /* */
    uint32_t footer_length;
    uint32_t footer_kind; /* enum uc_cache_checksum */
    uint64_t footer_checksum;
    struct uc_block_id footer_id;
    _Atomic uint32_t lock; /* 1 + row of the process that changes the ranges; 0 = free */
    uint32_t range_count;
    struct uc_cache_range ranges[UC_CACHE_RANGES];
};

struct uc_cache_seg_header {
    uint64_t magic;
    uint32_t version;
    uint32_t has_checksum;
    uint64_t incarnation; /* random, never 0 */
    uint64_t block_bytes;
    uint64_t stride;
    uint64_t slot_count;
    uint64_t total_bytes;
    _Atomic uint32_t row_limit;    /* rows at or above it were never used */
    _Atomic uint32_t damage_count; /* raised with every damaged_generation */
    _Atomic uint32_t device_rows;  /* bit per row whose worker lets a device copy */
    _Atomic uint64_t
            dead_since_ms[UC_CACHE_ROWS]; /* of those, as the owner noticed; 0 = it did not */
};

struct uc_cache_segment {
    int fd;
    uint32_t row; /* ours */
    bool is_owner;
    bool has_name;
    char path[128];
    struct uc_cache_seg_header *header; /* start of the mapping */
    struct uc_cache_task *tasks;
    struct uc_cache_seg_slot *slots;
    _Atomic uint16_t *counts;
    uint8_t *bytes;
    /* Checked once at attach and kept here, so that the other side cannot change them under us. */
    uint64_t incarnation;
    uint64_t block_bytes;
    uint64_t stride;
    uint64_t slot_count;
    uint64_t total_bytes;
    bool has_checksum;
};

/**
 * Become the owner of a fresh segment; one that a dead owner left is unlinked, a live one is not touched.
 *
 * @param[in] domain  "" = without a name, for this process alone
 * @retval UC_ERR_DUPLICATE_KEY  the name has a live owner
 * @retval UC_ERR_NO_SPACE       shared memory does not hold it
 * @retval UC_ERR_OS_API_ERROR
 */
UC_MUST_CHECK enum uc_status uc_cache_segment_create(const char *domain, uint64_t block_bytes,
        uint64_t slot_count, bool has_checksum, struct uc_cache_segment **segment_out);

/**
 * Attach as a worker.
 *
 * @retval UC_ERR_NOT_FOUND      no segment of that name
 * @retval UC_ERR_INVALID_PARAM  it is not one of ours, or of another version or block length
 * @retval UC_ERR_RETRY          all rows are taken
 */
UC_MUST_CHECK enum uc_status uc_cache_segment_attach(
        const char *domain, uint64_t block_bytes, struct uc_cache_segment **segment_out);

/** Unmap; the owner also removes the name. NULL is allowed. */
void uc_cache_segment_close(struct uc_cache_segment *segment);

/**
 * @return whether the process of a row lives, or its device may copy still; if not, its counts are cleared (owner
 * only).
 */
bool uc_cache_segment_row_alive(const struct uc_cache_segment *segment, uint32_t row);

static inline uint8_t *
uc_cache_segment_bytes(const struct uc_cache_segment *segment, uint32_t slot)
{
    return segment->bytes + (size_t)slot * segment->stride;
}

static inline _Atomic uint16_t *
uc_cache_segment_count(const struct uc_cache_segment *segment, uint32_t row, uint32_t slot)
{
    return &segment->counts[(size_t)row * segment->slot_count + slot];
}

#endif /* UC_CACHE_STORE_SEGMENT_H */
