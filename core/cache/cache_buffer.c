/* SPDX-License-Identifier: Apache-2.0 */

#include "core/cache/cache_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/huge_pages.h"
#include "core/cache/cache_internal.h"

enum {
    SCRATCH_INITIAL = 64, /* ids per Reserve */
    NAMES_BYTES = 256
};

static size_t
heap_capacity(size_t capacity)
{
    /* Stale items never outnumber this when an item is pushed, and one more goes in first. */
    return capacity + (capacity > CACHE_STALE_MIN ? capacity : CACHE_STALE_MIN) + 1;
}

static enum uc_status
choose_policy(const struct uc_cache_config *config, const struct uc_policy_ops **ops_out)
{
    const char *name = config->policy == NULL ? "lru" : config->policy;
    const struct uc_policy_ops *ops = config->ops == NULL ? uc_policy_find(name) : config->ops;
    char names[NAMES_BYTES];

    if (ops == NULL) {
        uc_policy_names(names, sizeof(names));
        return uc_error(
                UC_ERR_INVALID_PARAM, "cache: policy '%s' is unknown; known: %s", name, names);
    }

    *ops_out = ops;
    return UC_OK;
}

/* One entry more than needed was asked for: the allocator promises 16 bytes only. */
static struct cache_entry *
align_entries(void *memory)
{
    size_t skip_bytes = (size_t)(-(uintptr_t)memory % sizeof(struct cache_entry));

    return (void *)((char *)memory + skip_bytes);
}

static enum uc_status
allocate(struct uc_cache_buffer *buffer)
{
    buffer->entries_memory = calloc(buffer->capacity + 1, sizeof(buffer->entries[0]));
    buffer->holds = calloc(buffer->capacity, sizeof(buffer->holds[0]));
    buffer->heap = calloc(heap_capacity(buffer->capacity), sizeof(buffer->heap[0]));
    buffer->deferred = calloc(buffer->capacity, sizeof(buffer->deferred[0]));
    if (buffer->entries_memory == NULL || buffer->holds == NULL || buffer->heap == NULL ||
            buffer->deferred == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache: no memory for %zu blocks", buffer->capacity);
    }

    buffer->entries = align_entries(buffer->entries_memory);
    uc_huge_pages_advise(buffer->entries, buffer->capacity * sizeof(buffer->entries[0]));
    uc_huge_pages_advise(buffer->holds, buffer->capacity * sizeof(buffer->holds[0]));
    uc_huge_pages_advise(buffer->heap, heap_capacity(buffer->capacity) * sizeof(buffer->heap[0]));
    return uc_cache_scratch_grow(&buffer->scratch,
            buffer->capacity < SCRATCH_INITIAL ? buffer->capacity : SCRATCH_INITIAL);
}

static enum uc_status
set_up(struct uc_cache_buffer *buffer, const struct uc_cache_config *config,
        const struct uc_policy_ops *ops)
{
    enum uc_status status = allocate(buffer);

    if (status != UC_OK) {
        return status;
    }

    status = uc_block_map_create(
            buffer->capacity, buffer->entries, sizeof(buffer->entries[0]), &buffer->map);
    if (status != UC_OK) {
        return status;
    }

    status = uc_policy_create(
            ops, buffer->capacity, config->parameters, &buffer->clock, &buffer->policy);
    if (status != UC_OK || uc_policy_ghost_ids(buffer->policy) == 0) {
        return status;
    }

    return uc_ghost_create(uc_policy_ghost_ids(buffer->policy), &buffer->ghost);
}

enum uc_status
uc_cache_buffer_create(const struct uc_cache_config *config, struct uc_cache_buffer **buffer_out)
{
    const struct uc_policy_ops *ops;
    struct uc_cache_buffer *buffer;
    enum uc_status status = choose_policy(config, &ops);

    if (status != UC_OK) {
        return status;
    }
    if (config->capacity == 0 || config->capacity > UC_BLOCK_MAP_CAPACITY_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "cache: capacity %zu is not 1 to %zu blocks",
                config->capacity, UC_BLOCK_MAP_CAPACITY_MAX);
    }

    buffer = calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache: no memory");
    }

    buffer->capacity = config->capacity;
    buffer->clock = config->clock;
    buffer->leaf_first = ops->leaf_first;
    status = set_up(buffer, config, ops);
    if (status != UC_OK) {
        goto err_destroy;
    }

    *buffer_out = buffer;
    return UC_OK;

err_destroy:
    uc_cache_buffer_destroy(buffer); /* copes with any part missing */
    return status;
}

void
uc_cache_buffer_destroy(struct uc_cache_buffer *buffer)
{
    if (buffer == NULL) {
        return;
    }

    uc_ghost_destroy(buffer->ghost);
    uc_policy_destroy(buffer->policy);
    uc_block_map_destroy(buffer->map);
    uc_cache_scratch_fini(&buffer->scratch);
    free(buffer->deferred);
    free(buffer->heap);
    free(buffer->holds);
    free(buffer->entries_memory);
    free(buffer);
}

void
uc_cache_entry_enter(struct uc_cache_buffer *buffer, uint32_t slot)
{
    uc_block_map_add(buffer->map, slot);
    if (buffer->entries[slot].state == CACHE_ENTRY_PENDING) {
        buffer->reserved++;
    } else {
        buffer->blocks++;
    }
}

void
uc_cache_entry_leave(struct uc_cache_buffer *buffer, uint32_t slot)
{
    struct cache_entry *entry = &buffer->entries[slot];

    uc_block_map_remove(buffer->map, slot);
    if (entry->state == CACHE_ENTRY_PENDING) {
        buffer->reserved--;
    } else {
        buffer->blocks--;
    }
    if (entry->queued) {
        buffer->heap_live--;
    }
    *entry = (struct cache_entry){.deferred = entry->deferred};
}

enum uc_status
uc_cache_hold(struct uc_cache_buffer *buffer, uint32_t slot)
{
    enum uc_status status = uc_policy_pin_slot(buffer->policy, slot);

    if (status == UC_OK && !cache_entry_is_held(&buffer->entries[slot])) {
        buffer->pinned++;
    }
    return status;
}

void
uc_cache_unhold(struct uc_cache_buffer *buffer, uint32_t slot)
{
    enum uc_status status = uc_policy_unpin_slot(buffer->policy, slot);

    assert(status == UC_OK); /* */
    (void)status;
    if (!cache_entry_is_held(&buffer->entries[slot])) {
        buffer->pinned--;
    }
}

struct uc_cache_info
uc_cache_buffer_peek(const struct uc_cache_buffer *buffer, const struct uc_block_id *id)
{
    struct uc_cache_info info = {.deadline_ms = UC_TIME_NEVER_MS, .slot = UC_SLOT_NONE};
    uint32_t slot = uc_block_map_find(buffer->map, id);
    const struct cache_entry *entry;

    if (slot == UC_BLOCK_MAP_NONE) {
        return info;
    }

    entry = &buffer->entries[slot];
    info.slot = slot;
    info.generation = uc_policy_generation(buffer->policy, slot);
    if (entry->state == CACHE_ENTRY_PENDING) {
        info.state = UC_CACHE_PENDING;
        return info;
    }

    info.state = cache_entry_is_visible(entry, uc_clock_now_ms(&buffer->clock)) ? UC_CACHE_VISIBLE
                                                                                : UC_CACHE_EXPIRED;
    info.deadline_ms = entry->deadline_ms;
    info.pin_count = buffer->holds[slot].reader_pins + entry->refs;
    return info;
}

enum uc_status
uc_cache_buffer_transfer_begin(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t generation)
{
    return uc_policy_transfer_begin(buffer->policy, slot, generation);
}

void
uc_cache_buffer_transfer_end(struct uc_cache_buffer *buffer, uint32_t slot)
{
    uc_policy_transfer_end(buffer->policy, slot);
}

static size_t
memory_bytes(const struct uc_cache_buffer *buffer)
{
    return sizeof(*buffer) + (buffer->capacity + 1) * sizeof(buffer->entries[0]) +
           buffer->capacity * sizeof(buffer->holds[0]) +
           heap_capacity(buffer->capacity) * sizeof(buffer->heap[0]) +
           buffer->capacity * sizeof(buffer->deferred[0]) +
           uc_cache_scratch_memory_bytes(&buffer->scratch) +
           uc_block_map_memory_bytes(buffer->map) + uc_policy_memory_bytes(buffer->policy) +
           uc_ghost_memory_bytes(buffer->ghost);
}

struct uc_cache_stats
uc_cache_buffer_stats(const struct uc_cache_buffer *buffer)
{
    struct uc_cache_stats stats = {
            .capacity = buffer->capacity,
            .free = uc_policy_free_count(buffer->policy),
            .evictable = uc_policy_evictable_count(buffer->policy),
            .draining = uc_policy_draining_count(buffer->policy),
            .reserved = buffer->reserved,
            .pinned = buffer->pinned,
            .blocks = buffer->blocks,
            .evicted_total = buffer->evicted_total,
            .expired_total = buffer->expired_total,
            .committed_total = buffer->committed_total,
            .memory_bytes = memory_bytes(buffer),
    };

    return stats;
}
