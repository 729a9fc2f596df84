/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A long random history against a second, naive implementation of section 16: one array of blocks, no
 * heap, no free list, everything searched. After each operation both must agree about every block, and
 * the invariants must hold by an independent count.
 */

#include "test/unit/core/cache_fixture.h"

enum {
    CAPACITY = 5,
    IDS = 9,
    STEPS = 10000,
    TRANSFERS_MAX = 6
};

struct model_block {
    enum uc_cache_state state; /* ABSENT, PENDING or VISIBLE; expiry follows from the deadline */
    unsigned refs;
    bool success;
    bool damaged;
    unsigned pins;
    uint64_t ttl_ms;
    uint64_t deadline_ms;
    uint64_t heat;
    uint32_t slot;
    uint64_t generation;
};

struct model_transfer {
    bool running;
    uint32_t slot;
};

static struct model_block model[IDS];
static struct model_transfer transfers[TRANSFERS_MAX];
static uint64_t heat;
static uint64_t random_state;
/* Slots that the discipline holds, seen from its hooks. */
static bool ordered[CAPACITY];
static const struct uc_policy_ops *lru;

static uint64_t
draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static enum uc_status
watch_setup(struct uc_policy *policy, size_t capacity, const struct uc_dict *parameters,
        const struct uc_clock *clock, void **state_out)
{
    return lru->on_setup(policy, capacity, parameters, clock, state_out);
}

static void
watch_destroy(void *state)
{
    lru->destroy(state);
}

static void
watch_admitted(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    ck_assert(!ordered[slot]);
    ordered[slot] = true;
    lru->on_slot_admitted(state, slot, hints);
}

static void
watch_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    ck_assert(ordered[slot]);
    lru->on_slot_touched(state, slot, hints);
}

static void
watch_released(void *state, uint32_t slot)
{
    ck_assert(ordered[slot]);
    ordered[slot] = false;
    lru->on_slot_released(state, slot);
}

static uint32_t
watch_victim(void *state)
{
    return lru->select_victim_slot(state);
}

static const struct uc_policy_ops watched = {
        .name = "watched",
        .on_setup = watch_setup,
        .destroy = watch_destroy,
        .on_slot_admitted = watch_admitted,
        .on_slot_touched = watch_touched,
        .on_slot_released = watch_released,
        .select_victim_slot = watch_victim,
};

static size_t
transfers_on(uint32_t slot)
{
    size_t count = 0;

    for (size_t idx = 0; idx < TRANSFERS_MAX; idx++) {
        count += transfers[idx].running && transfers[idx].slot == slot ? 1 : 0;
    }
    return count;
}

static bool
is_committed(const struct model_block *entry)
{
    return entry->state == UC_CACHE_VISIBLE;
}

static bool
is_alive(const struct model_block *entry)
{
    return is_committed(entry) && now_ms < entry->deadline_ms;
}

static bool
is_held(const struct model_block *entry)
{
    return entry->pins > 0 || entry->refs > 0;
}

static bool
is_evictable(const struct model_block *entry)
{
    return is_committed(entry) && !is_held(entry) && transfers_on(entry->slot) == 0;
}

static void
drop(struct model_block *entry)
{
    *entry = (struct model_block){0};
}

/* */
static bool
probe(struct model_block *entry)
{
    if (is_committed(entry) && !is_alive(entry) && !is_held(entry)) {
        drop(entry);
    }
    return is_alive(entry);
}

static size_t
owner_of(uint32_t slot)
{
    for (size_t idx = 0; idx < IDS; idx++) {
        if (model[idx].state != UC_CACHE_ABSENT && model[idx].slot == slot) {
            return idx;
        }
    }
    return IDS;
}

static size_t
free_slots(void)
{
    size_t count = 0;

    for (uint32_t slot = 0; slot < CAPACITY; slot++) {
        count += owner_of(slot) == IDS && transfers_on(slot) == 0 ? 1 : 0;
    }
    return count;
}

static size_t
evictable_slots(void)
{
    size_t count = 0;

    for (size_t idx = 0; idx < IDS; idx++) {
        count += is_evictable(&model[idx]) ? 1 : 0;
    }
    return count;
}

static size_t
coldest(void)
{
    size_t best = IDS;

    for (size_t idx = 0; idx < IDS; idx++) {
        if (is_evictable(&model[idx]) && (best == IDS || model[idx].heat < model[best].heat)) {
            best = idx;
        }
    }
    return best;
}

/* A random batch of distinct ids. */
static size_t
draw_batch(size_t *batch, char *letters)
{
    size_t count = 1 + (size_t)draw(4);

    for (size_t idx = 0; idx < count; idx++) {
        bool fresh;

        do {
            batch[idx] = (size_t)draw(IDS);
            fresh = true;
            for (size_t other = 0; other < idx; other++) {
                fresh = fresh && batch[other] != batch[idx];
            }
        } while (!fresh);
        letters[idx] = (char)('A' + batch[idx]);
    }
    letters[count] = '\0';
    return count;
}

static bool
is_newcomer(const struct model_block *entry)
{
    return entry->state == UC_CACHE_ABSENT || (entry->damaged && !is_held(entry));
}

/* Rooms for the newcomers: free, swept, evicted, in that order. Writes the expected victims. */
static void
model_place(const size_t *batch, size_t count, const bool *newcomer, uint64_t ttl_ms, char *victims)
{
    for (size_t idx = 0; idx < count; idx++) {
        if (newcomer[idx] && model[batch[idx]].state != UC_CACHE_ABSENT) {
            drop(&model[batch[idx]]);
        }
    }
    for (size_t idx = 0; idx < count; idx++) {
        if (!newcomer[idx]) {
            continue;
        }
        if (free_slots() == 0) {
            for (size_t other = 0; other < IDS; other++) {
                (void)probe(&model[other]);
            }
        }
        if (free_slots() == 0) {
            size_t victim = coldest();

            ck_assert_uint_ne(victim, IDS);
            *victims++ = (char)('A' + victim);
            drop(&model[victim]);
        }
        model[batch[idx]] = (struct model_block){
                .state = UC_CACHE_PENDING,
                .refs = 1,
                .ttl_ms = ttl_ms,
                .slot = slots[idx].slot,
                .generation = slots[idx].generation,
        };
    }
    *victims = '\0';
}

static void
step_reserve(void)
{
    uint64_t ttl_ms = draw(3) == 0 ? NO_TTL : draw(30);
    struct model_block saved[IDS];
    char victims[LIST_MAX];
    char letters[LIST_MAX];
    bool newcomer[LIST_MAX] = {false};
    size_t batch[LIST_MAX];
    size_t count = draw_batch(batch, letters);
    size_t newcomers = 0;
    enum uc_status status;

    memcpy(saved, model, sizeof(saved));
    for (size_t idx = 0; idx < count; idx++) {
        struct model_block *entry = &model[batch[idx]];

        newcomer[idx] = is_newcomer(entry);
        newcomers += newcomer[idx] ? 1 : 0;
        if (!newcomer[idx]) {
            entry->refs++;
            entry->ttl_ms = ttl_ms;
        }
    }

    status = reserve(letters, ttl_ms);
    if (newcomers > free_slots() + evictable_slots()) {
        ck_assert_int_eq(status, UC_ERR_NO_SPACE);
        memcpy(model, saved, sizeof(saved));
        return;
    }
    ck_assert_int_eq(status, UC_OK);
    model_place(batch, count, newcomer, ttl_ms, victims);
    ck_assert_str_eq(evicted, victims);
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_int_eq(slots[idx].admission == UC_CACHE_NEWCOMER, newcomer[idx]);
        ck_assert_uint_eq(slots[idx].slot, model[batch[idx]].slot);
        ck_assert_uint_eq(slots[idx].generation, model[batch[idx]].generation);
    }
}

static uint64_t
deadline_after(uint64_t ttl_ms)
{
    return uc_time_add_ms(now_ms, ttl_ms);
}

static void
model_commit(struct model_block *entry, bool success, bool *missing, bool *refused)
{
    bool last;

    if (entry->state == UC_CACHE_ABSENT || entry->refs == 0) {
        *missing = true;
        return;
    }

    entry->success = entry->success || success;
    last = --entry->refs == 0;
    if (!last) {
        return;
    }
    if (entry->state == UC_CACHE_PENDING) {
        bool busy = transfers_on(entry->slot) > 0;

        *refused = *refused || (entry->success && busy);
        if (!entry->success || busy) {
            drop(entry);
            return;
        }
        entry->state = UC_CACHE_VISIBLE;
        entry->deadline_ms = deadline_after(entry->ttl_ms);
        entry->heat = ++heat;
    } else if (!is_alive(entry) && !entry->damaged && entry->success) {
        entry->deadline_ms = deadline_after(entry->ttl_ms);
        entry->heat = ++heat;
    }
    entry->success = false;
}

static void
step_commit(void)
{
    bool success = draw(4) != 0;
    bool missing = false;
    bool refused = false;
    char letters[LIST_MAX];
    size_t batch[LIST_MAX];
    size_t count = draw_batch(batch, letters);

    for (size_t idx = 0; idx < count; idx++) {
        model_commit(&model[batch[idx]], success, &missing, &refused);
    }
    ck_assert_int_eq(commit(letters, success), refused   ? UC_ERR_INVALID_PARAM
                                               : missing ? UC_ERR_NOT_FOUND
                                                         : UC_OK);
}

static void
step_pin(void)
{
    char letters[LIST_MAX];
    size_t batch[LIST_MAX];
    size_t count = draw_batch(batch, letters);
    size_t alive = 0;

    while (alive < count && probe(&model[batch[alive]])) {
        alive++;
    }
    ck_assert_int_eq(pin(letters), alive == count ? UC_OK : UC_ERR_NOT_FOUND);
    for (size_t idx = 0; alive == count && idx < count; idx++) {
        model[batch[idx]].pins++;
        model[batch[idx]].heat = ++heat;
    }
}

static void
step_unpin(void)
{
    char letters[LIST_MAX];
    size_t batch[LIST_MAX];
    size_t count = draw_batch(batch, letters);

    unpin(letters);
    for (size_t idx = 0; idx < count; idx++) {
        model[batch[idx]].pins -= model[batch[idx]].pins > 0 ? 1 : 0;
    }
}

static void
step_touch(void)
{
    uint64_t ttl_ms = draw(2) == 0 ? NO_TTL : draw(40);
    char letters[LIST_MAX];
    size_t batch[LIST_MAX];
    size_t count = draw_batch(batch, letters);

    touch(letters, ttl_ms);
    for (size_t idx = 0; idx < count; idx++) {
        struct model_block *entry = &model[batch[idx]];

        if (probe(entry)) {
            entry->heat = ++heat;
            if (ttl_ms != NO_TTL && entry->deadline_ms != UC_TIME_NEVER_MS &&
                    deadline_after(ttl_ms) > entry->deadline_ms) {
                entry->deadline_ms = deadline_after(ttl_ms);
            }
        }
    }
}

static void
step_lookup(void)
{
    char letters[LIST_MAX];
    size_t batch[LIST_MAX];
    size_t count = draw_batch(batch, letters);
    const char *hits = lookup(letters);

    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_int_eq(hits[idx] == '1', probe(&model[batch[idx]]));
    }
}

static void
step_revoke(void)
{
    size_t which = (size_t)draw(IDS);
    struct model_block *entry = &model[which];
    struct uc_block_id id = block((char)('A' + which));
    uint64_t generation = entry->generation + (draw(4) == 0 ? 1 : 0);
    bool known = is_committed(entry) && generation == entry->generation;

    ck_assert_int_eq(
            uc_cache_buffer_revoke(buffer, &id, generation), known ? UC_OK : UC_ERR_NOT_FOUND);
    if (known) {
        entry->damaged = true;
        entry->deadline_ms = now_ms;
    }
}

static void
step_transfer(void)
{
    struct model_transfer *transfer = &transfers[draw(TRANSFERS_MAX)];
    size_t which = (size_t)draw(IDS);
    enum uc_status status;

    if (transfer->running) {
        uc_cache_buffer_transfer_end(buffer, transfer->slot);
        transfer->running = false;
        return;
    }

    status = uc_cache_buffer_transfer_begin(
            buffer, model[which].slot, model[which].generation); /* generation 0 if absent */
    ck_assert_int_eq(status, model[which].state == UC_CACHE_ABSENT ? UC_ERR_NOT_FOUND : UC_OK);
    if (status == UC_OK) {
        *transfer = (struct model_transfer){.running = true, .slot = model[which].slot};
    }
}

static void
check_block(size_t which)
{
    const struct model_block *entry = &model[which];
    struct uc_cache_info info = peek((char)('A' + which));
    enum uc_cache_state want =
            is_committed(entry) && !is_alive(entry) ? UC_CACHE_EXPIRED : entry->state;

    ck_assert_int_eq(info.state, want); /* */
    if (want == UC_CACHE_ABSENT) {
        return;
    }
    ck_assert_uint_eq(info.slot, entry->slot);
    ck_assert_uint_eq(info.generation, entry->generation);
    ck_assert_uint_eq(owner_of(entry->slot), which); /* one to one */
    ck_assert_int_eq(ordered[entry->slot], is_committed(entry));
    if (is_committed(entry)) {
        ck_assert_uint_eq(info.deadline_ms, entry->deadline_ms);
        ck_assert_uint_eq(info.pin_count, entry->pins + entry->refs); /* */
    }
}

static void
check_all(void)
{
    struct uc_cache_stats now = stats();
    size_t reserved = 0;
    size_t committed = 0;
    size_t pinned = 0;
    size_t in_order = 0;

    for (size_t idx = 0; idx < IDS; idx++) {
        check_block(idx);
        reserved += model[idx].state == UC_CACHE_PENDING ? 1 : 0;
        committed += is_committed(&model[idx]) ? 1 : 0;
        pinned += is_committed(&model[idx]) && is_held(&model[idx]) ? 1 : 0;
    }
    for (uint32_t slot = 0; slot < CAPACITY; slot++) {
        in_order += ordered[slot] ? 1 : 0;
    }

    ck_assert_uint_eq(in_order, committed); /* */
    ck_assert_uint_eq(now.reserved, reserved);
    ck_assert_uint_eq(now.blocks, committed);
    ck_assert_uint_eq(now.pinned, pinned);
    ck_assert_uint_eq(now.evictable, evictable_slots());
    ck_assert_uint_eq(now.free, free_slots());
    ck_assert_uint_eq(now.free + now.draining + reserved + committed, CAPACITY); /* */
}

static void (*const steps[])(void) = {
        step_reserve,
        step_reserve,
        step_reserve,
        step_commit,
        step_commit,
        step_commit,
        step_pin,
        step_unpin,
        step_unpin,
        step_touch,
        step_lookup,
        step_revoke,
        step_transfer,
        step_transfer,
};

START_TEST(engine_and_naive_model_agree_for_ever)
{
    random_state = 0x9e3779b97f4a7c15ull + (uint64_t)_i;
    memset(model, 0, sizeof(model)); /* cases may share a process (CK_FORK=no) */
    memset(transfers, 0, sizeof(transfers));
    memset(ordered, 0, sizeof(ordered));
    lru = uc_policy_find("lru");
    make_cache_with(CAPACITY, &watched);
    for (size_t step = 0; step < STEPS; step++) {
        steps[draw(sizeof(steps) / sizeof(steps[0]))]();
        now_ms += draw(3) == 0 ? draw(4) : 0;
        check_all();
    }
    drop_cache();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_buffer_random");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, engine_and_naive_model_agree_for_ever, 0, 6);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
