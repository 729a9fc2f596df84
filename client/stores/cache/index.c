/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "client/stores/cache/index_internal.h"
#include "client/stores/cache/slots.h"

enum uc_status
uc_cache_index_create(const struct uc_cache_store_config *config, struct uc_cache_index **index_out)
{
    struct uc_cache_config buffer_config = {
            .capacity = (size_t)config->capacity_blocks,
            .policy = config->policy,
            .parameters = config->policy_config,
            .clock = uc_clock_monotonic(),
    };
    struct uc_cache_index *index = calloc(1, sizeof(*index));
    enum uc_status status;

    if (index == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for its index");
    }

    uc_mutex_init(&index->lock);
    memcpy(index->domain, config->domain, strlen(config->domain));
    status = uc_cache_buffer_create(&buffer_config, &index->buffer);
    if (status != UC_OK) {
        goto err_destroy;
    }
    index->holders = calloc((size_t)config->capacity_blocks, sizeof(index->holders[0]));
    index->busy = calloc((size_t)config->capacity_blocks, sizeof(index->busy[0]));
    if (index->holders == NULL || index->busy == NULL) {
        status = uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for %llu slots",
                (unsigned long long)config->capacity_blocks);
        goto err_destroy;
    }
    status = uc_cache_segment_create(config->domain, config->block_bytes, config->capacity_blocks,
            config->checksum, &index->segment);
    if (status != UC_OK) {
        goto err_destroy;
    }

    *index_out = index;
    return UC_OK;

err_destroy:
    uc_cache_index_destroy(index);
    return status;
}

void
uc_cache_index_destroy(struct uc_cache_index *index)
{
    if (index == NULL) {
        return;
    }

    uc_cache_segment_close(index->segment);
    uc_cache_buffer_destroy(index->buffer);
    free(index->holders);
    free(index->busy);
    uc_mutex_fini(&index->lock);
    free(index);
}

struct uc_cache_segment *
uc_cache_index_segment(const struct uc_cache_index *index)
{
    return index->segment;
}

/* ---- what other processes did in the meantime ---- */

static void
end_mirrored(struct uc_cache_index *index)
{
    for (size_t idx = 0; idx < index->busy_count;) {
        uint32_t slot = index->busy[idx];

        if (uc_cache_slot_is_busy(index->segment, slot)) {
            idx++;
            continue;
        }
        uc_cache_buffer_transfer_end(index->buffer, slot);
        index->holders[slot].is_mirrored = false;
        index->busy[idx] = index->busy[--index->busy_count];
    }
}

static void
withdraw_damaged(struct uc_cache_index *index)
{
    uint32_t count =
            atomic_load_explicit(&index->segment->header->damage_count, memory_order_acquire);

    if (count == index->damage_seen) {
        return;
    }

    index->damage_seen = count;
    for (uint32_t slot = 0; slot < index->segment->slot_count; slot++) {
        uint64_t generation = atomic_load_explicit(
                &index->segment->slots[slot].damaged_generation, memory_order_acquire);

        if (generation != 0) {
            /* NotFound: it has left already. */
            (void)!uc_cache_buffer_revoke(index->buffer, &index->holders[slot].id, generation);
        }
    }
}

/* Every operation starts with this. */
void
uc_cache_index_enter(struct uc_cache_index *index)
{
    uc_mutex_lock(&index->lock);
    end_mirrored(index);
    withdraw_damaged(index);
}

/* The last holder goes: no transfer begins any more, and those under way keep the slot. */
static void
close_slot(struct uc_cache_index *index, uint32_t slot, uint64_t generation)
{
    struct holder *holder = &index->holders[slot];

    if (uc_cache_slot_close(index->segment, slot) && !holder->is_mirrored &&
            uc_cache_buffer_transfer_begin(index->buffer, slot, generation) == UC_OK) {
        holder->is_mirrored = true;
        index->busy[index->busy_count++] = slot;
    }
}

/* ---- tokens ---- */

/* A token with room for the places of its keys, so that nothing can fail once they are known. */
static enum uc_status
make_token(const struct uc_cache_index *index, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out, uint8_t **payload_out)
{
    size_t payload_bytes = uc_cache_payload_bytes(count);
    uint8_t *blank = calloc(1, payload_bytes);
    struct uc_token *token = NULL;
    enum uc_status status;

    if (blank == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for a token");
    }
    status = uc_token_create(ids, count, blank, payload_bytes, &token);
    free(blank);
    if (status != UC_OK) {
        return status;
    }

    *payload_out = (uint8_t *)(uintptr_t)token->payload; /* its own memory, not yet handed out */
    uc_cache_payload_put_header(
            *payload_out, index->domain, index->segment->incarnation, index->segment->block_bytes);
    *token_out = token;
    return UC_OK;
}

static bool
is_ours(const struct uc_cache_index *index, const struct uc_token *token)
{
    uint64_t incarnation = 0;

    return uc_cache_payload_check(token->payload, token->payload_bytes, token->key_count,
                   index->domain, index->segment->block_bytes, &incarnation) == UC_OK &&
           incarnation == index->segment->incarnation;
}

static void
place_keys(uint8_t *payload, const struct uc_cache_slot *slots, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        uc_cache_payload_put_key(payload, idx,
                (struct uc_cache_place){
                        .slot = slots[idx].slot, .generation = slots[idx].generation});
    }
}

/* ---- operations ---- */

void
uc_cache_index_lookup(struct uc_cache_index *index, const struct uc_block_id *ids, size_t count,
        uint8_t *hits_out)
{
    uc_cache_index_enter(index);
    uc_cache_buffer_lookup(index->buffer, ids, count, hits_out);
    uc_mutex_unlock(&index->lock);
}

void
uc_cache_index_touch(struct uc_cache_index *index, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    uc_cache_index_enter(index);
    uc_cache_buffer_touch(index->buffer, ids, count, context);
    uc_mutex_unlock(&index->lock);
}

static void
hold(struct uc_cache_index *index, const struct uc_cache_slot *slot)
{
    const struct holder *holder = &index->holders[slot->slot];

    if (holder->pins == 0 && holder->refs == 0) {
        uc_cache_slot_open(index->segment, slot->slot, slot->generation);
    }
}

enum uc_status
uc_cache_index_pin(struct uc_cache_index *index, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    struct uc_cache_slot *slots = calloc(count + 1, sizeof(slots[0]));
    struct uc_token *token = NULL;
    uint8_t *payload = NULL;
    enum uc_status status;

    if (slots == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory to pin %zu blocks", count);
    }
    status = make_token(index, ids, count, &token, &payload);
    if (status != UC_OK) {
        goto out_free_slots;
    }

    uc_cache_index_enter(index);
    status = uc_cache_buffer_pin(index->buffer, ids, count, slots);
    for (size_t idx = 0; status == UC_OK && idx < count; idx++) {
        hold(index, &slots[idx]);
        index->holders[slots[idx].slot].pins++;
    }
    uc_mutex_unlock(&index->lock);
    if (status == UC_OK) {
        place_keys(payload, slots, count);
        *token_out = token;
    } else {
        uc_token_destroy(token);
    }

out_free_slots:
    free(slots);
    return status;
}

void
uc_cache_index_unpin_key(
        struct uc_cache_index *index, const struct uc_block_id *id, struct uc_cache_place place)
{
    struct uc_cache_info info = uc_cache_buffer_peek(index->buffer, id);
    struct holder *holder;

    if (info.state == UC_CACHE_ABSENT || info.generation != place.generation ||
            index->holders[info.slot].pins == 0) {
        return; /* */
    }

    holder = &index->holders[info.slot];
    holder->pins--;
    if (holder->pins == 0 && holder->refs == 0) {
        close_slot(index, info.slot, info.generation);
    }
    uc_cache_buffer_unpin(index->buffer, id, 1);
}

void
uc_cache_index_unpin(struct uc_cache_index *index, const struct uc_token *token)
{
    if (!is_ours(index, token)) {
        return;
    }

    uc_cache_index_enter(index);
    for (size_t idx = 0; idx < token->key_count; idx++) {
        uc_cache_index_unpin_key(
                index, &token->keys[idx], uc_cache_payload_key(token->payload, idx));
    }
    uc_mutex_unlock(&index->lock);
}

static void
admit(struct uc_cache_index *index, const struct uc_block_id *id, const struct uc_cache_slot *slot)
{
    struct holder *holder = &index->holders[slot->slot];

    if (slot->admission == UC_CACHE_NEWCOMER) {
        /* CacheBuffer gives a slot away only when no transfer is left on it. */
        *holder = (struct holder){.id = *id};
        uc_cache_slot_reset(index->segment, slot->slot);
    }
    hold(index, slot);
    holder->refs++;
}

enum uc_status
uc_cache_index_alloc(struct uc_cache_index *index, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct uc_cache_slot *slots = calloc(count + 1, sizeof(slots[0]));
    struct uc_token *token = NULL;
    uint8_t *payload = NULL;
    enum uc_status status;

    if (slots == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for %zu blocks", count);
    }
    status = make_token(index, ids, count, &token, &payload);
    if (status != UC_OK) {
        goto out_free_slots;
    }

    uc_cache_index_enter(index);
    /* Nothing is demoted: with write-through it is below already, else it was not meant to be. */
    status = uc_cache_buffer_reserve(index->buffer, ids, count, context, NULL, slots, NULL, NULL);
    for (size_t idx = 0; status == UC_OK && idx < count; idx++) {
        admit(index, &ids[idx], &slots[idx]);
    }
    uc_mutex_unlock(&index->lock);
    if (status == UC_OK) {
        place_keys(payload, slots, count);
        *token_out = token;
    } else {
        uc_token_destroy(token);
    }

out_free_slots:
    free(slots);
    return status;
}

bool
uc_cache_index_is_whole(const struct uc_cache_index *index, uint32_t slot, uint64_t generation)
{
    return uc_cache_slot_is_complete(index->segment, slot, generation) &&
           atomic_load_explicit(&index->segment->slots[slot].damaged_generation,
                   memory_order_acquire) != generation;
}

enum uc_status
uc_cache_index_commit_key(struct uc_cache_index *index, const struct uc_block_id *id,
        struct uc_cache_place place, bool success)
{
    struct uc_cache_info info = uc_cache_buffer_peek(index->buffer, id);
    struct holder *holder;
    bool has_hole = false;
    enum uc_status status;

    if (info.state == UC_CACHE_ABSENT || info.generation != place.generation ||
            index->holders[info.slot].refs == 0) {
        return uc_error(UC_ERR_NOT_FOUND,
                "cache store: commit of a block without a reservation"); /* */
    }

    holder = &index->holders[info.slot];
    holder->refs--;
    if (holder->pins == 0 && holder->refs == 0) {
        close_slot(index, info.slot, info.generation);
    }
    /* A hole counts as a write that never ends: CacheBuffer drops the block then. */
    if (info.state == UC_CACHE_PENDING && holder->refs == 0 && !holder->is_mirrored) {
        has_hole =
                !uc_cache_index_is_whole(index, info.slot, info.generation) &&
                uc_cache_buffer_transfer_begin(index->buffer, info.slot, info.generation) == UC_OK;
    }
    status = uc_cache_buffer_commit(index->buffer, id, 1, success, NULL);
    if (has_hole) {
        uc_cache_buffer_transfer_end(index->buffer, info.slot);
        if (status == UC_ERR_INVALID_PARAM) {
            status = uc_error(status,
                    "cache store: commit of a block whose bytes did not all come; it is dropped");
        }
    }
    return status;
}

/* A block that has just become visible, if it has. */
static void
offer(struct uc_cache_index *index, const struct uc_block_id *id)
{
    struct uc_cache_slot slot;
    struct uc_cache_committed block = {.id = *id};

    if (uc_cache_buffer_pin(index->buffer, id, 1, &slot) != UC_OK) {
        return;
    }

    hold(index, &slot);
    index->holders[slot.slot].pins++;
    block.slot = slot.slot;
    block.generation = slot.generation;
    block.deadline_ms = uc_cache_buffer_peek(index->buffer, id).deadline_ms;
    if (!index->sink(index->sink_context, &block)) {
        uc_cache_index_unpin_key(index, id,
                (struct uc_cache_place){.slot = slot.slot, .generation = slot.generation});
    }
}

enum uc_status
uc_cache_index_commit(struct uc_cache_index *index, const struct uc_token *token,
        const uint8_t *mask, bool success)
{
    enum uc_status status = UC_OK;

    if (!is_ours(index, token)) {
        return uc_error(UC_ERR_NOT_FOUND,
                "cache store: commit of a token that is not of this scheduler's life");
    }

    uc_cache_index_enter(index);
    for (size_t idx = 0; idx < token->key_count; idx++) {
        struct uc_cache_place place = uc_cache_payload_key(token->payload, idx);
        bool was_pending =
                index->sink != NULL &&
                uc_cache_buffer_peek(index->buffer, &token->keys[idx]).state == UC_CACHE_PENDING;
        enum uc_status key_status = uc_cache_index_commit_key(
                index, &token->keys[idx], place, mask == NULL ? success : mask[idx] != 0);

        if (was_pending && key_status == UC_OK) {
            offer(index, &token->keys[idx]);
        }

        /* InvalidParam is the graver one, as in CacheBuffer. */
        if (key_status != UC_OK && status != UC_ERR_INVALID_PARAM) {
            status = key_status;
        }
    }
    uc_mutex_unlock(&index->lock);
    return status;
}

struct uc_cache_stats
uc_cache_index_stats(struct uc_cache_index *index)
{
    struct uc_cache_stats stats;

    uc_cache_index_enter(index);
    stats = uc_cache_buffer_stats(index->buffer);
    uc_mutex_unlock(&index->lock);
    return stats;
}
