/* SPDX-License-Identifier: Apache-2.0 */

/* The operations table of the posix store. */

#include "client/stores/posix/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "client/stores/posix/describe.h"
#include "client/stores/posix/helper.h"
#include "client/stores/posix/lookup.h"
#include "client/stores/posix/plane.h"
#include "client/stores/posix/regions.h"
#include "core/store/job_check.h"

struct posix_store {
    struct uc_store base;
    struct uc_posix_config config;
    struct uc_posix_health health;
    struct uc_posix_roots roots;
    struct uc_posix_env env;
    struct uc_posix_regions regions; /* of the data thread */
    struct uc_posix_helper *helper;
    struct uc_posix_plane *plane; /* NULL in a scheduler */
    bool setup_called;
    bool is_ready;
};

static struct posix_store *
store_of(struct uc_store *base)
{
    return (struct posix_store *)(void *)base; /* first member */
}

static enum uc_status
check_ready(const struct posix_store *store)
{
    if (!store->is_ready) {
        return uc_error(UC_ERR_INVALID_PARAM, "posix store: setup has not succeeded");
    }

    return UC_OK;
}

static enum uc_status
check_data(const struct posix_store *store, const char *what)
{
    enum uc_status status = check_ready(store);

    if (status == UC_OK && store->plane == NULL) {
        status = uc_error(
                UC_ERR_UNSUPPORTED, "posix store: %s: a scheduler moves no bytes (R-14.18)", what);
    }
    return status;
}

static enum uc_status
start(struct posix_store *store)
{
    enum uc_status status = uc_posix_roots_open(&store->config, &store->health, &store->roots);

    if (status != UC_OK) {
        return status;
    }
    status = uc_posix_helper_create(&store->env, &store->helper);
    if (status == UC_OK && store->config.role != UC_ROLE_SCHEDULER) {
        status = uc_posix_plane_create(&store->env, store->helper, &store->plane);
    }
    if (status == UC_OK) {
        return UC_OK;
    }

    uc_posix_helper_destroy(store->helper);
    store->helper = NULL;
    uc_posix_roots_close(&store->roots);
    return status;
}

static enum uc_status
posix_setup(struct uc_store *base, const struct uc_dict *dict)
{
    struct posix_store *store = store_of(base);
    enum uc_status status;

    if (store->setup_called) {
        return uc_error(UC_ERR_INVALID_PARAM, "posix store: setup is called once only");
    }
    store->setup_called = true;
    status = uc_posix_config_read(dict, &store->config);
    if (status == UC_OK) {
        status = start(store);
    }
    store->is_ready = status == UC_OK;
    return status;
}

static enum uc_status
posix_lookup(struct uc_store *base, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct posix_store *store = store_of(base);
    enum uc_status status = check_ready(store);

    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        /* a fault that shows on the way makes the rest absent, too */
        hits_out[idx] =
                uc_posix_health_is_ok(&store->health) && uc_posix_lookup(&store->env, &ids[idx]);
    }
    return status;
}

static enum uc_status
posix_lookup_on_prefix(
        struct uc_store *base, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    struct posix_store *store = store_of(base);
    enum uc_status status = check_ready(store);
    size_t idx = 0;

    if (status != UC_OK) {
        return status;
    }
    while (idx < count && uc_posix_health_is_ok(&store->health) &&
            uc_posix_lookup(&store->env, &ids[idx])) {
        idx++;
    }
    *index_out = (int64_t)idx - 1;
    return UC_OK;
}

static enum uc_status
posix_lookup_on_reverse(
        struct uc_store *base, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    struct posix_store *store = store_of(base);
    enum uc_status status = check_ready(store);
    size_t idx = count;

    if (status != UC_OK) {
        return status;
    }
    while (idx > 0 && uc_posix_health_is_ok(&store->health) &&
            !uc_posix_lookup(&store->env, &ids[idx - 1])) {
        idx--;
    }
    *index_out = uc_posix_health_is_ok(&store->health) ? (int64_t)idx - 1 : -1;
    return UC_OK;
}

/* Hotness only: files have no deadline. Without a capacity nothing asks for their age. */
static enum uc_status
posix_touch(struct uc_store *base, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct posix_store *store = store_of(base);

    (void)context;
    if (!store->is_ready ||
            (store->config.capacity_bytes == 0 && store->config.capacity_blocks == 0)) {
        return UC_OK;
    }
    for (size_t idx = 0; idx < count && uc_posix_health_is_ok(&store->health); idx++) {
        uc_posix_touch(&store->env, &ids[idx]);
    }
    return UC_OK;
}

static enum uc_status
check_payload(const struct posix_store *store, bool is_dump, const struct uc_block_payload *payload)
{
    uint64_t limit =
            store->config.block_bytes != 0 ? store->config.block_bytes : UC_POSIX_BLOCK_BYTES_MAX;
    uint64_t bytes = 0;
    enum uc_status status = uc_payload_check(payload, &bytes);

    if (status != UC_OK) {
        return status;
    }
    if (is_dump && store->config.block_bytes == 0 && payload->block_offset != 0) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "block_offset %" PRIu64 " needs the configuration key 'block_bytes'",
                payload->block_offset); /* */
    }
    if (payload->block_offset > limit || bytes > limit - payload->block_offset) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%" PRIu64 " bytes at offset %" PRIu64 " exceed %s of %" PRIu64, bytes,
                payload->block_offset,
                store->config.block_bytes != 0 ? "block_bytes" : "the longest block", limit);
    }
    return uc_region_list_check(&store->regions.list, payload);
}

static enum uc_status
check_job(struct posix_store *store, bool is_dump, uint64_t job_id,
        const struct uc_job_descriptor *job)
{
    const char *what = is_dump ? "dump" : "load";
    enum uc_status status = check_data(store, what);

    if (status == UC_OK) {
        status = uc_job_check(what, job_id, job);
    }
    if (status == UC_OK && job->prerequisite_handle != 0 && store->config.prerequisite == NULL) {
        status = uc_error(UC_ERR_UNSUPPORTED,
                "posix store: %s %" PRIu64 " has a prerequisite, but no prerequisite_hook was "
                "given when the store was assembled",
                what, job_id);
    }
    for (size_t idx = 0; status == UC_OK && idx < job->count; idx++) {
        status = check_payload(store, is_dump, &job->payloads[idx]);
        if (status != UC_OK) {
            return uc_error(status, "posix store: %s %" PRIu64 ", payload %zu: %s", what, job_id,
                    idx, uc_last_error());
        }
    }
    return status;
}

static enum uc_status
submit(struct posix_store *store, bool is_dump, uint64_t job_id,
        const struct uc_job_descriptor *job)
{
    enum uc_status status = check_job(store, is_dump, job_id, job);

    if (status == UC_OK) {
        status = uc_posix_health_check(&store->health, is_dump ? "dump" : "load");
    }
    if (status != UC_OK) {
        return status;
    }

    return uc_posix_plane_submit(store->plane, is_dump, job_id, job);
}

static enum uc_status
posix_load(struct uc_store *base, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return submit(store_of(base), false, job_id, job);
}

static enum uc_status
posix_dump(struct uc_store *base, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return submit(store_of(base), true, job_id, job);
}

static enum uc_status
posix_get_finished(
        struct uc_store *base, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct posix_store *store = store_of(base);

    if (store->plane == NULL) {
        *count_out = 0;
        return UC_OK;
    }

    return uc_completion_queue_get_finished(
            uc_posix_plane_queue(store->plane), results, capacity, count_out);
}

static enum uc_status
posix_wait(struct uc_store *base, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct posix_store *store = store_of(base);

    if (store->plane == NULL) {
        *count_out = 0; /* no job was ever accepted */
        return UC_OK;
    }

    return uc_completion_queue_wait(uc_posix_plane_queue(store->plane), job_ids, job_count,
            timeout_ms, results, capacity, count_out);
}

static enum uc_status
posix_register_memory(struct uc_store *base, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct posix_store *store = store_of(base);
    enum uc_status status = check_data(store, "register_memory");

    if (status != UC_OK) {
        return status;
    }

    return uc_posix_regions_add(&store->regions, region_idx, address, length_bytes, kind);
}

static enum uc_status
posix_deregister_memory(struct uc_store *base, uint32_t region_idx)
{
    struct posix_store *store = store_of(base);
    enum uc_status status = check_data(store, "deregister_memory");

    if (status == UC_OK && uc_region_list_is_device(&store->regions.list, region_idx) &&
            uc_posix_plane_uses_device(store->plane)) {
        status = uc_error(UC_ERR_RETRY,
                "posix store: region %" PRIu32 ": jobs with memory of a device are in flight; wait "
                "for them",
                region_idx);
    }
    return status != UC_OK ? status : uc_region_list_remove(&store->regions.list, region_idx);
}

static enum uc_status
posix_health(struct uc_store *base)
{
    struct posix_store *store = store_of(base);
    enum uc_status status = check_ready(store);

    return status != UC_OK ? status : uc_posix_health_check(&store->health, "health");
}

static enum uc_status
posix_describe(struct uc_store *base, struct uc_dict *description)
{
    struct posix_store *store = store_of(base);

    return uc_posix_describe(&store->env,
            store->plane == NULL ? "" : uc_posix_plane_engine(store->plane), description);
}

static int
posix_event_fd(struct uc_store *base)
{
    struct posix_store *store = store_of(base);

    return store->plane == NULL ? -1
                                : uc_completion_queue_event_fd(uc_posix_plane_queue(store->plane));
}

static const struct uc_store_ops posix_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(posix_ops),
        .setup = posix_setup,
        .lookup = posix_lookup,
        .lookup_on_prefix = posix_lookup_on_prefix,
        .lookup_on_reverse = posix_lookup_on_reverse,
        .touch = posix_touch,
        .load = posix_load,
        .dump = posix_dump,
        .get_finished = posix_get_finished,
        .wait = posix_wait,
        .register_memory = posix_register_memory,
        .deregister_memory = posix_deregister_memory,
        .health = posix_health,
        .describe = posix_describe,
        .event_fd = posix_event_fd,
};

struct uc_store *
uc_posix_store_create(void)
{
    struct posix_store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }

    uc_posix_health_init(&store->health);
    uc_region_list_init(&store->regions.list, "posix store");
    store->base.ops = &posix_ops;
    store->env.config = &store->config;
    store->env.roots = &store->roots;
    store->env.health = &store->health;
    store->env.regions = &store->regions;
    return &store->base;
}

void
uc_posix_store_destroy(struct uc_store *base)
{
    struct posix_store *store;

    if (base == NULL) {
        return;
    }

    store = store_of(base);
    uc_posix_plane_destroy(store->plane); /* takes back what the helper has */
    uc_posix_helper_destroy(store->helper);
    uc_posix_regions_fini(&store->regions);
    uc_posix_roots_close(&store->roots);
    uc_posix_config_fini(&store->config);
    uc_posix_health_fini(&store->health);
    free(store);
}
