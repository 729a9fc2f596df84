/* SPDX-License-Identifier: Apache-2.0 */

/* The worker process of a node: moves blocks by token, fills them before a put, checks them after a get. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/assembler.h>
#include <ucm/clock.h>
#include <ucm/log.h>

#include "tools/bench/block_content.h"
#include "tools/bench/channel.h"
#include "tools/bench/replay_node.h"
#include "tools/bench/replay_tiers.h"
#include "tools/bench/topology.h"

enum {
    /* A window is moved in jobs of at most this many keys or bytes, whichever is less. */
    JOB_KEYS_MAX = 256,
    JOB_BYTES_MAX = 64 << 20,
};

struct worker {
    const struct uc_replay_setup *setup;
    struct uc_assembler *assembler;
    struct uc_worker *worker; /* borrowed from the assembler */
    uint8_t *memory;          /* job_keys blocks, registered */
    uint64_t memory_bytes;
    size_t job_keys;
    uint32_t region_idx;
    uint64_t next_job_id;
    struct uc_message in;
    struct uc_message out;
    uint8_t *ok; /* one flag per key of the current window */
    size_t ok_capacity;
};

static enum uc_status
worker_open(struct worker *worker)
{
    struct uc_assembler_options options = {.struct_size = sizeof(options), .role = UC_ROLE_WORKER};
    uint64_t block_bytes = worker->setup->block_bytes;
    enum uc_status status;
    void *memory;

    worker->job_keys = block_bytes >= JOB_BYTES_MAX ? 1 : (size_t)(JOB_BYTES_MAX / block_bytes);
    if (worker->job_keys > JOB_KEYS_MAX) {
        worker->job_keys = JOB_KEYS_MAX;
    }
    worker->memory_bytes = worker->job_keys * block_bytes;

    status = uc_assembler_create(worker->setup->topology, &options, &worker->assembler);
    if (status != UC_OK) {
        return status;
    }
    status = uc_assembler_worker(worker->assembler, &worker->worker);
    if (status != UC_OK) {
        return status;
    }
    status = uc_memory_alloc(worker->memory_bytes, &memory);
    if (status != UC_OK) {
        return status;
    }

    worker->memory = memory;
    return uc_worker_register_memory(worker->worker, worker->memory, worker->memory_bytes,
            UC_MEMORY_HOST, &worker->region_idx);
}

static void
worker_close(struct worker *worker)
{
    if (worker->memory != NULL) {
        (void)uc_worker_deregister_memory(worker->worker, worker->region_idx);
    }
    uc_assembler_destroy(worker->assembler);
    uc_memory_free(worker->memory, worker->memory_bytes);
    uc_message_fini(&worker->in);
    uc_message_fini(&worker->out);
    free(worker->ok);
}

/* Describe the first @p count blocks of the memory, one contiguous piece each. */
static void
describe_payloads(
        struct worker *worker, size_t count, struct uc_block_payload *payloads, void **pointers)
{
    for (size_t idx = 0; idx < count; idx++) {
        pointers[idx] = worker->memory + idx * worker->setup->block_bytes;
        payloads[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx],
                .sizes = &worker->setup->block_bytes,
                .pointer_count = 1,
                .memory_region_indices = &worker->region_idx,
                .memory_region_index_count = 1,
        };
    }
}

/* One job over keys [first, first + count) of the token; ok flags of its keys are set. */
static void
move_chunk(struct worker *worker, bool put, const struct uc_token *token, size_t first,
        size_t count, struct uc_replay_moved *moved)
{
    struct uc_block_payload payloads[JOB_KEYS_MAX];
    void *pointers[JOB_KEYS_MAX];
    struct uc_io_context io = {.first_key = first, .key_count = count};
    struct uc_io_result result = {0};
    uint64_t job_id = worker->next_job_id++;
    uint64_t start_ns = uc_clock_now_ns();
    enum uc_status status;
    size_t result_count = 0;

    describe_payloads(worker, count, payloads, pointers);
    status = put ? uc_worker_submit_put(worker->worker, job_id, payloads, count, token, &io)
                 : uc_worker_submit_get(worker->worker, job_id, payloads, count, token, &io);
    if (status == UC_OK) {
        status = uc_worker_wait(worker->worker, &job_id, 1, -1, &result, 1, &result_count);
    }
    moved->elapsed_ns += uc_clock_now_ns() - start_ns;
    if (status != UC_OK || result_count != 1) {
        uc_log_warn("replay: node %zu: %s of %zu blocks: %s: %s", worker->setup->node,
                put ? "put" : "get", count, uc_status_name(status), uc_last_error());
        moved->errors++;
        return;
    }

    for (size_t idx = 0; idx < count; idx++) {
        worker->ok[first + idx] = uc_io_result_block_ok(&result, idx);
    }
    if (!result.success) {
        uc_log_debug("replay: node %zu: job %lu: %s", worker->setup->node, (unsigned long)job_id,
                uc_status_name(result.code));
    }
    uc_io_results_release(&result, 1);
}

static void
fill_blocks(struct worker *worker, const uint64_t *hash_ids, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        uc_block_content_fill(hash_ids[idx], worker->memory + idx * worker->setup->block_bytes,
                worker->setup->block_bytes);
    }
}

/* Compare what a get delivered, byte for byte. */
static void
check_blocks(struct worker *worker, const uint64_t *hash_ids, size_t first, size_t count,
        struct uc_replay_moved *moved)
{
    for (size_t idx = 0; idx < count; idx++) {
        const uint8_t *block = worker->memory + idx * worker->setup->block_bytes;
        uint64_t offset;

        if (!worker->ok[first + idx]) {
            continue;
        }
        if (uc_block_content_check(hash_ids[idx], block, worker->setup->block_bytes, &offset)) {
            moved->verified_bytes += worker->setup->block_bytes;
            continue;
        }
        moved->mismatches++;
        uc_log_error("replay: node %zu: block of hash id %lu has a wrong byte at offset %lu",
                worker->setup->node, (unsigned long)hash_ids[idx], (unsigned long)offset);
    }
}

static enum uc_status
reserve_flags(struct worker *worker, size_t count)
{
    if (count > worker->ok_capacity) {
        uint8_t *ok = realloc(worker->ok, count);

        if (ok == NULL) {
            return UC_ERR_OUT_OF_MEMORY;
        }
        worker->ok = ok;
        worker->ok_capacity = count;
    }

    memset(worker->ok, 0, count);
    return UC_OK;
}

static enum uc_status
move_window(struct worker *worker, bool put, int scheduler_fd)
{
    size_t count = (size_t)uc_message_get_u64(&worker->in);
    const uint64_t *hash_ids = uc_message_get(&worker->in, count * sizeof(hash_ids[0]));
    size_t token_bytes = worker->in.length - worker->in.cursor;
    const uint8_t *bytes = uc_message_get(&worker->in, token_bytes);
    struct uc_replay_moved moved = {0};
    struct uc_token *token = NULL;
    enum uc_status status = reserve_flags(worker, count);

    if (status == UC_OK) {
        status = uc_token_deserialize(bytes, token_bytes, &token);
    }
    if (status != UC_OK) {
        return status;
    }

    for (size_t first = 0; first < count; first += worker->job_keys) {
        size_t keys = count - first < worker->job_keys ? count - first : worker->job_keys;

        if (put) {
            fill_blocks(worker, hash_ids + first, keys);
        } else {
            /* What a failed load leaves behind must not look like the block. */
            memset(worker->memory, 0xA5, keys * worker->setup->block_bytes);
        }
        move_chunk(worker, put, token, first, keys, &moved);
        if (!put) {
            check_blocks(worker, hash_ids + first, first, keys, &moved);
        }
    }
    uc_token_destroy(token);

    uc_message_begin(&worker->out, UC_REPLAY_MOVED);
    uc_message_put(&worker->out, &moved, sizeof(moved));
    uc_message_put(&worker->out, worker->ok, count);
    return uc_channel_send(scheduler_fd, &worker->out);
}

/* One round: from the tier below into the one above. */
static enum uc_status
prefetch(struct worker *worker, int scheduler_fd)
{
    size_t token_bytes = worker->in.length - worker->in.cursor;
    const uint8_t *bytes = uc_message_get(&worker->in, token_bytes);
    struct uc_io_result result = {0};
    struct uc_replay_moved moved = {0};
    uint64_t job_id = worker->next_job_id++;
    struct uc_token *token = NULL;
    size_t result_count = 0;
    uint8_t ok = 0;
    uint64_t start_ns;
    enum uc_status status = uc_token_deserialize(bytes, token_bytes, &token);

    if (status != UC_OK) {
        return status;
    }

    start_ns = uc_clock_now_ns();
    status = uc_worker_submit_prefetch(worker->worker, job_id, token);
    if (status == UC_OK) {
        status = uc_worker_wait(worker->worker, &job_id, 1, -1, &result, 1, &result_count);
    }
    moved.elapsed_ns = uc_clock_now_ns() - start_ns;
    if (status != UC_OK || result_count != 1) {
        uc_log_warn("replay: node %zu: prefetch: %s: %s", worker->setup->node,
                uc_status_name(status), uc_last_error());
        moved.errors++;
    } else {
        ok = result.success;
        uc_io_results_release(&result, 1);
    }
    uc_token_destroy(token);

    uc_message_begin(&worker->out, UC_REPLAY_MOVED);
    uc_message_put(&worker->out, &moved, sizeof(moved));
    uc_message_put(&worker->out, &ok, 1);
    return uc_channel_send(scheduler_fd, &worker->out);
}

static enum uc_status
describe(struct worker *worker, int scheduler_fd)
{
    struct uc_replay_tiers tiers = {.count = 0};
    struct uc_dict *description = NULL;
    enum uc_status status = uc_dict_create(&description);

    if (status == UC_OK) {
        status = uc_worker_describe(worker->worker, description);
    }
    if (status == UC_OK) {
        uc_replay_tiers_read(description, &tiers);
    }
    uc_dict_destroy(description);
    uc_message_begin(&worker->out, UC_REPLAY_TIERS);
    uc_message_put(&worker->out, &tiers, sizeof(tiers));
    return uc_channel_send(scheduler_fd, &worker->out);
}

static enum uc_status
serve(struct worker *worker, int scheduler_fd)
{
    switch (worker->in.type) {
    case UC_REPLAY_PREFETCH:
        return prefetch(worker, scheduler_fd);
    case UC_REPLAY_DESCRIBE:
        return describe(worker, scheduler_fd);
    default:
        return move_window(worker, worker->in.type == UC_REPLAY_PUT, scheduler_fd);
    }
}

int
uc_replay_worker_run(const struct uc_replay_setup *setup, int scheduler_fd)
{
    struct worker worker = {.setup = setup, .next_job_id = 1};
    enum uc_status status = worker_open(&worker);

    if (status != UC_OK) {
        if (setup->where != NULL) {
            (void)uc_topology_error(setup->topology, setup->where, status);
        }
        uc_log_error("replay: node %zu: worker: %s: %s", setup->node, uc_status_name(status),
                uc_last_error());
    }
    uc_message_begin(&worker.out, UC_REPLAY_READY);
    uc_message_put_u64(&worker.out, (uint64_t)status);
    if (uc_channel_send(scheduler_fd, &worker.out) != UC_OK) {
        status = UC_ERR_UNHEALTHY;
    }

    while (status == UC_OK && uc_channel_receive(scheduler_fd, &worker.in) == UC_OK &&
            worker.in.type != UC_REPLAY_FINISH) {
        status = serve(&worker, scheduler_fd);
    }

    worker_close(&worker);
    return status == UC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
