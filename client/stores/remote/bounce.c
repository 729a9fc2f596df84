/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/bounce.h"

#include <sched.h>
#include <string.h>

#include <ucm/clock.h>

#include "client/stores/remote/attachment.h"
#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"

enum {
    /* How long a device's copies are polled without pause; then, as other things are, once a millisecond. */
    COPY_SPIN_NS = 500000,
};

bool
uc_bounce_fits(const struct uc_bounce *bounce, uint64_t size_bytes)
{
    return bounce->memory != NULL && size_bytes <= bounce->slot_bytes;
}

static struct uc_bounce_slot *
slot_of(struct uc_job *job, size_t block_idx)
{
    return &job->plane->bounce.slots[job->blocks[block_idx].slot_idx];
}

static bool
can_move(const struct uc_job *job)
{
    const struct uc_attachment *attachment = job->attachment;

    return !job->timed_out && attachment->state == UC_ATTACHMENT_READY &&
           attachment->failure == NULL;
}

/* A block is done with its buffer, whatever came of it. */
static void
conclude(struct uc_bounce_slot *slot)
{
    struct uc_job *job = slot->job;
    struct uc_bounce *bounce = &job->plane->bounce;

    uc_list_remove(&slot->link);
    job->attachment->bounce_count--;
    slot->job = NULL;
    slot->next = bounce->free_slots;
    bounce->free_slots = slot;
    job->bounce_left--;
    if (job->pending_ops == 0) {
        uc_plane_make_ready(job->plane, job);
    }
}

static void
fail_block(struct uc_job *job, size_t block_idx, enum uc_status status)
{
    if (job->blocks[block_idx].status == UC_OK) {
        job->blocks[block_idx].status = status;
    }
}

/*
 * Copy a block between its pieces and its buffer.
 *
 * @return Ok, Retry (a device copies, the ticket tells when it is done), or what failed and has ended
 */
static enum uc_status
copy_block(struct uc_job *job, size_t block_idx)
{
    const struct uc_job_block *block = &job->blocks[block_idx];
    const struct uc_device_ops *device_ops = NULL;
    struct uc_bounce_slot *slot = slot_of(job, block_idx);
    uint8_t *at = slot->memory;
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < block->piece_count && status == UC_OK; idx++) {
        const struct uc_fabric_piece *piece = &job->pieces[block->first_piece + idx];
        const struct uc_memory *memory = job->piece_memory[block->first_piece + idx];

        if (memory != NULL && memory->kind != UC_MEMORY_HOST) {
            device_ops = job->plane->bounce.device_ops;
            status = device_ops->copy(
                    slot->ticket, !job->is_dump, piece->address, at, piece->length_bytes);
        } else if (job->is_dump) {
            memcpy(at, piece->address, piece->length_bytes);
        } else {
            memcpy(piece->address, at, piece->length_bytes);
        }
        at += piece->length_bytes;
    }
    if (device_ops == NULL) {
        return status;
    }

    if (status != UC_OK) {
        fail_block(job, block_idx, status);
    }
    status = device_ops->mark(slot->ticket);
    return status == UC_OK ? UC_ERR_RETRY : status; /* it cannot fail on a device that still runs */
}

static void
post(struct uc_job *job, size_t block_idx)
{
    struct uc_bounce_slot *slot = slot_of(job, block_idx);

    if (!can_move(job)) {
        fail_block(job, block_idx, job->timed_out ? UC_ERR_TIMEOUT : UC_ERR_UNHEALTHY);
    }
    if (job->blocks[block_idx].status == UC_OK) {
        if (job->is_dump) {
            uc_dump_post_block(job, block_idx);
        } else {
            uc_load_post_block(job, block_idx);
        }
    }
    if (job->blocks[block_idx].pending_ops == 0) {
        conclude(slot);
    }
}

/* The bytes of a block have been copied, or not. */
static void
copied(struct uc_bounce_slot *slot, enum uc_status status)
{
    struct uc_job *job = slot->job;

    if (status != UC_OK) {
        fail_block(job, slot->block_idx, status);
    }
    if (job->is_dump && job->blocks[slot->block_idx].status == UC_OK) {
        post(job, slot->block_idx);
    } else {
        conclude(slot);
    }
}

static void
copy(struct uc_bounce_slot *slot)
{
    enum uc_status status = copy_block(slot->job, slot->block_idx);

    if (status == UC_ERR_RETRY) {
        slot->job->plane->bounce.copied_ns = uc_clock_now_ns();
        uc_list_add(&slot->job->plane->bounce.copying, &slot->link);
    } else {
        copied(slot, status);
    }
}

static void
start_block(struct uc_job *job, size_t block_idx)
{
    struct uc_bounce *bounce = &job->plane->bounce;
    struct uc_job_block *block = &job->blocks[block_idx];
    struct uc_bounce_slot *slot = bounce->free_slots;

    bounce->free_slots = slot->next;
    job->attachment->bounce_count++;
    slot->job = job;
    slot->block_idx = block_idx;
    block->slot_idx = (size_t)(slot - bounce->slots);
    block->bounce_pieces[0] = (struct uc_fabric_piece){
            .address = slot->memory,
            .length_bytes = block->size_bytes,
            .region = bounce->local.regions[job->attachment->transport],
    };
    block->bounce_pieces[1] = job->pieces[block->first_piece + block->piece_count];
    uc_plane_count(job->plane, UC_COUNT_blocks_bounced, 1);
    if (job->is_dump) {
        copy(slot);
    } else {
        post(job, block_idx);
    }
}

/* @return the next block that needs a buffer, block_count if none */
static size_t
next_block(struct uc_job *job)
{
    while (job->bounce_next < job->block_count && !job->blocks[job->bounce_next].is_bounced) {
        job->bounce_next++;
    }
    return job->bounce_next;
}

void
uc_bounce_enter(struct uc_job *job)
{
    for (size_t idx = 0; idx < job->block_count; idx++) {
        job->bounce_left += job->blocks[idx].is_bounced ? 1 : 0;
    }
    if (job->bounce_left > 0) {
        job->bounce_next = 0;
        uc_list_add(&job->plane->bounce.waiting, &job->bounce_link);
    }
}

void
uc_bounce_leave(struct uc_job *job, enum uc_status status)
{
    if (uc_list_is_empty(&job->bounce_link)) {
        return;
    }

    uc_list_remove(&job->bounce_link);
    while (next_block(job) < job->block_count) {
        fail_block(job, job->bounce_next++, status);
        job->bounce_left--;
    }
    if (job->pending_ops == 0) {
        uc_plane_make_ready(job->plane, job);
    }
}

void
uc_bounce_op_ended(struct uc_job *job, size_t block_idx)
{
    struct uc_bounce_slot *slot = slot_of(job, block_idx);

    if (!job->is_dump && job->blocks[block_idx].status == UC_OK) {
        copy(slot);
    } else {
        conclude(slot);
    }
}

void
uc_bounce_abandon(struct uc_job *job)
{
    struct uc_bounce *bounce = &job->plane->bounce;

    uc_bounce_leave(job, UC_ERR_UNHEALTHY);
    uc_list_for_each_safe (node, following, &bounce->copying) {
        struct uc_bounce_slot *slot = uc_list_entry(node, struct uc_bounce_slot, link);

        if (slot->job != job) {
            continue;
        }
        while (bounce->device_ops->poll(slot->ticket) == UC_ERR_RETRY) {
            (void)sched_yield();
        }
        fail_block(job, slot->block_idx, UC_ERR_UNHEALTHY);
        conclude(slot);
    }
}

static void
poll_copies(struct uc_bounce *bounce)
{
    uc_list_for_each_safe (node, following, &bounce->copying) {
        struct uc_bounce_slot *slot = uc_list_entry(node, struct uc_bounce_slot, link);
        enum uc_status status = bounce->device_ops->poll(slot->ticket);

        if (status != UC_ERR_RETRY) {
            bounce->copied_ns = uc_clock_now_ns();
            uc_list_remove(&slot->link);
            copied(slot, status);
        }
    }
}

/* @return whether the job has a buffer for all of its blocks, or needs none any more */
static bool
serve(struct uc_bounce *bounce, struct uc_job *job)
{
    while (bounce->free_slots != NULL && job->attachment->bounce_count < bounce->share &&
            next_block(job) < job->block_count) {
        start_block(job, job->bounce_next++);
    }
    return next_block(job) == job->block_count;
}

bool
uc_bounce_round(struct uc_data_plane *plane)
{
    struct uc_bounce *bounce = &plane->bounce;

    poll_copies(bounce);
    uc_list_for_each_safe (node, following, &bounce->waiting) {
        struct uc_job *job = uc_list_entry(node, struct uc_job, bounce_link);

        if (bounce->free_slots == NULL) {
            break;
        }
        if (!can_move(job)) {
            uc_bounce_leave(job, job->timed_out ? UC_ERR_TIMEOUT : UC_ERR_UNHEALTHY);
        } else if (serve(bounce, job)) {
            uc_list_remove(&job->bounce_link);
        }
    }
    return !uc_list_is_empty(&bounce->copying) &&
           uc_clock_now_ns() - bounce->copied_ns < COPY_SPIN_NS;
}
