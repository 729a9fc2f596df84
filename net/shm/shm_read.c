/* SPDX-License-Identifier: Apache-2.0 */

/*
 * READs are copies that this side's processor makes out of the server's memory; the server hears nothing of them.
 * So nobody holds the slot, and it may get a new owner in the middle of a copy. What makes that harmless: the
 * server gives a slot its new generation before anybody may write into it, and the pieces of a READ are loaded in
 * order, with a fence between them. Whoever asks for the slot's footer as the last piece, or in a later READ, and
 * finds the generation he knows there, knows that every byte loaded before was the block's.
 */

#include "core/base/copy_hash.h"
#include "net/shm/shm_object.h"

/* Loads before it come before loads after it. ThreadSanitizer does not know fences, nor the other process. */
static inline void
load_fence(void)
{
#ifdef __SANITIZE_THREAD__
    atomic_signal_fence(memory_order_acquire);
#else
    atomic_thread_fence(memory_order_acquire);
#endif
}

static const struct uc_shm_server_page *
page_of(const struct uc_shm_client *client)
{
    return (const struct uc_shm_server_page *)(const void *)client->server_page.bytes;
}

/*
 * Where a READ's bytes are, by what the server says now. NULL: the region is gone, or a number of it is wrong.
 * Every field is stored with release, so a row that changes while we look shows another state at the end.
 */
static const uint8_t *
find_bytes(const struct uc_shm_client *client, const struct uc_fabric_op *op, uint64_t *state_out)
{
    const struct uc_shm_region_row *row =
            (const struct uc_shm_region_row *)(const void *)client->rows.bytes;
    const struct uc_shm_mapping *file;
    uint64_t state;
    uint64_t offset;
    uint64_t length;

    if (row == NULL || op->region_idx >= UC_REGION_LIMIT) {
        return NULL;
    }
    row += op->region_idx;
    state = atomic_load_explicit(&row->state, memory_order_acquire);
    offset = atomic_load_explicit(&row->offset_bytes, memory_order_acquire);
    length = atomic_load_explicit(&row->length_bytes, memory_order_acquire);
    if (state == 0 || (state & 0xff) == 0 || (state & 0xff) > client->file_count ||
            atomic_load_explicit(&row->state, memory_order_acquire) != state) {
        return NULL;
    }

    file = &client->files[(state & 0xff) - 1];
    if (!uc_region_range_fits(file->length_bytes, offset, length) ||
            !uc_region_range_fits(length, op->offset_bytes, op->provider_data[0])) {
        return NULL;
    }
    *state_out = state;
    return file->bytes + offset + op->offset_bytes;
}

static bool
is_still(const struct uc_shm_client *client, const struct uc_fabric_op *op, uint64_t state)
{
    const struct uc_shm_region_row *row =
            (const struct uc_shm_region_row *)(const void *)client->rows.bytes + op->region_idx;

    return atomic_load_explicit(&row->state, memory_order_acquire) == state;
}

/* What is told is what was put in place: the source may change meanwhile, each byte of it is loaded once. */
static void
tell(void *context, const void *bytes, size_t length)
{
    struct uc_fabric_op *op = context;

    op->on_bytes(op, bytes, length);
}

/* Pieces of a long READ are left out of the caches though they are short: together they would fill them. */
static void
copy_run(struct uc_fabric_op *op, uint8_t *to, const uint8_t *from, size_t length, bool streams)
{
    if (op->on_bytes == NULL) {
        if (streams) {
            uc_copy_run(to, from, length);
        } else {
            uc_copy_stream(to, from, length);
        }
    } else if (streams) {
        uc_copy_run_told(to, from, length, tell, op);
    } else {
        uc_copy_told(to, from, length, tell, op);
    }
}

/* Copy of the first READ what this turn has room for. @return whether that was all of it */
static bool
copy_some(struct uc_shm_client *client, const uint8_t *bytes, size_t *left_bytes)
{
    struct uc_fabric_op *op = client->reads.first;
    struct uc_shm_cursor *cursor = &client->read_cursor;
    uint64_t length_bytes = op->provider_data[0];
    bool is_long = length_bytes >= UC_SHM_LONG_READ_BYTES;

    while (cursor->done_bytes<length_bytes && * left_bytes> 0) {
        uint64_t rest = cursor->piece->length_bytes - cursor->piece_done_bytes;
        size_t length = rest < *left_bytes ? (size_t)rest : *left_bytes;

        copy_run(op, (uint8_t *)cursor->piece->address + cursor->piece_done_bytes,
                bytes + cursor->done_bytes, length, is_long && length >= UC_SHM_RUN_MIN_BYTES);
        load_fence();
        *left_bytes -= length;
        uc_shm_cursor_advance(cursor, length);
    }
    uc_copy_runs_end();
    return cursor->done_bytes == length_bytes;
}

static void
read_done(struct uc_shm_client *client, enum uc_status status, size_t *budget)
{
    struct uc_fabric_op *next = client->reads.first->next;

    if (next != NULL) {
        client->read_cursor = (struct uc_shm_cursor){.piece = next->pieces};
    }
    uc_shm_queue_done(&client->reads, status, budget);
}

bool
uc_shm_client_read(struct uc_shm_client *client, size_t *left_bytes, size_t *budget)
{
    while (client->base.state == UC_SHM_READY && client->reads.first != NULL && *left_bytes > 0 &&
            *budget > 0) {
        struct uc_fabric_op *op = client->reads.first;
        uint64_t state = 0;
        const uint8_t *bytes;

        if (op->provider_data[3] > client->done_flushes) {
            return false; /* a FLUSH that was posted before has to end first */
        }
        if (atomic_load_explicit(&page_of(client)->fenced, memory_order_acquire) != 0) {
            (void)uc_error(UC_ERR_UNHEALTHY, "shm: the server has ended the connection");
            uc_shm_client_fail(client, UC_ERR_UNHEALTHY);
            return false;
        }
        bytes = find_bytes(client, op, &state);
        if (bytes == NULL) {
            read_done(client, UC_ERR_INVALID_PARAM, budget);
        } else if (copy_some(client, bytes, left_bytes)) {
            read_done(client, is_still(client, op, state) ? UC_OK : UC_ERR_INVALID_PARAM, budget);
        }
    }
    return client->reads.first != NULL;
}
