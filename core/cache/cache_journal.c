/* SPDX-License-Identifier: Apache-2.0 */

/* Scratch memory of Reserve, and the undo of a batch from the records in it (16.4). */

#include <stdlib.h>

#include "core/cache/cache_internal.h"

static size_t
seen_size(size_t count)
{
    size_t size = 2;

    while (size < 2 * count) {
        size *= 2;
    }
    return size;
}

enum uc_status
uc_cache_scratch_grow(struct cache_scratch *scratch, size_t count)
{
    struct cache_scratch grown = {.capacity = count};

    if (count <= scratch->capacity) {
        return UC_OK;
    }
    if (count > UC_BLOCK_MAP_CAPACITY_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "reserve: %zu blocks are more than %zu", count,
                UC_BLOCK_MAP_CAPACITY_MAX);
    }

    grown.records = calloc(count, sizeof(grown.records[0]));
    grown.slots = calloc(count, sizeof(grown.slots[0]));
    grown.seen = calloc(seen_size(count), sizeof(grown.seen[0]));
    if (grown.records == NULL || grown.slots == NULL || grown.seen == NULL) {
        uc_cache_scratch_fini(&grown);
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "reserve: no memory for a batch of %zu blocks", count);
    }

    uc_cache_scratch_fini(scratch);
    *scratch = grown;
    return UC_OK;
}

void
uc_cache_scratch_fini(struct cache_scratch *scratch)
{
    free(scratch->records);
    free(scratch->slots);
    free(scratch->seen);
    *scratch = (struct cache_scratch){0};
}

size_t
uc_cache_scratch_memory_bytes(const struct cache_scratch *scratch)
{
    if (scratch->capacity == 0) {
        return 0;
    }

    return scratch->capacity * (sizeof(scratch->records[0]) + sizeof(scratch->slots[0])) +
           seen_size(scratch->capacity) * sizeof(scratch->seen[0]);
}

/* The failed batch wrote nothing, so the victim's bytes are intact. */
static enum uc_status
restore_victim(struct uc_cache_buffer *buffer, const struct cache_record *record)
{
    struct cache_entry *entry = &buffer->entries[record->slot];
    uint64_t generation = uc_policy_generation(buffer->policy, record->slot);
    enum uc_status status = uc_policy_restore_slot(
            buffer->policy, record->slot, generation == 1 ? UC_GENERATION_MAX : generation - 1);
    uint64_t deadline_ms = record->victim.deadline_ms;
    bool deferred = entry->deferred != 0;

    if (status != UC_OK) {
        return status;
    }

    *entry = record->victim;
    entry->queued = 0; /* its item in the heap became stale when it left */
    entry->deferred = deferred ? 1 : 0;
    uc_cache_entry_enter(buffer, record->slot);
    uc_cache_set_deadline(buffer, record->slot, deadline_ms);
    return UC_OK;
}

static void
undo_newcomer(struct uc_cache_buffer *buffer, const struct cache_record *record)
{
    enum uc_status status;

    uc_cache_entry_leave(buffer, record->slot);
    if (record->kind == CACHE_RECORD_ON_VICTIM) {
        if (restore_victim(buffer, record) == UC_OK) {
            return;
        }
        buffer->evicted_total++; /* a transfer guessed the new generation: the block is lost */
    }

    status = uc_policy_abort_slot(buffer->policy, record->slot);
    assert(status == UC_OK);
    (void)status;
}

static void
undo_known(struct uc_cache_buffer *buffer, const struct cache_record *record)
{
    struct cache_entry *entry = &buffer->entries[record->slot];

    entry->refs--;
    if (record->kind == CACHE_RECORD_JOINED) {
        entry->ttl_ms = record->old_ttl_ms;
    } else {
        buffer->holds[record->slot].ttl_ms = record->old_ttl_ms;
        uc_cache_unhold(buffer, record->slot);
    }
}

void
uc_cache_rollback(struct uc_cache_buffer *buffer, size_t count)
{
    const struct cache_record *records = buffer->scratch.records;

    /* In reverse: newcomers came after all known blocks. */
    for (size_t idx = count; idx > 0; idx--) {
        enum cache_record_kind kind = records[idx - 1].kind;

        if (kind == CACHE_RECORD_ON_FREE || kind == CACHE_RECORD_ON_VICTIM) {
            undo_newcomer(buffer, &records[idx - 1]);
        }
    }
    for (size_t idx = count; idx > 0; idx--) {
        enum cache_record_kind kind = records[idx - 1].kind;

        if (kind == CACHE_RECORD_JOINED || kind == CACHE_RECORD_READMITTED) {
            undo_known(buffer, &records[idx - 1]);
        }
    }
}
