/* SPDX-License-Identifier: Apache-2.0 */

/*
 * WRITEs are asked for in entries, which the server does in order. Of memory that the server has mapped a long piece
 * is one entry or several, and short pieces share one, which names a list of them; other pieces are gathered in
 * staging. A FLUSH needs no entry: the server has stored every byte of the WRITEs before it once their entries are
 * done.
 */

#include <string.h>

#include "core/base/copy_hash.h"
#include "net/shm/shm_object.h"

enum {
    STAGING_ALIGN = 64,
};

static const struct uc_shm_server_page *
page_of(const struct uc_shm_client *client)
{
    return (const struct uc_shm_server_page *)(const void *)client->server_page.bytes;
}

/* Finish what is at the front of the queue and complete. */
static void
finish_ready(struct uc_shm_client *client, size_t *budget)
{
    while (client->base.state == UC_SHM_READY && *budget > 0) {
        struct uc_fabric_op *op = client->writes.first;

        if (op == NULL || op->provider_data[1] > 0 ||
                (op == client->unsent && op->opcode != UC_FABRIC_FLUSH)) {
            return;
        }
        if (op == client->unsent) {
            client->unsent = op->next;
            if (op->next != NULL) {
                client->write_cursor = (struct uc_shm_cursor){.piece = op->next->pieces};
            }
        }
        client->done_flushes += op->opcode == UC_FABRIC_FLUSH;
        uc_shm_queue_done(&client->writes, (enum uc_status)(int64_t)op->provider_data[2], budget);
    }
}

/* A status that the server wrote; whatever it is, it must be one. */
static enum uc_status
known_status(int32_t number)
{
    switch (number) {
    case UC_OK:
    case UC_ERR_NOT_FOUND:
    case UC_ERR_INVALID_PARAM:
    case UC_ERR_PERMISSION_DENIED:
        return (enum uc_status)number;
    default:
        return UC_ERR_UNHEALTHY;
    }
}

bool
uc_shm_client_reap(struct uc_shm_client *client, size_t *budget)
{
    const struct uc_shm_server_page *page = page_of(client);
    uint64_t done = atomic_load_explicit(&page->done, memory_order_acquire);
    bool any = done != client->done;

    if (done - client->done > client->queued - client->done) {
        (void)uc_error(UC_ERR_UNHEALTHY, "shm: the server has done more than it was asked for");
        uc_shm_client_fail(client, UC_ERR_UNHEALTHY);
        return false;
    }

    while (client->done != done) {
        size_t place = client->done % UC_SHM_ENTRY_COUNT;
        struct uc_fabric_op *op = client->entry_ops[place];
        enum uc_status status =
                known_status(atomic_load_explicit(&page->statuses[place], memory_order_relaxed));

        if ((int64_t)op->provider_data[2] == UC_OK) {
            op->provider_data[2] = (uint64_t)(int64_t)status;
        }
        op->provider_data[1]--;
        client->staging_begin = client->entry_staged[place];
        client->done++;
    }
    finish_ready(client, budget);
    return any || (client->base.state == UC_SHM_READY && *budget == 0);
}

/* Tell the server of one more entry, which belongs to the operation being sent. */
static void
queue_entry(struct uc_shm_client *client, const struct uc_shm_entry *entry)
{
    size_t place = client->queued % UC_SHM_ENTRY_COUNT;

    uc_shm_entry_put(client->pages, client->queued, entry);
    client->entry_ops[place] = client->unsent;
    client->entry_staged[place] = client->staging_end;
    client->unsent->provider_data[1]++;
    client->queued++;
    atomic_store_explicit(&client->pages->queued, client->queued, memory_order_seq_cst);
    uc_shm_ring_peer(&client->base.source, &page_of(client)->sleep_epoch, &client->rung);
}

/*
 * Room in staging for one run without a break. What is left before the end is skipped if it is too short.
 *
 * @return where, or SIZE_MAX while there is none
 */
static size_t
reserve_staging(struct uc_shm_client *client, size_t length)
{
    size_t rounded = (length + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
    size_t place = client->staging_end % UC_SHM_STAGING_BYTES;
    size_t skip = rounded > UC_SHM_STAGING_BYTES - place ? UC_SHM_STAGING_BYTES - place : 0;
    uint64_t used = client->staging_end - client->staging_begin;

    if (skip + rounded > UC_SHM_STAGING_BYTES - used) {
        return SIZE_MAX;
    }

    client->staging_end += skip + rounded;
    return (place + skip) % UC_SHM_STAGING_BYTES;
}

static uint64_t
offset_in_region(const struct uc_fabric_piece *piece)
{
    return (uint64_t)((uintptr_t)piece->address - (uintptr_t)piece->region->span.address);
}

/* The slot of the piece under the cursor, if it pays to let the server read it where it is. */
static uint32_t
direct_slot(struct uc_shm_client *client, const struct uc_fabric_piece *piece)
{
    return piece->length_bytes < UC_SHM_DIRECT_MIN_BYTES
                   ? UC_SHM_NO_SLOT
                   : uc_shm_client_slot_of(client, piece->region);
}

/* How much can be gathered from the cursor on: up to the next piece that the server can read itself. */
static size_t
gather_bytes(struct uc_shm_client *client, uint64_t rest)
{
    const struct uc_fabric_piece *piece = client->write_cursor.piece;
    uint64_t total = piece->length_bytes - client->write_cursor.piece_done_bytes;

    while (total < rest && total < UC_SHM_STAGE_BYTES) {
        piece++;
        if (direct_slot(client, piece) != UC_SHM_NO_SLOT) {
            break;
        }
        total += piece->length_bytes;
    }
    total = total < rest ? total : rest;
    return total < UC_SHM_STAGE_BYTES ? (size_t)total : UC_SHM_STAGE_BYTES;
}

/* Copy bytes from the cursor on. The server reads them soon: they are left in the caches. */
static void
gather(struct uc_shm_client *client, uint8_t *to, size_t length)
{
    struct uc_shm_cursor *cursor = &client->write_cursor;

    while (length > 0) {
        uint64_t rest = cursor->piece->length_bytes - cursor->piece_done_bytes;
        size_t run = rest < length ? (size_t)rest : length;

        memcpy(to, (const uint8_t *)cursor->piece->address + cursor->piece_done_bytes, run);
        to += run;
        length -= run;
        uc_shm_cursor_advance(cursor, run);
    }
}

/* Short pieces from the cursor on that the server can read itself. @return how many, UC_SHM_PART_COUNT at most */
static size_t
list_parts(struct uc_shm_client *client, uint64_t rest, struct uc_shm_part *parts)
{
    const struct uc_fabric_piece *piece = client->write_cursor.piece;
    uint64_t room_bytes = rest < UC_SHM_ENTRY_MAX_BYTES ? rest : UC_SHM_ENTRY_MAX_BYTES;
    size_t count = 0;

    if (client->write_cursor.piece_done_bytes > 0) {
        return 0; /* a long one, under way */
    }

    for (; room_bytes > 0 && count < UC_SHM_PART_COUNT; piece++, count++) {
        uint32_t slot;

        if (piece->length_bytes > UC_SHM_LIST_MAX_BYTES || piece->length_bytes > room_bytes) {
            break;
        }
        slot = direct_slot(client, piece);
        if (slot == UC_SHM_NO_SLOT) {
            break;
        }
        parts[count] = (struct uc_shm_part){.slot = slot,
                .length_bytes = (uint32_t)piece->length_bytes,
                .offset_bytes = offset_in_region(piece)};
        room_bytes -= piece->length_bytes;
    }
    return count;
}

/* One entry for several pieces. @return false while there is no room for the list */
static bool
fill_from_list(struct uc_shm_client *client, const struct uc_shm_part *parts, size_t count,
        struct uc_shm_entry *entry)
{
    size_t place = reserve_staging(client, count * UC_SHM_PART_BYTES);

    if (place == SIZE_MAX) {
        return false;
    }
    for (size_t idx = 0; idx < count; idx++) {
        uc_shm_part_put(client->pages, place, idx, &parts[idx]);
        entry->length_bytes += parts[idx].length_bytes;
        uc_shm_cursor_advance(&client->write_cursor, parts[idx].length_bytes);
    }
    entry->source = UC_SHM_FROM_LIST;
    entry->source_offset_bytes = place;
    return true;
}

/* One entry for the piece under the cursor, or as much of it as one may move. */
static void
fill_from_piece(struct uc_shm_client *client, uint32_t slot, struct uc_shm_entry *entry)
{
    struct uc_shm_cursor *cursor = &client->write_cursor;
    uint64_t length = cursor->piece->length_bytes - cursor->piece_done_bytes;

    entry->source = slot;
    entry->length_bytes = length < UC_SHM_ENTRY_MAX_BYTES ? length : UC_SHM_ENTRY_MAX_BYTES;
    entry->source_offset_bytes = offset_in_region(cursor->piece) + cursor->piece_done_bytes;
    uc_shm_cursor_advance(cursor, entry->length_bytes);
}

/* One entry for bytes that are copied to staging. @return false while there is no room for them */
static bool
fill_from_staging(struct uc_shm_client *client, uint64_t rest, struct uc_shm_entry *entry)
{
    size_t length = gather_bytes(client, rest);
    size_t place = reserve_staging(client, length);

    if (place == SIZE_MAX) {
        return false;
    }
    gather(client, &client->pages->staging[place], length);
    entry->source = UC_SHM_FROM_STAGING;
    entry->length_bytes = length;
    entry->source_offset_bytes = place;
    return true;
}

/* Make one entry of the operation being sent. @return its bytes, 0 while there is no room for it */
static size_t
send_entry(struct uc_shm_client *client)
{
    const struct uc_fabric_op *op = client->unsent;
    uint64_t done_bytes = client->write_cursor.done_bytes;
    uint64_t rest = op->provider_data[0] - done_bytes;
    uint32_t slot = direct_slot(client, client->write_cursor.piece);
    struct uc_shm_part parts[UC_SHM_PART_COUNT];
    size_t part_count = list_parts(client, rest, parts);
    struct uc_shm_entry entry = {
            .region_idx = op->region_idx,
            .offset_bytes = op->offset_bytes + done_bytes,
            .generation = op->generation,
    };
    bool filled = true;

    if (part_count > 1) {
        filled = fill_from_list(client, parts, part_count, &entry);
    } else if (slot != UC_SHM_NO_SLOT) {
        fill_from_piece(client, slot, &entry);
    } else {
        filled = fill_from_staging(client, rest, &entry);
    }
    if (!filled) {
        return 0;
    }

    queue_entry(client, &entry);
    return (size_t)entry.length_bytes;
}

bool
uc_shm_client_send(struct uc_shm_client *client, size_t *left_bytes)
{
    while (client->unsent != NULL && *left_bytes > 0) {
        struct uc_fabric_op *op = client->unsent;
        size_t length;

        if (op->opcode == UC_FABRIC_WRITE) {
            if (client->queued - client->done == UC_SHM_ENTRY_COUNT) {
                return false;
            }
            length = send_entry(client);
            if (length == 0) {
                return false;
            }
            *left_bytes -= length < *left_bytes ? length : *left_bytes;
        }
        if (op->opcode == UC_FABRIC_FLUSH ||
                client->write_cursor.done_bytes == op->provider_data[0]) {
            client->unsent = op->next;
            if (op->next != NULL) {
                client->write_cursor = (struct uc_shm_cursor){.piece = op->next->pieces};
            }
        }
    }
    return client->unsent != NULL ||
           (client->writes.first != NULL && client->done == client->queued);
}

bool
uc_shm_client_arm(struct uc_shm_client *client)
{
    uc_shm_fall_asleep(&client->pages->sleep_epoch, &client->sleep_epoch);
    return atomic_load_explicit(&page_of(client)->done, memory_order_seq_cst) != client->done;
}
