/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The reference implementation of a plain store: read it before writing one. Transfers are copies that end
 * within load and dump; their events wait in the queue like those of any other store.
 *
 * Locks: `lock` orders the control thread against the data thread; the completion queue has its own, taken
 * after it or alone.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>
#include <ucm/store.h>

#include "core/base/completion_queue.h"
#include "core/base/mutex.h"
#include "core/config/fields.h"
#include "core/store/job_check.h"
#include "core/store/null_blocks.h"
#include "core/store/region_list.h"

enum null_state {
    NULL_NEW,         /* only setup and destroy are allowed */
    NULL_READY,       /* everything but setup is allowed */
    NULL_SETUP_FAILED /* only destroy is allowed */
};

struct null_store {
    struct uc_store base;
    struct uc_completion_queue *completions;
    struct uc_mutex lock;
    enum null_state state; /* guarded by lock, as all that follows */
    uint64_t block_bytes;  /* 0 = a dump payload is the whole block */
    uint64_t timeout_ms;   /* read, but no job here lasts */
    char *node_path;
    struct uc_null_blocks blocks;
    struct uc_region_list regions;
};

static struct null_store *
null_store_of(struct uc_store *store)
{
    return (struct null_store *)(void *)store; /* first member */
}

static enum uc_status check_ready_locked(const struct null_store *null_store)
        UC_REQUIRES(null_store->lock);
static enum uc_status setup_locked(struct null_store *null_store, const struct uc_dict *config)
        UC_REQUIRES(null_store->lock);
static enum uc_status check_payload_locked(const struct null_store *null_store,
        const struct uc_block_payload *payload) UC_REQUIRES(null_store->lock);
static enum uc_status check_job_locked(const struct null_store *null_store,
        const struct uc_job_descriptor *job) UC_REQUIRES(null_store->lock);
static enum uc_status load_block_locked(struct null_store *null_store, const struct uc_block_id *id,
        const struct uc_block_payload *payload) UC_REQUIRES(null_store->lock);
static enum uc_status dump_block_locked(struct null_store *null_store, const struct uc_block_id *id,
        const struct uc_block_payload *payload) UC_REQUIRES(null_store->lock);

static enum uc_status
check_ready_locked(const struct null_store *null_store)
{
    if (null_store->state != NULL_READY) {
        return uc_error(UC_ERR_INVALID_PARAM, "null store: setup was not called or failed");
    }

    return UC_OK;
}

static void
warn_of_unknown_keys(const struct uc_dict *config)
{
    static const char *const known[] = {"block_bytes", "timeout_ms", "node_path", "store_role",
            "tiers_below", "piped_lower_store", "prerequisite_hook"};
    const size_t known_count = sizeof(known) / sizeof(known[0]);

    for (size_t idx = 0; idx < uc_dict_count(config); idx++) {
        const char *key = uc_dict_key_at(config, idx);
        const char *nearest = uc_field_nearest(key, known, known_count);
        bool is_known = nearest != NULL && strcmp(nearest, key) == 0;

        if (!is_known) {
            uc_log_warn("null store: key '%s' is not known and ignored%s%s", key,
                    nearest == NULL ? "" : "; nearest is ", nearest == NULL ? "" : nearest);
        }
    }
}

static enum uc_status
setup_locked(struct null_store *null_store, const struct uc_dict *config)
{
    const char *node_path = "";
    enum uc_status status;

    status = uc_dict_get_bytes(config, "block_bytes", &null_store->block_bytes);
    if (status == UC_OK && null_store->block_bytes == 0) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "null store: key 'block_bytes' is 0, must be at least 1");
    }
    if (status == UC_OK || status == UC_ERR_NOT_FOUND) {
        status = uc_dict_get_ms(config, "timeout_ms", &null_store->timeout_ms);
    }
    if (status == UC_OK || status == UC_ERR_NOT_FOUND) {
        status = uc_dict_get_string(config, "node_path", &node_path);
    }
    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return status;
    }

    null_store->node_path = malloc(strlen(node_path) + 1);
    if (null_store->node_path == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "null store: out of memory");
    }
    memcpy(null_store->node_path, node_path, strlen(node_path) + 1);
    return UC_OK;
}

static enum uc_status
null_setup(struct uc_store *store, const struct uc_dict *config)
{
    struct null_store *null_store = null_store_of(store);
    enum uc_status status;

    uc_mutex_lock(&null_store->lock);
    if (null_store->state != NULL_NEW) {
        status = uc_error(UC_ERR_INVALID_PARAM, "null store: setup was called before");
    } else {
        status = setup_locked(null_store, config);
        null_store->state = status == UC_OK ? NULL_READY : NULL_SETUP_FAILED;
    }
    uc_mutex_unlock(&null_store->lock);
    if (status == UC_OK) {
        warn_of_unknown_keys(config);
    }
    return status;
}

static enum uc_status
null_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct null_store *null_store = null_store_of(store);
    enum uc_status status;

    uc_mutex_lock(&null_store->lock);
    status = check_ready_locked(null_store);
    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        const struct uc_null_block *block = uc_null_blocks_find(&null_store->blocks, &ids[idx]);

        hits_out[idx] = block != NULL && block->is_complete;
    }
    uc_mutex_unlock(&null_store->lock);
    return status;
}

static enum uc_status
check_payload_locked(const struct null_store *null_store, const struct uc_block_payload *payload)
{
    uint64_t bytes = 0;
    enum uc_status status = uc_payload_check(payload, &bytes);

    if (status != UC_OK) {
        return status;
    }
    if (null_store->block_bytes == 0 && payload->block_offset != 0) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "block_offset %" PRIu64 " needs the configuration key 'block_bytes'",
                payload->block_offset);
    }
    if (null_store->block_bytes != 0 &&
            (payload->block_offset > null_store->block_bytes ||
                    bytes > null_store->block_bytes - payload->block_offset)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%" PRIu64 " bytes at offset %" PRIu64 " exceed block_bytes of %" PRIu64, bytes,
                payload->block_offset, null_store->block_bytes);
    }

    return uc_region_list_check(&null_store->regions, payload);
}

static enum uc_status
check_job_locked(const struct null_store *null_store, const struct uc_job_descriptor *job)
{
    enum uc_status status = check_ready_locked(null_store);

    if (status == UC_OK && job->prerequisite_handle != 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "null store: prerequisites are not supported");
    }
    for (size_t idx = 0; idx < job->count && status == UC_OK; idx++) {
        status = check_payload_locked(null_store, &job->payloads[idx]);
        if (status != UC_OK) {
            return uc_error(status, "null store: payload %zu: %s", idx, uc_last_error());
        }
    }
    return status;
}

static uint64_t
payload_bytes_of(const struct uc_block_payload *payload)
{
    uint64_t bytes = 0;

    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        bytes += payload->sizes[idx]; /* checked at submit: does not wrap */
    }
    return bytes;
}

static enum uc_status
load_block_locked(struct null_store *null_store, const struct uc_block_id *id,
        const struct uc_block_payload *payload)
{
    const struct uc_null_block *block = uc_null_blocks_find(&null_store->blocks, id);

    if (block == NULL || !block->is_complete) {
        return UC_ERR_NOT_FOUND;
    }
    if (payload->block_offset > block->length_bytes ||
            payload_bytes_of(payload) > block->length_bytes - payload->block_offset) {
        return UC_ERR_INVALID_PARAM; /* */
    }

    uc_null_block_read(block, payload);
    return UC_OK;
}

static enum uc_status
dump_block_locked(struct null_store *null_store, const struct uc_block_id *id,
        const struct uc_block_payload *payload)
{
    uint64_t bytes = payload_bytes_of(payload);

    if (null_store->block_bytes == 0 || bytes == null_store->block_bytes) {
        return uc_null_blocks_replace(&null_store->blocks, id, payload, bytes);
    }

    return uc_null_blocks_write_part(
            &null_store->blocks, id, payload, bytes, null_store->block_bytes);
}

typedef enum uc_status (*uc_null_move_fn)(struct null_store *null_store,
        const struct uc_block_id *id, const struct uc_block_payload *payload);

static enum uc_status run_job_locked(struct null_store *null_store, uint64_t job_id,
        const struct uc_job_descriptor *job, uc_null_move_fn move) UC_REQUIRES(null_store->lock);

/* Everything that can refuse the job happens before the first byte moves. */
static enum uc_status
run_job_locked(struct null_store *null_store, uint64_t job_id, const struct uc_job_descriptor *job,
        uc_null_move_fn move)
{
    enum uc_status status = check_job_locked(null_store, job);
    enum uc_status code = UC_OK;
    uint8_t *blocks;

    if (status != UC_OK) {
        return status;
    }

    blocks = calloc(job->count / 8 + 1, 1);
    if (blocks == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "null store: job %" PRIu64 ": out of memory", job_id);
    }

    status = uc_completion_queue_begin(null_store->completions, job_id, job->count);
    if (status != UC_OK) {
        goto out_free_blocks;
    }

    for (size_t idx = 0; idx < job->count; idx++) {
        enum uc_status moved = move(null_store, &job->block_ids[idx], &job->payloads[idx]);

        if (moved == UC_OK) {
            blocks[idx / 8] = (uint8_t)(blocks[idx / 8] | 1u << idx % 8);
        } else if (code == UC_OK) {
            code = moved; /* that of the failed block with the lowest index, R-2.12 */
        }
    }
    uc_completion_queue_finish(null_store->completions, job_id, code, blocks);

out_free_blocks:
    free(blocks);
    return status;
}

static enum uc_status
null_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    struct null_store *null_store = null_store_of(store);
    enum uc_status status;

    uc_mutex_lock(&null_store->lock);
    status = run_job_locked(null_store, job_id, job, load_block_locked);
    uc_mutex_unlock(&null_store->lock);
    return status;
}

static enum uc_status
null_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    struct null_store *null_store = null_store_of(store);
    enum uc_status status;

    uc_mutex_lock(&null_store->lock);
    status = run_job_locked(null_store, job_id, job, dump_block_locked);
    uc_mutex_unlock(&null_store->lock);
    return status;
}

static enum uc_status
null_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    return uc_completion_queue_get_finished(
            null_store_of(store)->completions, results, capacity, count_out);
}

static enum uc_status
null_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    return uc_completion_queue_wait(null_store_of(store)->completions, job_ids, job_count,
            timeout_ms, results, capacity, count_out);
}

static enum uc_status
null_register_memory(struct uc_store *store, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct null_store *null_store = null_store_of(store);
    enum uc_status status;

    if (kind != UC_MEMORY_HOST) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "null store: memory kind %d; only host memory can be copied", (int)kind);
    }

    uc_mutex_lock(&null_store->lock);
    status = check_ready_locked(null_store);
    if (status == UC_OK) {
        status = uc_region_list_add(&null_store->regions, region_idx, address, length_bytes, kind);
    }
    uc_mutex_unlock(&null_store->lock);
    return status;
}

static enum uc_status
null_deregister_memory(struct uc_store *store, uint32_t region_idx)
{
    struct null_store *null_store = null_store_of(store);
    enum uc_status status;

    uc_mutex_lock(&null_store->lock);
    status = uc_region_list_remove(&null_store->regions, region_idx);
    uc_mutex_unlock(&null_store->lock);
    return status;
}

static enum uc_status
null_describe(struct uc_store *store, struct uc_dict *description)
{
    struct null_store *null_store = null_store_of(store);
    enum uc_status status;

    uc_mutex_lock(&null_store->lock);
    status = uc_dict_set_string(description, "name", "null");
    if (status == UC_OK) {
        status = uc_dict_set_string(description, "version", "1");
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "abi_version", UC_STORE_ABI_VERSION);
    }
    if (status == UC_OK) {
        status = uc_dict_set_string(description, "node_path",
                null_store->node_path == NULL ? "" : null_store->node_path);
    }
    if (status == UC_OK) {
        status = uc_dict_set_bool(description, "token_addressed", false);
    }
    if (status == UC_OK) {
        status = uc_dict_set_bool(description, "prefetchable", false);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "blocks", (int64_t)null_store->blocks.count);
    }
    uc_mutex_unlock(&null_store->lock);
    return status;
}

static int
null_event_fd(struct uc_store *store)
{
    return uc_completion_queue_event_fd(null_store_of(store)->completions);
}

static const struct uc_store_ops null_store_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(struct uc_store_ops),
        .setup = null_setup,
        .lookup = null_lookup,
        .load = null_load,
        .dump = null_dump,
        .get_finished = null_get_finished,
        .wait = null_wait,
        .register_memory = null_register_memory,
        .deregister_memory = null_deregister_memory,
        .describe = null_describe,
        .event_fd = null_event_fd,
};

struct uc_store *
uc_null_store_create(void)
{
    struct null_store *null_store = calloc(1, sizeof(*null_store));

    if (null_store == NULL) {
        return NULL;
    }
    if (uc_completion_queue_create(0, 0, &null_store->completions) != UC_OK) {
        free(null_store);
        return NULL;
    }

    uc_region_list_init(&null_store->regions, "null store");
    uc_mutex_init(&null_store->lock);
    null_store->base.ops = &null_store_ops;
    return &null_store->base;
}

void
uc_null_store_destroy(struct uc_store *store)
{
    struct null_store *null_store;

    if (store == NULL) {
        return;
    }

    null_store = null_store_of(store);
    uc_completion_queue_destroy(null_store->completions);
    uc_null_blocks_fini(&null_store->blocks);
    uc_region_list_fini(&null_store->regions);
    uc_mutex_fini(&null_store->lock);
    free(null_store->node_path);
    free(null_store);
}
