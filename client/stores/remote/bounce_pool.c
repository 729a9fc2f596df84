/* SPDX-License-Identifier: Apache-2.0 */

/* The buffers themselves: where they come from and who knows them. */

#include <stdlib.h>

#include "client/stores/remote/bounce.h"
#include "client/stores/remote/plane_internal.h"
#include "core/base/host_memory.h"

enum {
    SLOT_ALIGN_BYTES = 4096,
};

void
uc_bounce_init(struct uc_bounce *bounce)
{
    uc_list_init(&bounce->waiting);
    uc_list_init(&bounce->copying);
}

static enum uc_status
make_slots(struct uc_bounce *bounce, uint8_t *memory)
{
    bounce->slots = calloc(bounce->slot_count, sizeof(bounce->slots[0]));
    if (bounce->slots == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for %zu bounce buffers",
                bounce->slot_count);
    }

    bounce->free_slots = NULL;
    for (size_t idx = bounce->slot_count; idx-- > 0;) {
        struct uc_bounce_slot *slot = &bounce->slots[idx];

        uc_list_init(&slot->link);
        slot->memory = memory + idx * bounce->slot_bytes;
        slot->next = bounce->free_slots;
        bounce->free_slots = slot;
    }
    return UC_OK;
}

static enum uc_status
measure(struct uc_bounce *bounce, uint64_t wanted_bytes, uint64_t block_bytes, size_t least_count)
{
    if (wanted_bytes == 0) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "remote store: `bounce_bytes: 0` leaves no buffers for memory that the transport "
                "cannot use; set it to some blocks of %llu bytes",
                (unsigned long long)block_bytes);
    }
    if (block_bytes > SIZE_MAX / 4 - SLOT_ALIGN_BYTES || wanted_bytes > SIZE_MAX / 2) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: bounce_bytes of %llu for blocks of %llu bytes: too much",
                (unsigned long long)wanted_bytes, (unsigned long long)block_bytes);
    }

    bounce->slot_bytes = (block_bytes + SLOT_ALIGN_BYTES - 1) / SLOT_ALIGN_BYTES * SLOT_ALIGN_BYTES;
    bounce->slot_count = (size_t)(wanted_bytes / bounce->slot_bytes);
    bounce->slot_count = bounce->slot_count < least_count ? least_count : bounce->slot_count;
    bounce->length_bytes = bounce->slot_count * bounce->slot_bytes;
    return UC_OK;
}

enum uc_status
uc_bounce_prepare(struct uc_data_plane *plane)
{
    struct uc_bounce *bounce = &plane->bounce;
    enum uc_status status;
    void *memory = NULL;

    if (bounce->memory != NULL) {
        return UC_OK;
    }
    /* With one buffer for all, a server that stands still would have it. */
    status = measure(bounce, plane->config->bounce_bytes, plane->block_bytes,
            plane->config->servers.count > 1 ? 2 : 1);
    if (status != UC_OK) {
        return status;
    }

    /* Of the kind that a server on this host can be shown, so that it is not copied twice. */
    status = uc_host_memory_alloc(bounce->length_bytes, &memory);
    if (status != UC_OK) {
        return uc_error(status, "remote store: %llu bytes of bounce_bytes: %s",
                (unsigned long long)bounce->length_bytes, uc_last_error());
    }
    status = make_slots(bounce, memory);
    if (status != UC_OK) {
        goto err_free_memory;
    }
    status = uc_transports_register(
            &plane->transports, memory, bounce->length_bytes, &bounce->local);
    if (status != UC_OK) {
        status = uc_error(status, "remote store: %llu bytes of bounce_bytes: %s",
                (unsigned long long)bounce->length_bytes, uc_last_error());
        goto err_free_slots;
    }

    bounce->share =
            plane->config->servers.count > 1 ? (bounce->slot_count + 1) / 2 : bounce->slot_count;
    bounce->memory = memory;
    return UC_OK;

err_free_slots:
    free(bounce->slots);
    bounce->slots = NULL;
    bounce->free_slots = NULL;
err_free_memory:
    uc_host_memory_free(memory, bounce->length_bytes);
    return status;
}

static void
destroy_tickets(struct uc_bounce *bounce, const struct uc_device_ops *ops)
{
    for (size_t idx = 0; idx < bounce->slot_count; idx++) {
        ops->ticket_destroy(bounce->slots[idx].ticket);
        bounce->slots[idx].ticket = NULL;
    }
}

/* The device learns of the buffers, and every buffer gets a ticket. */
static enum uc_status
introduce(struct uc_bounce *bounce, const struct uc_device_ops *ops, struct uc_device *device)
{
    enum uc_status status = ops->register_host(device, bounce->memory, bounce->length_bytes);

    if (status != UC_OK) {
        return status;
    }
    for (size_t idx = 0; idx < bounce->slot_count && status == UC_OK; idx++) {
        status = ops->ticket_create(device, &bounce->slots[idx].ticket);
    }
    if (status != UC_OK) {
        destroy_tickets(bounce, ops);
        ops->unregister_host(device, bounce->memory);
    }
    return status;
}

enum uc_status
uc_bounce_prepare_device(struct uc_data_plane *plane, const struct uc_device_ops *ops,
        const struct uc_fabric_memory *range)
{
    struct uc_bounce *bounce = &plane->bounce;
    struct uc_device *device = NULL;
    enum uc_status status = uc_bounce_prepare(plane);

    if (status != UC_OK || bounce->device != NULL) {
        return status; /* addresses say which device is meant, so one stream reaches them all */
    }

    status = ops->open(range->address, range->length_bytes, &device);
    if (status != UC_OK) {
        return status;
    }
    status = introduce(bounce, ops, device);
    if (status != UC_OK) {
        ops->close(device);
        return status;
    }

    bounce->device_ops = ops;
    bounce->device = device;
    return UC_OK;
}

void
uc_bounce_fini(struct uc_data_plane *plane)
{
    struct uc_bounce *bounce = &plane->bounce;

    if (bounce->device != NULL) {
        destroy_tickets(bounce, bounce->device_ops);
        bounce->device_ops->unregister_host(bounce->device, bounce->memory);
        bounce->device_ops->close(bounce->device);
    }
    if (bounce->memory != NULL) {
        uc_transports_deregister(&plane->transports, &bounce->local);
        free(bounce->slots);
        uc_host_memory_free(bounce->memory, bounce->length_bytes);
    }
    bounce->device = NULL;
    bounce->memory = NULL;
}
