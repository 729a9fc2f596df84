/* SPDX-License-Identifier: Apache-2.0 */

/* The segment that tokens lead to: mapped once, and held by every job that moves blocks of it. */

#include <stdlib.h>
#include <sys/mman.h>

#include "client/stores/cache/plane_internal.h"

enum {
    MAP_PIECE =
            1 << 20 /* a job that comes meanwhile waits for less than it takes to move one block */
};

void
uc_cache_plane_let_go_locked(struct uc_cache_attachment *attachment)
{
    if (attachment == NULL || --attachment->users > 0) {
        return;
    }
    if (attachment->device != NULL) {
        attachment->device_ops->unregister_host(attachment->device, attachment->segment->bytes);
    }
    if (!attachment->is_borrowed) {
        uc_cache_segment_close(attachment->segment);
    }
    free(attachment);
}

enum uc_status
uc_cache_plane_adopt_locked(
        struct uc_cache_plane *plane, struct uc_cache_segment *segment, bool is_borrowed)
{
    struct uc_cache_attachment *attachment = calloc(1, sizeof(*attachment));

    if (attachment == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for an attachment");
    }

    attachment->segment = segment;
    attachment->users = 1; /* the plane */
    attachment->is_borrowed = is_borrowed;
    uc_cache_plane_let_go_locked(plane->attachment);
    plane->attachment = attachment;
    return UC_OK;
}

enum uc_status
uc_cache_plane_attach_locked(
        struct uc_cache_plane *plane, uint64_t incarnation, struct uc_cache_attachment **found_out)
{
    struct uc_cache_attachment *current = plane->attachment;
    struct uc_cache_segment *segment = NULL;
    enum uc_status status = UC_OK;

    *found_out = NULL;
    if (current == NULL ||
            (!current->is_borrowed && current->segment->incarnation != incarnation)) {
        status = uc_cache_segment_attach(plane->domain, plane->block_bytes, &segment);
        if (status == UC_ERR_NOT_FOUND) {
            return UC_OK;
        }
        if (status != UC_OK) {
            return status;
        }
        status = uc_cache_plane_adopt_locked(plane, segment, false);
        if (status != UC_OK) {
            uc_cache_segment_close(segment);
            return status;
        }
        current = plane->attachment;
    }

    if (current->segment->incarnation == incarnation) {
        current->users++;
        *found_out = current;
    }
    return UC_OK;
}

/* ---- for whoever moves blocks by other means ---- */

/* Takes no bytes from who writes there at the same time. */
static bool
map_piece(void *memory, size_t length)
{
#ifdef MADV_POPULATE_WRITE
    return madvise(memory, length, MADV_POPULATE_WRITE) == 0;
#else
    (void)memory;
    (void)length;
    return false;
#endif
}

bool
uc_cache_plane_map_ahead_locked(struct uc_cache_plane *plane)
{
    struct uc_cache_attachment *attachment = plane->attachment;
    uint64_t first;
    uint64_t left;
    size_t length;
    bool mapped;

    if (attachment == NULL || plane->is_mapping ||
            attachment->mapped_bytes == attachment->segment->total_bytes) {
        return false;
    }

    first = attachment->mapped_bytes;
    left = attachment->segment->total_bytes - first;
    length = left < MAP_PIECE ? (size_t)left : MAP_PIECE;
    attachment->users++;
    plane->is_mapping = true;
    uc_mutex_unlock(&plane->lock);
    mapped = map_piece((uint8_t *)attachment->segment->header + first, length);
    uc_mutex_lock(&plane->lock);
    plane->is_mapping = false;
    /* A kernel that cannot is not asked again. */
    attachment->mapped_bytes += mapped ? length : left;
    uc_cache_plane_let_go_locked(attachment);
    return true;
}

enum uc_status
uc_cache_plane_attach(struct uc_cache_plane *plane, const uint8_t *payload, size_t payload_bytes,
        size_t key_count, struct uc_cache_attachment **attachment_out)
{
    struct uc_cache_attachment *attachment = NULL;
    uint64_t incarnation = 0;
    enum uc_status status = uc_cache_payload_check(
            payload, payload_bytes, key_count, plane->domain, plane->block_bytes, &incarnation);

    if (status != UC_OK) {
        return status;
    }

    uc_mutex_lock(&plane->lock);
    status = uc_cache_plane_attach_locked(plane, incarnation, &attachment);
    for (size_t idx = 0; status == UC_OK && attachment != NULL && idx < key_count; idx++) {
        if (uc_cache_payload_key(payload, idx).slot >= attachment->segment->slot_count) {
            uc_cache_plane_let_go_locked(attachment);
            status = uc_error(UC_ERR_INVALID_PARAM,
                    "cache store: key %zu names a slot that there is not", idx);
        }
    }
    uc_mutex_unlock(&plane->lock);
    if (status == UC_OK) {
        *attachment_out = attachment;
    }
    return status;
}

void
uc_cache_plane_hold(struct uc_cache_plane *plane, struct uc_cache_attachment *attachment)
{
    uc_mutex_lock(&plane->lock);
    attachment->users++;
    uc_mutex_unlock(&plane->lock);
}

void
uc_cache_plane_let_go(struct uc_cache_plane *plane, struct uc_cache_attachment *attachment)
{
    uc_mutex_lock(&plane->lock);
    uc_cache_plane_let_go_locked(attachment);
    uc_mutex_unlock(&plane->lock);
}

struct uc_cache_attachment *
uc_cache_plane_current(struct uc_cache_plane *plane)
{
    struct uc_cache_attachment *attachment;

    uc_mutex_lock(&plane->lock);
    attachment = plane->attachment;
    if (attachment != NULL) {
        attachment->users++;
    }
    uc_mutex_unlock(&plane->lock);
    return attachment;
}
