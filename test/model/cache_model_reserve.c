/* SPDX-License-Identifier: Apache-2.0 */

/* Reserve, 16.3 and 16.4. */

#include <string.h>

#include "test/model/cache_model_internal.h"

/* all expired blocks that nobody holds; held ones are met again by the next sweep. */
static void
sweep(struct cache_model *model)
{
    for (int block = 0; block < MODEL_BLOCKS; block++) {
        (void)model_probe(model, block);
    }
}

/* for lru and fifo: the first evictable one in order. */
static int
first_in_order(const struct cache_model *model)
{
    for (size_t idx = 0; idx < model->order_count; idx++) {
        int block = model_owner_of(model, model->order[idx]);

        if (model_is_evictable(model, block)) {
            return block;
        }
    }

    return MODEL_NO_BLOCK;
}

/* for clock. */
static int
under_the_hand(struct cache_model *model)
{
    for (uint32_t step = 0; step < 2 * model->capacity; step++) {
        uint32_t slot = model->hand;
        int block = model_owner_of(model, slot);

        model->hand = (model->hand + 1) % model->capacity;
        if (block == MODEL_NO_BLOCK || !model_is_evictable(model, block)) {
            continue;
        }
        if (!model->slots[slot].referenced) {
            return block;
        }
        model->slots[slot].referenced = false;
    }

    return MODEL_NO_BLOCK;
}

/* @param told  where the engine put the newcomer, or NULL */
static int
choose_victim(struct cache_model *model, const struct uc_cache_slot *told)
{
    switch (model->policy) {
    case MODEL_LRU:
    case MODEL_FIFO:
        return first_in_order(model);
    case MODEL_CLOCK:
        return under_the_hand(model);
    case MODEL_ANY:
        break;
    }

    for (int block = 0; block < MODEL_BLOCKS; block++) {
        if (model_is_evictable(model, block) &&
                (told == NULL || told->slot == model->blocks[block].slot)) {
            return block;
        }
    }
    return MODEL_NO_BLOCK;
}

struct batch {
    const int *blocks;
    size_t count;
    uint64_t ttl_ms;
    size_t victims; /* that can be had */
    bool newcomer[MODEL_BATCH_MAX];
    size_t newcomer_count;
};

static bool
is_listed_twice(const int *blocks, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        for (size_t other = 0; other < idx; other++) {
            if (blocks[other] == blocks[idx]) {
                return true;
            }
        }
    }

    return false;
}

/* what is revoked and unheld counts as unknown. */
static void
settle_known(struct cache_model *model, struct batch *batch)
{
    for (size_t idx = 0; idx < batch->count; idx++) {
        struct model_block *entry = &model->blocks[batch->blocks[idx]];

        if (!entry->present || (entry->damaged && !model_is_held(model, batch->blocks[idx]))) {
            batch->newcomer[idx] = true;
            batch->newcomer_count++;
        } else {
            entry->refs++;
            entry->ttl_ms = batch->ttl_ms;
        }
    }
}

/* @param told  the engine's choice, or NULL: any will do */
static bool
find_free_slot(
        const struct cache_model *model, const struct uc_cache_slot *told, uint32_t *slot_out)
{
    for (uint32_t slot = 0; slot < model->capacity; slot++) {
        if (model->slots[slot].state == MODEL_FREE && (told == NULL || told->slot == slot)) {
            *slot_out = slot;
            return true;
        }
    }

    return false;
}

/* The slot of one newcomer, R-16.21. */
static bool
find_slot(struct cache_model *model, const struct batch *batch, const struct uc_cache_slot *told,
        struct model_answer *answer, uint32_t *slot_out)
{
    int victim = MODEL_NO_BLOCK;

    if (model_count_slots(model, MODEL_FREE) == 0) {
        sweep(model);
    }
    if (model_count_slots(model, MODEL_FREE) > 0) {
        return find_free_slot(model, told, slot_out);
    }
    if (answer->evicted_count < batch->victims) {
        victim = choose_victim(model, told);
    }
    if (victim == MODEL_NO_BLOCK) {
        return false;
    }

    *slot_out = model->blocks[victim].slot;
    answer->evicted[answer->evicted_count++] = victim;
    model_remove_block(model, victim); /* one generation more */
    return true;
}

/* Phase 2. @return false if there was no slot, or not the one that was told */
static bool
place_newcomers(struct cache_model *model, const struct batch *batch,
        const struct uc_cache_slot *told, struct model_answer *answer)
{
    for (size_t idx = 0; idx < batch->count; idx++) {
        if (batch->newcomer[idx] && model->blocks[batch->blocks[idx]].present) {
            model_expire_block(model, batch->blocks[idx]);
        }
    }
    for (size_t idx = 0; idx < batch->count; idx++) {
        const struct uc_cache_slot *at = told == NULL ? NULL : &told[idx];
        uint32_t slot;

        if (!batch->newcomer[idx]) {
            continue;
        }
        if (!find_slot(model, batch, at, answer, &slot)) {
            return false;
        }
        if (at != NULL && model->slots[slot].generation == 0) {
            model->slots[slot].generation =
                    at->generation; /* the first one is the engine's choice */
        }
        model->slots[slot].state = MODEL_RESERVED;
        model->blocks[batch->blocks[idx]] = (struct model_block){
                .present = true,
                .refs = 1,
                .ttl_ms = batch->ttl_ms,
                .deadline_ms = UINT64_MAX,
                .slot = slot,
        };
    }

    return true;
}

static bool
is_evicted(const struct model_answer *answer, int block)
{
    for (size_t idx = 0; idx < answer->evicted_count; idx++) {
        if (answer->evicted[idx] == block) {
            return true;
        }
    }

    return false;
}

/*
 * as before, except that the expired and damaged blocks that phase 2 removed are gone. It asked for a
 * victim, so no free slot was left: each of them had been acquired, and is one generation older (R-16.28,
 * Victims come back under their generation, the last one first, and are Admitted.
 *
 * @param failed  the model when space ran out
 */
static void
roll_back(struct cache_model *model, const struct cache_model *failed,
        const struct model_answer *answer)
{
    for (int block = 0; block < MODEL_BLOCKS; block++) {
        if (model->blocks[block].committed && !failed->blocks[block].committed &&
                !is_evicted(answer, block)) {
            model_expire_block(model, block);
        }
    }
    for (uint32_t slot = 0; slot < model->capacity; slot++) {
        if (model->slots[slot].state == MODEL_FREE) {
            model_next_generation(&model->slots[slot]);
        }
        model->slots[slot].referenced = failed->slots[slot].referenced;
    }
    memcpy(model->order, failed->order, sizeof(model->order));
    model->order_count = failed->order_count;
    model->hand = failed->hand;
    for (size_t idx = answer->evicted_count; idx > 0; idx--) {
        model_order_admit(model, model->blocks[answer->evicted[idx - 1]].slot);
    }
}

static void
report(const struct cache_model *model, const struct batch *batch, struct model_answer *answer)
{
    for (size_t idx = 0; idx < batch->count; idx++) {
        const struct model_block *entry = &model->blocks[batch->blocks[idx]];

        answer->slots[idx] = (struct uc_cache_slot){
                .generation = model->slots[entry->slot].generation,
                .slot = entry->slot,
                .admission = batch->newcomer[idx] ? UC_CACHE_NEWCOMER
                             : entry->committed   ? UC_CACHE_READMITTED
                                                  : UC_CACHE_JOINED,
        };
    }
}

void
model_reserve(struct cache_model *model, const int *blocks, size_t count, uint64_t ttl_ms,
        size_t victims, const struct uc_cache_slot *told, struct model_answer *answer)
{
    struct cache_model before = *model;
    struct cache_model trial;
    struct batch batch = {
            .blocks = blocks,
            .count = count,
            .ttl_ms = ttl_ms,
            .victims = victims,
    };

    *answer = (struct model_answer){.status = UC_OK};
    if (count == 0 || is_listed_twice(blocks, count)) {
        answer->status = UC_ERR_INVALID_PARAM;
        return;
    }

    settle_known(model, &batch);
    if (batch.newcomer_count >
            model_count_slots(model, MODEL_FREE) + model_count_evictable(model)) {
        *model = before; /* nothing at all has changed */
        answer->status = UC_ERR_NO_SPACE;
        return;
    }

    trial = *model;
    if (!place_newcomers(&trial, &batch, NULL, answer)) {
        *model = before;
        roll_back(model, &trial, answer);
        *answer = (struct model_answer){.status = UC_ERR_NO_SPACE};
        return;
    }
    *answer = (struct model_answer){.status = UC_OK};
    if (told == NULL) {
        *model = before; /* the engine failed where it must not: the statuses tell */
        return;
    }
    if (!place_newcomers(model, &batch, told, answer)) {
        answer->forbidden = "a slot that is neither free nor the victim's";
        return;
    }

    model->evicted_total += answer->evicted_count;
    report(model, &batch, answer);
}
