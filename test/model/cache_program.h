/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file cache_program.h
 * Random histories of one cache as data, so that they can be repeated, cut down and printed. A step means
 * something whatever happened before it: transfers are named by number, tokens by the block they are for.
 */

#ifndef UC_TEST_MODEL_CACHE_PROGRAM_H
#define UC_TEST_MODEL_CACHE_PROGRAM_H

#include <stdio.h>

#include "test/model/cache_model.h"

enum {
    PROGRAM_STEPS_MAX = 640,
    PROGRAM_TRANSFERS_MAX = 8,
    PROGRAM_ANY_VICTIMS = 255
};

enum step_kind {
    STEP_RESERVE,
    STEP_COMMIT,
    STEP_PIN,
    STEP_UNPIN,
    STEP_LOOKUP,
    STEP_TOUCH,
    STEP_REVOKE,         /* the first block, under the generation of its token, plus `number` */
    STEP_TRANSFER_BEGIN, /* likewise; tokens may be stale */
    STEP_TRANSFER_END,   /* of the running ones, counted round */
    STEP_TICK,           /* the clock moves on by `number` */
};

struct program_step {
    enum step_kind kind;
    uint8_t count;
    uint8_t blocks[MODEL_BATCH_MAX];
    uint8_t victims;   /* reserve: how many there are to be had */
    bool success;      /* commit */
    bool short_memory; /* reserve: no allocation succeeds */
    bool no_outputs;   /* reserve, commit: optional outputs are NULL */
    uint32_t number;
    uint64_t ttl_ms; /* reserve, touch; UINT64_MAX = none */
};

struct cache_program {
    const char *policy;
    uint32_t capacity;
    uint32_t block_count; /* that steps name */
    uint64_t start_ms;    /* of the clock */
    size_t step_count;
    struct program_step steps[PROGRAM_STEPS_MAX];
};

/* The same seed gives the same program for ever. */
void program_generate(struct cache_program *program, uint64_t seed);
/* Leave out steps [first, first + count). */
void program_cut(struct cache_program *program, size_t first, size_t count);
void program_print(const struct cache_program *program, FILE *file);

#endif /* UC_TEST_MODEL_CACHE_PROGRAM_H */
