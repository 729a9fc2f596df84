/* SPDX-License-Identifier: Apache-2.0 */

#include "test/model/cache_model_internal.h"

#define NEVER UINT64_MAX

void
model_init(struct cache_model *model, enum model_policy policy, bool leaf_first, uint32_t capacity)
{
    *model = (struct cache_model){
            .policy = policy,
            .leaf_first = leaf_first,
            .capacity = capacity,
    };
}

/* */
static uint64_t
later(uint64_t now_ms, uint64_t ttl_ms)
{
    return ttl_ms > NEVER - now_ms ? NEVER : now_ms + ttl_ms;
}

/* */
static bool
is_alive(const struct cache_model *model, int block)
{
    const struct model_block *entry = &model->blocks[block];

    return entry->present && entry->committed &&
           (entry->deadline_ms == NEVER || model->now_ms < entry->deadline_ms);
}

/* "Unheld: no pin of either kind". */
bool
model_is_held(const struct cache_model *model, int block)
{
    return model->blocks[block].refs > 0 || model->blocks[block].reader_pins > 0;
}

/* */
bool
model_is_evictable(const struct cache_model *model, int block)
{
    const struct model_block *entry = &model->blocks[block];

    return entry->present && entry->committed && !model_is_held(model, block) &&
           model->slots[entry->slot].transfers == 0;
}

int
model_owner_of(const struct cache_model *model, uint32_t slot)
{
    for (int block = 0; block < MODEL_BLOCKS; block++) {
        if (model->blocks[block].present && model->blocks[block].slot == slot) {
            return block;
        }
    }

    return MODEL_NO_BLOCK;
}

size_t
model_count_slots(const struct cache_model *model, enum model_slot_state state)
{
    size_t count = 0;

    for (uint32_t slot = 0; slot < model->capacity; slot++) {
        count += model->slots[slot].state == state ? 1 : 0;
    }
    return count;
}

size_t
model_count_evictable(const struct cache_model *model)
{
    size_t count = 0;

    for (int block = 0; block < MODEL_BLOCKS; block++) {
        count += model_is_evictable(model, block) ? 1 : 0;
    }
    return count;
}

/* The slot leaves the order of the discipline: hook Released. */
void
model_order_remove(struct cache_model *model, uint32_t slot)
{
    size_t kept = 0;

    for (size_t idx = 0; idx < model->order_count; idx++) {
        if (model->order[idx] != slot) {
            model->order[kept++] = model->order[idx];
        }
    }
    model->order_count = kept;
    model->slots[slot].referenced = false;
}

/* Hook Admitted. */
void
model_order_admit(struct cache_model *model, uint32_t slot)
{
    model->order[model->order_count++] = slot;
    model->slots[slot].referenced = true;
}

/* Hook Touched. */
static void
order_touch(struct cache_model *model, uint32_t slot)
{
    if (model->policy != MODEL_FIFO) {
        model_order_remove(model, slot);
        model_order_admit(model, slot);
    }
}

void
model_next_generation(struct model_slot *slot)
{
    if (slot->generation != 0) {
        slot->generation++;
    }
}

/* The block is gone; its slot is FREE, or DRAINING while transfers run. */
void
model_remove_block(struct cache_model *model, int block)
{
    struct model_block *entry = &model->blocks[block];
    struct model_slot *slot = &model->slots[entry->slot];

    if (entry->committed) {
        model_order_remove(model, entry->slot);
    }
    slot->state = slot->transfers > 0 ? MODEL_DRAINING : MODEL_FREE;
    model_next_generation(slot);
    *entry = (struct model_block){0};
}

void
model_expire_block(struct cache_model *model, int block)
{
    model_remove_block(model, block);
    model->expired_total++;
}

/* @return whether the block is visible */
bool
model_probe(struct cache_model *model, int block)
{
    const struct model_block *entry = &model->blocks[block];

    if (entry->present && entry->committed && !is_alive(model, block) &&
            !model_is_held(model, block)) {
        model_expire_block(model, block);
    }
    return is_alive(model, block);
}

/* Index of the step-th block of a list in the order in which the discipline hears of it. */
static size_t
feed_index(const struct cache_model *model, size_t step, size_t count)
{
    return model->leaf_first ? count - 1 - step : step;
}

static enum uc_cache_outcome
outcome_of(const struct cache_model *model, int block)
{
    return is_alive(model, block) ? UC_CACHE_OUTCOME_VISIBLE : UC_CACHE_OUTCOME_EXPIRED;
}

/* */
static enum uc_cache_outcome
conclude_pending(struct cache_model *model, int block, bool *refused)
{
    struct model_block *entry = &model->blocks[block];
    struct model_slot *slot = &model->slots[entry->slot];

    if (!entry->success || slot->transfers > 0) {
        *refused = *refused || entry->success;
        model_remove_block(model, block);
        return UC_CACHE_OUTCOME_RELEASED;
    }

    entry->committed = true;
    entry->success = false;
    entry->deadline_ms = later(model->now_ms, entry->ttl_ms); /* */
    slot->state = MODEL_COMMITTED;
    model_order_admit(model, entry->slot);
    model->committed_total++;
    return outcome_of(model, block);
}

/* */
static enum uc_cache_outcome
conclude_readmission(struct cache_model *model, int block)
{
    struct model_block *entry = &model->blocks[block];

    if (!is_alive(model, block) && !entry->damaged && entry->success) {
        entry->deadline_ms = later(model->now_ms, entry->ttl_ms);
        order_touch(model, entry->slot);
    }
    entry->success = false;
    return outcome_of(model, block);
}

void
model_commit(struct cache_model *model, const int *blocks, size_t count, bool success,
        struct model_answer *answer)
{
    bool missing = false;
    bool refused = false;

    *answer = (struct model_answer){.status = UC_OK};
    for (size_t step = 0; step < count; step++) {
        size_t idx = feed_index(model, step, count);
        struct model_block *entry = &model->blocks[blocks[idx]];

        if (!entry->present || entry->refs == 0) { /* */
            missing = true;
            answer->outcomes[idx] = UC_CACHE_OUTCOME_NONE;
            continue;
        }
        entry->success = entry->success || success;
        entry->refs--;
        if (entry->refs > 0) { /* */
            answer->outcomes[idx] = UC_CACHE_OUTCOME_WAITING;
        } else if (entry->committed) {
            answer->outcomes[idx] = conclude_readmission(model, blocks[idx]);
        } else {
            answer->outcomes[idx] = conclude_pending(model, blocks[idx], &refused);
        }
    }

    answer->status = refused ? UC_ERR_INVALID_PARAM : missing ? UC_ERR_NOT_FOUND : UC_OK;
}

/* */
void
model_pin(struct cache_model *model, const int *blocks, size_t count, struct model_answer *answer)
{
    bool refreshed[MODEL_BLOCKS] = {false};

    *answer = (struct model_answer){.status = UC_OK};
    if (count == 0) {
        answer->status = UC_ERR_INVALID_PARAM;
        return;
    }
    for (size_t idx = 0; idx < count; idx++) {
        if (!model_probe(model, blocks[idx])) {
            model_unpin(model, blocks, idx);
            answer->status = UC_ERR_NOT_FOUND;
            return;
        }
        model->blocks[blocks[idx]].reader_pins++;
    }
    for (size_t step = 0; step < count; step++) {
        size_t idx = feed_index(model, step, count);
        const struct model_block *entry = &model->blocks[blocks[idx]];

        answer->slots[idx] = (struct uc_cache_slot){
                .generation = model->slots[entry->slot].generation,
                .slot = entry->slot,
                .admission = UC_CACHE_READMITTED,
        };
        if (!refreshed[blocks[idx]]) {
            refreshed[blocks[idx]] = true;
            order_touch(model, entry->slot);
        }
    }
}

/* */
void
model_unpin(struct cache_model *model, const int *blocks, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        struct model_block *entry = &model->blocks[blocks[idx]];

        if (entry->reader_pins > 0) {
            entry->reader_pins--;
        }
    }
}

void
model_lookup(
        struct cache_model *model, const int *blocks, size_t count, struct model_answer *answer)
{
    *answer = (struct model_answer){.status = UC_OK};
    for (size_t idx = 0; idx < count; idx++) {
        answer->hits[idx] = model_probe(model, blocks[idx]);
    }
}

/* */
void
model_touch(struct cache_model *model, const int *blocks, size_t count, uint64_t ttl_ms)
{
    for (size_t step = 0; step < count; step++) {
        int block = blocks[feed_index(model, step, count)];
        struct model_block *entry = &model->blocks[block];

        if (!model_probe(model, block)) {
            continue;
        }
        order_touch(model, entry->slot);
        if (ttl_ms != NEVER && entry->deadline_ms != NEVER &&
                later(model->now_ms, ttl_ms) > entry->deadline_ms) {
            entry->deadline_ms = later(model->now_ms, ttl_ms);
        }
    }
}

/* */
enum uc_status
model_revoke(struct cache_model *model, int block, uint64_t generation)
{
    struct model_block *entry = &model->blocks[block];

    if (!entry->present || !entry->committed ||
            model->slots[entry->slot].generation != generation) {
        return UC_ERR_NOT_FOUND;
    }

    entry->damaged = true;
    entry->deadline_ms = model->now_ms;
    return UC_OK;
}

/* */
enum uc_status
model_transfer_begin(struct cache_model *model, uint32_t slot, uint64_t generation)
{
    struct model_slot *at = &model->slots[slot];

    if (slot >= model->capacity || at->generation != generation ||
            (at->state != MODEL_RESERVED && at->state != MODEL_COMMITTED)) {
        return UC_ERR_NOT_FOUND;
    }

    at->transfers++;
    return UC_OK;
}

/* */
void
model_transfer_end(struct cache_model *model, uint32_t slot)
{
    struct model_slot *at = &model->slots[slot];

    at->transfers--;
    if (at->state == MODEL_DRAINING && at->transfers == 0) {
        at->state = MODEL_FREE;
    }
}

struct uc_cache_info
model_peek(const struct cache_model *model, int block)
{
    struct uc_cache_info info = {.deadline_ms = NEVER, .slot = UC_SLOT_NONE};
    const struct model_block *entry = &model->blocks[block];

    if (!entry->present) {
        return info;
    }

    info.slot = entry->slot;
    info.generation = model->slots[entry->slot].generation;
    info.state = !entry->committed        ? UC_CACHE_PENDING
                 : is_alive(model, block) ? UC_CACHE_VISIBLE
                                          : UC_CACHE_EXPIRED;
    if (entry->committed) {
        info.deadline_ms = entry->deadline_ms;
        info.pin_count = entry->reader_pins + entry->refs; /* */
    }
    return info;
}

struct uc_cache_stats
model_stats(const struct cache_model *model)
{
    struct uc_cache_stats stats = {
            .capacity = model->capacity,
            .free = model_count_slots(model, MODEL_FREE),
            .evictable = model_count_evictable(model),
            .draining = model_count_slots(model, MODEL_DRAINING),
            .evicted_total = model->evicted_total,
            .expired_total = model->expired_total,
            .committed_total = model->committed_total,
    };

    for (int block = 0; block < MODEL_BLOCKS; block++) {
        const struct model_block *entry = &model->blocks[block];

        stats.reserved += entry->present && !entry->committed ? 1 : 0;
        stats.blocks += entry->committed ? 1 : 0;
        stats.pinned += entry->committed && model_is_held(model, block) ? 1 : 0;
    }
    return stats;
}
