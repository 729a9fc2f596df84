/* SPDX-License-Identifier: Apache-2.0 */

#include "core/cache/ghost.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/huge_pages.h"

/*
 * Sets of one cache line, newest item first. A set has more room than belongs into it on average, so that it
 * hardly ever loses an item before its time. An item carries the epoch in which it was added; the ghost
 * counts the items of each epoch, and forgets the oldest epoch when there are more than it was made for. A
 * cursor clears forgotten items long before the number of their epoch comes round again.
 */
enum {
    SET_WAYS = 16,
    SET_IDS = 6, /* on average */
    LINE_BYTES = 64,

    SEEN_BITS = 2,
    EPOCH_SHIFT = SEEN_BITS,
    EPOCH_BITS = 10,
    EPOCH_COUNT = 1 << EPOCH_BITS,
    TAG_SHIFT = EPOCH_SHIFT + EPOCH_BITS,

    FULL_EPOCHS = 256, /* that the ids it was made for take, if none is taken out */
    LIVE_EPOCHS = 512  /* remembered at most */
};

/* 20 bits of the hash, the epoch, times seen; 0 = none, since nothing was seen 0 times. */
struct ghost_set {
    uint32_t items[SET_WAYS];
};

static_assert(sizeof(struct ghost_set) == LINE_BYTES, "one cache line per operation");

struct uc_ghost {
    void *memory;
    struct ghost_set *sets; /* in it, on whole lines */
    size_t set_count;
    size_t id_count;  /* made for */
    size_t live;      /* remembered */
    size_t epoch_ids; /* additions that fill an epoch */
    size_t left;      /* of these, in the epoch that runs */
    size_t cursor;    /* set to be cleared next */
    uint64_t added;
    unsigned first; /* epoch that is remembered, and how many from there */
    unsigned epochs;
    size_t epoch_live[EPOCH_COUNT];
};

/* Where an id belongs, and what it is known by. */
struct place {
    uint32_t *items;
    uint32_t tag;
};

enum uc_status
uc_ghost_create(size_t id_count, struct uc_ghost **ghost_out)
{
    size_t set_count = id_count / SET_IDS + (id_count % SET_IDS == 0 ? 0 : 1);
    struct uc_ghost *ghost = calloc(1, sizeof(*ghost));
    uintptr_t start;

    if (ghost == NULL || set_count > UINT32_MAX) {
        goto err_free;
    }
    /* Fresh zero pages are an empty table; one set more leaves room to begin on a whole line. */
    ghost->memory = calloc(set_count + 1, sizeof(ghost->sets[0]));
    if (ghost->memory == NULL) {
        goto err_free;
    }

    uc_huge_pages_advise(ghost->memory, (set_count + 1) * sizeof(ghost->sets[0]));
    start = (uintptr_t)ghost->memory;
    ghost->sets = (void *)((char *)ghost->memory + (LINE_BYTES - start % LINE_BYTES) % LINE_BYTES);
    ghost->set_count = set_count;
    ghost->id_count = id_count;
    ghost->epoch_ids = id_count / FULL_EPOCHS + (id_count % FULL_EPOCHS == 0 ? 0 : 1);
    ghost->left = ghost->epoch_ids;
    ghost->epochs = 1;
    *ghost_out = ghost;
    return UC_OK;

err_free:
    free(ghost);
    return uc_error(UC_ERR_OUT_OF_MEMORY, "ghost: no memory for %zu ids", id_count);
}

void
uc_ghost_destroy(struct uc_ghost *ghost)
{
    if (ghost == NULL) {
        return;
    }

    free(ghost->memory);
    free(ghost);
}

/*
 * No secret key, unlike the block map: a peer that makes ids collide here fills one set, which costs no
 * time and spoils only hints. So a replay gives the same figures every time.
 */
static struct place
find_place(const struct uc_ghost *ghost, const struct uc_block_id *id)
{
    uint64_t words[2];
    uint64_t hash;

    memcpy(words, id->bytes, sizeof(words));
    hash = (words[0] ^ 0x9e3779b97f4a7c15ull) * 0xa0761d6478bd642full;
    hash ^= hash >> 32;
    hash = (hash + words[1]) * 0xe7037ed1a0b428dbull;
    hash ^= hash >> 29;
    hash *= 0x8ebc6af09c88c6e3ull;
    hash ^= hash >> 32;
    return (struct place){
            .items = ghost->sets[(hash >> 32) * ghost->set_count >> 32].items,
            .tag = (uint32_t)hash >> TAG_SHIFT,
    };
}

static unsigned
epoch_of(uint32_t item)
{
    return item >> EPOCH_SHIFT & (EPOCH_COUNT - 1);
}

static bool
is_live(const struct uc_ghost *ghost, uint32_t item)
{
    return item != 0 && ((epoch_of(item) - ghost->first) & (EPOCH_COUNT - 1)) < ghost->epochs;
}

/* An item goes, or is forgotten already. */
static void
uncount(struct uc_ghost *ghost, uint32_t item)
{
    if (is_live(ghost, item)) {
        ghost->epoch_live[epoch_of(item)]--;
        ghost->live--;
    }
}

static void
forget_first_epoch(struct uc_ghost *ghost)
{
    ghost->live -= ghost->epoch_live[ghost->first];
    ghost->epoch_live[ghost->first] = 0;
    ghost->first = (ghost->first + 1) % EPOCH_COUNT;
    ghost->epochs--;
}

/* Once per SET_IDS additions, so that every set has its turn within FULL_EPOCHS epochs. */
static void
clear_next_set(struct uc_ghost *ghost)
{
    uint32_t *items = ghost->sets[ghost->cursor].items;

    for (size_t idx = 0; idx < SET_WAYS; idx++) {
        if (!is_live(ghost, items[idx])) {
            items[idx] = 0;
        }
    }
    ghost->cursor = ghost->cursor + 1 == ghost->set_count ? 0 : ghost->cursor + 1;
}

/* Epochs that run out, and what no longer has room. */
static void
count_addition(struct uc_ghost *ghost)
{
    ghost->epoch_live[(ghost->first + ghost->epochs - 1) % EPOCH_COUNT]++;
    ghost->live++;
    if (--ghost->left == 0) {
        ghost->left = ghost->epoch_ids;
        ghost->epochs++;
    }
    while (ghost->live > ghost->id_count || ghost->epochs > LIVE_EPOCHS) {
        forget_first_epoch(ghost);
    }
    if (++ghost->added % SET_IDS == 0) {
        clear_next_set(ghost);
    }
}

/* The item of that tag, or SET_WAYS. */
static size_t
find_item(const struct place *place)
{
    size_t idx = 0;

    while (idx < SET_WAYS &&
            (place->items[idx] == 0 || place->items[idx] >> TAG_SHIFT != place->tag)) {
        idx++;
    }
    return idx;
}

void
uc_ghost_prefetch(const struct uc_ghost *ghost, const struct uc_block_id *id)
{
    UC_PREFETCH(find_place(ghost, id).items);
}

void
uc_ghost_add(struct uc_ghost *ghost, const struct uc_block_id *id, unsigned seen)
{
    unsigned epoch = (ghost->first + ghost->epochs - 1) % EPOCH_COUNT;
    struct place place = find_place(ghost, id);
    size_t idx = find_item(&place);

    assert(seen > 0);
    if (idx == SET_WAYS) {
        idx--; /* the oldest goes, if the set is full */
    }
    uncount(ghost, place.items[idx]);
    memmove(&place.items[1], &place.items[0], idx * sizeof(place.items[0]));
    place.items[0] = place.tag << TAG_SHIFT | epoch << EPOCH_SHIFT |
                     (seen < UC_GHOST_SEEN_MAX ? seen : UC_GHOST_SEEN_MAX);
    count_addition(ghost);
}

unsigned
uc_ghost_take(struct uc_ghost *ghost, const struct uc_block_id *id)
{
    struct place place = find_place(ghost, id);
    size_t idx = find_item(&place);
    uint32_t item;

    if (idx == SET_WAYS) {
        return 0;
    }

    item = place.items[idx];
    memmove(&place.items[idx], &place.items[idx + 1],
            (SET_WAYS - 1 - idx) * sizeof(place.items[0]));
    place.items[SET_WAYS - 1] = 0;
    if (!is_live(ghost, item)) {
        return 0;
    }
    uncount(ghost, item);
    return item & UC_GHOST_SEEN_MAX;
}

size_t
uc_ghost_memory_bytes(const struct uc_ghost *ghost)
{
    return ghost == NULL ? 0 : sizeof(*ghost) + (ghost->set_count + 1) * sizeof(ghost->sets[0]);
}
