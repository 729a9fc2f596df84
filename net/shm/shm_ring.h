/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file shm_ring.h
 * Memory that the two sides of an endpoint share. Each side writes its own pages and can only read the other's,
 * so neither can spoil what it has told; both treat what they read as foreign.
 *
 *   client's pages   how many entries it has queued, the entries, and staging: bytes of WRITEs whose source the
 *                    server cannot map, and lists of pieces that it can
 *   server's page    how many entries it has done and how each of them ended
 *   region table     one per domain: where its regions lie in which file
 *
 * The layout is that of this machine: both sides run on it.
 */

#ifndef UC_NET_SHM_RING_H
#define UC_NET_SHM_RING_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/shm/shm_wire.h"

enum {
    UC_SHM_ENTRY_COUNT = 256, /* a power of two */
    UC_SHM_ENTRY_WORDS = 8,
    UC_SHM_STAGING_BYTES = 1 << 20,
    UC_SHM_ENTRY_MAX_BYTES = 1 << 20, /* moved for one entry, so that a turn has an end */
    UC_SHM_PART_COUNT = 64,           /* of a list */
    UC_SHM_PART_BYTES = 16,
};

/** Source of an entry whose bytes are in staging … */
#define UC_SHM_FROM_STAGING UINT32_MAX
/** … or whose parts a list there names; else a slot. */
#define UC_SHM_FROM_LIST (UINT32_MAX - 1)

/** A part of a WRITE that the server is asked for. A plain value. */
struct uc_shm_entry {
    uint32_t region_idx;
    uint32_t source;
    uint64_t offset_bytes;
    uint64_t length_bytes;
    uint64_t generation;
    uint64_t source_offset_bytes;
};

/** A row of a list: a piece of what lies under a slot. A plain value. */
struct uc_shm_part {
    uint32_t slot;
    uint32_t length_bytes;
    uint64_t offset_bytes;
};

/** Written by the client. */
struct uc_shm_client_pages {
    _Atomic uint64_t queued; /* entries so far */
    alignas(64) _Atomic uint32_t sleep_epoch;
    alignas(4096) _Atomic uint64_t entries[UC_SHM_ENTRY_COUNT][UC_SHM_ENTRY_WORDS];
    alignas(4096) uint8_t staging[UC_SHM_STAGING_BYTES];
};

/** Written by the server. */
struct uc_shm_server_page {
    _Atomic uint64_t done; /* entries so far */
    alignas(64) _Atomic uint32_t sleep_epoch;
    _Atomic uint32_t fenced; /* not 0: the client has to leave the memory alone */
    alignas(64) _Atomic int32_t statuses[UC_SHM_ENTRY_COUNT];
};

/** Written by the server, on whatever thread registers. */
struct uc_shm_region_row {
    _Atomic uint64_t state;        /* 0: none; else serial << 8 | file index + 1 */
    _Atomic uint64_t offset_bytes; /* in the file */
    _Atomic uint64_t length_bytes;
    _Atomic uint64_t access;
};

static_assert(offsetof(struct uc_shm_client_pages, sleep_epoch) == 64, "as in PROTOCOL.md");
static_assert(offsetof(struct uc_shm_client_pages, entries) == 4096, "as in PROTOCOL.md");
static_assert(offsetof(struct uc_shm_client_pages, staging) == 20480, "as in PROTOCOL.md");
static_assert(offsetof(struct uc_shm_server_page, fenced) == 68, "as in PROTOCOL.md");
static_assert(offsetof(struct uc_shm_server_page, statuses) == 128, "as in PROTOCOL.md");
static_assert(sizeof(struct uc_shm_server_page) <= 4096, "one page");
static_assert(sizeof(struct uc_shm_region_row) == 32, "as in PROTOCOL.md");
static_assert(sizeof(struct uc_shm_part) == UC_SHM_PART_BYTES, "as in PROTOCOL.md");

/** Write an entry; the client's `queued` tells of it afterwards. */
void uc_shm_entry_put(
        struct uc_shm_client_pages *pages, uint64_t number, const struct uc_shm_entry *entry);

/** Copy an entry out, each word read once: its owner may change it meanwhile. */
void uc_shm_entry_take(
        const struct uc_shm_client_pages *pages, uint64_t number, struct uc_shm_entry *entry_out);

/** Write a row of a list in staging, at a multiple of 8. */
void uc_shm_part_put(struct uc_shm_client_pages *pages, uint64_t offset_bytes, size_t number,
        const struct uc_shm_part *part);

/**
 * Copy a list out, each word read once: rows until their lengths add up to that of the entry.
 *
 * @param[out] parts_out  room for UC_SHM_PART_COUNT; may be written on failure, too
 * @retval UC_ERR_INVALID_PARAM  it leaves staging, is too long, or its lengths do not add up
 */
UC_MUST_CHECK enum uc_status uc_shm_parts_take(const struct uc_shm_client_pages *pages,
        const struct uc_shm_entry *entry, struct uc_shm_part *parts_out, size_t *count_out);

/**
 * How many foreign entries there are to do.
 *
 * @param[in]  done  those that were done already
 * @param[out] count_out
 * @retval UC_ERR_INVALID_PARAM  more than the ring holds: the peer is not honest
 */
UC_MUST_CHECK enum uc_status uc_shm_ring_waiting(
        const struct uc_shm_client_pages *pages, uint64_t done, uint64_t *count_out);

/** Find the bytes of an entry in staging. @return NULL if the range is not inside */
const uint8_t *uc_shm_staging_at(
        const struct uc_shm_client_pages *pages, uint64_t offset_bytes, uint64_t length_bytes);

/**
 * Whether the peer sleeps and has not been woken for this sleep.
 *
 * The peer raises its epoch and looks for work afterwards; whoever made work asks afterwards. All of these are
 * sequentially consistent, so one of the two sees the other.
 *
 * @param[in,out] rung  epoch of the last wake-up sent
 */
static inline bool
uc_shm_must_wake(const _Atomic uint32_t *sleep_epoch, uint32_t *rung)
{
    uint32_t epoch = atomic_load_explicit(sleep_epoch, memory_order_seq_cst);

    if (epoch == 0 || epoch == *rung) {
        return false;
    }

    *rung = epoch;
    return true;
}

/** About to sleep; look for work once more afterwards. @param[in,out] epoch the last one used */
static inline void
uc_shm_fall_asleep(_Atomic uint32_t *sleep_epoch, uint32_t *epoch)
{
    *epoch = *epoch == UINT32_MAX ? 1 : *epoch + 1;
    atomic_store_explicit(sleep_epoch, *epoch, memory_order_seq_cst);
}

#endif /* UC_NET_SHM_RING_H */
