/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/wait_scratch.h"

#include <stdlib.h>

void
uc_wait_scratch_fini(struct uc_wait_scratch *scratch)
{
    uc_job_table_fini(&scratch->seen);
    free(scratch->ids);
    free(scratch->merged);
}

static enum uc_status
reserve(struct uc_wait_scratch *scratch, size_t count)
{
    struct uc_io_result *merged;
    uint64_t *ids;

    if (count <= scratch->capacity) {
        return UC_OK;
    }
    if (count > SIZE_MAX / sizeof(merged[0])) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "wait: %zu job ids are too many", count);
    }

    ids = realloc(scratch->ids, 2 * count * sizeof(ids[0]));
    if (ids == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "wait: no memory for %zu job ids", count);
    }
    scratch->ids = ids;
    merged = realloc(scratch->merged, count * sizeof(merged[0]));
    if (merged == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "wait: no memory for %zu results", count);
    }
    scratch->merged = merged;
    scratch->capacity = count;
    return UC_OK;
}

enum uc_status
uc_wait_scratch_begin(
        struct uc_wait_scratch *scratch, const uint64_t *job_ids, size_t job_count, size_t capacity)
{
    enum uc_status status = reserve(scratch, job_count);

    scratch->distinct = 0;
    for (size_t idx = 0; status == UC_OK && idx < job_count; idx++) {
        if (uc_job_table_find(&scratch->seen, job_ids[idx]) != NULL) {
            continue; /* a repeated id counts once */
        }
        status = uc_job_table_add(&scratch->seen, job_ids[idx], 0);
        if (status == UC_OK) {
            scratch->ids[scratch->distinct++] = job_ids[idx];
        }
    }
    if (status == UC_OK && capacity < scratch->distinct) {
        status = uc_error(UC_ERR_INVALID_PARAM,
                "wait: room for %zu results, but %zu distinct job ids", capacity,
                scratch->distinct);
    }
    return status;
}

void
uc_wait_scratch_end(struct uc_wait_scratch *scratch)
{
    /* One by one: the table is as large as the longest list ever. */
    for (size_t idx = 0; idx < scratch->distinct; idx++) {
        (void)uc_job_table_remove(&scratch->seen, scratch->ids[idx]);
    }
    scratch->distinct = 0;
}
