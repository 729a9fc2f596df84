/* SPDX-License-Identifier: Apache-2.0 */

/** @file cache_duel.h One program, run by the engine and by the model; after each step all that shows must agree. */

#ifndef UC_TEST_MODEL_CACHE_DUEL_H
#define UC_TEST_MODEL_CACHE_DUEL_H

#include "test/model/cache_program.h"

struct duel_result {
    bool agreed;
    size_t step; /* where they parted */
    char complaint[256];
};

void duel_run(const struct cache_program *program, struct duel_result *result_out);

#endif /* UC_TEST_MODEL_CACHE_DUEL_H */
