/* SPDX-License-Identifier: Apache-2.0 */

/* Load: READ the payload and the footer behind it, verify, report what does not fit. */

#include <string.h>

#include <ucm/log.h>

#include "client/stores/remote/attachment.h"
#include "client/stores/remote/bounce.h"
#include "client/stores/remote/device_memory.h"
#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"
#include "client/stores/remote/verify.h"

/* Sum up what the transport tells of, if it can be the checksum that the footer will show. */
static void
on_bytes(struct uc_fabric_op *op, const void *bytes, size_t length_bytes)
{
    struct uc_job_op *job_op = (struct uc_job_op *)(void *)op;
    struct uc_job *job = job_op->job;
    struct uc_job_block *block = &job->blocks[job_op->block_idx];
    struct uc_load_sum *sum = job->plane->sum;
    uint64_t left = block->size_bytes - block->told_bytes; /* the footer comes behind them */
    size_t count = length_bytes < left ? length_bytes : (size_t)left;

    if (block->told_bytes == 0) {
        sum->job = job;
        sum->block_idx = job_op->block_idx;
        sum->summed_bytes = 0;
        uc_checksum_stream_init(&sum->stream, block->key, block->entry.generation);
    }
    if (sum->job == job && sum->block_idx == job_op->block_idx &&
            sum->summed_bytes == block->told_bytes) {
        uc_checksum_stream_add(&sum->stream, bytes, count);
        sum->summed_bytes += count;
    }
    block->told_bytes += count;
}

/* @return whether the sum is that of this block's whole range */
static bool
is_summed(const struct uc_load_sum *sum, const struct uc_job *job, size_t block_idx)
{
    return sum->job == job && sum->block_idx == block_idx &&
           sum->summed_bytes == job->blocks[block_idx].size_bytes;
}

static void
verify(struct uc_job *job, size_t block_idx)
{
    struct uc_job_block *block = &job->blocks[block_idx];
    struct uc_load_sum *sum = job->plane->sum;
    uint64_t checksum = 0;
    struct uc_verify_want want = {
            .key = block->key,
            .generation = block->entry.generation,
            .length_bytes = block->entry.length_bytes,
            .offset_bytes = block->offset_bytes,
            .size_bytes = block->size_bytes,
            .check_checksum =
                    job->plane->config->checksum && (!block->is_on_device || block->is_bounced),
    };

    want.pieces = uc_job_checksum_pieces(job, block, &want.piece_count);
    if (is_summed(sum, job, block_idx)) {
        checksum = uc_checksum_stream_value(&sum->stream);
        want.checksum = &checksum;
        sum->job = NULL;
    }
    block->status =
            uc_verify_block(&want, job->footers + block_idx * UC_FOOTER_BYTES, &block->complaint);
    if (block->complaint != NULL) {
        uc_plane_count(job->plane, UC_COUNT_mismatches, 1);
    }
}

static void
on_read_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct uc_job_op *job_op = (struct uc_job_op *)(void *)op;
    struct uc_job *job = job_op->job;
    const struct uc_job_block *block = &job->blocks[job_op->block_idx];

    uc_job_op_ended(job_op, status);
    if (block->pending_ops == 0 && block->status == UC_OK) {
        verify(job, job_op->block_idx);
    }
    if (block->pending_ops == 0 && block->is_bounced) {
        uc_bounce_op_ended(job, job_op->block_idx);
    }
    if (job->pending_ops == 0) {
        uc_plane_make_ready(job->plane, job);
    }
}

/* Have the checksum made while the bytes are copied, where the transport can and the block is read as a whole. */
static void
listen_to_bytes(struct uc_job *job, size_t first_op, const struct uc_job_block *block)
{
    const struct uc_fabric_caps *caps =
            &job->plane->transports.items[job->attachment->transport].caps;

    if (!caps->feeds_bytes || !job->plane->config->checksum || block->offset_bytes != 0 ||
            block->size_bytes != block->entry.length_bytes) {
        return;
    }

    for (size_t idx = first_op; idx < job->op_count; idx++) {
        job->ops[idx].op.on_bytes = on_bytes;
    }
}

static void
add_reads(struct uc_job *job, size_t block_idx)
{
    const struct uc_job_block *block = &job->blocks[block_idx];
    uint64_t block_bytes = job->attachment->block_bytes;
    /* A range that ends where the footer begins is fetched together with it. */
    bool joined = block->offset_bytes + block->size_bytes == block_bytes;
    size_t first_op = job->op_count;

    uc_job_add_payload_ops(job, block_idx, UC_FABRIC_READ, joined, on_read_done);
    listen_to_bytes(job, first_op, block);
    /* Last: what it shows was the case when the bytes had been read. */
    if (!joined) {
        uc_job_add_footer_op(job, block_idx, UC_FABRIC_READ, block_bytes, on_read_done);
    }
}

void
uc_load_post_block(struct uc_job *job, size_t block_idx)
{
    size_t first_op = job->op_count;

    add_reads(job, block_idx);
    uc_job_post(job, first_op, job->op_count - first_op);
}

void
uc_load_start(struct uc_job *job)
{
    if (job->plane->sum->job == job) {
        job->plane->sum->job = NULL; /* of the job that it was before */
    }
    for (size_t idx = 0; idx < job->block_count; idx++) {
        if (job->blocks[idx].status == UC_OK && !job->blocks[idx].is_bounced) {
            add_reads(job, idx);
        }
    }

    job->state = UC_JOB_MOVING;
    uc_job_post(job, 0, job->op_count);
    uc_bounce_enter(job);
    if (job->pending_ops == 0) {
        uc_plane_make_ready(job->plane, job);
    }
}

/*
 * Tell the server what looks damaged. The ping behind the reports is answered after the server has looked at
 * them, so that a block that it drops is absent in every lookup that follows the event (R-5.14, V-39).
 */
static bool
report(struct uc_job *job)
{
    struct uc_attachment *attachment = job->attachment;
    struct uc_rpc_buffer *params = &job->plane->params;
    bool reported = false;

    for (size_t idx = 0; idx < job->block_count; idx++) {
        struct uc_job_block *block = &job->blocks[idx];
        struct uc_report_request request = {.generation = block->entry.generation};

        if (block->complaint == NULL) {
            continue;
        }
        uc_log_debug("remote store: job %llu block %zu: %s", (unsigned long long)job->job_id, idx,
                block->complaint);
        request.key = *block->key;
        request.what.bytes = block->complaint;
        request.what.length = strlen(block->complaint);
        uc_rpc_buffer_reset(params);
        uc_report_request_encode(params, &request);
        uc_attachment_notify(attachment, UC_RPC_REPORT);
        block->complaint = NULL;
        reported = true;
    }
    if (!reported) {
        return false;
    }

    uc_rpc_buffer_reset(params);
    uc_empty_request_encode(params);
    return uc_attachment_call(attachment, UC_RPC_PING, job) == UC_OK;
}

/* What a NIC has put into memory of a device: the event may not come before the device would see it. */
static void
settle(struct uc_job *job)
{
    enum uc_status status = UC_ERR_RETRY; /* not asked yet */

    for (size_t idx = 0; idx < job->block_count; idx++) {
        struct uc_job_block *block = &job->blocks[idx];

        if (block->status != UC_OK || !block->is_on_device || block->is_bounced) {
            continue;
        }
        if (status == UC_ERR_RETRY) {
            status = uc_device_memory_settle(job);
        }
        block->status = status;
    }
}

void
uc_load_advance(struct uc_job *job)
{
    if (job->state == UC_JOB_MOVING) {
        settle(job);
    }
    if (job->state == UC_JOB_MOVING && report(job)) {
        job->state = UC_JOB_REPORTING;
        return;
    }

    uc_job_finish(job);
}
