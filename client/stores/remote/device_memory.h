/* SPDX-License-Identifier: Apache-2.0 */

/** @file device_memory.h Regions of devices: how their blocks will move is decided when they are registered. */

#ifndef UC_REMOTE_DEVICE_MEMORY_H
#define UC_REMOTE_DEVICE_MEMORY_H

#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_data_plane;
struct uc_job;

/**
 * In place where the transport reaches the memory and the device keeps up with what a NIC writes, else through
 * buffers. Data thread.
 *
 * @retval UC_ERR_UNSUPPORTED    an unknown kind; no driver; neither way is open
 * @retval UC_ERR_INVALID_PARAM  no memory of such a device; index taken
 */
UC_MUST_CHECK enum uc_status uc_device_memory_register(struct uc_data_plane *plane,
        uint32_t region_idx, void *address, uint64_t length_bytes, enum uc_memory_kind kind);

/** See to it that work of the devices sees the bytes of a load that went into their memory. Progress thread. */
UC_MUST_CHECK enum uc_status uc_device_memory_settle(const struct uc_job *job);

#endif /* UC_REMOTE_DEVICE_MEMORY_H */
