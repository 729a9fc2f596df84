/* SPDX-License-Identifier: Apache-2.0 */

/* What reads the cache: lookup, touch, pin, unpin. None allocates; expired blocks go as they are met. */

#include "core/cache/cache_internal.h"

bool
uc_cache_probe(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t now_ms)
{
    const struct cache_entry *entry;

    if (slot == UC_BLOCK_MAP_NONE) {
        return false;
    }

    /* A slot that an earlier id of the same call removed has no entry any more. */
    entry = &buffer->entries[slot];
    if (cache_entry_is_visible(entry, now_ms)) {
        return true;
    }

    if (entry->state == CACHE_ENTRY_COMMITTED && !cache_entry_is_held(entry)) {
        uc_cache_expire(buffer, slot);
    }
    return false;
}

static size_t
chunk_of(size_t left)
{
    return left < CACHE_CHUNK ? left : CACHE_CHUNK;
}

void
uc_cache_buffer_lookup(struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count,
        uint8_t *hits_out)
{
    uint64_t now_ms = uc_clock_now_ms(&buffer->clock);
    uint32_t slots[CACHE_CHUNK];

    for (size_t first = 0; first < count; first += CACHE_CHUNK) {
        size_t chunk = chunk_of(count - first);

        uc_block_map_find_many(buffer->map, ids + first, chunk, slots);
        for (size_t idx = 0; idx < chunk; idx++) {
            hits_out[first + idx] = uc_cache_probe(buffer, slots[idx], now_ms) ? 1 : 0;
        }
    }
}

/*
 * Callers that give no positions list prefixes from their beginning. So the block that leads a list is taken
 * for the first of its chain; a wrong guess costs one sample of a statistic.
 */
static void
refresh(struct uc_cache_buffer *buffer, uint32_t slot, bool leads)
{
    struct cache_entry *entry = &buffer->entries[slot];
    struct uc_policy_hints hints;
    enum uc_status status;

    cache_entry_set_seen(entry, entry->seen + 1u);
    hints = cache_entry_hints(entry);
    if (leads && hints.position == 0) {
        hints.position = 1;
    }
    status = uc_policy_touch_slot(buffer->policy, slot, &hints);

    assert(status == UC_OK);
    (void)status;
}

/* never shortens retention, and a block without deadline stays so. */
static void
extend(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t deadline_ms)
{
    const struct cache_entry *entry = &buffer->entries[slot];

    if (entry->deadline_ms != UC_TIME_NEVER_MS && deadline_ms > entry->deadline_ms) {
        uc_cache_set_deadline(buffer, slot, deadline_ms);
    }
}

void
uc_cache_buffer_touch(struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    uint64_t now_ms = uc_clock_now_ms(&buffer->clock);
    uint32_t slots[CACHE_CHUNK];
    uint64_t ttl_ms = 0;
    bool has_ttl = uc_request_ttl(context, &ttl_ms);

    for (size_t done = 0, chunk; done < count; done += chunk) {
        size_t first = cache_next_chunk(buffer, done, count, &chunk);

        uc_block_map_find_many(buffer->map, ids + first, chunk, slots);
        for (size_t step = 0; step < chunk; step++) {
            size_t idx = cache_feed_index(buffer, step, chunk);
            uint32_t slot = slots[idx];

            if (!uc_cache_probe(buffer, slot, now_ms)) {
                continue;
            }
            refresh(buffer, slot, first + idx == 0);
            if (has_ttl) {
                extend(buffer, slot, uc_time_add_ms(now_ms, ttl_ms));
            }
        }
    }
}

static void
unpin_one(struct uc_cache_buffer *buffer, uint32_t slot)
{
    buffer->holds[slot].reader_pins--;
    buffer->entries[slot].pinned = buffer->holds[slot].reader_pins > 0 ? 1 : 0;
    uc_cache_unhold(buffer, slot);
}

void
uc_cache_buffer_unpin(struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count)
{
    uint32_t slots[CACHE_CHUNK];

    for (size_t first = 0; first < count; first += CACHE_CHUNK) {
        size_t chunk = chunk_of(count - first);

        uc_block_map_find_many(buffer->map, ids + first, chunk, slots);
        for (size_t idx = 0; idx < chunk; idx++) {
            if (slots[idx] != UC_BLOCK_MAP_NONE && buffer->entries[slots[idx]].pinned) {
                unpin_one(buffer, slots[idx]);
            }
        }
    }
}

static enum uc_status
pin_one(struct uc_cache_buffer *buffer, uint32_t slot, size_t idx, uint64_t now_ms)
{
    enum uc_status status;

    if (!uc_cache_probe(buffer, slot, now_ms)) {
        return uc_error(UC_ERR_NOT_FOUND, "pin: block %zu of the list is not in the cache", idx);
    }

    status = uc_cache_hold(buffer, slot);
    if (status == UC_OK) {
        buffer->holds[slot].reader_pins++;
        buffer->entries[slot].pinned = 1;
    }
    return status;
}

/* Take all pins; on failure none is kept. */
static enum uc_status
pin_all(struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count)
{
    uint64_t now_ms = uc_clock_now_ms(&buffer->clock);
    uint32_t slots[CACHE_CHUNK];

    for (size_t first = 0; first < count; first += CACHE_CHUNK) {
        size_t chunk = chunk_of(count - first);

        uc_block_map_find_many(buffer->map, ids + first, chunk, slots);
        for (size_t idx = 0; idx < chunk; idx++) {
            enum uc_status status = pin_one(buffer, slots[idx], first + idx, now_ms);

            if (status != UC_OK) {
                uc_cache_buffer_unpin(buffer, ids, first + idx);
                return status;
            }
        }
    }

    return UC_OK;
}

/* A new mark for this call, so that a block is refreshed once however often it is listed. */
static void
next_epoch(struct uc_cache_buffer *buffer)
{
    if (++buffer->epoch != 0) {
        return;
    }

    for (size_t slot = 0; slot < buffer->capacity; slot++) {
        buffer->holds[slot].mark = 0;
    }
    buffer->epoch = 1;
}

static void
hand_out(struct uc_cache_buffer *buffer, uint32_t slot, bool leads, struct uc_cache_slot *slot_out)
{
    *slot_out = (struct uc_cache_slot){
            .generation = uc_policy_generation(buffer->policy, slot),
            .slot = slot,
            .admission = UC_CACHE_READMITTED,
    };
    if (buffer->holds[slot].mark != buffer->epoch) {
        buffer->holds[slot].mark = buffer->epoch;
        refresh(buffer, slot, leads);
    }
}

enum uc_status
uc_cache_buffer_pin(struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count,
        struct uc_cache_slot *slots_out)
{
    uint32_t slots[CACHE_CHUNK];
    enum uc_status status;

    if (count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "pin: no blocks");
    }
    status = pin_all(buffer, ids, count);
    if (status != UC_OK) {
        return status;
    }

    next_epoch(buffer);
    for (size_t done = 0, chunk; done < count; done += chunk) {
        size_t first = cache_next_chunk(buffer, done, count, &chunk);

        uc_block_map_find_many(buffer->map, ids + first, chunk, slots); /* all there: just pinned */
        for (size_t step = 0; step < chunk; step++) {
            size_t idx = cache_feed_index(buffer, step, chunk);

            hand_out(buffer, slots[idx], first + idx == 0, &slots_out[first + idx]);
        }
    }
    return UC_OK;
}
