/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/slots.h"

#include <sched.h>
#include <string.h>

#include <ucm/log.h>

#include "core/base/copy_hash.h"

enum {
    CLOSE_LOOKS = 128, /* a begin that finds the slot closed counts for some instructions */
    LOCK_SPINS = 4096  /* between two looks whether the holder lives */
};

static struct uc_cache_seg_slot *
slot_at(const struct uc_cache_segment *segment, uint32_t slot)
{
    return &segment->slots[slot];
}

/* ---- control side ---- */

void
uc_cache_slot_reset(const struct uc_cache_segment *segment, uint32_t slot)
{
    struct uc_cache_seg_slot *shared = slot_at(segment, slot);

    atomic_store_explicit(&shared->footer_generation, 0, memory_order_relaxed);
    atomic_store_explicit(&shared->damaged_generation, 0, memory_order_relaxed);
    atomic_store_explicit(&shared->lock, 0, memory_order_relaxed);
    shared->range_count = 0;
}

void
uc_cache_slot_open(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation)
{
    /* Release what reset wrote; pairs with the load in begin. */
    atomic_store(&slot_at(segment, slot)->word, generation << 1 | 1);
}

static bool
any_counted(const struct uc_cache_segment *segment, uint32_t slot)
{
    uint32_t limit = atomic_load(&segment->header->row_limit);

    for (uint32_t row = 0; row < limit && row < UC_CACHE_ROWS; row++) {
        if (atomic_load(uc_cache_segment_count(segment, row, slot)) != 0) {
            return true;
        }
    }
    return false;
}

bool
uc_cache_slot_close(const struct uc_cache_segment *segment, uint32_t slot)
{
    (void)atomic_fetch_and(&slot_at(segment, slot)->word, ~(uint64_t)1);
    for (int look = 0; look < CLOSE_LOOKS; look++) {
        if (!any_counted(segment, slot)) {
            return false;
        }
    }

    return uc_cache_slot_is_busy(segment, slot);
}

bool
uc_cache_slot_is_busy(const struct uc_cache_segment *segment, uint32_t slot)
{
    uint32_t limit = atomic_load(&segment->header->row_limit);

    for (uint32_t row = 0; row < limit && row < UC_CACHE_ROWS; row++) {
        if (atomic_load(uc_cache_segment_count(segment, row, slot)) != 0 &&
                uc_cache_segment_row_alive(segment, row)) {
            return true;
        }
    }
    return false;
}

bool
uc_cache_slot_is_complete(
        const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation)
{
    /* Pairs with the release in seal(): who sees the footer sees the block. */
    return atomic_load_explicit(&slot_at(segment, slot)->footer_generation, memory_order_acquire) ==
           generation;
}

/* ---- data side ---- */

enum uc_status
uc_cache_slot_begin(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation)
{
    _Atomic uint16_t *count = uc_cache_segment_count(segment, segment->row, slot);
    enum uc_status status = UC_OK;

    if (atomic_fetch_add(count, 1) == UINT16_MAX) {
        status = UC_ERR_RETRY;
    } else if (atomic_load(&slot_at(segment, slot)->word) != (generation << 1 | 1)) {
        status = UC_ERR_NOT_FOUND;
    }
    if (status != UC_OK) {
        uc_cache_slot_end(segment, slot);
    }
    return status;
}

void
uc_cache_slot_end(const struct uc_cache_segment *segment, uint32_t slot)
{
    (void)atomic_fetch_sub(uc_cache_segment_count(segment, segment->row, slot), 1);
}

static void
mark_damaged(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation)
{
    atomic_store_explicit(
            &slot_at(segment, slot)->damaged_generation, generation, memory_order_release);
    (void)atomic_fetch_add_explicit(&segment->header->damage_count, 1, memory_order_release);
    uc_log_warn("cache store: slot %u holds a damaged block; it is withdrawn", slot);
}

static uint64_t
length_of(const struct uc_block_payload *payload)
{
    uint64_t length = 0;

    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        length += payload->sizes[idx]; /* checked at submit: does not wrap */
    }
    return length;
}

static uint64_t
sum_of_block(const struct uc_cache_segment *segment, uint32_t slot)
{
    return uc_copy_hash_of(uc_cache_segment_bytes(segment, slot), (size_t)segment->block_bytes);
}

static bool
is_kind(uint32_t kind)
{
    return kind == UC_CACHE_CHECKSUM_NONE || kind == UC_CACHE_CHECKSUM_XXH3_64;
}

/* @param sum NULL = copy only */
static void
copy(uint8_t *to, const uint8_t *from, uint64_t length, struct uc_copy_hash *sum)
{
    if (sum == NULL) {
        uc_copy_stream(to, from, (size_t)length);
    } else {
        uc_copy_hash_copy(sum, to, from, (size_t)length);
    }
}

enum uc_status
uc_cache_slot_load_start(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id, const struct uc_block_payload *payload, uint8_t **bytes_out)
{
    const struct uc_cache_seg_slot *shared = slot_at(segment, slot);
    uint64_t length = length_of(payload);

    if (!uc_cache_slot_is_complete(segment, slot, generation) ||
            atomic_load_explicit(&shared->damaged_generation, memory_order_acquire) == generation) {
        return UC_ERR_NOT_FOUND;
    }
    if (memcmp(&shared->footer_id, id, sizeof(*id)) != 0 ||
            shared->footer_length > segment->block_bytes || !is_kind(shared->footer_kind)) {
        mark_damaged(segment, slot, generation);
        return UC_ERR_NOT_FOUND;
    }
    if (payload->block_offset > shared->footer_length ||
            length > shared->footer_length - payload->block_offset) {
        return UC_ERR_INVALID_PARAM;
    }

    *bytes_out = length == 0 ? NULL : uc_cache_segment_bytes(segment, slot) + payload->block_offset;
    return UC_OK;
}

/* Of a load that was started. */
static bool
is_verified(const struct uc_cache_seg_slot *shared, const struct uc_block_payload *payload)
{
    return shared->footer_kind == UC_CACHE_CHECKSUM_XXH3_64 &&
           length_of(payload) == shared->footer_length;
}

enum uc_status
uc_cache_slot_load_check(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_payload *payload)
{
    const struct uc_cache_seg_slot *shared = slot_at(segment, slot);

    if (is_verified(shared, payload) && sum_of_block(segment, slot) != shared->footer_checksum) {
        mark_damaged(segment, slot, generation);
        return UC_ERR_NOT_FOUND;
    }
    return UC_OK;
}

enum uc_status
uc_cache_slot_load(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id, const struct uc_block_payload *payload)
{
    const struct uc_cache_seg_slot *shared = slot_at(segment, slot);
    uint8_t *from = NULL;
    enum uc_status status = uc_cache_slot_load_start(segment, slot, generation, id, payload, &from);
    bool is_summed;
    struct uc_copy_hash sum;

    if (status != UC_OK || from == NULL) {
        return status;
    }

    is_summed = is_verified(shared, payload);
    if (is_summed) {
        uc_copy_hash_init(&sum);
    }
    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        copy(payload->pointers[idx], from, payload->sizes[idx], is_summed ? &sum : NULL);
        from += payload->sizes[idx];
    }
    if (is_summed && uc_copy_hash_sum(&sum) != shared->footer_checksum) {
        mark_damaged(segment, slot, generation);
        return UC_ERR_NOT_FOUND;
    }
    return UC_OK;
}

bool
uc_cache_slot_is_intact(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id)
{
    const struct uc_cache_seg_slot *shared = slot_at(segment, slot);

    if (!uc_cache_slot_is_complete(segment, slot, generation) ||
            atomic_load_explicit(&shared->damaged_generation, memory_order_acquire) == generation) {
        return false;
    }
    if (memcmp(&shared->footer_id, id, sizeof(*id)) == 0 &&
            (shared->footer_kind == UC_CACHE_CHECKSUM_NONE ||
                    (shared->footer_kind == UC_CACHE_CHECKSUM_XXH3_64 &&
                            shared->footer_checksum == sum_of_block(segment, slot)))) {
        return true;
    }

    mark_damaged(segment, slot, generation);
    return false;
}

/* Held for some instructions only. The lock of a process that died in between is taken over. */
static void
lock_ranges(const struct uc_cache_segment *segment, struct uc_cache_seg_slot *shared)
{
    uint32_t mine = segment->row + 1;
    uint32_t holder = 0;

    for (uint32_t spins = 1;; spins++) {
        holder = 0;
        if (atomic_compare_exchange_weak_explicit(
                    &shared->lock, &holder, mine, memory_order_acquire, memory_order_relaxed)) {
            return;
        }
        if (spins % LOCK_SPINS != 0) {
            continue;
        }
        if (holder != 0 && holder != mine &&
                (holder > UC_CACHE_ROWS || !uc_cache_segment_row_alive(segment, holder - 1)) &&
                atomic_compare_exchange_strong_explicit(
                        &shared->lock, &holder, mine, memory_order_acquire, memory_order_relaxed)) {
            return;
        }
        (void)sched_yield();
    }
}

static void
unlock_ranges(struct uc_cache_seg_slot *shared)
{
    atomic_store_explicit(&shared->lock, 0, memory_order_release);
}

/* The count lies in memory of others: never trusted beyond the array. */
static uint32_t
range_count_of(const struct uc_cache_seg_slot *shared)
{
    return shared->range_count < UC_CACHE_RANGES ? shared->range_count : UC_CACHE_RANGES;
}

/* @return whether all of [first, end) was written already */
static bool
is_covered(const struct uc_cache_segment *segment, struct uc_cache_seg_slot *shared, uint32_t first,
        uint32_t end)
{
    bool covered = false;

    lock_ranges(segment, shared);
    for (uint32_t idx = 0; idx < range_count_of(shared); idx++) {
        covered = covered || (shared->ranges[idx].first <= first && shared->ranges[idx].end >= end);
    }
    unlock_ranges(shared);
    return covered;
}

/* Join with whatever it touches. @return false without room for one more piece */
static bool
add_range(struct uc_cache_seg_slot *shared, uint32_t first, uint32_t end)
{
    uint32_t count = range_count_of(shared);
    uint32_t kept = 0;

    for (uint32_t idx = 0; idx < count; idx++) {
        struct uc_cache_range range = shared->ranges[idx];

        if (range.first <= end && range.end >= first) {
            first = range.first < first ? range.first : first;
            end = range.end > end ? range.end : end;
        } else {
            shared->ranges[kept++] = range;
        }
    }
    if (kept == UC_CACHE_RANGES) {
        return false;
    }

    shared->ranges[kept] = (struct uc_cache_range){.first = first, .end = end};
    shared->range_count = kept + 1;
    return true;
}

/* What the footer says of the bytes. */
struct sum {
    enum uc_cache_checksum kind;
    uint64_t value;
};

static const struct sum no_sum = {.kind = UC_CACHE_CHECKSUM_NONE};

/* Of bytes that all lie in the slot, where checksums are asked for. */
static struct sum
sum_up(const struct uc_cache_segment *segment, uint32_t slot)
{
    struct sum sum = {.kind = UC_CACHE_CHECKSUM_XXH3_64};

    if (!segment->has_checksum) {
        return no_sum;
    }
    sum.value = sum_of_block(segment, slot);
    return sum;
}

/* The first one counts: two sharers may have all bytes in place, one with a checksum and one without. */
static void
seal(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id, struct sum sum)
{
    struct uc_cache_seg_slot *shared = slot_at(segment, slot);

    lock_ranges(segment, shared);
    if (!uc_cache_slot_is_complete(segment, slot, generation)) {
        shared->footer_id = *id;
        shared->footer_length = (uint32_t)segment->block_bytes;
        shared->footer_kind = sum.kind;
        shared->footer_checksum = sum.value;
        atomic_store_explicit(&shared->footer_generation, generation, memory_order_release);
    }
    unlock_ranges(shared);
}

void
uc_cache_slot_seal(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id)
{
    if (!uc_cache_slot_is_complete(segment, slot, generation)) {
        seal(segment, slot, generation, id, sum_up(segment, slot));
    }
}

/* @return Ok, and whether the range is the last one that was missing; Retry: too many pieces apart */
static enum uc_status
add_written(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        struct uc_cache_range written, bool *is_last_out)
{
    struct uc_cache_seg_slot *shared = slot_at(segment, slot);
    bool added;
    bool whole;

    lock_ranges(segment, shared);
    added = add_range(shared, written.first, written.end);
    whole = added && shared->range_count == 1 && shared->ranges[0].first == 0 &&
            shared->ranges[0].end >= segment->block_bytes;
    unlock_ranges(shared);
    *is_last_out = whole && !uc_cache_slot_is_complete(segment, slot, generation);
    return added ? UC_OK : UC_ERR_RETRY;
}

static struct uc_cache_range
range_of(const struct uc_block_payload *payload)
{
    struct uc_cache_range range = {.first = (uint32_t)payload->block_offset,
            .end = (uint32_t)(payload->block_offset + length_of(payload))};

    return range;
}

enum uc_status
uc_cache_slot_dump_start(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_payload *payload, uint8_t **bytes_out)
{
    struct uc_cache_seg_slot *shared = slot_at(segment, slot);
    uint64_t length = length_of(payload);
    struct uc_cache_range range;

    if (payload->block_offset > segment->block_bytes ||
            length > segment->block_bytes - payload->block_offset) {
        return UC_ERR_INVALID_PARAM;
    }
    if (atomic_load_explicit(&shared->damaged_generation, memory_order_acquire) == generation) {
        return UC_ERR_RETRY;
    }

    range = range_of(payload);
    *bytes_out = length == 0 || uc_cache_slot_is_complete(segment, slot, generation) ||
                                 is_covered(segment, shared, range.first, range.end)
                         ? NULL
                         : uc_cache_segment_bytes(segment, slot) + payload->block_offset;
    return UC_OK;
}

enum uc_status
uc_cache_slot_dump_end(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id, const struct uc_block_payload *payload)
{
    bool is_last = false;
    enum uc_status status = add_written(segment, slot, generation, range_of(payload), &is_last);

    if (is_last) {
        seal(segment, slot, generation, id, no_sum);
    }
    return status;
}

enum uc_status
uc_cache_slot_dump(const struct uc_cache_segment *segment, uint32_t slot, uint64_t generation,
        const struct uc_block_id *id, const struct uc_block_payload *payload)
{
    uint8_t *to = NULL;
    enum uc_status status = uc_cache_slot_dump_start(segment, slot, generation, payload, &to);
    struct sum whole = {.kind = UC_CACHE_CHECKSUM_XXH3_64};
    bool is_last = false;
    bool is_summed;
    struct uc_copy_hash sum;

    if (status != UC_OK || to == NULL) {
        return status;
    }

    is_summed = segment->has_checksum && length_of(payload) == segment->block_bytes;
    if (is_summed) {
        uc_copy_hash_init(&sum);
    }
    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        copy(to, payload->pointers[idx], payload->sizes[idx], is_summed ? &sum : NULL);
        to += payload->sizes[idx];
    }
    status = add_written(segment, slot, generation, range_of(payload), &is_last);
    if (is_last && is_summed) {
        whole.value = uc_copy_hash_sum(&sum);
        seal(segment, slot, generation, id, whole);
    } else if (is_last) {
        seal(segment, slot, generation, id, sum_up(segment, slot));
    }
    return status;
}
