/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file bounce.h
 * A bounded pool of registered buffers that blocks go through where the transport cannot use the engine's memory
 * host memory that is not registered, and memory of devices that it does not reach. A buffer holds one
 * block. Jobs stand in line for buffers; a job of many blocks goes through few buffers one block after the other.
 *
 * A block has its buffer from the first copy to the last operation or copy, whatever happens meanwhile; it waits for
 * nothing else while it has it. So buffers come free without anybody's help, and the line moves on.
 *
 * Threads: preparing is the data thread's, before the first job that needs it is pushed; all else the progress
 * thread's. Nothing is allocated after preparing.
 */

#ifndef UC_REMOTE_BOUNCE_H
#define UC_REMOTE_BOUNCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/device/device.h"
#include "client/stores/remote/transports.h"
#include "core/base/list.h"

struct uc_data_plane;
struct uc_job;

/** A buffer, and the block that has it. */
struct uc_bounce_slot {
    struct uc_bounce_slot *next; /* of the free ones */
    struct uc_list link;         /* of those that a device copies from or to */
    uint8_t *memory;
    struct uc_device_ticket *ticket; /* NULL until there is a device */
    struct uc_job *job;
    size_t block_idx;
};

struct uc_bounce {
    uint8_t *memory; /* NULL until prepared */
    uint64_t length_bytes;
    uint64_t slot_bytes;
    size_t slot_count;
    size_t share; /* of a server: one that stands still must not have all buffers */
    struct uc_bounce_slot *slots;
    struct uc_bounce_slot *free_slots;
    struct uc_local_memory local;
    struct uc_list waiting;                 /* jobs, in the order they came */
    struct uc_list copying;                 /* slots */
    uint64_t copied_ns;                     /* when a copy was started or found done */
    const struct uc_device_ops *device_ops; /* NULL until there is a device */
    struct uc_device *device;
};

/** Without buffers as yet. */
void uc_bounce_init(struct uc_bounce *bounce);

/**
 * Get the buffers and register them with the transports. Does nothing the second time.
 *
 * @retval UC_ERR_UNSUPPORTED  `bounce_bytes: 0`
 */
UC_MUST_CHECK enum uc_status uc_bounce_prepare(struct uc_data_plane *plane);

/** Likewise for copies by the device that @p range lies on; the first of a process serves for all. */
UC_MUST_CHECK enum uc_status uc_bounce_prepare_device(struct uc_data_plane *plane,
        const struct uc_device_ops *ops, const struct uc_fabric_memory *range);

/** No job may be in flight. */
void uc_bounce_fini(struct uc_data_plane *plane);

/** @return whether a block of this size fits a buffer, if there are any. */
bool uc_bounce_fits(const struct uc_bounce *bounce, uint64_t size_bytes);

/** Stand in line with all blocks of a job that are to bounce, if it has any. It moves now. */
void uc_bounce_enter(struct uc_job *job);

/** What has no buffer yet fails with @p status. Does nothing for a job that is not in line. */
void uc_bounce_leave(struct uc_job *job, enum uc_status status);

/** The last operation of a block in a buffer is over: a load's bytes go on to the engine. */
void uc_bounce_op_ended(struct uc_job *job, size_t block_idx);

/** Take everything from a job that ends in a hurry; waits for copies of the device. */
void uc_bounce_abandon(struct uc_job *job);

/** Hand out buffers, look after copies. @return whether a device copies and will soon be done */
bool uc_bounce_round(struct uc_data_plane *plane);

#endif /* UC_REMOTE_BOUNCE_H */
