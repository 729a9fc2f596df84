/* SPDX-License-Identifier: Apache-2.0 */

/* What the data thread does with a job: fill it from foreign arrays and foreign bytes. */

#include <stdlib.h>
#include <string.h>

#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"
#include "core/store/job_check.h"

struct uc_job *
uc_job_create(struct uc_data_plane *plane)
{
    struct uc_job *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        job->plane = plane;
        uc_list_init(&job->link);
        uc_list_init(&job->ready_link);
        uc_list_init(&job->bounce_link);
    }
    return job;
}

void
uc_job_destroy(struct uc_job *job)
{
    if (job == NULL) {
        return;
    }

    uc_transports_deregister(&job->plane->transports, &job->footer_memory);
    free(job->token_bytes);
    free(job->blocks);
    free(job->pieces);
    free(job->piece_memory);
    free(job->checksum_pieces);
    free(job->ops);
    free(job->held);
    free(job->footers);
    free(job->ranges);
    free(job->result);
    free(job);
}

/*
 * Room for count elements, by doubling; the content is not kept. Sizes stay far from overflow: counts are
 * those of arrays that the engine holds in memory, with elements of similar size.
 */
static bool
reserve(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    size_t wanted = *capacity == 0 ? 64 : *capacity;
    void *fresh;
    void *old;

    if (count <= *capacity) {
        return true;
    }
    while (wanted < count) {
        if (wanted > SIZE_MAX / 2 / element_bytes) {
            return false;
        }
        wanted *= 2;
    }
    fresh = malloc(wanted * element_bytes);
    if (fresh == NULL) {
        return false;
    }

    memcpy(&old, array, sizeof(old));
    free(old);
    memcpy(array, &fresh, sizeof(fresh));
    *capacity = wanted;
    return true;
}

/* Footers are where transports put and take bytes: room for them is registered anew when it grows. */
static enum uc_status
reserve_footers(struct uc_job *job, size_t count)
{
    struct uc_transports *transports = &job->plane->transports;
    size_t capacity = job->footer_capacity;
    enum uc_status status;

    if (count <= capacity) {
        return UC_OK;
    }

    uc_transports_deregister(transports, &job->footer_memory);
    job->footer_capacity = 0;
    if (!reserve(&job->footers, &capacity, count, UC_FOOTER_BYTES)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for %zu footers", count);
    }
    status = uc_transports_register(
            transports, job->footers, capacity * UC_FOOTER_BYTES, &job->footer_memory);
    if (status == UC_OK) {
        job->footer_capacity = capacity;
    }
    return status;
}

static enum uc_status
reserve_arrays(struct uc_job *job, const struct uc_part_plan *plan)
{
    size_t chunk = job->plane->transports.max_piece_count;
    size_t block_count = plan->block_count;
    size_t all_pieces = plan->piece_count + block_count; /* one more per block for its footer */
    size_t op_count = all_pieces / chunk + 3 * block_count + 1;

    if (!reserve(&job->blocks, &job->block_capacity, block_count, sizeof(job->blocks[0])) ||
            !reserve(&job->pieces, &job->piece_capacity, all_pieces, sizeof(job->pieces[0])) ||
            !reserve(&job->piece_memory, &job->piece_memory_capacity, all_pieces,
                    sizeof(job->piece_memory[0])) ||
            !reserve(&job->checksum_pieces, &job->checksum_capacity, plan->widest,
                    sizeof(job->checksum_pieces[0])) ||
            !reserve(&job->ops, &job->op_capacity, op_count, sizeof(job->ops[0])) ||
            !reserve(&job->ranges, &job->range_capacity, block_count, UC_WRITTEN_BYTES)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a job of %zu blocks",
                block_count);
    }

    return reserve_footers(job, block_count);
}

/* What the lead keeps for all parts. */
static enum uc_status
reserve_lead(struct uc_job *lead, size_t block_count, size_t piece_count)
{
    size_t bytes = (block_count + 7) / 8;

    if (!reserve(&lead->held, &lead->held_capacity, piece_count + 1, sizeof(lead->held[0])) ||
            !reserve(&lead->result, &lead->result_capacity, bytes, 1)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a job of %zu blocks",
                block_count);
    }

    memset(lead->result, 0, bytes);
    lead->total_count = block_count;
    lead->parts_left = 0;
    lead->code = UC_OK;
    lead->code_idx = 0;
    lead->failed_count = 0;
    lead->moved_count = 0;
    lead->moved_bytes = 0;
    lead->late = false;
    return UC_OK;
}

static enum uc_status
copy_token(struct uc_job *job, const struct uc_token *token)
{
    const struct uc_server_list *servers = &job->plane->config->servers;
    size_t key_bytes = token->key_count * UC_BLOCK_ID_BYTES;
    enum uc_status status;

    if (!reserve(&job->token_bytes, &job->token_capacity, key_bytes + token->payload_bytes, 1)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a token");
    }
    memcpy(job->token_bytes, token->keys, key_bytes);
    memcpy(job->token_bytes + key_bytes, token->payload, token->payload_bytes);
    job->token.keys = (const struct uc_block_id *)(const void *)job->token_bytes;
    job->token.key_count = token->key_count;
    job->token.payload = job->token_bytes + key_bytes;
    job->token.payload_bytes = token->payload_bytes;

    status = uc_token_payload_parse(
            job->token.payload, job->token.payload_bytes, job->token.key_count, &job->view);
    if (status != UC_OK) {
        return status;
    }
    if (job->view.node_count > servers->count || job->view.copies != 1) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: the token names %zu servers and %zu copies; `servers` lists %zu, and "
                "this version knows one copy: give scheduler and workers the same list",
                job->view.node_count, job->view.copies, servers->count);
    }

    return UC_OK;
}

/* Find the server that a node of the token names. */
static enum uc_status
plan_node(const struct uc_job *lead, bool is_dump, size_t node_idx, struct uc_part_plan *plan)
{
    const struct uc_server_list *servers = &lead->plane->config->servers;
    struct uc_token_node node;
    size_t server_idx;

    uc_token_payload_node(&lead->view, node_idx, &node);
    server_idx = uc_server_list_find(servers, node.name, node.name_bytes);
    if (server_idx == SIZE_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: the token names server \"%.*s\", which `servers` does not list: give "
                "scheduler and workers the same list",
                (int)node.name_bytes, node.name);
    }
    if (node.kind != (is_dump ? UC_TOKEN_WRITE : UC_TOKEN_READ)) {
        return uc_error(UC_ERR_INVALID_PARAM, "remote store: a %s needs the token of %s",
                is_dump ? "dump" : "load", is_dump ? "an alloc" : "a pin");
    }

    *plan = (struct uc_part_plan){.server = &servers->servers[server_idx], .widest = 1};
    return UC_OK;
}

/* @return the part's plan; NULL for a key that no server has granted */
static struct uc_part_plan *
plan_of_key(const struct uc_job *lead, size_t key_idx)
{
    struct uc_token_entry entry;

    uc_token_payload_entry(&lead->view, key_idx, 0, &entry);
    return (entry.flags & UC_ENTRY_LOST) != 0 ? NULL : &lead->plane->plans[entry.node_idx];
}

/* Count what every server's part will hold. */
static void
plan_blocks(const struct uc_job *lead, const struct uc_job_descriptor *descriptor, size_t first_key)
{
    for (size_t idx = 0; idx < first_key; idx++) {
        struct uc_part_plan *plan = plan_of_key(lead, idx);

        if (plan != NULL) {
            plan->before_count++;
        }
    }
    for (size_t idx = 0; idx < descriptor->count; idx++) {
        struct uc_part_plan *plan = plan_of_key(lead, first_key + idx);
        size_t piece_count = descriptor->payloads[idx].pointer_count;

        if (plan != NULL) {
            plan->block_count++;
            plan->piece_count += piece_count;
            plan->widest = piece_count > plan->widest ? piece_count : plan->widest;
        }
    }
}

/* the named region, else one that covers the range, else none. */
static enum uc_status
find_memory(const struct uc_data_plane *plane, const struct uc_block_payload *payload, size_t idx,
        struct uc_memory **memory_out)
{
    uint32_t region_idx = payload->memory_region_index_count == 0
                                  ? UC_MEMORY_REGION_NONE
                                  : payload->memory_region_indices[idx];
    struct uc_memory *memory;

    if (region_idx == UC_MEMORY_REGION_NONE) {
        memory = uc_memory_table_cover(&plane->memory, payload->pointers[idx], payload->sizes[idx]);
        if (memory == NULL && uc_memory_table_touches_device(&plane->memory, payload->pointers[idx],
                                      payload->sizes[idx])) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "remote store: %llu bytes at %p lie in no region of a device as a whole; register "
                    "the range they are in as one",
                    (unsigned long long)payload->sizes[idx], payload->pointers[idx]);
        }
        *memory_out = memory;
        return UC_OK;
    }

    memory = uc_memory_table_find(&plane->memory, region_idx);
    if (memory == NULL || !uc_memory_covers(memory, payload->pointers[idx], payload->sizes[idx])) {
        return uc_error(UC_ERR_INVALID_PARAM,
                memory == NULL ? "remote store: region %u is not registered"
                               : "remote store: a pointer lies outside its region %u",
                region_idx);
    }

    *memory_out = memory;
    return UC_OK;
}

static enum uc_status
add_piece(struct uc_job *job, const struct uc_block_payload *payload, size_t idx, uint64_t stamp)
{
    struct uc_memory *memory = NULL;
    enum uc_status status;

    if (payload->sizes[idx] == 0) {
        return UC_OK;
    }
    status = find_memory(job->plane, payload, idx, &memory);
    if (status != UC_OK) {
        return status;
    }

    if (memory != NULL && memory->last_job != stamp) {
        memory->last_job = stamp;
        uc_memory_get(memory);
        job->lead->held[job->lead->held_count++] = memory;
    }
    job->piece_memory[job->piece_count] = memory;
    job->pieces[job->piece_count] = (struct uc_fabric_piece){
            .address = payload->pointers[idx],
            .length_bytes = payload->sizes[idx],
    };
    job->piece_count++;
    return UC_OK;
}

/* Add a block to the part of its server. */
static enum uc_status
add_block(struct uc_job *job, size_t job_idx, size_t key_idx,
        const struct uc_block_payload *payload, uint64_t stamp)
{
    size_t block_idx = job->block_count;
    struct uc_job_block *block = &job->blocks[block_idx];
    struct uc_token_entry entry;
    uint64_t size_bytes = 0;
    enum uc_status status = uc_payload_check(payload, &size_bytes);

    uc_token_payload_entry(&job->view, key_idx, 0, &entry);
    *block = (struct uc_job_block){
            .key = &job->token.keys[key_idx],
            .entry =
                    {
                            .region_idx = entry.region_idx,
                            .flags = entry.flags,
                            .offset_bytes = entry.offset_bytes,
                            .generation = entry.generation,
                            .length_bytes = entry.length_bytes,
                    },
            .job_idx = job_idx,
            .offset_bytes = payload->block_offset,
            .size_bytes = size_bytes,
            .first_piece = job->piece_count,
    };
    for (size_t idx = 0; idx < payload->pointer_count && status == UC_OK; idx++) {
        status = add_piece(job, payload, idx, stamp);
    }

    /* The footer's piece; its length depends on the direction. */
    block->piece_count = job->piece_count - block->first_piece;
    job->piece_memory[job->piece_count] = NULL;
    job->pieces[job->piece_count] = (struct uc_fabric_piece){
            .address = job->footers + block_idx * UC_FOOTER_BYTES,
            .length_bytes = job->is_dump ? UC_FOOTER_WRITER_BYTES : UC_FOOTER_BYTES,
    };
    job->piece_count++;
    job->block_count++;
    return status;
}

/* Check a block and put it where it belongs. One that no server has granted has failed already. */
static enum uc_status
place_block(struct uc_job *lead, const struct uc_job_descriptor *descriptor, size_t job_idx,
        size_t first_key, uint64_t stamp)
{
    const struct uc_block_payload *payload = &descriptor->payloads[job_idx];
    size_t key_idx = first_key + job_idx;
    struct uc_part_plan *plan = plan_of_key(lead, key_idx);
    uint64_t size_bytes = 0;
    enum uc_status status = uc_payload_check(payload, &size_bytes);

    if (status != UC_OK) {
        return status;
    }
    if (size_bytes == 0 || memcmp(&descriptor->block_ids[job_idx], &lead->token.keys[key_idx],
                                   sizeof(descriptor->block_ids[0])) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "remote store: block %zu %s", job_idx,
                size_bytes == 0 ? "has an empty payload" : "is not the token's key there");
    }
    if (plan != NULL) {
        return add_block(plan->part, job_idx, key_idx, payload, stamp);
    }

    if (lead->code == UC_OK) {
        lead->code = UC_ERR_UNHEALTHY;
        lead->code_idx = job_idx;
    }
    lead->failed_count++;
    return UC_OK;
}

/* Make a part the one of a node, without blocks as yet. */
static void
part_reset(struct uc_job *part, struct uc_job *lead, bool is_dump, size_t node_idx)
{
    const struct uc_part_plan *plan = &lead->plane->plans[node_idx];

    part->lead = lead;
    part->next_part = NULL;
    part->attachment = NULL;
    part->state = UC_JOB_WAITING;
    part->is_dump = is_dump;
    part->timed_out = false;
    part->broken = false;
    part->rpc_pending = false;
    part->pending_ops = 0;
    part->bounce_left = 0;
    part->flush_due = false;
    part->first_key = plan->before_count;
    part->block_count = 0;
    part->piece_count = 0;
    part->op_count = 0;
    part->held_count = 0;
    part->token = lead->token;
    part->view = lead->view;
    part->node_idx = node_idx;
    part->server = plan->server;
    uc_token_payload_node(&part->view, node_idx, &part->node);
}

/* A part for every server that has blocks (one at least); the lead is the first of them. */
static enum uc_status
make_parts(struct uc_job *lead, bool is_dump)
{
    struct uc_data_plane *plane = lead->plane;
    struct uc_job *last = NULL;

    for (size_t node_idx = 0; node_idx < lead->view.node_count; node_idx++) {
        struct uc_part_plan *plan = &plane->plans[node_idx];
        enum uc_status status;

        /* Somebody must lead, even where no block is left to move. */
        if (plan->block_count == 0 && (node_idx + 1 < lead->view.node_count || last != NULL)) {
            continue;
        }
        plan->part = last == NULL ? lead : uc_plane_take_job(plane);
        if (plan->part == NULL) {
            return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a part of a job");
        }
        part_reset(plan->part, lead, is_dump, node_idx);
        lead->parts_left++;
        if (last != NULL) {
            last->next_part = plan->part;
        }
        last = plan->part;
        status = reserve_arrays(plan->part, plan);
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}

static enum uc_status
plan_parts(struct uc_job *lead, bool is_dump, const struct uc_job_descriptor *descriptor,
        size_t first_key)
{
    size_t piece_count = 0;
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < lead->view.node_count && status == UC_OK; idx++) {
        status = plan_node(lead, is_dump, idx, &lead->plane->plans[idx]);
    }
    if (status != UC_OK) {
        return status;
    }

    plan_blocks(lead, descriptor, first_key);
    for (size_t idx = 0; idx < lead->view.node_count; idx++) {
        piece_count += lead->plane->plans[idx].piece_count;
    }
    status = reserve_lead(lead, descriptor->count, piece_count);
    return status != UC_OK ? status : make_parts(lead, is_dump);
}

/* Undo a build that failed; the lead itself stays the caller's. */
static void
drop_parts(struct uc_job *lead)
{
    struct uc_job *part = lead->next_part;

    uc_job_release_memory(lead);
    lead->next_part = NULL;
    while (part != NULL) {
        struct uc_job *following = part->next_part;

        uc_plane_return_job(lead->plane, part);
        part = following;
    }
}

enum uc_status
uc_job_build(struct uc_job *job, bool is_dump, const struct uc_job_descriptor *descriptor,
        const struct uc_token *token, size_t first_key)
{
    uint64_t stamp = ++job->plane->last_stamp;
    enum uc_status status;

    job->lead = job;
    job->next_part = NULL;
    job->held_count = 0;
    status = copy_token(job, token);
    if (status == UC_OK) {
        status = plan_parts(job, is_dump, descriptor, first_key);
    }
    for (size_t idx = 0; idx < descriptor->count && status == UC_OK; idx++) {
        status = place_block(job, descriptor, idx, first_key, stamp);
    }
    if (status != UC_OK) {
        drop_parts(job);
    }
    return status;
}
