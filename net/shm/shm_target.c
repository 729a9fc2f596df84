/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An admitted peer reads for itself. Its WRITEs are done here, entry by entry, in order: the slot is held, the bytes
 * are copied out of memory that the peer has shown, the slot is let go. An entry is done in one go, so a peer that
 * stops holds nothing, and a fence, which runs on this thread too, finds no copy under way.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/copy_hash.h"
#include "net/shm/shm_object.h"

static const struct uc_shm_client_pages *
pages_of(const struct uc_shm_target *target)
{
    return (const struct uc_shm_client_pages *)(const void *)target->client_pages.bytes;
}

/* Say no and close in good order, so that the answer arrives. */
static void
refuse(struct uc_shm_target *target, enum uc_status why)
{
    struct uc_shm_answer answer = {.status = why};
    uint8_t bytes[UC_SHM_ANSWER_BYTES];

    uc_shm_answer_put(bytes, &answer);
    (void)uc_shm_send(target->base.source.fd, bytes, sizeof(bytes), NULL, 0);
    uc_shm_target_drop(target);
}

/* Map what the peer writes. It said which file; whether that is fit is ours to see. */
static enum uc_status
take_client_pages(struct uc_shm_target *target, struct uc_shm_fds *fds)
{
    enum uc_status status;

    if (fds->count != 1) {
        return UC_ERR_INVALID_PARAM;
    }

    status = uc_shm_file_check(fds->fds[0], 0, sizeof(struct uc_shm_client_pages), true);
    if (status == UC_OK) {
        status = uc_shm_map(
                fds->fds[0], 0, sizeof(struct uc_shm_client_pages), &target->client_pages);
    }
    return status;
}

/* Tell the peer where everything is. */
static enum uc_status
welcome(struct uc_shm_target *target)
{
    struct uc_shm_answer answer = {.status = UC_OK};
    uint8_t bytes[UC_SHM_ANSWER_BYTES];
    int fds[UC_SHM_FDS_MAX];
    size_t fd_count;
    void *page = NULL;
    int page_fd = -1;
    enum uc_status status =
            uc_shm_pages_create("ucm-endpoint", sizeof(struct uc_shm_server_page), &page_fd, &page);

    if (status != UC_OK) {
        return status;
    }
    target->page = page;
    status = uc_shm_reopen(page_fd, &fds[0]);
    (void)close(page_fd);
    if (status != UC_OK) {
        return status;
    }

    fd_count = 1 + uc_shm_domain_fds(target->base.domain, &fds[1]);
    answer.file_count = fd_count > 2 ? (uint32_t)fd_count - 2 : 0;
    uc_shm_answer_put(bytes, &answer);
    /* The first packet on a fresh connection always finds room. */
    if (uc_shm_send(target->base.source.fd, bytes, sizeof(bytes), fds, fd_count) != UC_SHM_MOVED) {
        status = uc_error(UC_ERR_UNHEALTHY, "shm: the peer left while it was welcomed");
    }
    (void)close(fds[0]);
    return status;
}

static void
admit(struct uc_shm_target *target, const uint8_t *nonce)
{
    struct uc_fabric_admission admission = {0};
    struct uc_source *source = &target->base.source;
    enum uc_status status = target->ops->admit(target->context, nonce, &admission);

    if (status != UC_OK) {
        refuse(target, status);
        return;
    }

    assert(admission.domain != NULL);
    uc_source_never_expire(source);
    uc_newcomer_leave(&target->newcomer);
    target->base.domain = admission.domain;
    target->base.domain->endpoint_count++;
    target->access = admission.access;
    target->peer = admission.peer;
    target->is_admitted = true;
    target->base.state = UC_SHM_READY;
    target->ops->connected(target->context, target->peer, &target->base);

    status = welcome(target);
    if (status != UC_OK) {
        if (status != UC_ERR_UNHEALTHY && uc_turns_may_warn(source->turns)) {
            uc_log_warn("shm: a peer cannot be served: %s", uc_last_error());
        }
        refuse(target, status);
    }
}

/* The first packet: who are you, what do you show? */
static void
receive_hello(struct uc_shm_target *target)
{
    struct uc_source *source = &target->base.source;
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    struct uc_shm_fds fds;
    size_t length = 0;
    enum uc_status status;

    switch (uc_shm_receive(source->fd, bytes, &length, &fds)) {
    case UC_SHM_MOVED:
        break;
    case UC_SHM_BLOCKED:
        source->readable = false;
        return;
    case UC_SHM_LOST:
        uc_shm_target_drop(target);
        return;
    }

    status = uc_shm_peer_is_trusted(source->fd) ? uc_shm_hello_get(bytes, length, nonce)
                                                : UC_ERR_PERMISSION_DENIED;
    if (status == UC_OK) {
        status = take_client_pages(target, &fds);
    }
    uc_shm_fds_close(&fds);
    if (status == UC_OK) {
        admit(target, nonce);
        return;
    }

    if (uc_turns_may_warn(source->turns)) {
        uc_log_warn("shm: a peer's hello is refused: %s",
                status == UC_ERR_PERMISSION_DENIED
                        ? "another user; use fabric tcp, or run both as the same one"
                : status == UC_ERR_UNSUPPORTED ? "another protocol version, use the same release"
                                               : "not a peer of this protocol");
    }
    refuse(target, status);
}

/* Bytes of the memory that the peer has shown, or of staging; NULL if they are not inside. */
static const uint8_t *
find_bytes(const struct uc_shm_target *target, uint32_t source, uint64_t offset, uint64_t length)
{
    const struct uc_shm_mapping *slot;

    if (source == UC_SHM_FROM_STAGING) {
        return uc_shm_staging_at(pages_of(target), offset, length);
    }
    if (source >= UC_SHM_SLOT_COUNT) {
        return NULL;
    }

    slot = &target->slots[source];
    if (slot->bytes == NULL || !uc_region_range_fits(slot->length_bytes, offset, length)) {
        return NULL;
    }
    return slot->bytes + offset;
}

/* The bytes that an entry names. @return how many parts they have, 0 if they are not to be had */
static size_t
find_parts(const struct uc_shm_target *target, const struct uc_shm_entry *entry,
        struct uc_copy_part *parts)
{
    struct uc_shm_part rows[UC_SHM_PART_COUNT];
    size_t count = 0;

    if (entry->source != UC_SHM_FROM_LIST) {
        parts[0].length = (size_t)entry->length_bytes;
        parts[0].bytes =
                find_bytes(target, entry->source, entry->source_offset_bytes, entry->length_bytes);
        return parts[0].bytes == NULL ? 0 : 1;
    }

    if (uc_shm_parts_take(pages_of(target), entry, rows, &count) != UC_OK) {
        return 0;
    }
    for (size_t idx = 0; idx < count; idx++) {
        parts[idx].length = rows[idx].length_bytes;
        parts[idx].bytes =
                find_bytes(target, rows[idx].slot, rows[idx].offset_bytes, rows[idx].length_bytes);
        if (parts[idx].bytes == NULL) {
            return 0;
        }
    }
    return count;
}

/* Do one entry. Every number in it is the peer's. */
static enum uc_status
write_entry(struct uc_shm_target *target, const struct uc_shm_entry *entry)
{
    const struct uc_fabric_target_ops *ops = target->ops;
    struct uc_copy_part parts[UC_SHM_PART_COUNT];
    size_t count = find_parts(target, entry, parts);
    struct uc_region region;

    if (count == 0 || entry->length_bytes == 0 || entry->length_bytes > UC_SHM_ENTRY_MAX_BYTES ||
            uc_region_table_find(target->base.domain->regions, entry->region_idx, &region) !=
                    UC_OK ||
            !uc_region_range_fits(region.length_bytes, entry->offset_bytes, entry->length_bytes)) {
        return UC_ERR_INVALID_PARAM;
    }
    if (target->access != UC_FABRIC_READ_WRITE || region.access != UC_FABRIC_READ_WRITE) {
        return UC_ERR_PERMISSION_DENIED;
    }

    if (ops->hold != NULL) {
        enum uc_status status = ops->hold(target->context, target->peer, entry->region_idx,
                entry->offset_bytes, entry->length_bytes, entry->generation, UC_FABRIC_WRITE);

        if (status != UC_OK) {
            return status;
        }
    }
    if (count == 1) {
        uc_copy_stream(region.address + entry->offset_bytes, parts[0].bytes, parts[0].length);
    } else {
        uc_copy_gather(region.address + entry->offset_bytes, parts, count);
    }
    if (ops->hold != NULL && ops->release != NULL) {
        ops->release(target->context, target->peer, entry->region_idx, entry->offset_bytes);
    }
    return UC_OK;
}

/* @return false if the peer's count makes no sense */
static bool
serve_entries(struct uc_shm_target *target, size_t *left_bytes, size_t *budget)
{
    const struct uc_shm_client_pages *pages = pages_of(target);
    uint64_t count = 0;

    if (uc_shm_ring_waiting(pages, target->done, &count) != UC_OK) {
        return false;
    }

    for (; count > 0 && *left_bytes > 0 && *budget > 0; count--) {
        struct uc_shm_entry entry;
        enum uc_status status;

        uc_shm_entry_take(pages, target->done, &entry);
        status = write_entry(target, &entry);
        if (target->base.state != UC_SHM_READY) {
            return true; /* fenced by a callback */
        }
        atomic_store_explicit(&target->page->statuses[target->done % UC_SHM_ENTRY_COUNT],
                (int32_t)status, memory_order_relaxed);
        target->done++;
        atomic_store_explicit(&target->page->done, target->done, memory_order_seq_cst);
        uc_shm_ring_peer(&target->base.source, &pages->sleep_epoch, &target->rung);
        if (status == UC_OK) {
            *left_bytes -= entry.length_bytes < *left_bytes ? entry.length_bytes : *left_bytes;
        }
        *budget -= 1;
    }
    return true;
}

/* @return false if the peer broke the protocol, or left */
static bool
receive_packets(struct uc_shm_target *target, enum uc_shm_io *io_out)
{
    struct uc_source *source = &target->base.source;

    *io_out = UC_SHM_MOVED;
    for (size_t count = 0; count < (size_t)UC_SHM_PACKETS_PER_TURN; count++) {
        uint8_t bytes[UC_SHM_PACKET_BYTES];
        struct uc_shm_packet packet;
        struct uc_shm_fds fds;
        size_t length = 0;
        bool good;

        *io_out = uc_shm_receive(source->fd, bytes, &length, &fds);
        if (*io_out != UC_SHM_MOVED) {
            source->readable = false;
            return *io_out == UC_SHM_BLOCKED;
        }

        good = uc_shm_packet_get(bytes, length, &packet) == UC_OK;
        if (good && packet.kind == UC_SHM_REGION) {
            good = uc_shm_target_map(target, &packet, &fds);
        } else if (good && packet.kind == UC_SHM_FORGET) {
            uc_shm_target_unmap(target, packet.slot);
        } else {
            good = good && packet.kind == UC_SHM_WAKE;
        }
        uc_shm_fds_close(&fds);
        if (!good) {
            return false;
        }
    }
    return true;
}

/* The peer broke the protocol. Its connection ends, nobody else's. */
static void
malformed(struct uc_shm_target *target)
{
    if (uc_turns_may_warn(target->base.source.turns)) {
        uc_log_warn("shm: a peer sent something malformed, closing its connection; is it of the "
                    "same release?");
    }
    uc_shm_target_drop(target);
}

static bool
serve(struct uc_shm_target *target, size_t *budget)
{
    size_t left_bytes = UC_SHM_TURN_BYTES;
    enum uc_shm_io io = UC_SHM_MOVED;
    uint64_t count = 0;

    if (target->base.source.readable && !receive_packets(target, &io)) {
        if (io == UC_SHM_LOST) {
            uc_shm_target_drop(target);
        } else {
            malformed(target);
        }
        return false;
    }
    if (!serve_entries(target, &left_bytes, budget)) {
        malformed(target);
        return false;
    }
    if (target->base.state != UC_SHM_READY) {
        return false;
    }
    if (target->base.source.readable || left_bytes == 0 || *budget == 0) {
        return true;
    }

    /* Look once more after having said so: whoever queues from now on rings. */
    uc_shm_fall_asleep(&target->page->sleep_epoch, &target->sleep_epoch);
    return uc_shm_ring_waiting(pages_of(target), target->done, &count) != UC_OK || count > 0;
}

static struct uc_shm_target *
target_of(struct uc_source *source)
{
    return uc_list_entry(source, struct uc_shm_target, base.source);
}

static bool
on_turn(struct uc_source *source, size_t *budget)
{
    struct uc_shm_target *target = target_of(source);

    if (target->base.state == UC_SHM_GREETING) {
        receive_hello(target);
        if (target->base.state != UC_SHM_READY) {
            return false;
        }
        *budget -= 1;
    }
    if (target->base.state != UC_SHM_READY) {
        return false;
    }
    if (*budget == 0) {
        return true;
    }

    return serve(target, budget);
}

static void
on_expire(struct uc_source *source)
{
    uc_shm_target_drop(target_of(source));
}

const struct uc_source_ops uc_shm_target_ops = {
        .event = uc_shm_endpoint_event,
        .turn = on_turn,
        .expire = on_expire,
};

void
uc_shm_target_close(struct uc_shm_target *target)
{
    if (target->base.state == UC_SHM_CLOSED) {
        return;
    }

    target->base.state = UC_SHM_CLOSED;
    if (target->page != NULL) {
        /* A peer that is copying sees it before its next READ, and the end of the connection afterwards. */
        atomic_store_explicit(&target->page->fenced, 1, memory_order_seq_cst);
    }
    uc_source_close(&target->base.source);
    uc_newcomer_leave(&target->newcomer);
    for (uint32_t slot = 0; slot < UC_SHM_SLOT_COUNT; slot++) {
        uc_shm_target_unmap(target, slot);
    }
    uc_shm_unmap(&target->client_pages);
    uc_shm_pages_destroy(target->page, sizeof(struct uc_shm_server_page));
    target->page = NULL;
}

void
uc_shm_target_drop(struct uc_shm_target *target)
{
    uc_shm_target_close(target);
    if (target->is_admitted) {
        target->ops->gone(target->context, target->peer);
    }
    uc_shm_endpoint_bury(&target->base);
}
