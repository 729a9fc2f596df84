/* SPDX-License-Identifier: Apache-2.0 */

#include "server/scratch.h"

#include <stdlib.h>

#include "net/rpc/messages.h"

enum {
    CAPACITY_FIRST = 1024
};

void
uc_scratch_fini(struct uc_scratch *scratch)
{
    free(scratch->ids);
    free(scratch->more_ids);
    free(scratch->slots);
    free(scratch->outcomes);
    free(scratch->indices);
    free(scratch->more_indices);
    free(scratch->bytes);
    free(scratch->entries);
    *scratch = (struct uc_scratch){0};
}

enum uc_status
uc_scratch_reserve(struct uc_scratch *scratch, size_t count)
{
    struct uc_scratch larger = {.capacity = CAPACITY_FIRST};

    if (count <= scratch->capacity) {
        return UC_OK;
    }
    while (larger.capacity < count) {
        larger.capacity *= 2;
    }

    larger.ids = calloc(larger.capacity, sizeof(*larger.ids));
    larger.more_ids = calloc(larger.capacity, sizeof(*larger.more_ids));
    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    larger.outcomes = calloc(larger.capacity, sizeof(*larger.outcomes));
    larger.indices = calloc(larger.capacity, sizeof(*larger.indices));
    larger.more_indices = calloc(larger.capacity, sizeof(*larger.more_indices));
    larger.bytes = calloc(larger.capacity, 1);
    larger.entries = calloc(larger.capacity, UC_ENTRY_BYTES);
    if (larger.ids == NULL || larger.more_ids == NULL || larger.slots == NULL ||
            larger.outcomes == NULL || larger.indices == NULL || larger.more_indices == NULL ||
            larger.bytes == NULL || larger.entries == NULL) {
        uc_scratch_fini(&larger);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a call with %zu keys", count);
    }

    uc_scratch_fini(scratch);
    *scratch = larger;
    return UC_OK;
}
