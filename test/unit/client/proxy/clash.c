/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Half of a pair of plugins that define the same symbols, exported by mistake. CLASH_NAME tells them apart.
 */

#include <stdlib.h>

#include <ucm/plugin.h>

/* Default visibility on purpose; with RTLD_GLOBAL one plugin would call into the other. */
UC_API const char *clash_name(void);
UC_API extern int clash_instances;

int clash_instances;

const char *
clash_name(void)
{
    return CLASH_NAME;
}

static enum uc_status
clash_setup(struct uc_store *store, const struct uc_dict *config)
{
    (void)store;
    (void)config;
    clash_instances++;
    return UC_OK;
}

static enum uc_status
clash_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits)
{
    (void)store;
    (void)ids;
    for (size_t idx = 0; idx < count; idx++) {
        hits[idx] = 0;
    }
    return UC_OK;
}

static enum uc_status
clash_transfer(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    (void)store;
    (void)job_id;
    (void)job;
    return UC_ERR_UNSUPPORTED;
}

static enum uc_status
clash_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    (void)store;
    (void)results;
    (void)capacity;
    *count_out = 0;
    return UC_OK;
}

static enum uc_status
clash_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    (void)job_ids;
    (void)job_count;
    (void)timeout_ms;
    return clash_get_finished(store, results, capacity, count_out);
}

static enum uc_status
clash_describe(struct uc_store *store, struct uc_dict *description)
{
    enum uc_status status = uc_dict_set_string(description, "name", clash_name());

    (void)store;
    return status == UC_OK ? uc_dict_set_int(description, "instances", clash_instances) : status;
}

static const struct uc_store_ops clash_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(clash_ops),
        .setup = clash_setup,
        .lookup = clash_lookup,
        .load = clash_transfer,
        .dump = clash_transfer,
        .get_finished = clash_get_finished,
        .wait = clash_wait,
        .describe = clash_describe,
};

struct uc_store *
UCCreateStore(void)
{
    struct uc_store *store = calloc(1, sizeof(*store));

    if (store != NULL) {
        store->ops = &clash_ops;
    }
    return store;
}

void
UCDestroyStore(struct uc_store *store)
{
    free(store);
}
