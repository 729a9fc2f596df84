/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/trace.h"

/* The shape of a generated trace. Changing anything here changes the pinned numbers of its test. */
enum {
    SYSTEM_PROMPT_COUNT = 6,
    SYSTEM_PROMPT_BLOCKS = 4, /* at most; the first one is the most popular */
    CONVERSATION_COUNT = 64,  /* open at a time */
    CONVERSATION_BLOCKS = 96, /* longest chain before it is given up */
    FIRST_TURN_BLOCKS = 12,   /* at most, behind the system prompt */
    TURN_BLOCKS = 6,          /* at most, per further turn */
    CONTINUE_PERCENT = 65,    /* requests that go on with an open conversation */
    ARRIVAL_MS = 400          /* longest gap between two requests */
};

struct conversation {
    uint64_t chain[CONVERSATION_BLOCKS + TURN_BLOCKS +
                   1]; /* full blocks, and room for a partial one */
    size_t count;
};

struct generator {
    uint64_t state;
    uint64_t next_id;
    uint64_t now_ms;
    uint64_t prompts[SYSTEM_PROMPT_COUNT][SYSTEM_PROMPT_BLOCKS];
    size_t prompt_counts[SYSTEM_PROMPT_COUNT];
    struct conversation conversations[CONVERSATION_COUNT];
};

static uint64_t
draw(struct generator *generator)
{
    uint64_t value = generator->state += 0x9e3779b97f4a7c15ull;

    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

/* 1 to @p most. */
static size_t
draw_count(struct generator *generator, size_t most)
{
    return 1 + (size_t)(draw(generator) % most);
}

static void
make_prompts(struct generator *generator)
{
    for (size_t prompt = 0; prompt < SYSTEM_PROMPT_COUNT; prompt++) {
        generator->prompt_counts[prompt] = draw_count(generator, SYSTEM_PROMPT_BLOCKS);
        for (size_t idx = 0; idx < generator->prompt_counts[prompt]; idx++) {
            generator->prompts[prompt][idx] = generator->next_id++;
        }
    }
}

static void
begin_conversation(struct generator *generator, struct conversation *conversation)
{
    /* The smaller of two draws: low numbers are popular. */
    size_t first = draw_count(generator, SYSTEM_PROMPT_COUNT) - 1;
    size_t second = draw_count(generator, SYSTEM_PROMPT_COUNT) - 1;
    size_t prompt = first < second ? first : second;

    conversation->count = generator->prompt_counts[prompt];
    memcpy(conversation->chain, generator->prompts[prompt],
            conversation->count * sizeof(conversation->chain[0]));
}

static void
extend_conversation(struct generator *generator, struct conversation *conversation, size_t blocks)
{
    for (size_t idx = 0; idx < blocks; idx++) {
        conversation->chain[conversation->count++] = generator->next_id++;
    }
}

/* A request is the chain so far and a last block that may be partial: the next turn has another one. */
static enum uc_status
generate_request(struct generator *generator, struct uc_trace *trace)
{
    struct conversation *conversation =
            &generator->conversations[draw(generator) % CONVERSATION_COUNT];
    bool goes_on = draw(generator) % 100 < CONTINUE_PERCENT && conversation->count > 0 &&
                   conversation->count < CONVERSATION_BLOCKS;
    uint64_t tail_tokens = draw(generator) % UC_TRACE_BLOCK_TOKENS;
    struct uc_trace_request request = {.output_length = draw_count(generator, 800)};
    size_t count;

    if (goes_on) {
        extend_conversation(generator, conversation, draw_count(generator, TURN_BLOCKS));
    } else {
        begin_conversation(generator, conversation);
        extend_conversation(generator, conversation, draw_count(generator, FIRST_TURN_BLOCKS));
    }

    count = conversation->count;
    if (tail_tokens > 0) {
        conversation->chain[count++] = generator->next_id++;
    }
    generator->now_ms += draw(generator) % ARRIVAL_MS;
    request.timestamp_ms = generator->now_ms;
    request.input_length = conversation->count * UC_TRACE_BLOCK_TOKENS + tail_tokens;
    return uc_trace_add(trace, &request, conversation->chain, count);
}

enum uc_status
uc_trace_generate(uint64_t seed, uint64_t request_count, struct uc_trace *trace_out)
{
    struct generator *generator;
    struct uc_trace trace = {0};
    enum uc_status status = UC_OK;

    if (request_count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "trace: a generated one needs at least one request");
    }
    generator = calloc(1, sizeof(*generator));
    if (generator == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "trace: no memory for the generator");
    }

    generator->state = seed;
    make_prompts(generator);
    for (uint64_t idx = 0; idx < request_count && status == UC_OK; idx++) {
        status = generate_request(generator, &trace);
    }
    free(generator);
    if (status != UC_OK) {
        uc_trace_fini(&trace);
        return status;
    }

    *trace_out = trace;
    return UC_OK;
}
