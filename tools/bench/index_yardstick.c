/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/index_yardstick.h"

#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>

#include "core/base/huge_pages.h"

enum {
    LINE_BYTES = 64
};

#define STEP       0x9e3779b97f4a7c15ull
#define MULTIPLIER 0xd1342543de82ef95ull

struct uc_yardstick {
    uint8_t *memory;
    size_t line_count;
    uint64_t state; /* where the last call stopped, so that no two read the same lines */
};

enum uc_status
uc_yardstick_create(size_t footprint_bytes, struct uc_yardstick **yardstick_out)
{
    struct uc_yardstick *yardstick = calloc(1, sizeof(*yardstick));

    if (yardstick == NULL) {
        goto err_no_memory;
    }

    yardstick->line_count = footprint_bytes / LINE_BYTES + 1;
    yardstick->memory = calloc(yardstick->line_count, LINE_BYTES);
    if (yardstick->memory == NULL) {
        goto err_free;
    }

    uc_huge_pages_advise(yardstick->memory, yardstick->line_count * LINE_BYTES);
    memset(yardstick->memory, 1, yardstick->line_count * LINE_BYTES); /* pages of our own */
    *yardstick_out = yardstick;
    return UC_OK;

err_free:
    free(yardstick);
err_no_memory:
    return uc_error(
            UC_ERR_OUT_OF_MEMORY, "index: no memory for a yardstick of %zu bytes", footprint_bytes);
}

void
uc_yardstick_destroy(struct uc_yardstick *yardstick)
{
    if (yardstick == NULL) {
        return;
    }

    free(yardstick->memory);
    free(yardstick);
}

static const uint64_t *
line_of(const struct uc_yardstick *yardstick, uint64_t random)
{
    size_t line;

    random = (random ^ random >> 32) * MULTIPLIER; /* no stride that a machine could guess */
    line = (size_t)((random >> 32) * yardstick->line_count >> 32);

    return (const void *)(yardstick->memory + line * LINE_BYTES);
}

uint64_t
uc_yardstick_independent_ns(struct uc_yardstick *yardstick, uint64_t count)
{
    uint64_t start_ns = uc_clock_now_ns();
    uint64_t state = yardstick->state;
    uint64_t sum = 0;

    for (uint64_t idx = 0; idx < count; idx++) {
        state += STEP;
        sum += *line_of(yardstick, state);
    }
    yardstick->state = state + (sum & 1u); /* the reads must have happened */
    return uc_clock_now_ns() - start_ns;
}

uint64_t
uc_yardstick_dependent_ns(struct uc_yardstick *yardstick, uint64_t count)
{
    uint64_t start_ns = uc_clock_now_ns();
    uint64_t state = yardstick->state;

    for (uint64_t idx = 0; idx < count; idx++) {
        state += STEP + *line_of(yardstick, state);
    }
    yardstick->state = state;
    return uc_clock_now_ns() - start_ns;
}
