/* SPDX-License-Identifier: Apache-2.0 */

#include "test/model/cache_program.h"

#include <inttypes.h>
#include <string.h>

enum {
    RECENT_MAX = 6 /* batches that commits and unpins go back to */
};

/* What is frequent in one program and rare in the next. Of 100. */
struct flavour {
    unsigned batch_max;
    unsigned with_ttl;
    unsigned ttl_max;
    unsigned with_failure; /* of a commit */
    unsigned with_transfer;
    unsigned repeated; /* blocks within a batch */
    unsigned few_victims;
    unsigned again; /* commits and unpins of a batch that was reserved or pinned */
};

struct source {
    uint64_t state;
    struct cache_program *program;
    struct flavour flavour;
    struct program_step recent[RECENT_MAX]; /* reserves and pins */
    size_t recent_count;
};

static uint64_t
draw(struct source *source)
{
    uint64_t value;

    source->state += 0x9e3779b97f4a7c15ull;
    value = source->state;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

static unsigned
below(struct source *source, unsigned limit)
{
    return (unsigned)((draw(source) >> 32) * limit >> 32);
}

static bool
chance(struct source *source, unsigned of_100)
{
    return below(source, 100) < of_100;
}

static bool
has_block(const struct program_step *step, uint8_t block)
{
    return memchr(step->blocks, block, step->count) != NULL;
}

static void
draw_blocks(struct source *source, struct program_step *step)
{
    unsigned count = 1 + below(source, source->flavour.batch_max);

    if (chance(source, 1)) {
        return; /* an empty list */
    }
    while (step->count < count) {
        uint8_t block = (uint8_t)below(source, source->program->block_count);

        if (!has_block(step, block) || chance(source, source->flavour.repeated)) {
            step->blocks[step->count++] = block;
        } else if (step->count == source->program->block_count) {
            return; /* there are no others */
        }
    }
}

static void
remember(struct source *source, const struct program_step *step)
{
    size_t at =
            source->recent_count < RECENT_MAX ? source->recent_count++ : below(source, RECENT_MAX);

    source->recent[at] = *step;
}

/* A batch from before, mostly whole, or a new one. */
static void
recall_blocks(struct source *source, struct program_step *step)
{
    const struct program_step *old;

    if (source->recent_count == 0 || !chance(source, source->flavour.again)) {
        draw_blocks(source, step);
        return;
    }

    old = &source->recent[below(source, (unsigned)source->recent_count)];
    memcpy(step->blocks, old->blocks, sizeof(step->blocks));
    step->count = old->count;
    if (step->count > 1 && chance(source, 20)) {
        step->count = (uint8_t)(1 + below(source, step->count));
    }
    if (step->count > 0 && step->count < MODEL_BATCH_MAX &&
            chance(source, source->flavour.repeated)) {
        step->blocks[step->count] = step->blocks[below(source, step->count)];
        step->count++;
    }
}

static uint64_t
draw_ttl(struct source *source)
{
    if (!chance(source, source->flavour.with_ttl)) {
        return UINT64_MAX;
    }
    if (chance(source, 2)) {
        return UINT64_MAX - 1 - below(source, 3); /* the deadline saturates */
    }

    return below(source, source->flavour.ttl_max);
}

static void
draw_reserve(struct source *source, struct program_step *step)
{
    draw_blocks(source, step);
    step->ttl_ms = draw_ttl(source);
    step->victims = PROGRAM_ANY_VICTIMS;
    if (chance(source, source->flavour.few_victims)) {
        step->victims = (uint8_t)below(source, 3);
    }
    step->short_memory = chance(source, 3);
    step->no_outputs = chance(source, 5);
    remember(source, step);
}

static void
draw_step(struct source *source, struct program_step *step)
{
    static const enum step_kind kinds[] = {STEP_RESERVE, STEP_RESERVE, STEP_RESERVE, STEP_COMMIT,
            STEP_COMMIT, STEP_COMMIT, STEP_PIN, STEP_UNPIN, STEP_UNPIN, STEP_LOOKUP, STEP_TOUCH,
            STEP_TICK};

    *step = (struct program_step){.ttl_ms = UINT64_MAX};
    step->kind = kinds[below(source, sizeof(kinds) / sizeof(kinds[0]))];
    if (chance(source, source->flavour.with_transfer)) {
        step->kind = chance(source, 50) ? STEP_TRANSFER_BEGIN : STEP_TRANSFER_END;
    }
    if (chance(source, 3)) {
        step->kind = STEP_REVOKE;
    }

    switch (step->kind) {
    case STEP_RESERVE:
        draw_reserve(source, step);
        break;
    case STEP_COMMIT:
        recall_blocks(source, step);
        step->success = !chance(source, source->flavour.with_failure);
        step->no_outputs = chance(source, 5);
        break;
    case STEP_PIN:
        recall_blocks(source, step);
        remember(source, step);
        break;
    case STEP_UNPIN:
        recall_blocks(source, step);
        break;
    case STEP_TOUCH:
        recall_blocks(source, step);
        step->ttl_ms = draw_ttl(source);
        break;
    case STEP_LOOKUP:
        draw_blocks(source, step);
        break;
    case STEP_REVOKE:
    case STEP_TRANSFER_BEGIN:
        step->count = 1;
        step->blocks[0] = (uint8_t)below(source, source->program->block_count);
        step->number = chance(source, 20) ? 1 : 0;
        break;
    case STEP_TRANSFER_END:
        step->number = below(source, PROGRAM_TRANSFERS_MAX);
        break;
    case STEP_TICK:
        step->number = chance(source, 10) ? below(source, 100) : below(source, 4);
        break;
    }
}

void
program_generate(struct cache_program *program, uint64_t seed)
{
    static const char *const policies[] = {"lru", "lru", "clock", "fifo", "pwa"};
    struct source source = {.state = seed, .program = program};
    unsigned spare;

    program->policy = policies[below(&source, sizeof(policies) / sizeof(policies[0]))];
    program->capacity = 1 + below(&source, MODEL_SLOTS_MAX);
    spare = 1 + below(&source, 2 * program->capacity + 2);
    program->block_count = program->capacity + spare;
    if (program->block_count > MODEL_BLOCKS) {
        program->block_count = MODEL_BLOCKS;
    }
    program->start_ms = chance(&source, 5) ? 1ull << 60 : below(&source, 1000);
    source.flavour = (struct flavour){
            .batch_max = 1 + below(&source, chance(&source, 30) ? MODEL_BATCH_MAX
                                                                : (program->capacity + 2) / 2),
            .with_ttl = below(&source, 101),
            .ttl_max = 1 + below(&source, 40),
            .with_failure = below(&source, 60),
            .with_transfer = chance(&source, 30) ? 0 : below(&source, 40),
            .repeated = chance(&source, 50) ? 0 : below(&source, 20),
            .few_victims = chance(&source, 50) ? 0 : below(&source, 40),
            .again = 50 + below(&source, 51),
    };
    program->step_count = 40 + below(&source, PROGRAM_STEPS_MAX - 40 + 1);
    for (size_t idx = 0; idx < program->step_count; idx++) {
        draw_step(&source, &program->steps[idx]);
    }
}

void
program_cut(struct cache_program *program, size_t first, size_t count)
{
    size_t behind = program->step_count - first - count;

    memmove(&program->steps[first], &program->steps[first + count],
            behind * sizeof(program->steps[0]));
    program->step_count -= count;
}

static void
print_blocks(const struct program_step *step, FILE *file)
{
    (void)fputs(" [", file);
    for (size_t idx = 0; idx < step->count; idx++) {
        (void)fprintf(file, "%s%u", idx == 0 ? "" : " ", step->blocks[idx]);
    }
    (void)fputc(']', file);
}

static void
print_step(const struct program_step *step, FILE *file)
{
    static const char *const names[] = {
            [STEP_RESERVE] = "reserve",
            [STEP_COMMIT] = "commit",
            [STEP_PIN] = "pin",
            [STEP_UNPIN] = "unpin",
            [STEP_LOOKUP] = "lookup",
            [STEP_TOUCH] = "touch",
            [STEP_REVOKE] = "revoke",
            [STEP_TRANSFER_BEGIN] = "transfer begin",
            [STEP_TRANSFER_END] = "transfer end",
            [STEP_TICK] = "tick",
    };

    (void)fputs(names[step->kind], file);
    if (step->kind != STEP_TICK && step->kind != STEP_TRANSFER_END) {
        print_blocks(step, file);
    }
    if (step->kind == STEP_TICK || step->number > 0) {
        (void)fprintf(file, " +%u", step->number);
    }
    if (step->kind == STEP_COMMIT) {
        (void)fputs(step->success ? " success" : " failure", file);
    }
    if (step->ttl_ms != UINT64_MAX) {
        (void)fprintf(file, " ttl %" PRIu64, step->ttl_ms);
    }
    if (step->kind == STEP_RESERVE && step->victims != PROGRAM_ANY_VICTIMS) {
        (void)fprintf(file, " with %u victims to be had", step->victims);
    }
    (void)fprintf(file, "%s%s\n", step->short_memory ? ", short of memory" : "",
            step->no_outputs ? ", no outputs" : "");
}

void
program_print(const struct cache_program *program, FILE *file)
{
    (void)fprintf(file, "policy %s, %u slots, time %" PRIu64 "\n", program->policy,
            program->capacity, program->start_ms);
    for (size_t idx = 0; idx < program->step_count; idx++) {
        (void)fprintf(file, "%4zu  ", idx);
        print_step(&program->steps[idx], file);
    }
}
