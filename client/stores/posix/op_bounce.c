/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bounce buffers: for pieces that a call of the kernel cannot take, and for memory of devices, which copy between that
 * and the buffer by themselves. What they copy with is made when a transfer first needs it, and used again.
 */

#include <stdlib.h>
#include <string.h>

#include "client/stores/posix/op.h"

enum {
    BOUNCE_STEP_BYTES = 1 << 16,
};

/* Let the device of the store copy from and to the slot's buffer. */
static enum uc_status
show_bounce(struct uc_posix_slot *slot, const struct uc_posix_regions *regions)
{
    enum uc_status status = UC_OK;

    slot->device_ops = regions->device_ops;
    if (slot->ticket == NULL) {
        status = slot->device_ops->ticket_create(regions->device, &slot->ticket);
    }
    if (status == UC_OK && slot->device == NULL) {
        status = slot->device_ops->register_host(regions->device, slot->bounce, slot->bounce_bytes);
        if (status == UC_OK) {
            slot->device = regions->device;
        }
    }
    return status;
}

static enum uc_status
grow(struct uc_posix_slot *slot, uint64_t bytes)
{
    uint64_t rounded = (bytes + BOUNCE_STEP_BYTES - 1) / BOUNCE_STEP_BYTES * BOUNCE_STEP_BYTES;

    if (slot->device != NULL) {
        slot->device_ops->unregister_host(slot->device, slot->bounce);
        slot->device = NULL;
    }
    free(slot->bounce);
    slot->bounce_bytes = 0;
    slot->bounce = aligned_alloc(UC_BLOCK_PAGE_BYTES, rounded);
    if (slot->bounce == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    slot->bounce_bytes = rounded;
    return UC_OK;
}

enum uc_status
uc_posix_op_bounce(struct uc_posix_op *op, uint64_t bytes)
{
    struct uc_posix_slot *slot = op->slot;
    enum uc_status status = UC_OK;

    op->is_bounced = true;
    if (slot->bounce_bytes < bytes) {
        status = grow(slot, bytes);
    }
    if (status == UC_OK && op->on_device != NULL) {
        status = show_bounce(slot, op->env->regions);
    }
    return status;
}

/* @param[out] started_out  whether a device copies, whatever is answered */
static enum uc_status
start_copies(struct uc_posix_op *op, bool *started_out)
{
    struct uc_posix_slot *slot = op->slot;
    uint8_t *bytes = slot->bounce + op->bounce_at;
    enum uc_status status = UC_OK;

    *started_out = false;
    for (size_t idx = 0; status == UC_OK && idx < op->pointer_count; idx++) {
        uint64_t length = op->sizes[idx];

        if (op->on_device != NULL && op->on_device[idx]) {
            status = slot->device_ops->copy(
                    slot->ticket, !op->is_dump, op->pointers[idx], bytes, length);
            *started_out = *started_out || status == UC_OK;
        } else if (length > 0) {
            memcpy(op->is_dump ? bytes : op->pointers[idx], op->is_dump ? op->pointers[idx] : bytes,
                    length);
        }
        bytes += length;
    }
    return status;
}

bool
uc_posix_op_copy(struct uc_posix_op *op, bool (*step)(struct uc_posix_op *op))
{
    struct uc_posix_slot *slot = op->slot;
    bool started = false;

    op->copy_status = start_copies(op, &started);
    if (started) {
        enum uc_status marked = slot->device_ops->mark(slot->ticket);

        if (marked != UC_OK) { /* only of a device on which nothing runs any more */
            op->copy_status = marked;
            started = false;
        }
    }
    if (op->copy_status != UC_OK) {
        uc_posix_health_warn(
                op->env->health, "posix store: a device does not copy: %s", uc_last_error());
    }
    op->step = step;
    if (!started) {
        return step(op);
    }

    atomic_store_explicit(&op->is_copied, true, memory_order_relaxed);
    slot->io = (struct uc_posix_io){
            .kind = UC_POSIX_IO_COPY,
            .device_ops = slot->device_ops,
            .ticket = slot->ticket,
    };
    return true;
}
