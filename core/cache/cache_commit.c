/* SPDX-License-Identifier: Apache-2.0 */

/* Conclusion of reservations and readmissions (16.5). Never allocates. */

#include "core/cache/cache_internal.h"

struct verdict {
    enum uc_status status;
    enum uc_cache_outcome outcome;
};

static enum uc_cache_outcome
outcome_of(const struct cache_entry *entry, uint64_t now_ms)
{
    return cache_entry_is_visible(entry, now_ms) ? UC_CACHE_OUTCOME_VISIBLE
                                                 : UC_CACHE_OUTCOME_EXPIRED;
}

/* the deadline starts here, so that a slow Dump yields no block born expired. */
static struct verdict
publish(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t now_ms)
{
    struct cache_entry *entry = &buffer->entries[slot];
    uint64_t ttl_ms = entry->ttl_ms;

    entry->state = CACHE_ENTRY_COMMITTED;
    entry->success = 0;
    entry->deadline_ms = UC_TIME_NEVER_MS;
    buffer->reserved--;
    buffer->blocks++;
    buffer->committed_total++;
    uc_cache_set_deadline(buffer, slot, uc_time_add_ms(now_ms, ttl_ms));
    return (struct verdict){.outcome = outcome_of(entry, now_ms)};
}

/* The slot is FREE, or DRAINING until the last transfer on it has ended. */
static struct verdict
drop(struct uc_cache_buffer *buffer, uint32_t slot)
{
    struct verdict verdict = {.outcome = UC_CACHE_OUTCOME_RELEASED};
    bool had_success = buffer->entries[slot].success != 0;
    enum uc_status status;

    uc_cache_entry_leave(buffer, slot);
    status = uc_policy_abort_slot(buffer->policy, slot);
    assert(status == UC_OK);
    (void)status;
    if (had_success) {
        verdict.status = uc_error(UC_ERR_INVALID_PARAM,
                "commit: slot %u is still being written: wait for the transfer's event first",
                slot);
    }
    return verdict;
}

/* Hints of a block that is admitted: the ghost may know more of it than its admitter. */
static struct uc_policy_hints
recall(struct uc_cache_buffer *buffer, struct cache_entry *entry)
{
    if (buffer->ghost != NULL) {
        unsigned seen = uc_ghost_take(buffer->ghost, &entry->id);

        cache_entry_set_seen(entry, seen > entry->seen ? seen : entry->seen);
    }
    return cache_entry_hints(entry);
}

static struct verdict
conclude_pending(struct uc_cache_buffer *buffer, uint32_t slot, bool success, uint64_t now_ms)
{
    struct cache_entry *entry = &buffer->entries[slot];

    entry->success |= success ? 1u : 0u;
    entry->refs--;
    if (entry->refs > 0) {
        return (struct verdict){.outcome = UC_CACHE_OUTCOME_WAITING};
    }

    if (entry->success) {
        struct uc_policy_hints hints = recall(buffer, entry);

        if (uc_policy_commit_slot(buffer->policy, slot, &hints) == UC_OK) {
            return publish(buffer, slot, now_ms);
        }
    }
    return drop(buffer, slot);
}

/* */
static void
revive(struct uc_cache_buffer *buffer, uint32_t slot, uint64_t now_ms)
{
    struct cache_entry *entry = &buffer->entries[slot];
    struct uc_policy_hints hints = cache_entry_hints(entry);
    enum uc_status status;

    uc_cache_set_deadline(buffer, slot, uc_time_add_ms(now_ms, buffer->holds[slot].ttl_ms));
    status = uc_policy_touch_slot(buffer->policy, slot, &hints);
    assert(status == UC_OK);
    (void)status;
}

static struct verdict
conclude_readmission(struct uc_cache_buffer *buffer, uint32_t slot, bool success, uint64_t now_ms)
{
    struct cache_entry *entry = &buffer->entries[slot];
    bool any_success;

    if (entry->refs == 0) {
        return (struct verdict){.status = UC_ERR_NOT_FOUND};
    }

    entry->success |= success ? 1u : 0u;
    entry->refs--;
    uc_cache_unhold(buffer, slot);
    if (entry->refs > 0) {
        return (struct verdict){.outcome = UC_CACHE_OUTCOME_WAITING};
    }

    any_success = entry->success != 0;
    entry->success = 0;
    if (any_success && !entry->damaged && !cache_entry_is_visible(entry, now_ms)) {
        revive(buffer, slot, now_ms);
    }
    return (struct verdict){.outcome = outcome_of(entry, now_ms)};
}

static struct verdict
conclude(struct uc_cache_buffer *buffer, uint32_t slot, bool success, uint64_t now_ms)
{
    /* A slot that an earlier id of the same call released has no entry any more. */
    if (slot == UC_BLOCK_MAP_NONE || buffer->entries[slot].state == CACHE_ENTRY_NONE) {
        return (struct verdict){.status = UC_ERR_NOT_FOUND};
    }
    if (buffer->entries[slot].state == CACHE_ENTRY_PENDING) {
        return conclude_pending(buffer, slot, success, now_ms);
    }

    return conclude_readmission(buffer, slot, success, now_ms);
}

enum uc_status
uc_cache_buffer_commit(struct uc_cache_buffer *buffer, const struct uc_block_id *ids, size_t count,
        bool success, enum uc_cache_outcome *outcomes_out)
{
    uint64_t now_ms = uc_clock_now_ms(&buffer->clock);
    enum uc_status status = UC_OK;
    uint32_t slots[CACHE_CHUNK];
    size_t missing = 0;

    for (size_t done = 0, chunk; done < count; done += chunk) {
        size_t first = cache_next_chunk(buffer, done, count, &chunk);

        uc_block_map_find_many(buffer->map, ids + first, chunk, slots);
        for (size_t idx = 0; idx < chunk; idx++) {
            cache_ghost_prefetch(buffer, &ids[first + idx]);
        }
        for (size_t step = 0; step < chunk; step++) {
            size_t idx = cache_feed_index(buffer, step, chunk);
            struct verdict verdict = conclude(buffer, slots[idx], success, now_ms);

            if (outcomes_out != NULL) {
                outcomes_out[first + idx] = verdict.outcome;
            }
            if (verdict.status == UC_ERR_NOT_FOUND) {
                missing++;
            } else if (verdict.status != UC_OK) {
                status = verdict.status;
            }
        }
    }

    if (status == UC_OK && missing > 0) {
        return uc_error(UC_ERR_NOT_FOUND,
                "commit: %zu of %zu blocks had no reservation outstanding", missing, count);
    }
    return status;
}
