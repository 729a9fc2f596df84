/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory of a client that the server maps, so that the bytes of a WRITE are copied once. A client shows a region
 * with the first WRITE from it and stages until the server has answered; what the server will not map is staged
 * for good. A slot is used for one region at a time, and for the next one only after the verdict on the first.
 */

#include <unistd.h>

#include "net/shm/shm_object.h"

/* @return false if the packet did not go out now */
static bool
tell(struct uc_source *source, const struct uc_shm_packet *packet, const int *fd)
{
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    size_t length = uc_shm_packet_put(bytes, packet);

    return uc_shm_send(source->fd, bytes, length, fd, fd == NULL ? 0 : 1) == UC_SHM_MOVED;
}

static void
forget(struct uc_shm_client *client, uint32_t slot)
{
    struct uc_shm_packet packet = {.kind = UC_SHM_FORGET, .slot = slot};

    if (client->slots[slot].state != UC_SHM_SLOT_READY ||
            tell(&client->base.source, &packet, NULL)) {
        client->slots[slot].state = UC_SHM_SLOT_FREE;
    }
}

static void
show(struct uc_shm_client *client, const struct uc_fabric_region *region)
{
    struct uc_shm_client_slot *slot = &client->slots[region->slot];
    struct uc_shm_packet packet = {
            .kind = UC_SHM_REGION,
            .slot = region->slot,
            .offset_bytes = region->fd_offset_bytes,
            .length_bytes = region->span.length_bytes,
    };
    int fd = -1;

    /* For reading only: what the server has, it cannot write. */
    if (uc_shm_reopen(region->fd, &fd) != UC_OK) {
        *slot = (struct uc_shm_client_slot){region->serial, UC_SHM_SLOT_REFUSED};
        return;
    }
    if (tell(&client->base.source, &packet, &fd)) {
        *slot = (struct uc_shm_client_slot){region->serial, UC_SHM_SLOT_ASKED};
    }
    (void)close(fd);
}

uint32_t
uc_shm_client_slot_of(struct uc_shm_client *client, const struct uc_fabric_region *region)
{
    struct uc_shm_client_slot *slot;

    if (region == NULL || region->slot == UC_SHM_NO_SLOT) {
        return UC_SHM_NO_SLOT;
    }

    slot = &client->slots[region->slot];
    if (slot->serial == region->serial) {
        if (slot->state == UC_SHM_SLOT_READY) {
            return region->slot;
        }
        if (slot->state != UC_SHM_SLOT_FREE) {
            return UC_SHM_NO_SLOT;
        }
    } else if (slot->state == UC_SHM_SLOT_ASKED) {
        return UC_SHM_NO_SLOT; /* the verdict on the region before is still to come */
    } else {
        forget(client, region->slot);
    }
    if (slot->state == UC_SHM_SLOT_FREE) {
        show(client, region);
    }
    return UC_SHM_NO_SLOT;
}

void
uc_shm_client_verdict(struct uc_shm_client *client, const struct uc_shm_packet *packet)
{
    struct uc_shm_client_slot *slot = &client->slots[packet->slot];

    /* Only what was asked is answered; anything else is ignored. */
    if (slot->state == UC_SHM_SLOT_ASKED) {
        slot->state = packet->status == UC_OK ? UC_SHM_SLOT_READY : UC_SHM_SLOT_REFUSED;
    }
}

void
uc_shm_client_forget_retired(struct uc_shm_client *client)
{
    struct uc_fabric_domain *domain = client->base.domain;
    uint64_t retired = atomic_load_explicit(&domain->retired_count, memory_order_acquire);

    if (retired == client->seen_retired) {
        return;
    }

    client->seen_retired = retired;
    uc_mutex_lock(&domain->lock);
    for (uint32_t slot = 0; slot < UC_SHM_SLOT_COUNT; slot++) {
        if (client->slots[slot].state == UC_SHM_SLOT_READY &&
                client->slots[slot].serial != domain->serials[slot]) {
            forget(client, slot);
        }
    }
    uc_mutex_unlock(&domain->lock);
}

bool
uc_shm_target_map(
        struct uc_shm_target *target, const struct uc_shm_packet *packet, struct uc_shm_fds *fds)
{
    struct uc_shm_packet verdict = {.kind = UC_SHM_VERDICT, .slot = packet->slot};

    if (fds->count != 1) {
        return false;
    }

    uc_shm_target_unmap(target, packet->slot);
    /* The texts are for the log of a careful reader only: a client stages what is refused. */
    verdict.status =
            uc_shm_file_check(fds->fds[0], packet->offset_bytes, packet->length_bytes, true);
    if (verdict.status == UC_OK) {
        verdict.status = uc_shm_map(fds->fds[0], packet->offset_bytes, packet->length_bytes,
                &target->slots[packet->slot]);
    }
    /* Lost if the peer is gone, or reads nothing: it stages then. */
    (void)tell(&target->base.source, &verdict, NULL);
    return true;
}

void
uc_shm_target_unmap(struct uc_shm_target *target, uint32_t slot)
{
    uc_shm_unmap(&target->slots[slot]);
}
