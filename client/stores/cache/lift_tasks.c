/* SPDX-License-Identifier: Apache-2.0 */

/* Tasks of write-through: slots that the owner of the segment wants dumped below. */

#include "client/stores/cache/lift_internal.h"
#include "client/stores/cache/slots.h"

void
uc_cache_lift_end_task(struct uc_cache_task *task, uint32_t state, uint8_t good)
{
    uint32_t done = UC_CACHE_TASK_STATE(
            UC_CACHE_TASK_DONE, UC_CACHE_TASK_ROW(state), good, UC_CACHE_TASK_SEQUENCE(state));

    (void)atomic_compare_exchange_strong_explicit(
            &task->state, &state, done, memory_order_release, memory_order_relaxed);
}

/* Everything in a task lies in memory of others: it is copied, then checked. */
static struct move *
move_of_task(struct uc_cache_lift *lift, const struct uc_cache_attachment *attachment,
        struct uc_cache_task *task)
{
    uint32_t count = task->count;
    uint32_t token_bytes = task->token_bytes;
    struct move *move;

    if (count == 0 || count > UC_CACHE_TASK_BLOCKS || token_bytes > UC_CACHE_TASK_TOKEN_BYTES ||
            (token_bytes == 0) != (lift->lower_tokens == NULL)) {
        return NULL;
    }
    move = uc_cache_lift_create_move(count);
    if (move == NULL) {
        return NULL;
    }
    move->task = task;
    for (uint32_t idx = 0; idx < count; idx++) {
        move->ids[idx] = task->ids[idx];
        move->places[idx].slot = task->slots[idx];
        move->places[idx].generation = task->generations[idx];
        if (move->places[idx].slot >= attachment->segment->slot_count) {
            goto err_destroy;
        }
    }
    if (token_bytes > 0 && (uc_token_deserialize(task->token, token_bytes, &move->lower) != UC_OK ||
                                   move->lower->key_count != count)) {
        goto err_destroy;
    }
    return move;

err_destroy:
    uc_cache_lift_destroy_move(lift, move);
    return NULL;
}

/* The tier below sums up what it is given: a block that was damaged here would be a good one there. */
static void
leave_out_damaged(struct move *move)
{
    const struct uc_cache_segment *segment = move->attachment->segment;

    for (size_t idx = 0; idx < move->count; idx++) {
        const struct uc_cache_place *place = &move->places[idx];

        if (move->is_counted[idx] != 0 && !uc_cache_slot_is_intact(segment, place->slot,
                                                  place->generation, &move->ids[idx])) {
            uc_cache_slot_end(segment, place->slot);
            move->is_counted[idx] = 0;
        }
    }
}

void
uc_cache_lift_take_tasks(struct uc_cache_lift *lift)
{
    struct uc_cache_attachment *attachment = uc_cache_plane_current(lift->plane);

    for (size_t idx = 0; attachment != NULL && idx < UC_CACHE_TASKS; idx++) {
        struct uc_cache_task *task = &attachment->segment->tasks[idx];
        uint32_t queued = atomic_load_explicit(&task->state, memory_order_relaxed);
        uint32_t taken = UC_CACHE_TASK_STATE(
                UC_CACHE_TASK_TAKEN, attachment->segment->row, 0, UC_CACHE_TASK_SEQUENCE(queued));
        struct move *move;

        if (UC_CACHE_TASK_KIND(queued) != UC_CACHE_TASK_QUEUED ||
                !atomic_compare_exchange_strong_explicit(
                        &task->state, &queued, taken, memory_order_acquire, memory_order_relaxed)) {
            continue;
        }
        move = move_of_task(lift, attachment, task);
        if (move == NULL) {
            uc_cache_lift_end_task(task, taken, 0);
            continue;
        }
        move->task_state = taken;
        uc_cache_plane_hold(lift->plane, attachment);
        move->attachment = attachment;
        uc_cache_lift_count_in(move);
        leave_out_damaged(move);
        uc_cache_lift_start_move(lift, move);
    }
    uc_cache_plane_let_go(lift->plane, attachment);
}
