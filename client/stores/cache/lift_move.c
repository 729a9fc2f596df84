/* SPDX-License-Identifier: Apache-2.0 */

/* One move between slots and the tier below: its memory, its start, its end. */

#include <stdlib.h>

#include "client/stores/cache/lift_internal.h"
#include "client/stores/cache/slots.h"

struct move *
uc_cache_lift_create_move(size_t count)
{
    struct move *move = calloc(1, sizeof(*move));

    if (move == NULL) {
        goto err_no_memory;
    }
    uc_list_init(&move->node);
    move->count = count;
    move->ids = calloc(count + 1, sizeof(move->ids[0]));
    move->places = calloc(count + 1, sizeof(move->places[0]));
    move->is_counted = calloc(count + 1, 1);
    move->blocks = calloc(count / 8 + 1, 1);
    if (move->ids != NULL && move->places != NULL && move->is_counted != NULL &&
            move->blocks != NULL) {
        return move;
    }

    free(move->ids);
    free(move->places);
    free(move->is_counted);
    free(move->blocks);
    free(move);
err_no_memory:
    (void)uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory to move %zu blocks", count);
    return NULL;
}

void
uc_cache_lift_destroy_move(struct uc_cache_lift *lift, struct move *move)
{
    uc_cache_plane_let_go(lift->plane, move->attachment);
    uc_token_destroy(move->lower);
    free(move->ids);
    free(move->places);
    free(move->is_counted);
    free(move->blocks);
    free(move);
}

/* ---- the end of a move ---- */

static bool
has_block(const struct move *move, size_t idx)
{
    return (move->blocks[idx / 8] >> (idx % 8) & 1u) != 0;
}

static void
end_slots(const struct move *move)
{
    for (size_t idx = 0; idx < move->count; idx++) {
        const struct uc_cache_segment *segment;

        if (move->is_counted[idx] == 0) {
            move->blocks[idx / 8] = (uint8_t)(move->blocks[idx / 8] & ~(1u << idx % 8));
            continue;
        }
        segment = move->attachment->segment;
        if (move->task == NULL && has_block(move, idx)) {
            uc_cache_slot_seal(
                    segment, move->places[idx].slot, move->places[idx].generation, &move->ids[idx]);
        }
        uc_cache_slot_end(segment, move->places[idx].slot);
    }
}

void
uc_cache_lift_end_move(struct uc_cache_lift *lift, struct move *move, enum uc_status code)
{
    if (!move->is_delegated) {
        end_slots(move);
        for (size_t idx = 0; idx < move->count && code == UC_OK; idx++) {
            code = has_block(move, idx) ? UC_OK : UC_ERR_NOT_FOUND; /* a stale destination */
        }
    }
    if (move->task != NULL) {
        uc_cache_lift_end_task(move->task, move->task_state, move->blocks[0]);
    } else {
        uc_completion_queue_finish(lift->events, move->job_id, code, move->blocks);
    }
    uc_cache_lift_destroy_move(lift, move);
}

/* ---- the start ---- */

/* The segment of an earlier life is given up once nothing of it moves any more. */
static enum uc_status
register_segment(struct uc_cache_lift *lift, struct uc_cache_attachment *attachment)
{
    const struct uc_cache_segment *segment = attachment->segment;
    enum uc_status status;

    if (lift->registered == attachment) {
        return UC_OK;
    }
    if (lift->registered != NULL) {
        status = uc_store_deregister_memory(lift->lower, lift->region_idx);
        if (status != UC_OK) {
            return status;
        }
        uc_cache_plane_let_go(lift->plane, lift->registered);
        lift->registered = NULL;
    }

    status = uc_store_register_memory(lift->lower, lift->next_region, segment->bytes,
            segment->slot_count * segment->stride, UC_MEMORY_HOST);
    if (status == UC_OK) {
        lift->region_idx = lift->next_region++;
        lift->registered = attachment;
        uc_cache_plane_hold(lift->plane, attachment);
    }
    return status;
}

void
uc_cache_lift_count_in(struct move *move)
{
    for (size_t idx = 0; idx < move->count; idx++) {
        move->is_counted[idx] =
                uc_cache_slot_begin(move->attachment->segment, move->places[idx].slot,
                        move->places[idx].generation) == UC_OK;
    }
}

static enum uc_status
call_lower(const struct uc_cache_lift *lift, const struct move *move,
        const struct uc_job_descriptor *job)
{
    bool is_load = move->task == NULL;

    if (move->lower != NULL) {
        return is_load ? lift->lower_tokens->load(
                                 lift->lower, move->lower_job_id, job, move->lower, move->first)
                       : lift->lower_tokens->dump(
                                 lift->lower, move->lower_job_id, job, move->lower, move->first);
    }
    return is_load ? uc_store_load(lift->lower, move->lower_job_id, job)
                   : uc_store_dump(lift->lower, move->lower_job_id, job);
}

/* The run, with one pointer per block: the slot itself. */
static enum uc_status
transfer(const struct uc_cache_lift *lift, struct move *move)
{
    const struct uc_cache_segment *segment = move->attachment->segment;
    struct uc_block_payload *payloads = calloc(move->run_count, sizeof(payloads[0]));
    void **pointers = calloc(move->run_count, sizeof(pointers[0]));
    struct uc_job_descriptor job = {.block_ids = move->ids + move->first,
            .payloads = payloads,
            .count = move->run_count,
            .timeout_ms = lift->timeout_ms};
    enum uc_status status;

    if (payloads == NULL || pointers == NULL) {
        status = uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for a transfer below");
        goto out_free;
    }

    for (size_t idx = 0; idx < move->run_count; idx++) {
        pointers[idx] = uc_cache_segment_bytes(segment, move->places[move->first + idx].slot);
        payloads[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx],
                .sizes = &segment->block_bytes,
                .pointer_count = 1,
                .memory_region_indices = &lift->region_idx,
                .memory_region_index_count = 1,
        };
    }
    status = call_lower(lift, move, &job);

out_free:
    free(pointers);
    free(payloads);
    return status;
}

/* A slot that is stale is not handed out: the blocks between two such go together. @return whether there are any */
static bool
find_run(struct move *move)
{
    size_t idx = move->first + move->run_count;

    while (idx < move->count && move->is_counted[idx] == 0) {
        idx++;
    }
    move->first = idx;
    while (idx < move->count && move->is_counted[idx] != 0) {
        idx++;
    }
    move->run_count = idx - move->first;
    return move->run_count > 0;
}

void
uc_cache_lift_go_on(struct uc_cache_lift *lift, struct move *move)
{
    while (!move->is_delegated && find_run(move)) {
        enum uc_status status;

        move->lower_job_id = ++lift->last_job_id;
        status = transfer(lift, move);
        if (status == UC_OK) {
            uc_list_add(&lift->active, &move->node);
            return;
        }
        move->code = move->code == UC_OK ? status : move->code;
    }
    uc_cache_lift_end_move(lift, move, move->code);
}

void
uc_cache_lift_start_move(struct uc_cache_lift *lift, struct move *move)
{
    enum uc_status status = UC_OK;

    if (move->is_delegated) {
        move->lower_job_id = ++lift->last_job_id;
        status = lift->lower_facet->prefetch(lift->lower, move->lower_job_id, move->lower);
        if (status == UC_OK) {
            uc_list_add(&lift->active, &move->node);
            return;
        }
    } else if (move->count > 0) {
        status = move->attachment == NULL ? UC_ERR_NOT_FOUND
                                          : register_segment(lift, move->attachment);
    }

    if (status != UC_OK) {
        uc_cache_lift_end_move(lift, move, status);
    } else {
        uc_cache_lift_go_on(lift, move);
    }
}
