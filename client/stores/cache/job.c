/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/job.h"

#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>

#include "client/stores/cache/slots.h"

enum uc_status
uc_cache_job_create(
        uint64_t job_id, const struct uc_job_descriptor *job, struct uc_cache_job **job_out)
{
    size_t pointer_count = 0;
    size_t bytes;
    struct uc_cache_job *made;
    void **pointers;
    uint64_t *sizes;

    for (size_t idx = 0; idx < job->count; idx++) {
        pointer_count += job->payloads[idx].pointer_count; /* arrays that exist: does not wrap */
    }
    bytes = sizeof(*made) + job->count * sizeof(made->items[0]) +
            pointer_count * (sizeof(pointers[0]) + sizeof(sizes[0])) + job->count / 8 + 1;
    made = calloc(1, bytes);
    if (made == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "cache store: no memory for a job of %zu blocks", job->count);
    }

    made->id = job_id;
    made->count = job->count;
    made->prerequisite_handle = job->prerequisite_handle;
    made->items = (struct uc_cache_item *)(void *)(made + 1);
    pointers = (void **)(void *)(made->items + job->count);
    sizes = (uint64_t *)(void *)(pointers + pointer_count);
    made->blocks = (uint8_t *)(sizes + pointer_count);
    uc_list_init(&made->node);
    for (size_t idx = 0; idx < job->count; idx++) {
        const struct uc_block_payload *payload = &job->payloads[idx];

        made->items[idx].payload = (struct uc_block_payload){
                .pointers = pointers,
                .sizes = sizes,
                .pointer_count = payload->pointer_count,
                .block_offset = payload->block_offset,
        };
        for (size_t pointer = 0; pointer < payload->pointer_count; pointer++) {
            *pointers++ = payload->pointers[pointer];
            *sizes++ = payload->sizes[pointer];
        }
    }
    *job_out = made;
    return UC_OK;
}

void
uc_cache_job_destroy(struct uc_cache_job *job)
{
    free(job);
}

static enum uc_status
move(const struct uc_cache_job *job, const struct uc_cache_item *item)
{
    const struct uc_cache_segment *segment = job->attachment->segment;

    if (uc_clock_now_ns() / 1000000u >= job->deadline_ms) {
        return UC_ERR_TIMEOUT;
    }
    return job->is_load ? uc_cache_slot_load(segment, item->place.slot, item->place.generation,
                                  &item->id, &item->payload)
                        : uc_cache_slot_dump(segment, item->place.slot, item->place.generation,
                                  &item->id, &item->payload);
}

void
uc_cache_job_run(struct uc_cache_job *job, size_t idx)
{
    struct uc_cache_item *item = &job->items[idx];

    if (job->verdict != UC_OK) {
        item->code = job->verdict;
    } else if (item->is_counted) {
        item->code = move(job, item);
    }
    if (item->is_counted) {
        uc_cache_slot_end(job->attachment->segment, item->place.slot);
        item->is_counted = false;
    }
}

enum uc_status
uc_cache_job_sum_up(struct uc_cache_job *job)
{
    enum uc_status code = UC_OK;

    for (size_t idx = 0; idx < job->count; idx++) {
        enum uc_status item_code = job->items[idx].code;

        if (item_code == UC_OK) {
            job->blocks[idx / 8] = (uint8_t)(job->blocks[idx / 8] | 1u << idx % 8);
        } else if (code == UC_OK || item_code == UC_ERR_TIMEOUT) {
            code = code == UC_ERR_TIMEOUT ? code : item_code;
        }
    }
    return code;
}
