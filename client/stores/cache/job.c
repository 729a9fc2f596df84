/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/job.h"

#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>

#include "client/stores/cache/slots.h"
#include "core/base/copy_hash.h"

enum uc_status
uc_cache_job_create(
        uint64_t job_id, const struct uc_job_descriptor *job, struct uc_cache_job **job_out)
{
    size_t pointer_count = 0;
    size_t bytes;
    struct uc_cache_job *made;
    void **pointers;
    uint64_t *sizes;
    bool *on_device;

    for (size_t idx = 0; idx < job->count; idx++) {
        pointer_count += job->payloads[idx].pointer_count; /* arrays that exist: does not wrap */
    }
    bytes = sizeof(*made) + job->count * sizeof(made->items[0]) +
            pointer_count * (sizeof(pointers[0]) + sizeof(sizes[0]) + sizeof(on_device[0])) +
            job->count / 8 + 1;
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
    on_device = (bool *)(sizes + pointer_count);
    made->blocks = (uint8_t *)(on_device + pointer_count);
    uc_list_init(&made->node);
    uc_list_init(&made->lines[0].node);
    uc_list_init(&made->lines[1].node);
    made->lines[0].left = job->count;
    for (size_t idx = 0; idx < job->count; idx++) {
        const struct uc_block_payload *payload = &job->payloads[idx];

        made->items[idx].payload = (struct uc_block_payload){
                .pointers = pointers,
                .sizes = sizes,
                .pointer_count = payload->pointer_count,
                .block_offset = payload->block_offset,
        };
        made->items[idx].on_device = on_device;
        on_device += payload->pointer_count;
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

void
uc_cache_job_set_device(struct uc_cache_job *job, size_t idx, size_t pointer)
{
    struct uc_cache_item *item = &job->items[idx];

    item->on_device[pointer] = true;
    if (!item->is_device) {
        item->is_device = true;
        job->lines[0].left--;
        job->lines[1].left++;
    }
}

size_t
uc_cache_job_take(struct uc_cache_job *job, bool is_device)
{
    struct uc_cache_line *line = &job->lines[is_device ? 1 : 0];
    size_t idx = line->next;

    while (job->items[idx].is_device != is_device) {
        idx++;
    }
    line->next = idx + 1;
    line->left--;
    return idx;
}

static bool
is_late(const struct uc_cache_job *job)
{
    return uc_clock_now_ns() / 1000000u >= job->deadline_ms;
}

static enum uc_status
move(const struct uc_cache_job *job, const struct uc_cache_item *item)
{
    const struct uc_cache_segment *segment = job->attachment->segment;

    if (is_late(job)) {
        return UC_ERR_TIMEOUT;
    }
    return job->is_load ? uc_cache_slot_load(segment, item->place.slot, item->place.generation,
                                  &item->id, &item->payload)
                        : uc_cache_slot_dump(segment, item->place.slot, item->place.generation,
                                  &item->id, &item->payload);
}

static void
count_out(struct uc_cache_job *job, struct uc_cache_item *item)
{
    if (item->is_counted) {
        uc_cache_slot_end(job->attachment->segment, item->place.slot);
        item->is_counted = false;
    }
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
    count_out(job, item);
}

void
uc_cache_job_fail(struct uc_cache_job *job, size_t idx, enum uc_status code)
{
    job->items[idx].code = code;
    count_out(job, &job->items[idx]);
}

/* ---- by a device ---- */

/* @param[out] bytes_out  NULL: there is nothing to move */
static enum uc_status
begin(const struct uc_cache_job *job, const struct uc_cache_item *item, uint8_t **bytes_out)
{
    const struct uc_cache_segment *segment = job->attachment->segment;

    if (is_late(job)) {
        return UC_ERR_TIMEOUT;
    }
    return job->is_load ? uc_cache_slot_load_start(segment, item->place.slot,
                                  item->place.generation, &item->id, &item->payload, bytes_out)
                        : uc_cache_slot_dump_start(segment, item->place.slot,
                                  item->place.generation, &item->payload, bytes_out);
}

/* @param[out] started_out  whether copies may run, whatever is answered */
static enum uc_status
start_copies(const struct uc_cache_job *job, const struct uc_cache_item *item, uint8_t *bytes,
        const struct uc_device_ops *ops, struct uc_device_ticket *ticket, bool *started_out)
{
    const struct uc_block_payload *payload = &item->payload;
    enum uc_status status = UC_OK;

    *started_out = false;
    for (size_t idx = 0; status == UC_OK && idx < payload->pointer_count; idx++) {
        void *memory = payload->pointers[idx];
        uint64_t length = payload->sizes[idx];

        if (item->on_device[idx]) {
            status = ops->copy(ticket, job->is_load, memory, bytes, length);
            *started_out = *started_out || status == UC_OK;
        } else {
            uc_copy_stream(
                    job->is_load ? memory : bytes, job->is_load ? bytes : memory, (size_t)length);
        }
        bytes += length;
    }
    return status;
}

bool
uc_cache_job_start(struct uc_cache_job *job, size_t idx, const struct uc_device_ops *ops,
        struct uc_device_ticket *ticket)
{
    struct uc_cache_item *item = &job->items[idx];
    uint8_t *bytes = NULL;
    bool started = false;

    if (job->verdict != UC_OK) {
        item->code = job->verdict;
    } else if (item->is_counted) {
        item->code = begin(job, item, &bytes);
    }
    if (bytes != NULL) {
        item->code = start_copies(job, item, bytes, ops, ticket, &started);
    }
    if (started) {
        enum uc_status marked = ops->mark(ticket);

        if (marked != UC_OK) { /* only of a device on which nothing runs any more */
            item->code = marked;
            started = false;
        }
    }
    if (bytes != NULL && item->code == UC_OK && job->is_load) {
        item->code = uc_cache_slot_load_check(
                job->attachment->segment, item->place.slot, item->place.generation, &item->payload);
    }
    if (!started) {
        count_out(job, item);
    }
    return started;
}

void
uc_cache_job_end(struct uc_cache_job *job, size_t idx, enum uc_status copied)
{
    struct uc_cache_item *item = &job->items[idx];

    if (item->code == UC_OK) {
        item->code = copied;
    }
    if (item->code == UC_OK && !job->is_load) {
        item->code = uc_cache_slot_dump_end(job->attachment->segment, item->place.slot,
                item->place.generation, &item->id, &item->payload);
    }
    count_out(job, item);
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
