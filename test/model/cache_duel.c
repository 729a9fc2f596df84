/* SPDX-License-Identifier: Apache-2.0 */

#include "test/model/cache_duel.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "test/fake/fake_alloc.h"

/* A step as the engine takes it, and what it answered. */
struct call {
    int blocks[MODEL_BATCH_MAX];
    struct uc_block_id ids[MODEL_BATCH_MAX];
    size_t count;
    struct uc_cache_slot slots[MODEL_BATCH_MAX];
    enum uc_cache_outcome outcomes[MODEL_BATCH_MAX];
    uint8_t hits[MODEL_BATCH_MAX];
    struct uc_block_id evicted[MODEL_BATCH_MAX];
    size_t evicted_count;
};

struct duel {
    const struct cache_program *program;
    struct uc_cache_buffer *buffer;
    struct cache_model model;
    struct uc_cache_slot tokens[MODEL_BLOCKS]; /* of the last reserve or pin that gave one */
    uint32_t transfers[PROGRAM_TRANSFERS_MAX]; /* slots */
    size_t transfer_count;
    struct duel_result *result;
};

/*
 * The discipline is watched from its hooks, whose table has no room for a context of ours. One duel at a time.
 */
static struct {
    const struct uc_policy_ops *ops;
    bool in_order[MODEL_SLOTS_MAX];
    size_t victims_left;
    const char *fault;
} watch;

static void
watch_admitted(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    watch.fault = watch.in_order[slot] ? "Admitted twice" : watch.fault;
    watch.in_order[slot] = true;
    watch.ops->on_slot_admitted(state, slot, hints);
}

static void
watch_touched(void *state, uint32_t slot, const struct uc_policy_hints *hints)
{
    watch.fault = watch.in_order[slot] ? watch.fault : "Touched without Admitted";
    watch.ops->on_slot_touched(state, slot, hints);
}

static void
watch_released(void *state, uint32_t slot)
{
    watch.fault = watch.in_order[slot] ? watch.fault : "Released without Admitted";
    watch.in_order[slot] = false;
    watch.ops->on_slot_released(state, slot);
}

static uint32_t
watch_victim(void *state)
{
    if (watch.victims_left == 0) {
        return UC_SLOT_NONE;
    }

    watch.victims_left--;
    return watch.ops->select_victim_slot(state);
}

static uint64_t
duel_now_ms(void *context)
{
    const struct duel *duel = context;

    return duel->model.now_ms;
}

/* All four words of the id take part. */
static struct uc_block_id
id_of(int block)
{
    struct uc_block_id id = {{0}};

    id.bytes[block % (int)sizeof(id.bytes)] = (uint8_t)(block + 1);
    return id;
}

static void __attribute__((format(printf, 2, 3)))
complain(struct duel *duel, const char *format, ...)
{
    va_list arguments;

    if (!duel->result->agreed) {
        return; /* the first one counts */
    }

    duel->result->agreed = false;
    va_start(arguments, format);
    (void)vsnprintf(duel->result->complaint, sizeof(duel->result->complaint), format, arguments);
    va_end(arguments);
}

static void
expect(struct duel *duel, const char *what, int64_t block, uint64_t engine, uint64_t model)
{
    if (engine != model) {
        complain(duel, "%s of block %" PRId64 ": the engine says %" PRIu64 ", the model %" PRIu64,
                what, block, engine, model);
    }
}

static void
expect_status(struct duel *duel, enum uc_status engine, enum uc_status model)
{
    if (engine != model) {
        complain(duel, "the engine answers %s, the model %s", uc_status_name(engine),
                uc_status_name(model));
    }
}

static void
expect_slots(struct duel *duel, const struct call *call, const struct model_answer *answer)
{
    for (size_t idx = 0; idx < call->count; idx++) {
        expect(duel, "slot", call->blocks[idx], call->slots[idx].slot, answer->slots[idx].slot);
        expect(duel, "generation", call->blocks[idx], call->slots[idx].generation,
                answer->slots[idx].generation);
        expect(duel, "admission", call->blocks[idx], call->slots[idx].admission,
                answer->slots[idx].admission);
        duel->tokens[call->blocks[idx]] = call->slots[idx];
    }
}

static void
expect_evicted(struct duel *duel, const struct call *call, const struct model_answer *answer)
{
    expect(duel, "count of victims, not", -1, call->evicted_count, answer->evicted_count);
    for (size_t idx = 0; idx < answer->evicted_count; idx++) {
        struct uc_block_id id = id_of(answer->evicted[idx]);

        if (memcmp(&id, &call->evicted[idx], sizeof(id)) != 0) {
            complain(duel, "victim %zu is another block than %d", idx, answer->evicted[idx]);
        }
    }
}

static struct uc_request_context
context_of(const struct program_step *step)
{
    struct uc_request_context context = uc_request_context_init("r");

    if (step->ttl_ms != UINT64_MAX) {
        context.present = UC_REQUEST_TTL;
        context.ttl_ms = step->ttl_ms;
    }
    return context;
}

static void
run_reserve(struct duel *duel, const struct program_step *step, struct call *call)
{
    struct uc_request_context context = context_of(step);
    struct uc_policy_hints hints[MODEL_BATCH_MAX] = {{0}};
    struct model_answer answer;
    enum uc_status status;

    for (size_t idx = 0; idx < call->count; idx++) {
        hints[idx].position = (uint32_t)call->blocks[idx];
        hints[idx].partial = call->blocks[idx] % 5 == 0;
    }
    watch.victims_left = step->victims == PROGRAM_ANY_VICTIMS ? SIZE_MAX : step->victims;
    if (step->short_memory) {
        uc_fake_alloc_fail_after(0);
    }
    status = uc_cache_buffer_reserve(duel->buffer, call->ids, call->count,
            step->no_outputs && step->ttl_ms == UINT64_MAX ? NULL : &context,
            step->no_outputs ? NULL : hints, call->slots, step->no_outputs ? NULL : call->evicted,
            step->no_outputs ? NULL : &call->evicted_count);
    uc_fake_alloc_reset();
    if (step->short_memory && status == UC_ERR_OUT_OF_MEMORY) {
        return; /* no trace */
    }

    model_reserve(&duel->model, call->blocks, call->count, step->ttl_ms,
            step->victims == PROGRAM_ANY_VICTIMS ? SIZE_MAX : step->victims,
            status == UC_OK ? call->slots : NULL, &answer);
    expect_status(duel, status, answer.status);
    if (status != UC_OK || answer.status != UC_OK) {
        return;
    }
    if (answer.forbidden != NULL) {
        complain(duel, "a newcomer got %s", answer.forbidden);
        return;
    }
    expect_slots(duel, call, &answer);
    if (!step->no_outputs) {
        expect_evicted(duel, call, &answer);
    }
}

static void
run_commit(struct duel *duel, const struct program_step *step, struct call *call)
{
    struct model_answer answer;
    enum uc_status status = uc_cache_buffer_commit(duel->buffer, call->ids, call->count,
            step->success, step->no_outputs ? NULL : call->outcomes);

    model_commit(&duel->model, call->blocks, call->count, step->success, &answer);
    expect_status(duel, status, answer.status);
    for (size_t idx = 0; idx < call->count && !step->no_outputs; idx++) {
        expect(duel, "outcome", call->blocks[idx], call->outcomes[idx], answer.outcomes[idx]);
    }
}

static void
run_pin(struct duel *duel, struct call *call)
{
    struct model_answer answer;
    enum uc_status status = uc_cache_buffer_pin(duel->buffer, call->ids, call->count, call->slots);

    model_pin(&duel->model, call->blocks, call->count, &answer);
    expect_status(duel, status, answer.status);
    if (status == UC_OK && answer.status == UC_OK) {
        expect_slots(duel, call, &answer);
    }
}

static void
run_lookup(struct duel *duel, struct call *call)
{
    struct model_answer answer;

    uc_cache_buffer_lookup(duel->buffer, call->ids, call->count, call->hits);
    model_lookup(&duel->model, call->blocks, call->count, &answer);
    for (size_t idx = 0; idx < call->count; idx++) {
        expect(duel, "hit", call->blocks[idx], call->hits[idx], answer.hits[idx]);
    }
}

static void
run_touch(struct duel *duel, const struct program_step *step, const struct call *call)
{
    struct uc_request_context context = context_of(step);

    uc_cache_buffer_touch(duel->buffer, call->ids, call->count, &context);
    model_touch(&duel->model, call->blocks, call->count, step->ttl_ms);
}

static void
run_revoke(struct duel *duel, const struct program_step *step, const struct call *call)
{
    uint64_t generation = duel->tokens[call->blocks[0]].generation + step->number;

    expect_status(duel, uc_cache_buffer_revoke(duel->buffer, &call->ids[0], generation),
            model_revoke(&duel->model, call->blocks[0], generation));
}

static void
run_transfer_begin(struct duel *duel, const struct program_step *step, const struct call *call)
{
    const struct uc_cache_slot *token = &duel->tokens[call->blocks[0]];
    uint64_t generation = token->generation + step->number;
    enum uc_status status;

    if (duel->transfer_count == PROGRAM_TRANSFERS_MAX) {
        return;
    }

    status = uc_cache_buffer_transfer_begin(duel->buffer, token->slot, generation);
    expect_status(duel, status, model_transfer_begin(&duel->model, token->slot, generation));
    if (status == UC_OK) {
        duel->transfers[duel->transfer_count++] = token->slot;
    }
}

static void
run_transfer_end(struct duel *duel, const struct program_step *step)
{
    size_t which;

    if (duel->transfer_count == 0) {
        return;
    }

    which = step->number % duel->transfer_count;
    uc_cache_buffer_transfer_end(duel->buffer, duel->transfers[which]);
    model_transfer_end(&duel->model, duel->transfers[which]);
    duel->transfers[which] = duel->transfers[--duel->transfer_count];
}

static void
run_step(struct duel *duel, const struct program_step *step)
{
    struct call call;

    call.count = step->count;
    for (size_t idx = 0; idx < step->count; idx++) {
        call.blocks[idx] = step->blocks[idx];
        call.ids[idx] = id_of(step->blocks[idx]);
    }

    switch (step->kind) {
    case STEP_RESERVE:
        run_reserve(duel, step, &call);
        break;
    case STEP_COMMIT:
        run_commit(duel, step, &call);
        break;
    case STEP_PIN:
        run_pin(duel, &call);
        break;
    case STEP_UNPIN:
        uc_cache_buffer_unpin(duel->buffer, call.ids, call.count);
        model_unpin(&duel->model, call.blocks, call.count);
        break;
    case STEP_LOOKUP:
        run_lookup(duel, &call);
        break;
    case STEP_TOUCH:
        run_touch(duel, step, &call);
        break;
    case STEP_REVOKE:
        run_revoke(duel, step, &call);
        break;
    case STEP_TRANSFER_BEGIN:
        run_transfer_begin(duel, step, &call);
        break;
    case STEP_TRANSFER_END:
        run_transfer_end(duel, step);
        break;
    case STEP_TICK:
        duel->model.now_ms = uc_time_add_ms(duel->model.now_ms, step->number);
        break;
    }
}

static void
compare_blocks(struct duel *duel)
{
    for (int block = 0; block < (int)duel->program->block_count; block++) {
        struct uc_block_id id = id_of(block);
        struct uc_cache_info engine = uc_cache_buffer_peek(duel->buffer, &id);
        struct uc_cache_info model = model_peek(&duel->model, block);

        expect(duel, "state", block, engine.state, model.state); /* */
        expect(duel, "slot", block, engine.slot, model.slot);    /* */
        expect(duel, "generation", block, engine.generation, model.generation);
        expect(duel, "deadline", block, engine.deadline_ms, model.deadline_ms);
        expect(duel, "pins", block, engine.pin_count, model.pin_count); /* */
    }
}

/* */
static void
compare_order(struct duel *duel)
{
    if (watch.fault != NULL) {
        complain(duel, "the discipline was told: %s", watch.fault);
    }
    for (uint32_t slot = 0; slot < duel->program->capacity; slot++) {
        if (watch.in_order[slot] != (duel->model.slots[slot].state == MODEL_COMMITTED)) {
            complain(duel, "slot %u is %s the order of the discipline", slot,
                    watch.in_order[slot] ? "in" : "missing from");
        }
    }
}

static void
compare_stats(struct duel *duel)
{
    struct uc_cache_stats engine = uc_cache_buffer_stats(duel->buffer);
    struct uc_cache_stats model = model_stats(&duel->model);

#define EXPECT_STAT_(field)                                                            \
    do {                                                                               \
        if (engine.field != model.field) {                                             \
            complain(duel, #field ": the engine says %" PRIu64 ", the model %" PRIu64, \
                    (uint64_t)engine.field, (uint64_t)model.field);                    \
        }                                                                              \
    } while (0)
    EXPECT_STAT_(capacity);
    EXPECT_STAT_(free); /* with the three below */
    EXPECT_STAT_(evictable);
    EXPECT_STAT_(draining);
    EXPECT_STAT_(reserved);
    EXPECT_STAT_(pinned);
    EXPECT_STAT_(blocks);
    EXPECT_STAT_(evicted_total);
    EXPECT_STAT_(expired_total);
    EXPECT_STAT_(committed_total);
#undef EXPECT_STAT_
}

static enum model_policy
model_policy_of(const char *name)
{
    if (strcmp(name, "lru") == 0) {
        return MODEL_LRU;
    }
    if (strcmp(name, "clock") == 0) {
        return MODEL_CLOCK;
    }

    return strcmp(name, "fifo") == 0 ? MODEL_FIFO : MODEL_ANY;
}

static enum uc_status
set_up(struct duel *duel, struct uc_policy_ops *watched)
{
    struct uc_cache_config config = {
            .capacity = duel->program->capacity,
            .ops = watched,
            .clock = {.now_ms = duel_now_ms, .context = duel},
    };

    memset(&watch, 0, sizeof(watch));
    watch.ops = uc_policy_find(duel->program->policy);
    if (watch.ops == NULL) {
        return UC_ERR_NOT_FOUND;
    }

    *watched = *watch.ops;
    watched->on_slot_admitted = watch_admitted;
    watched->on_slot_touched = watch_touched;
    watched->on_slot_released = watch_released;
    watched->select_victim_slot = watch_victim;
    model_init(&duel->model, model_policy_of(duel->program->policy), watched->leaf_first,
            duel->program->capacity);
    duel->model.now_ms = duel->program->start_ms;
    return uc_cache_buffer_create(&config, &duel->buffer);
}

void
duel_run(const struct cache_program *program, struct duel_result *result_out)
{
    struct duel duel = {.program = program, .result = result_out};
    struct uc_policy_ops watched;
    enum uc_status status;

    *result_out = (struct duel_result){.agreed = true};
    status = set_up(&duel, &watched);
    if (status != UC_OK) {
        complain(&duel, "no cache: %s", uc_status_name(status));
        return;
    }

    for (size_t idx = 0; idx < program->step_count && result_out->agreed; idx++) {
        result_out->step = idx;
        run_step(&duel, &program->steps[idx]);
        compare_blocks(&duel);
        compare_order(&duel);
        compare_stats(&duel);
    }
    uc_cache_buffer_destroy(duel.buffer);
}
