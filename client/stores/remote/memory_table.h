/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file memory_table.h
 * Memory that the engine registered, found by region index or by address.
 *
 * Threads: one (the store's data thread), but for uc_memory_put(), which the progress thread calls when a
 * job has ended. What an entry points to does not change while a job holds it.
 */

#ifndef UC_REMOTE_MEMORY_TABLE_H
#define UC_REMOTE_MEMORY_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/device/device.h"
#include "client/stores/remote/transports.h"

/** The device that a range lies on, and what may be done about it. */
struct uc_memory_device {
    const struct uc_device_ops *ops; /* NULL = host memory */
    struct uc_device *handle;
    bool in_place;  /* transports may reach it by themselves */
    bool can_stage; /* there are buffers for those that do not */
};

/** One registered range. */
struct uc_memory {
    uint8_t *address;
    uint64_t length_bytes;
    uint32_t region_idx;
    enum uc_memory_kind kind;
    struct uc_memory_device device;
    atomic_uint job_count; /* raised by the data thread, lowered by uc_memory_put() */
    uint64_t last_job;     /* stamp: a job holds an entry once, however many pieces lie in it */
    struct uc_local_memory local;
};

struct uc_memory_table {
    struct uc_memory **by_address; /* sorted by address; the entries' owner */
    struct uc_memory **by_index;   /* sorted by region index */
    size_t count;
    size_t capacity;
    uint64_t length_bytes_max; /* of all entries there ever were: bounds the search by address */
};

/**
 * @param[in] transports  with which the range is registered
 * @param[in] range       its file stays the caller's
 * @param[in] device      NULL for host memory; its handle becomes the table's on success
 * @retval UC_ERR_INVALID_PARAM  index taken, range empty or wrapping
 * @retval UC_ERR_UNSUPPORTED    a transport does not reach the device, and there are no buffers
 * @retval other                 what a transport answered; nothing is kept
 */
UC_MUST_CHECK enum uc_status uc_memory_table_add(struct uc_memory_table *table,
        struct uc_transports *transports, uint32_t region_idx, const struct uc_fabric_memory *range,
        const struct uc_memory_device *device);

/** @retval UC_ERR_NOT_FOUND, UC_ERR_RETRY (a job uses it) */
UC_MUST_CHECK enum uc_status uc_memory_table_remove(
        struct uc_memory_table *table, struct uc_transports *transports, uint32_t region_idx);

/** Deregister everything; no job may be in flight. Zeroed tables are allowed. */
void uc_memory_table_fini(struct uc_memory_table *table, struct uc_transports *transports);

/** @return the entry of an index, or NULL. Data path: binary search. */
struct uc_memory *uc_memory_table_find(const struct uc_memory_table *table, uint32_t region_idx);

/** @return an entry that covers the range, or NULL. Data path: binary search. */
struct uc_memory *uc_memory_table_cover(
        const struct uc_memory_table *table, const void *address, uint64_t length_bytes);

/** @return whether a part of the range is registered memory of a device. Data path: looks at every entry. */
bool uc_memory_table_touches_device(
        const struct uc_memory_table *table, const void *address, uint64_t length_bytes);

/** @return whether the range lies inside the entry. */
bool uc_memory_covers(const struct uc_memory *memory, const void *address, uint64_t length_bytes);

/** Hold an entry for a job. */
static inline void
uc_memory_get(struct uc_memory *memory)
{
    (void)atomic_fetch_add_explicit(&memory->job_count, 1, memory_order_relaxed);
}

/** Any thread. Pairs with the acquire in uc_memory_table_remove(). */
static inline void
uc_memory_put(struct uc_memory *memory)
{
    (void)atomic_fetch_sub_explicit(&memory->job_count, 1, memory_order_release);
}

#endif /* UC_REMOTE_MEMORY_TABLE_H */
