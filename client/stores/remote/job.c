/* SPDX-License-Identifier: Apache-2.0 */

/* What the progress thread does with a job whatever its direction: checks, operations, end. */

#include "client/stores/remote/job.h"

#include <string.h>

#include <ucm/log.h>

#include "client/stores/remote/attachment.h"
#include "client/stores/remote/bounce.h"
#include "client/stores/remote/plane_internal.h"

/* @return Ok, or why this block cannot be moved; every number comes from outside */
static enum uc_status
check_block(const struct uc_attachment *attachment, const struct uc_job *job,
        const struct uc_job_block *block)
{
    const struct uc_entry *entry = &block->entry;
    uint64_t limit_bytes = job->is_dump ? attachment->block_bytes : entry->length_bytes;
    uint64_t region_bytes;

    if (entry->generation == 0 || entry->region_idx >= attachment->region_count) {
        return UC_ERR_INVALID_PARAM;
    }
    region_bytes = attachment->regions[entry->region_idx].length_bytes;
    if (entry->offset_bytes > region_bytes ||
            attachment->slot_bytes > region_bytes - entry->offset_bytes) {
        return UC_ERR_INVALID_PARAM;
    }
    if (limit_bytes > attachment->block_bytes || block->offset_bytes > limit_bytes ||
            block->size_bytes > limit_bytes - block->offset_bytes) {
        return UC_ERR_INVALID_PARAM; /* */
    }

    return UC_OK;
}

/*
 * Name the transport's region of every piece of a block; one piece that it cannot use makes the block bounce.
 *
 * @return whether it can be moved
 */
static bool
bind_pieces(struct uc_job *job, struct uc_job_block *block, enum uc_transport_id transport)
{
    const struct uc_fabric_caps *caps = &job->plane->transports.items[transport].caps;
    bool needed = caps->needs_registration;
    bool used = needed || caps->uses_registration;

    for (size_t idx = 0; idx < block->piece_count; idx++) {
        size_t piece = block->first_piece + idx;
        const struct uc_memory *memory = job->piece_memory[piece];
        bool on_device = memory != NULL && memory->kind != UC_MEMORY_HOST;

        job->pieces[piece].region =
                used && memory != NULL ? memory->local.regions[transport] : NULL;
        block->is_on_device = block->is_on_device || on_device;
        block->is_bounced =
                block->is_bounced || (job->pieces[piece].region == NULL && (needed || on_device));
    }
    job->pieces[block->first_piece + block->piece_count].region =
            used ? job->footer_memory.regions[transport] : NULL;
    return (!needed || job->footer_memory.regions[transport] != NULL) &&
           (!block->is_bounced || uc_bounce_fits(&job->plane->bounce, block->size_bytes));
}

static void
prepare_blocks(struct uc_job *job)
{
    const struct uc_attachment *attachment = job->attachment;

    for (size_t idx = 0; idx < job->block_count; idx++) {
        struct uc_job_block *block = &job->blocks[idx];

        if (job->is_dump && (block->entry.flags & (UC_ENTRY_PRESENT | UC_ENTRY_SHARED)) != 0) {
            block->skip = true; /* a shared entry names no slot that could be checked */
            continue;
        }
        block->status = check_block(attachment, job, block);
        if (block->status == UC_OK && !bind_pieces(job, block, attachment->transport)) {
            block->status = uc_error(UC_ERR_INVALID_PARAM,
                    "remote store: job %llu: the transport cannot use the memory of a block, and there "
                    "are no buffers for it: register it, or set `bounce_bytes`",
                    (unsigned long long)job->job_id);
            if (uc_plane_may_warn(job->plane)) {
                uc_log_warn("%s", uc_last_error());
            }
        }
        block->is_bounced = block->is_bounced && block->status == UC_OK;
    }
}

void
uc_job_start(struct uc_job *job)
{
    struct uc_attachment *attachment = job->attachment;
    enum uc_status status = uc_token_payload_verify(
            job->plane->mac, &job->view, job->token.keys, job->node_idx, attachment->mac_key);

    uc_list_add(&attachment->active, &job->link);
    if (status != UC_OK) {
        if (uc_plane_may_warn(job->plane)) {
            uc_log_warn(
                    "remote store: job %llu: %s", (unsigned long long)job->job_id, uc_last_error());
        }
        uc_job_fail_blocks(job, status);
        uc_job_finish(job);
        return;
    }

    prepare_blocks(job);
    if (job->is_dump) {
        uc_dump_start(job);
    } else {
        uc_load_start(job);
    }
}

void
uc_job_advance(struct uc_job *job)
{
    if (job->pending_ops > 0 || job->rpc_pending || job->bounce_left > 0) {
        return;
    }

    if (job->is_dump) {
        uc_dump_advance(job);
    } else {
        uc_load_advance(job);
    }
}

void
uc_job_fail_blocks(struct uc_job *job, enum uc_status status)
{
    for (size_t idx = 0; idx < job->block_count; idx++) {
        if (job->blocks[idx].status == UC_OK && !job->blocks[idx].skip) {
            job->blocks[idx].status = status;
        }
    }
}

void
uc_job_on_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct uc_job *job = context;
    struct uc_attachment *attachment = job->attachment;

    (void)result;
    job->rpc_pending = false;
    job->rpc_status = status;
    if (status == UC_ERR_TIMEOUT) {
        /* Whether the server did it is unknown; without this connection it undoes it. */
        job->rpc_status = UC_ERR_UNHEALTHY;
        attachment->rpc_dead = true;
    } else if (status == UC_ERR_STALE) {
        uc_attachment_fail(attachment, "the server has forgotten it");
    } else if (status != UC_ERR_UNHEALTHY) {
        uc_attachment_answered(attachment, job->rpc_sent_ms);
    }
    uc_plane_make_ready(job->plane, job);
}

static struct uc_job_op *
add_op(struct uc_job *job, size_t block_idx, enum uc_fabric_opcode opcode, uint64_t slot_offset,
        void (*on_done)(struct uc_fabric_op *op, enum uc_status status))
{
    const struct uc_entry *entry = &job->blocks[block_idx].entry;
    bool follows = job->op_count > 0 && job->ops[job->op_count - 1].block_idx == block_idx;
    struct uc_job_op *job_op = &job->ops[job->op_count++];

    *job_op = (struct uc_job_op){
            .op =
                    {
                            .opcode = opcode,
                            .follows = follows, /* a footer must not be older than its bytes */
                            .region_idx = entry->region_idx,
                            .offset_bytes = entry->offset_bytes + slot_offset,
                            .generation = entry->generation,
                            .on_done = on_done,
                    },
            .job = job,
            .block_idx = block_idx,
    };
    return job_op;
}

void
uc_job_add_payload_ops(struct uc_job *job, size_t block_idx, enum uc_fabric_opcode opcode,
        bool extra_piece, void (*on_done)(struct uc_fabric_op *op, enum uc_status status))
{
    const struct uc_job_block *block = &job->blocks[block_idx];
    size_t chunk = job->plane->transports.items[job->attachment->transport].caps.max_piece_count;
    size_t left = 0;
    const struct uc_fabric_piece *pieces = uc_job_payload_pieces(job, block, &left);
    uint64_t slot_offset = block->offset_bytes;

    left += extra_piece ? 1 : 0;
    while (left > 0) {
        struct uc_job_op *job_op = add_op(job, block_idx, opcode, slot_offset, on_done);

        job_op->op.pieces = pieces;
        job_op->op.piece_count = left < chunk ? left : chunk;
        for (size_t idx = 0; idx < job_op->op.piece_count; idx++) {
            slot_offset += pieces[idx].length_bytes;
        }
        pieces += job_op->op.piece_count;
        left -= job_op->op.piece_count;
    }
}

void
uc_job_add_footer_op(struct uc_job *job, size_t block_idx, enum uc_fabric_opcode opcode,
        uint64_t offset_bytes, void (*on_done)(struct uc_fabric_op *op, enum uc_status status))
{
    const struct uc_job_block *block = &job->blocks[block_idx];
    struct uc_job_op *job_op = add_op(job, block_idx, opcode, offset_bytes, on_done);

    if (opcode == UC_FABRIC_FLUSH) {
        job_op->block_idx = SIZE_MAX;
        return;
    }
    job_op->op.pieces = &job->pieces[block->first_piece + block->piece_count];
    job_op->op.piece_count = 1;
}

static void
count_posted(struct uc_job_op *job_op, bool posted)
{
    struct uc_job *job = job_op->job;
    size_t delta = posted ? 1 : SIZE_MAX; /* adding SIZE_MAX takes one away */

    job->pending_ops += delta;
    if (job_op->block_idx != SIZE_MAX) {
        job->blocks[job_op->block_idx].pending_ops += delta;
    }
    if (job->attachment->transport == UC_TRANSPORT_VERBS) {
        job->plane->verbs_op_count += posted ? 1 : UINT64_MAX;
    }
}

void
uc_job_op_ended(struct uc_job_op *job_op, enum uc_status status)
{
    struct uc_job *job = job_op->job;

    count_posted(job_op, false);
    if (status == UC_OK) {
        return;
    }

    if (job_op->block_idx == SIZE_MAX) {
        uc_job_fail_blocks(job, status);
    } else if (job->blocks[job_op->block_idx].status == UC_OK) {
        job->blocks[job_op->block_idx].status = status;
    }
}

void
uc_job_post(struct uc_job *job, size_t first, size_t count)
{
    const struct uc_fabric_ops *ops = job->plane->transports.items[job->attachment->transport].ops;
    struct uc_fabric_endpoint *endpoint = job->attachment->endpoint;

    if (count == 0) {
        return;
    }

    for (size_t idx = first; idx < first + count; idx++) {
        job->ops[idx].op.next = idx + 1 < first + count ? &job->ops[idx + 1].op : NULL;
        count_posted(&job->ops[idx], true);
    }
    if (ops->post(endpoint, &job->ops[first].op) == UC_OK) {
        return;
    }

    /* The list was refused as a whole: find out which of them. */
    for (size_t idx = first; idx < first + count; idx++) {
        enum uc_status status;

        job->ops[idx].op.next = NULL;
        status = ops->post(endpoint, &job->ops[idx].op);
        if (status != UC_OK) {
            uc_log_debug("remote store: job %llu: post: %s", (unsigned long long)job->job_id,
                    uc_last_error());
            uc_job_op_ended(&job->ops[idx], status);
        }
    }
}

const struct uc_fabric_piece *
uc_job_payload_pieces(const struct uc_job *job, const struct uc_job_block *block, size_t *count_out)
{
    *count_out = block->is_bounced ? 1 : block->piece_count;
    return block->is_bounced ? block->bounce_pieces : &job->pieces[block->first_piece];
}

const struct uc_checksum_piece *
uc_job_checksum_pieces(struct uc_job *job, const struct uc_job_block *block, size_t *count_out)
{
    const struct uc_fabric_piece *pieces = uc_job_payload_pieces(job, block, count_out);

    for (size_t idx = 0; idx < *count_out; idx++) {
        job->checksum_pieces[idx] = (struct uc_checksum_piece){
                .address = pieces[idx].address,
                .length_bytes = pieces[idx].length_bytes,
        };
    }
    return job->checksum_pieces;
}

void
uc_job_release_memory(struct uc_job *job)
{
    for (size_t idx = 0; idx < job->held_count; idx++) {
        uc_memory_put(job->held[idx]);
    }
    job->held_count = 0;
}

/* Add a part to the result: bits, and the status of the lowest failed block. */
static void
collect_result(const struct uc_job *job, struct uc_job *lead)
{
    for (size_t idx = 0; idx < job->block_count; idx++) {
        const struct uc_job_block *block = &job->blocks[idx];

        if (block->status != UC_OK) {
            if (lead->code == UC_OK || block->job_idx < lead->code_idx) {
                lead->code = block->status;
                lead->code_idx = block->job_idx;
            }
            lead->failed_count++;
            lead->late = lead->late || job->timed_out;
            continue;
        }
        lead->result[block->job_idx / 8] |= (uint8_t)(1u << (block->job_idx % 8));
        if (!block->skip) {
            lead->moved_bytes += block->size_bytes;
            lead->moved_count++;
        }
    }
}

static void
count_result(struct uc_job *lead)
{
    struct uc_data_plane *plane = lead->plane;
    bool is_dump = lead->is_dump;

    uc_plane_count(plane, is_dump ? UC_COUNT_dumps : UC_COUNT_loads, 1);
    uc_plane_count(
            plane, is_dump ? UC_COUNT_blocks_written : UC_COUNT_blocks_read, lead->moved_count);
    uc_plane_count(
            plane, is_dump ? UC_COUNT_bytes_written : UC_COUNT_bytes_read, lead->moved_bytes);
    uc_plane_count(plane, UC_COUNT_failed_blocks, lead->failed_count);
    if (lead->late) {
        uc_plane_count(plane, UC_COUNT_timeouts, 1);
        lead->code = UC_ERR_TIMEOUT;
    }
}

void
uc_job_finish(struct uc_job *job)
{
    struct uc_data_plane *plane = job->plane;
    struct uc_job *lead = job->lead;

    if (job->bounce_left > 0) {
        uc_bounce_abandon(job);
    }
    uc_list_remove(&job->link);
    uc_list_remove(&job->ready_link);
    job->attachment = NULL;
    collect_result(job, lead);
    lead->parts_left--;
    if (job != lead) {
        uc_plane_recycle(plane, job);
    }
    if (lead->parts_left > 0) {
        return;
    }

    count_result(lead);
    /* Before the event: once it is consumed, the engine may deregister. */
    uc_job_release_memory(lead);
    plane->ended_count++;
    uc_completion_queue_finish(plane->queue, lead->job_id, lead->code, lead->result);
    uc_plane_recycle(plane, lead);
}
