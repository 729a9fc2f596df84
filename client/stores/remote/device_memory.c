/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/device_memory.h"

#include <unistd.h>

#include <ucm/log.h>

#include "client/device/device.h"
#include "client/stores/remote/bounce.h"
#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"

/* Give the range to the transports, by its file if there is one. */
static enum uc_status
add_range(struct uc_data_plane *plane, uint32_t region_idx, struct uc_fabric_memory *range,
        const struct uc_memory_device *device)
{
    struct uc_device_file file = {.fd = -1};
    enum uc_status status;

    if (device->in_place && device->ops->export_file(device->handle, range->address,
                                    range->length_bytes, &file) == UC_OK) {
        range->fd = file.fd;
        range->fd_offset_bytes = file.offset_bytes;
    }
    status = uc_memory_table_add(&plane->memory, &plane->transports, region_idx, range, device);
    if (file.fd >= 0) {
        (void)close(file.fd);
    }
    return status;
}

enum uc_status
uc_device_memory_register(struct uc_data_plane *plane, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct uc_fabric_memory range = {
            .address = address, .length_bytes = length_bytes, .kind = kind, .fd = -1};
    struct uc_memory_device device = {.ops = uc_device_find(kind)};
    enum uc_status status;

    if (device.ops == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "remote store: region %u is of memory kind %d; known are 0 (host) and 1 (CUDA)",
                region_idx, (int)kind);
    }
    status = device.ops->open(address, length_bytes, &device.handle);
    if (status != UC_OK) {
        return uc_error(status, "remote store: region %u: %s", region_idx, uc_last_error());
    }

    device.in_place = device.ops->settle(device.handle) == UC_OK;
    if (!device.in_place) {
        uc_log_info("remote store: region %u: blocks go through host memory: %s", region_idx,
                uc_last_error());
    }
    device.can_stage = plane->config->bounce_bytes > 0;
    if (device.can_stage) {
        status = uc_bounce_prepare_device(plane, device.ops, &range);
    }
    if (status == UC_OK) {
        status = add_range(plane, region_idx, &range, &device);
    }
    if (status != UC_OK) {
        device.ops->close(device.handle);
    }
    return status;
}

enum uc_status
uc_device_memory_settle(const struct uc_job *job)
{
    const struct uc_job *lead = job->lead;
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < lead->held_count && status == UC_OK; idx++) {
        const struct uc_memory_device *device = &lead->held[idx]->device;

        if (device->ops != NULL && device->in_place) {
            status = device->ops->settle(device->handle);
        }
    }
    return status;
}
