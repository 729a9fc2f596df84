/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deadlines (16.6). The heap is lazy: a changed deadline pushes a second item and leaves the first behind
 * as stale. An entry's `queued` says that an item with its present deadline is in the heap, so an item is
 * live exactly if its slot is queued with that deadline; of equal items the first one popped counts.
 */

#include "core/cache/cache_internal.h"

static bool
item_is_live(const struct uc_cache_buffer *buffer, const struct cache_deadline *item)
{
    const struct cache_entry *entry = &buffer->entries[item->slot];

    return entry->queued && entry->deadline_ms == cache_deadline_ms(item);
}

static bool
is_earlier(const struct cache_deadline *left, const struct cache_deadline *right)
{
    return cache_deadline_ms(left) < cache_deadline_ms(right);
}

static void
sift_up(struct cache_deadline *heap, size_t at)
{
    struct cache_deadline item = heap[at];

    while (at > 0 && is_earlier(&item, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = item;
}

static void
sift_down(struct cache_deadline *heap, size_t count, size_t at)
{
    struct cache_deadline item = heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < count && is_earlier(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (child >= count || !is_earlier(&heap[child], &item)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}

/* Drop the stale items. Taking `queued` away on the way keeps one of equal items only. */
static void
rebuild(struct uc_cache_buffer *buffer)
{
    size_t kept = 0;

    for (size_t idx = 0; idx < buffer->heap_count; idx++) {
        if (item_is_live(buffer, &buffer->heap[idx])) {
            buffer->entries[buffer->heap[idx].slot].queued = 0;
            buffer->heap[kept++] = buffer->heap[idx];
        }
    }
    for (size_t idx = 0; idx < kept; idx++) {
        buffer->entries[buffer->heap[idx].slot].queued = 1;
    }

    assert(kept == buffer->heap_live);
    buffer->heap_count = kept;
    for (size_t idx = kept / 2; idx > 0; idx--) {
        sift_down(buffer->heap, kept, idx - 1);
    }
}

static void
push(struct uc_cache_buffer *buffer, uint32_t slot)
{
    uint64_t deadline_ms = buffer->entries[slot].deadline_ms;
    size_t bound;

    buffer->heap[buffer->heap_count] = (struct cache_deadline){
            .deadline_high = (uint32_t)(deadline_ms >> 32),
            .deadline_low = (uint32_t)deadline_ms,
            .slot = slot,
    };
    sift_up(buffer->heap, buffer->heap_count++);
    buffer->entries[slot].queued = 1;
    buffer->heap_live++;

    bound = buffer->heap_live > CACHE_STALE_MIN ? buffer->heap_live : CACHE_STALE_MIN;
    if (buffer->heap_count - buffer->heap_live > bound) {
        rebuild(buffer);
    }
}

static void
pop(struct uc_cache_buffer *buffer)
{
    buffer->heap_count--;
    if (buffer->heap_count > 0) {
        buffer->heap[0] = buffer->heap[buffer->heap_count];
        sift_down(buffer->heap, buffer->heap_count, 0);
    }
}

static void
dequeue(struct uc_cache_buffer *buffer, uint32_t slot)
{
    buffer->entries[slot].queued = 0;
    buffer->heap_live--;
}

void
uc_cache_set_deadline(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t deadline_ms)
{
    struct cache_entry *entry = &buffer->entries[slot];

    if (entry->queued && entry->deadline_ms == deadline_ms) {
        return;
    }

    if (entry->queued) {
        dequeue(buffer, slot);
    }
    entry->deadline_ms = deadline_ms;
    if (deadline_ms != UC_TIME_NEVER_MS) {
        push(buffer, slot);
    }
}

void
uc_cache_expire(struct uc_cache_buffer *buffer, uint32_t slot)
{
    enum uc_status status;

    cache_entry_remember(buffer, &buffer->entries[slot]);
    /* The mapping goes before the slot can be used by anybody else. */
    uc_cache_entry_leave(buffer, slot);
    status = uc_policy_release_slot(buffer->policy, slot);
    assert(status == UC_OK);
    (void)status;
    buffer->expired_total++;
}

/* Held blocks wait outside the heap, or they would be popped again and again by one sweep. */
static void
defer(struct uc_cache_buffer *buffer, uint32_t slot)
{
    if (!buffer->entries[slot].deferred) {
        buffer->entries[slot].deferred = 1;
        buffer->deferred[buffer->deferred_count++] = slot;
    }
}

static void
requeue_deferred(struct uc_cache_buffer *buffer)
{
    for (size_t idx = 0; idx < buffer->deferred_count; idx++) {
        struct cache_entry *entry = &buffer->entries[buffer->deferred[idx]];

        entry->deferred = 0;
        if (entry->state == CACHE_ENTRY_COMMITTED && entry->deadline_ms != UC_TIME_NEVER_MS &&
                !entry->queued) {
            push(buffer, buffer->deferred[idx]);
        }
    }
    buffer->deferred_count = 0;
}

void
uc_cache_sweep(struct uc_cache_buffer *buffer, uint64_t now_ms)
{
    requeue_deferred(buffer);
    while (buffer->heap_count > 0 && cache_deadline_ms(&buffer->heap[0]) <= now_ms) {
        uint32_t slot = buffer->heap[0].slot;
        bool live = item_is_live(buffer, &buffer->heap[0]);

        pop(buffer);
        if (!live) {
            continue;
        }

        dequeue(buffer, slot);
        if (cache_entry_is_held(&buffer->entries[slot])) {
            defer(buffer, slot);
        } else {
            uc_cache_expire(buffer, slot);
        }
    }
}

enum uc_status
uc_cache_buffer_revoke(
        struct uc_cache_buffer *buffer, const struct uc_block_id *id, uint64_t generation)
{
    uint32_t slot = uc_block_map_find(buffer->map, id);

    if (slot == UC_BLOCK_MAP_NONE || buffer->entries[slot].state != CACHE_ENTRY_COMMITTED ||
            uc_policy_generation(buffer->policy, slot) != generation) {
        return uc_error(UC_ERR_NOT_FOUND, "revoke: no committed block of that generation");
    }

    buffer->entries[slot].damaged = 1;
    uc_cache_set_deadline(buffer, slot, uc_clock_now_ms(&buffer->clock));
    return UC_OK;
}
