/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/job.h"

#include <stdlib.h>
#include <string.h>

struct uc_posix_job *
uc_posix_job_create(void)
{
    struct uc_posix_job *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        uc_list_init(&job->link);
    }
    return job;
}

void
uc_posix_job_destroy(struct uc_posix_job *job)
{
    free(job->ops);
    free(job->blocks);
    free(job->pointers);
    free(job->sizes);
    free(job->on_device);
    free(job);
}

static enum uc_status
make_room(struct uc_posix_job *job, size_t op_count, size_t pointer_count)
{
    if (op_count > job->op_room) {
        free(job->ops);
        free(job->blocks);
        job->ops = calloc(op_count, sizeof(job->ops[0]));
        job->blocks = calloc(op_count / 8 + 1, 1);
        job->op_room = job->ops == NULL || job->blocks == NULL ? 0 : op_count;
    }
    if (pointer_count > job->pointer_room) {
        free(job->pointers);
        free(job->sizes);
        free(job->on_device);
        job->on_device = calloc(pointer_count, sizeof(job->on_device[0]));
        job->pointers = calloc(pointer_count, sizeof(job->pointers[0]));
        job->sizes = calloc(pointer_count, sizeof(job->sizes[0]));
        job->pointer_room = job->pointers == NULL || job->sizes == NULL || job->on_device == NULL
                                    ? 0
                                    : pointer_count;
    }
    if (op_count > job->op_room || pointer_count > job->pointer_room) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "posix store: no memory for a job of %zu blocks", op_count);
    }
    return UC_OK;
}

static void
fill_op(struct uc_posix_job *job, size_t idx, const struct uc_posix_env *env,
        const struct uc_job_descriptor *descriptor, size_t first_pointer)
{
    const struct uc_block_payload *payload = &descriptor->payloads[idx];
    struct uc_posix_op *op = &job->ops[idx];

    memset(op, 0, sizeof(*op));
    uc_list_init(&op->link);
    op->job = job;
    op->env = env;
    op->fd = -1;
    op->is_dump = job->is_dump;
    op->id = descriptor->block_ids[idx];
    op->offset = payload->block_offset;
    op->pointers = job->pointers + first_pointer;
    op->sizes = job->sizes + first_pointer;
    op->pointer_count = payload->pointer_count;
    for (size_t piece = 0; piece < payload->pointer_count; piece++) {
        job->pointers[first_pointer + piece] = payload->pointers[piece];
        job->sizes[first_pointer + piece] = payload->sizes[piece];
        op->bytes += payload->sizes[piece];
    }
}

/* Which pieces of an op a device has to copy. */
static enum uc_status
locate(struct uc_posix_op *op, bool *on_device)
{
    enum uc_status status = UC_OK;

    for (size_t idx = 0; status == UC_OK && idx < op->pointer_count; idx++) {
        on_device[idx] = false;
        status = uc_region_list_locate(
                &op->env->regions->list, op->pointers[idx], op->sizes[idx], &on_device[idx]);
        if (on_device[idx]) {
            op->on_device = on_device;
        }
    }
    return status;
}

enum uc_status
uc_posix_job_fill(struct uc_posix_job *job, const struct uc_posix_env *env, bool is_dump,
        const struct uc_job_descriptor *descriptor)
{
    size_t pointer_count = 0;
    enum uc_status status;

    for (size_t idx = 0; idx < descriptor->count; idx++) {
        pointer_count += descriptor->payloads[idx].pointer_count;
    }
    status = make_room(job, descriptor->count, pointer_count);
    if (status != UC_OK) {
        return status;
    }

    job->is_dump = is_dump;
    job->uses_device = false;
    job->is_timed_out = false;
    job->has_timeout = false;
    job->count = descriptor->count;
    job->left = descriptor->count;
    job->code = UC_OK;
    job->code_block = SIZE_MAX;
    job->prerequisite_handle = descriptor->prerequisite_handle;
    if (job->blocks != NULL) {
        memset(job->blocks, 0, job->count / 8 + 1);
    }
    pointer_count = 0;
    for (size_t idx = 0; status == UC_OK && idx < descriptor->count; idx++) {
        fill_op(job, idx, env, descriptor, pointer_count);
        if (env->regions->list.device_count > 0) {
            status = locate(&job->ops[idx], job->on_device + pointer_count);
            job->uses_device = job->uses_device || job->ops[idx].on_device != NULL;
        }
        pointer_count += descriptor->payloads[idx].pointer_count;
    }
    return status;
}

bool
uc_posix_job_end_block(struct uc_posix_job *job, const struct uc_posix_op *op)
{
    size_t idx = (size_t)(op - job->ops);

    if (op->status == UC_OK) {
        job->blocks[idx / 8] = (uint8_t)(job->blocks[idx / 8] | 1u << idx % 8);
    } else if (idx < job->code_block) {
        job->code = op->status;
        job->code_block = idx;
    }
    job->has_timeout = job->has_timeout || (op->status == UC_ERR_TIMEOUT && job->is_timed_out);
    return --job->left == 0;
}

enum uc_status
uc_posix_job_code(const struct uc_posix_job *job)
{
    return job->has_timeout ? UC_ERR_TIMEOUT : job->code;
}
