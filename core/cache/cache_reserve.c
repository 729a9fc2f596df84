/* SPDX-License-Identifier: Apache-2.0 */

/* Two-phase admission, first half (16.3): known blocks before newcomers, all or nothing. */

#include <string.h>

#include "core/cache/cache_internal.h"

struct batch {
    const struct uc_block_id *ids;
    const struct uc_policy_hints *hints; /* may be NULL */
    size_t count;
    size_t newcomers;
    uint64_t ttl_ms;
    uint64_t now_ms;
    bool swept;
};

/* Phase 0: an id twice. O(n), in scratch. */
static enum uc_status
refuse_duplicates(struct uc_cache_buffer *buffer, const struct batch *batch)
{
    uint32_t *seen = buffer->scratch.seen;
    size_t mask = 2;

    while (mask < 2 * batch->count) {
        mask *= 2;
    }
    memset(seen, 0, mask * sizeof(seen[0]));
    mask--;

    for (size_t idx = 0; idx < batch->count; idx++) {
        size_t at = uc_block_map_hash(buffer->map, &batch->ids[idx]) & mask;

        for (; seen[at] != 0; at = (at + 1) & mask) {
            if (memcmp(&batch->ids[seen[at] - 1], &batch->ids[idx], sizeof(batch->ids[0])) == 0) {
                return uc_error(UC_ERR_INVALID_PARAM, "reserve: blocks %u and %zu are the same",
                        seen[at] - 1, idx);
            }
        }
        seen[at] = (uint32_t)idx + 1;
    }

    return UC_OK;
}

/* for a block that has a slot. */
static enum uc_status
settle_known(struct uc_cache_buffer *buffer, const struct batch *batch, struct cache_record *record)
{
    struct cache_entry *entry = &buffer->entries[record->slot];
    bool committed = entry->state == CACHE_ENTRY_COMMITTED;
    uint64_t *ttl_ms = committed ? &buffer->holds[record->slot].ttl_ms : &entry->ttl_ms;

    if (entry->refs == UINT32_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "reserve: too many references to one block");
    }
    if (committed) {
        enum uc_status status = uc_cache_hold(buffer, record->slot);

        if (status != UC_OK) {
            return status;
        }
    }

    record->kind = committed ? CACHE_RECORD_READMITTED : CACHE_RECORD_JOINED;
    record->old_ttl_ms = *ttl_ms;
    entry->refs++;
    *ttl_ms = batch->ttl_ms;
    return UC_OK;
}

/* Phase 1: known blocks. What is revoked and unheld counts as unknown, but goes in phase 2 only. */
static enum uc_status
settle(struct uc_cache_buffer *buffer, struct batch *batch)
{
    const uint32_t *slots = buffer->scratch.slots;

    for (size_t idx = 0; idx < batch->count; idx++) {
        buffer->scratch.records[idx].kind = CACHE_RECORD_UNPLACED;
    }
    for (size_t idx = 0; idx < batch->count; idx++) {
        struct cache_record *record = &buffer->scratch.records[idx];
        enum uc_status status;

        record->slot = slots[idx];
        if (record->slot == UC_BLOCK_MAP_NONE) {
            batch->newcomers++;
            continue;
        }
        if (buffer->entries[record->slot].damaged &&
                !cache_entry_is_held(&buffer->entries[record->slot])) {
            record->kind = CACHE_RECORD_DAMAGED;
            batch->newcomers++;
            continue;
        }

        status = settle_known(buffer, batch, record);
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}

/* exact, since phase 1 has pinned the batch's own blocks. */
static enum uc_status
check_feasible(const struct uc_cache_buffer *buffer, const struct batch *batch)
{
    size_t free_count = uc_policy_free_count(buffer->policy);
    size_t evictable = uc_policy_evictable_count(buffer->policy);

    if (batch->newcomers > free_count + evictable) {
        return uc_error(UC_ERR_NO_SPACE,
                "reserve: %zu new blocks, but only %zu free and %zu evictable of %zu slots",
                batch->newcomers, free_count, evictable, buffer->capacity);
    }

    return UC_OK;
}

static void
fill_entry(struct cache_entry *entry, const struct batch *batch, size_t idx)
{
    static const struct uc_policy_hints unknown = {0};
    const struct uc_policy_hints *hints = batch->hints == NULL ? &unknown : &batch->hints[idx];

    *entry = (struct cache_entry){
            .id = batch->ids[idx],
            .ttl_ms = batch->ttl_ms,
            .position = hints->position < CACHE_POSITION_MAX ? hints->position & CACHE_POSITION_MAX
                                                             : CACHE_POSITION_MAX,
            .seen = hints->seen < 2 ? hints->seen & 1u : 2u,
            .partial = hints->partial ? 1u : 0u,
            .state = CACHE_ENTRY_PENDING,
            .deferred = entry->deferred,
            .refs = 1,
    };
}

/* A slot for one newcomer. A victim still stands in the map afterwards. */
static enum uc_status
acquire(struct uc_cache_buffer *buffer, struct batch *batch, struct cache_record *record)
{
    enum uc_status status;
    uint64_t generation;
    uint32_t slot;
    bool evicted;

    /* Before the first victim of the batch, and once: a second sweep would find nothing more. */
    if (!batch->swept && uc_policy_free_count(buffer->policy) == 0) {
        uc_cache_sweep(buffer, batch->now_ms);
        batch->swept = true;
    }
    status = uc_policy_acquire_slot(buffer->policy, &slot, &generation, &evicted);
    if (status != UC_OK) {
        return status;
    }

    record->slot = slot;
    record->kind = evicted ? CACHE_RECORD_ON_VICTIM : CACHE_RECORD_ON_FREE;
    UC_PREFETCH(&buffer->entries[slot]);
    return UC_OK;
}

/* The victim leaves the map before anybody hears of its slot. */
static void
place(struct uc_cache_buffer *buffer, const struct batch *batch, size_t idx)
{
    struct cache_record *record = &buffer->scratch.records[idx];

    if (record->kind == CACHE_RECORD_ON_VICTIM) {
        record->victim = buffer->entries[record->slot];
        cache_entry_remember(buffer, &record->victim);
        uc_cache_entry_leave(buffer, record->slot);
    }
    fill_entry(&buffer->entries[record->slot], batch, idx);
    uc_cache_entry_enter(buffer, record->slot);
}

/*
 * Phase 2. All slots first, then all entries, so that the memory of many is fetched at once. What was
 * acquired before a failure is placed all the same: the journal undoes whole newcomers only.
 */
static enum uc_status
place_newcomers(struct uc_cache_buffer *buffer, struct batch *batch)
{
    struct cache_record *records = buffer->scratch.records;
    enum uc_status status = UC_OK;
    size_t acquired = 0;

    for (size_t idx = 0; idx < batch->count; idx++) {
        if (records[idx].kind == CACHE_RECORD_DAMAGED) {
            uc_cache_expire(buffer, records[idx].slot);
            records[idx].kind = CACHE_RECORD_UNPLACED;
        }
    }
    for (; acquired < batch->count && status == UC_OK; acquired++) {
        if (records[acquired].kind == CACHE_RECORD_UNPLACED) {
            status = acquire(buffer, batch, &records[acquired]);
        }
    }
    for (size_t idx = 0; idx < acquired; idx++) {
        if (records[idx].kind == CACHE_RECORD_ON_VICTIM) {
            uc_block_map_prefetch(buffer->map, records[idx].slot);
            cache_ghost_prefetch(buffer, &buffer->entries[records[idx].slot].id);
        }
    }
    for (size_t idx = 0; idx < acquired; idx++) {
        if (records[idx].kind == CACHE_RECORD_ON_FREE ||
                records[idx].kind == CACHE_RECORD_ON_VICTIM) {
            place(buffer, batch, idx);
        }
    }

    return status;
}

static enum uc_cache_admission
admission_of(enum cache_record_kind kind)
{
    switch (kind) {
    case CACHE_RECORD_JOINED:
        return UC_CACHE_JOINED;
    case CACHE_RECORD_READMITTED:
        return UC_CACHE_READMITTED;
    default:
        return UC_CACHE_NEWCOMER;
    }
}

static void
report(struct uc_cache_buffer *buffer, const struct batch *batch, struct uc_cache_slot *slots_out,
        struct uc_block_id *evicted_out, size_t *evicted_count_out)
{
    size_t evicted = 0;

    for (size_t idx = 0; idx < batch->count; idx++) {
        const struct cache_record *record = &buffer->scratch.records[idx];

        slots_out[idx] = (struct uc_cache_slot){
                .generation = uc_policy_generation(buffer->policy, record->slot),
                .slot = record->slot,
                .admission = admission_of(record->kind),
        };
        if (record->kind == CACHE_RECORD_ON_VICTIM) {
            if (evicted_out != NULL) {
                evicted_out[evicted] = record->victim.id;
            }
            evicted++;
        }
    }

    buffer->evicted_total += evicted;
    if (evicted_count_out != NULL) {
        *evicted_count_out = evicted;
    }
}

enum uc_status
uc_cache_buffer_reserve(struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, const struct uc_policy_hints *hints,
        struct uc_cache_slot *slots_out, struct uc_block_id *evicted_out, size_t *evicted_count_out)
{
    struct batch batch = {
            .ids = ids,
            .hints = hints,
            .count = count,
            .ttl_ms = UC_TIME_NEVER_MS,
            .now_ms = uc_clock_now_ms(&buffer->clock),
    };
    enum uc_status status;

    if (count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "reserve: no blocks");
    }
    status = uc_cache_scratch_grow(&buffer->scratch, count);
    if (status != UC_OK) {
        return status;
    }
    status = refuse_duplicates(buffer, &batch);
    if (status != UC_OK) {
        return status;
    }

    (void)uc_request_ttl(context, &batch.ttl_ms);
    uc_block_map_find_many(buffer->map, ids, count, buffer->scratch.slots);
    status = settle(buffer, &batch);
    if (status == UC_OK) {
        status = check_feasible(buffer, &batch);
    }
    if (status == UC_OK) {
        status = place_newcomers(buffer, &batch);
    }
    if (status != UC_OK) {
        uc_cache_rollback(buffer, count);
        return status;
    }

    report(buffer, &batch, slots_out, evicted_out, evicted_count_out);
    return UC_OK;
}
