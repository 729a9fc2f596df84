/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Dump: write_begin, WRITE the payloads and the writer parts of the footers, FLUSH, write_end. The event is
 * delivered after write_end was answered, because a bracket that is open keeps the slot from being reused.
 */

#include "client/stores/remote/attachment.h"
#include "client/stores/remote/bounce.h"
#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"

static bool
is_writing(const struct uc_job_block *block)
{
    return block->status == UC_OK && !block->skip;
}

static void
on_write_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct uc_job_op *job_op = (struct uc_job_op *)(void *)op;
    struct uc_job *job = job_op->job;
    size_t block_idx = job_op->block_idx;

    uc_job_op_ended(job_op, status);
    if (status == UC_ERR_UNHEALTHY) {
        job->broken = true;
    }
    if (block_idx != SIZE_MAX && job->blocks[block_idx].is_bounced &&
            job->blocks[block_idx].pending_ops == 0) {
        uc_bounce_op_ended(job, block_idx);
    }
    if (job->pending_ops == 0) {
        uc_plane_make_ready(job->plane, job);
    }
}

void
uc_dump_start(struct uc_job *job)
{
    struct uc_attachment *attachment = job->attachment;
    struct uc_write_begin_request request = {
            .grant = job->node.grant,
            .first_key = job->first_key,
            .key_count = job->block_count,
    };
    enum uc_status status = UC_OK;
    bool writing = false;

    for (size_t idx = 0; idx < job->block_count && !writing; idx++) {
        writing = is_writing(&job->blocks[idx]);
    }
    if (writing && attachment->access == UC_ACCESS_RO) {
        status = UC_ERR_PERMISSION_DENIED;
    } else if (writing) {
        request.bracket = attachment->next_bracket++;
        job->bracket = request.bracket;
        job->state = UC_JOB_BEGINNING;
        uc_rpc_buffer_reset(&job->plane->params);
        uc_write_begin_request_encode(&job->plane->params, &request);
        status = uc_attachment_call(attachment, UC_RPC_WRITE_BEGIN, job);
    }

    if (status != UC_OK || !writing) {
        uc_job_fail_blocks(job, status);
        uc_job_finish(job);
    }
}

/* The writer's part of the footer, as far as this job knows the block. */
static void
put_footer(struct uc_job *job, size_t block_idx)
{
    struct uc_job_block *block = &job->blocks[block_idx];
    bool whole = block->offset_bytes == 0 && block->announced_bytes == block->size_bytes;
    enum uc_checksum_kind kind = UC_CHECKSUM_NONE;
    uint64_t checksum = 0;

    if (whole && job->plane->config->checksum && !block->is_on_device) {
        size_t piece_count = 0;
        const struct uc_checksum_piece *pieces = uc_job_checksum_pieces(job, block, &piece_count);

        kind = UC_CHECKSUM_XXH3_64;
        checksum = uc_slot_checksum(block->key, block->entry.generation, pieces, piece_count);
    }
    uc_slot_footer_put_writer(
            job->footers + block_idx * UC_FOOTER_BYTES, block->announced_bytes, kind, checksum);
}

static void
add_footer(struct uc_job *job, size_t block_idx)
{
    struct uc_job_block *block = &job->blocks[block_idx];
    uint64_t block_bytes = job->attachment->block_bytes;

    block->announced_bytes = block->offset_bytes == 0 ? block->size_bytes : block_bytes;
    put_footer(job, block_idx);
    uc_job_add_footer_op(
            job, block_idx, UC_FABRIC_WRITE, block_bytes + UC_FOOTER_WRITER_OFFSET, on_write_done);
}

void
uc_dump_post_block(struct uc_job *job, size_t block_idx)
{
    size_t first_op = job->op_count;

    uc_job_add_payload_ops(job, block_idx, UC_FABRIC_WRITE, false, on_write_done);
    add_footer(job, block_idx);
    uc_job_post(job, first_op, job->op_count - first_op);
}

/* Data first, so that it travels while the checksums are computed. What bounces follows as buffers come free. */
static void
post_writes(struct uc_job *job)
{
    size_t data_count;
    size_t last = SIZE_MAX;

    for (size_t idx = 0; idx < job->block_count; idx++) {
        if (is_writing(&job->blocks[idx]) && !job->blocks[idx].is_bounced) {
            uc_job_add_payload_ops(job, idx, UC_FABRIC_WRITE, false, on_write_done);
        }
    }
    data_count = job->op_count;
    uc_job_post(job, 0, data_count);

    for (size_t idx = 0; idx < job->block_count; idx++) {
        if (is_writing(&job->blocks[idx]) && !job->blocks[idx].is_bounced) {
            add_footer(job, idx);
            last = idx;
        }
    }
    uc_bounce_enter(job);
    job->flush_due = job->bounce_left > 0;
    if (last != SIZE_MAX && !job->flush_due) {
        uc_job_add_footer_op(
                job, last, UC_FABRIC_FLUSH, job->attachment->block_bytes, on_write_done);
    }
    uc_job_post(job, data_count, job->op_count - data_count);
    if (job->pending_ops == 0) {
        uc_plane_make_ready(job->plane, job);
    }
}

/* All writes of a job with blocks that bounced have completed: see to it that they are visible. */
static void
post_flush(struct uc_job *job)
{
    struct uc_attachment *attachment = job->attachment;
    size_t first_op = job->op_count;
    size_t last = job->block_count;

    job->flush_due = false;
    if (job->timed_out || attachment->state != UC_ATTACHMENT_READY) {
        uc_job_fail_blocks(job, job->timed_out ? UC_ERR_TIMEOUT : UC_ERR_UNHEALTHY);
        job->broken = job->broken || first_op > 0;
        return;
    }

    while (last > 0 && !is_writing(&job->blocks[last - 1])) {
        last--;
    }
    if (last > 0) {
        uc_job_add_footer_op(
                job, last - 1, UC_FABRIC_FLUSH, attachment->block_bytes, on_write_done);
        uc_job_post(job, first_op, 1);
    }
}

static void
put_ranges(struct uc_job *job)
{
    for (size_t idx = 0; idx < job->block_count; idx++) {
        const struct uc_job_block *block = &job->blocks[idx];
        struct uc_written_range range = {.offset_bytes = 0};

        if (is_writing(block)) {
            range.offset_bytes = block->offset_bytes;
            range.length_bytes = block->size_bytes;
            range.announced_bytes = block->announced_bytes;
        }
        uc_written_range_put(job->ranges + idx * UC_WRITTEN_BYTES, &range);
    }
}

/* Close the bracket: with what was written, or saying that something may still be under way. */
static void
end_bracket(struct uc_job *job)
{
    struct uc_write_end_request request = {.bracket = job->bracket, .ok = !job->broken};
    enum uc_status status;

    if (request.ok) {
        put_ranges(job);
        request.ranges = job->ranges;
        request.range_count = job->block_count;
    }
    uc_rpc_buffer_reset(&job->plane->params);
    uc_write_end_request_encode(&job->plane->params, &request);
    job->state = UC_JOB_ENDING;
    status = uc_attachment_call(job->attachment, UC_RPC_WRITE_END, job);
    if (status != UC_OK) {
        /* The server ends the bracket when it sees that the connection is gone. */
        uc_job_fail_blocks(job, status);
        uc_job_finish(job);
    }
}

static void
begun(struct uc_job *job)
{
    struct uc_attachment *attachment = job->attachment;

    if (job->rpc_status != UC_OK) {
        uc_job_fail_blocks(job, job->rpc_status);
        uc_job_finish(job);
        return;
    }

    if (job->timed_out || attachment->state != UC_ATTACHMENT_READY) {
        /* Nothing has moved and nothing will: an orderly end without ranges. */
        uc_job_fail_blocks(job, job->timed_out ? UC_ERR_TIMEOUT : UC_ERR_UNHEALTHY);
        end_bracket(job);
        return;
    }

    job->state = UC_JOB_MOVING;
    post_writes(job);
}

void
uc_dump_advance(struct uc_job *job)
{
    switch (job->state) {
    case UC_JOB_BEGINNING:
        begun(job);
        break;
    case UC_JOB_MOVING:
        if (job->flush_due) {
            post_flush(job);
        }
        if (job->pending_ops == 0) {
            end_bracket(job);
        }
        break;
    case UC_JOB_ENDING:
        if (job->rpc_status != UC_OK) {
            uc_job_fail_blocks(job, job->rpc_status);
        }
        uc_job_finish(job);
        break;
    case UC_JOB_WAITING:
    case UC_JOB_REPORTING:
        break;
    }
}
