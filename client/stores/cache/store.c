/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "client/stores/cache/store_internal.h"

enum {
    JOBS_MAX = 65536 /* accepted and not consumed */
};

static enum uc_status
cache_setup(struct uc_store *store, const struct uc_dict *config)
{
    struct cache_store *self = self_of(store);
    enum uc_status status;

    if (self->is_set_up) {
        return uc_error(UC_ERR_INVALID_PARAM, "cache store: set up twice");
    }

    self->is_set_up = true;
    status = uc_cache_store_config_read(config, &self->config);
    if (status == UC_OK && self->config.role != UC_ROLE_WORKER) {
        status = uc_cache_index_create(&self->config, &self->index);
    }
    if (status == UC_OK && self->config.role != UC_ROLE_SCHEDULER) {
        status = uc_cache_plane_create(&self->config, self->events,
                self->index == NULL ? NULL : uc_cache_index_segment(self->index), &self->plane);
    }
    if (status == UC_OK && self->index != NULL && self->config.lower != NULL) {
        status = uc_cache_below_create(&self->config, self->index, &self->below);
    }
    if (status == UC_OK && self->below != NULL && self->config.write_through) {
        status = uc_cache_through_create(&self->config, self->index, self->below, &self->through);
    }
    if (status == UC_OK && self->plane != NULL && self->config.lower != NULL) {
        status = uc_cache_lift_create(&self->config, self->plane, self->events, &self->lift);
    }
    self->config.policy_config = NULL; /* borrowed for setup only */
    return status;
}

enum uc_status
uc_cache_store_need_index(const struct cache_store *self)
{
    if (self->index == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "cache store: the control side is in another process (store_role worker), or setup "
                "did not succeed");
    }
    return UC_OK;
}

enum uc_status
uc_cache_store_need_plane(const struct cache_store *self)
{
    if (self->plane == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "cache store: the data side is in other processes (store_role scheduler), or setup "
                "did not succeed");
    }
    return UC_OK;
}

static enum uc_status
cache_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_index(self);

    if (status == UC_OK) {
        uc_cache_index_lookup(self->index, ids, count, hits_out);
    }
    return status;
}

static enum uc_status
cache_touch(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct cache_store *self = self_of(store);

    if (self->index != NULL) {
        uc_cache_index_touch(self->index, ids, count, context);
    }
    if (self->below != NULL) {
        uc_cache_below_touch(self->below, ids, count, context);
    }
    return UC_OK;
}

static enum uc_status
refuse_transfer(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    (void)store;
    (void)job_id;
    (void)job;
    return uc_error(UC_ERR_UNSUPPORTED,
            "cache store: transfers need a token; open a window on the scheduler side");
}

static enum uc_status
cache_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    uc_cache_lift_resume(self_of(store)->lift);
    return uc_completion_queue_get_finished(self_of(store)->events, results, capacity, count_out);
}

static enum uc_status
cache_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    uc_cache_lift_resume(self_of(store)->lift);
    return uc_completion_queue_wait(
            self_of(store)->events, job_ids, job_count, timeout_ms, results, capacity, count_out);
}

static int
cache_event_fd(struct uc_store *store)
{
    return uc_completion_queue_event_fd(self_of(store)->events);
}

static enum uc_status
cache_register_memory(struct uc_store *store, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_plane(self);

    uc_cache_lift_pause(self->lift);
    return status != UC_OK
                   ? status
                   : uc_cache_plane_register(self->plane, region_idx, address, length_bytes, kind);
}

static enum uc_status
cache_deregister_memory(struct uc_store *store, uint32_t region_idx)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_plane(self);

    uc_cache_lift_pause(self->lift);
    return status != UC_OK ? status : uc_cache_plane_deregister(self->plane, region_idx);
}

/* ---- facet ---- */

static enum uc_status
cache_pin(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_index(self);

    return status != UC_OK ? status : uc_cache_index_pin(self->index, ids, count, token_out);
}

static void
cache_unpin(struct uc_store *store, const struct uc_token *token)
{
    struct cache_store *self = self_of(store);

    if (self->index != NULL) {
        uc_cache_index_unpin(self->index, token);
    }
}

static enum uc_status
cache_alloc(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_index(self);

    return status != UC_OK ? status
                           : uc_cache_index_alloc(self->index, ids, count, context, token_out);
}

static enum uc_status
cache_commit(
        struct uc_store *store, const struct uc_token *token, const uint8_t *mask, bool success)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_index(self);

    return status != UC_OK ? status : uc_cache_index_commit(self->index, token, mask, success);
}

static enum uc_status
cache_token_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_plane(self);

    uc_cache_lift_resume(self->lift);
    return status != UC_OK
                   ? status
                   : uc_cache_plane_submit(self->plane, true, job_id, job, token, first_key);
}

static enum uc_status
cache_token_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    struct cache_store *self = self_of(store);
    enum uc_status status = uc_cache_store_need_plane(self);

    uc_cache_lift_resume(self->lift);
    return status != UC_OK
                   ? status
                   : uc_cache_plane_submit(self->plane, false, job_id, job, token, first_key);
}

static const struct uc_token_addressed_ops token_ops = {
        .struct_size = sizeof(token_ops),
        .pin = cache_pin,
        .unpin = cache_unpin,
        .alloc = cache_alloc,
        .commit = cache_commit,
        .load = cache_token_load,
        .dump = cache_token_dump,
};

static const struct uc_token_addressed_ops *
as_token_addressed(struct uc_store *store)
{
    (void)store;
    return &token_ops;
}

static const struct uc_prefetchable_ops *
as_prefetchable(struct uc_store *store)
{
    return self_of(store)->config.lower != NULL ? &uc_cache_store_prefetch_ops : NULL;
}

/* ---- description ---- */

static enum uc_status
describe_index(struct cache_store *self, struct uc_dict *description)
{
    struct uc_cache_stats stats = uc_cache_index_stats(self->index);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
            {"free", stats.free},
            {"blocks", stats.blocks},
            {"reserved", stats.reserved},
            {"pinned", stats.pinned},
            {"draining", stats.draining},
            {"evicted_total", stats.evicted_total},
            {"expired_total", stats.expired_total},
            {"committed_total", stats.committed_total},
    };
    enum uc_status status = UC_OK;

    for (size_t idx = 0; status == UC_OK && idx < sizeof(numbers) / sizeof(numbers[0]); idx++) {
        status = uc_dict_set_int(description, numbers[idx].key, (int64_t)numbers[idx].value);
    }
    return status;
}

static enum uc_status
describe_plane(struct cache_store *self, struct uc_dict *description)
{
    struct uc_cache_plane_stats stats = uc_cache_plane_stats(self->plane);
    enum uc_status status =
            uc_dict_set_int(description, "blocks_loaded", (int64_t)stats.blocks_loaded);

    return status != UC_OK
                   ? status
                   : uc_dict_set_int(description, "blocks_dumped", (int64_t)stats.blocks_dumped);
}

static enum uc_status
describe_through(struct cache_store *self, struct uc_dict *description)
{
    struct uc_cache_through_stats stats = uc_cache_through_stats(self->through);
    enum uc_status status = uc_dict_set_int(description, "write_queued", (int64_t)stats.queued);

    if (status == UC_OK) {
        status = uc_dict_set_int(description, "written_total", (int64_t)stats.written_total);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "write_failed_total", (int64_t)stats.failed_total);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "write_skipped_total", (int64_t)stats.skipped_total);
    }
    return status;
}

static enum uc_status
cache_describe(struct uc_store *store, struct uc_dict *description)
{
    struct cache_store *self = self_of(store);
    const struct uc_cache_store_config *config = &self->config;
    enum uc_status status = uc_dict_set_string(description, "name", "cache");

    if (status == UC_OK) {
        status = uc_dict_set_string(description, "version", UC_VERSION);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "abi_version", UC_STORE_ABI_VERSION);
    }
    if (status == UC_OK) {
        status = uc_dict_set_string(description, "node_path", config->node_path);
    }
    if (status == UC_OK) {
        status = uc_dict_set_bool(description, "token_addressed", true);
    }
    if (status == UC_OK) {
        status = uc_dict_set_bool(description, "prefetchable", config->lower != NULL);
    }
    if (status == UC_OK) {
        status = uc_dict_set_string(description, "domain", config->domain);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "block_bytes", (int64_t)config->block_bytes);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "capacity_blocks", (int64_t)config->capacity_blocks);
    }
    if (status == UC_OK && self->index != NULL) {
        status = describe_index(self, description);
    }
    if (status == UC_OK && self->plane != NULL) {
        status = describe_plane(self, description);
    }
    if (status == UC_OK && self->through != NULL) {
        status = describe_through(self, description);
    }
    return status;
}

static const struct uc_store_ops store_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(store_ops),
        .setup = cache_setup,
        .lookup = cache_lookup,
        .touch = cache_touch,
        .load = refuse_transfer,
        .dump = refuse_transfer,
        .get_finished = cache_get_finished,
        .wait = cache_wait,
        .as_token_addressed = as_token_addressed,
        .as_prefetchable = as_prefetchable,
        .register_memory = cache_register_memory,
        .deregister_memory = cache_deregister_memory,
        .describe = cache_describe,
        .event_fd = cache_event_fd,
};

struct uc_store *
uc_cache_store_create(void)
{
    struct cache_store *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        return NULL;
    }
    if (uc_completion_queue_create(0, JOBS_MAX, &self->events) != UC_OK) {
        free(self);
        return NULL;
    }

    self->base.ops = &store_ops;
    return &self->base;
}

void
uc_cache_store_destroy(struct uc_store *store)
{
    struct cache_store *self;

    if (store == NULL) {
        return;
    }

    self = self_of(store);
    uc_cache_through_flush(self->through);
    uc_cache_lift_destroy(self->lift);
    uc_cache_through_destroy(self->through);
    uc_cache_plane_destroy(self->plane);
    uc_cache_below_destroy(self->below);
    uc_cache_index_destroy(self->index);
    uc_completion_queue_destroy(self->events);
    free(self);
}
