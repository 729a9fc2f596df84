/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>

#include <ucm/log.h>
#include <ucm/store.h>

#include "core/store/job_check.h"

/*
 * A slot beyond the plugin's struct_size counts as null: it may have been compiled against an older
 * table. Every access to an optional slot goes through here.
 */
#define TABLE_COVERS(ops, type, slot) \
    ((ops)->struct_size >= offsetof(type, slot) + sizeof((ops)->slot))
#define STORE_SLOT(store, slot) \
    (TABLE_COVERS((store)->ops, struct uc_store_ops, slot) ? (store)->ops->slot : NULL)

enum {
    DERIVED_BATCH = 256 /* ids per lookup when prefix and reverse lookups are derived */
};

enum uc_status
uc_store_check(const struct uc_store *store)
{
    const struct uc_store_ops *ops = store == NULL ? NULL : store->ops;
    const char *missing = NULL;

    if (ops == NULL) {
        return uc_error(UC_ERR_GENERAL, "store: no instance or no operations table");
    }
    if (ops->abi_version != UC_STORE_ABI_VERSION) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "store: plugin has ABI version %" PRIu32 ", this library %u; build both alike",
                ops->abi_version, UC_STORE_ABI_VERSION);
    }
    if (!TABLE_COVERS(ops, struct uc_store_ops, wait)) { /* the last mandatory slot */
        return uc_error(UC_ERR_UNSUPPORTED,
                "store: operations table of %" PRIu32 " bytes ends before a mandatory slot",
                ops->struct_size);
    }

    missing = ops->setup == NULL          ? "setup"
              : ops->lookup == NULL       ? "lookup"
              : ops->load == NULL         ? "load"
              : ops->dump == NULL         ? "dump"
              : ops->get_finished == NULL ? "get_finished"
              : ops->wait == NULL         ? "wait"
                                          : NULL;
    if (missing != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "store: mandatory operation '%s' is null", missing);
    }
    return UC_OK;
}

enum uc_status
uc_store_setup(struct uc_store *store, const struct uc_dict *config)
{
    if (config == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "store setup: no configuration dictionary");
    }

    return store->ops->setup(store, config);
}

static enum uc_status
check_ids(const char *what, const struct uc_block_id *ids, size_t count, bool has_output)
{
    if ((ids == NULL && count > 0) || !has_output) {
        return uc_error(UC_ERR_INVALID_PARAM, "store %s: a null pointer with %zu ids", what, count);
    }

    return UC_OK;
}

enum uc_status
uc_store_lookup(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    enum uc_status status = check_ids("lookup", ids, count, hits_out != NULL || count == 0);

    if (status != UC_OK || count == 0) {
        return status;
    }

    return store->ops->lookup(store, ids, count, hits_out);
}

static enum uc_status
derive_on_prefix(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    uint8_t hits[DERIVED_BATCH];
    size_t present = 0;
    bool gap = false;

    while (present < count && !gap) {
        size_t batch = count - present < DERIVED_BATCH ? count - present : DERIVED_BATCH;
        enum uc_status status = store->ops->lookup(store, ids + present, batch, hits);
        size_t idx = 0;

        if (status != UC_OK) {
            return status;
        }
        while (idx < batch && hits[idx] != 0) {
            idx++;
        }
        present += idx;
        gap = idx < batch;
    }

    *index_out = (int64_t)present - 1;
    return UC_OK;
}

static enum uc_status
derive_on_reverse(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    uint8_t hits[DERIVED_BATCH];
    size_t end = count;

    while (end > 0) {
        size_t batch = end < DERIVED_BATCH ? end : DERIVED_BATCH;
        enum uc_status status = store->ops->lookup(store, ids + (end - batch), batch, hits);

        if (status != UC_OK) {
            return status;
        }
        for (size_t idx = batch; idx > 0; idx--) {
            if (hits[idx - 1] != 0) {
                *index_out = (int64_t)(end - batch + idx) - 1;
                return UC_OK;
            }
        }
        end -= batch;
    }

    *index_out = -1;
    return UC_OK;
}

typedef enum uc_status (*uc_index_lookup_fn)(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out);

static enum uc_status
index_lookup(struct uc_store *store, const char *what, uc_index_lookup_fn lookup,
        const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    enum uc_status status = check_ids(what, ids, count, index_out != NULL);
    int64_t index = -1;

    if (status == UC_OK && count > 0) {
        status = lookup(store, ids, count, &index);
    }
    if (status != UC_OK) {
        return status;
    }
    if (index < -1 || (index >= 0 && (uint64_t)index >= count)) {
        return uc_error(UC_ERR_GENERAL, "store %s: plugin answered index %" PRId64 " of %zu", what,
                index, count);
    }

    *index_out = index;
    return UC_OK;
}

enum uc_status
uc_store_lookup_on_prefix(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    uc_index_lookup_fn slot = STORE_SLOT(store, lookup_on_prefix);

    return index_lookup(store, "lookup_on_prefix", slot == NULL ? derive_on_prefix : slot, ids,
            count, index_out);
}

enum uc_status
uc_store_lookup_on_reverse(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    uc_index_lookup_fn slot = STORE_SLOT(store, lookup_on_reverse);

    return index_lookup(store, "lookup_on_reverse", slot == NULL ? derive_on_reverse : slot, ids,
            count, index_out);
}

enum uc_status
uc_store_touch(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    enum uc_status status = check_ids("touch", ids, count, true);

    if (status != UC_OK || count == 0 || STORE_SLOT(store, touch) == NULL) {
        return status;
    }

    return store->ops->touch(store, ids, count, context);
}

enum uc_status
uc_store_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    enum uc_status status = uc_job_check("load", job_id, job);

    return status != UC_OK ? status : store->ops->load(store, job_id, job);
}

enum uc_status
uc_store_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    enum uc_status status = uc_job_check("dump", job_id, job);

    return status != UC_OK ? status : store->ops->dump(store, job_id, job);
}

static enum uc_status
check_result_count(const char *what, size_t count, size_t capacity)
{
    if (count > capacity) {
        return uc_error(UC_ERR_GENERAL, "store %s: plugin answered %zu results for room of %zu",
                what, count, capacity);
    }

    return UC_OK;
}

enum uc_status
uc_store_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    enum uc_status status;
    size_t count = 0;

    if (count_out == NULL || (results == NULL && capacity > 0)) {
        return uc_error(UC_ERR_INVALID_PARAM, "store get_finished: no place for results");
    }

    status = store->ops->get_finished(store, results, capacity, &count);
    if (status == UC_OK) {
        status = check_result_count("get_finished", count, capacity);
    }
    if (status == UC_OK) {
        *count_out = count;
    }
    return status;
}

enum uc_status
uc_store_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    enum uc_status status;
    size_t count = 0;

    if (count_out == NULL || (results == NULL && capacity > 0) ||
            (job_ids == NULL && job_count > 0)) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "store wait: a null pointer with %zu jobs", job_count);
    }
    if (timeout_ms < -1) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "store wait: timeout of %" PRId64 " ms; use -1 for no limit", timeout_ms);
    }

    status = store->ops->wait(store, job_ids, job_count, timeout_ms, results, capacity, &count);
    if (status == UC_OK || status == UC_ERR_TIMEOUT) { /* an event must not be lost */
        enum uc_status checked = check_result_count("wait", count, capacity);

        if (checked != UC_OK) {
            return checked;
        }
        *count_out = count;
    }
    return status;
}

enum uc_status
uc_store_register_memory(struct uc_store *store, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    if (address == NULL || length_bytes == 0 || region_idx == UC_MEMORY_REGION_NONE ||
            length_bytes - 1 > UINTPTR_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "store register_memory: region %" PRIu32 " at %p of %" PRIu64
                " bytes is empty, wraps, or has no index",
                region_idx, address, length_bytes);
    }
    if (STORE_SLOT(store, register_memory) == NULL) {
        return UC_OK;
    }

    return store->ops->register_memory(store, region_idx, address, length_bytes, kind);
}

enum uc_status
uc_store_deregister_memory(struct uc_store *store, uint32_t region_idx)
{
    if (STORE_SLOT(store, deregister_memory) == NULL) {
        return UC_OK;
    }

    return store->ops->deregister_memory(store, region_idx);
}

enum uc_status
uc_store_health(struct uc_store *store)
{
    return STORE_SLOT(store, health) == NULL ? UC_OK : store->ops->health(store);
}

enum uc_status
uc_store_describe(struct uc_store *store, struct uc_dict *description)
{
    if (description == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "store describe: no dictionary to fill");
    }

    return STORE_SLOT(store, describe) == NULL ? UC_OK : store->ops->describe(store, description);
}

int
uc_store_event_fd(struct uc_store *store)
{
    return STORE_SLOT(store, event_fd) == NULL ? -1 : store->ops->event_fd(store);
}

/* A facet that cannot be used as a whole is no facet: better plain than half tokened. */
static void
refuse_facet(const char *facet, uint32_t struct_size)
{
    (void)uc_error(UC_ERR_INVALID_PARAM,
            "store: %s table of %" PRIu32 " bytes is too short or has a null mandatory slot; the "
            "facet is not used",
            facet, struct_size);
    uc_log_warn("%s", uc_last_error());
}

const struct uc_token_addressed_ops *
uc_store_as_token_addressed(struct uc_store *store)
{
    const struct uc_token_addressed_ops *ops = NULL;

    if (STORE_SLOT(store, as_token_addressed) != NULL) {
        ops = store->ops->as_token_addressed(store);
    }
    if (ops == NULL) {
        return NULL;
    }
    if (!TABLE_COVERS(ops, struct uc_token_addressed_ops, dump) || ops->pin == NULL ||
            ops->unpin == NULL || ops->alloc == NULL || ops->commit == NULL || ops->load == NULL ||
            ops->dump == NULL) {
        refuse_facet("token_addressed", ops->struct_size);
        return NULL;
    }
    return ops;
}

const struct uc_prefetchable_ops *
uc_store_as_prefetchable(struct uc_store *store)
{
    const struct uc_prefetchable_ops *ops = NULL;

    if (STORE_SLOT(store, as_prefetchable) != NULL) {
        ops = store->ops->as_prefetchable(store);
    }
    if (ops == NULL) {
        return NULL;
    }
    if (!TABLE_COVERS(ops, struct uc_prefetchable_ops, complete_prefetch) || ops->lookup == NULL ||
            ops->lookup_on_prefix == NULL || ops->lookup_on_reverse == NULL ||
            ops->prepare_prefetch == NULL || ops->prefetch == NULL ||
            ops->complete_prefetch == NULL) {
        refuse_facet("prefetchable", ops->struct_size);
        return NULL;
    }
    return ops;
}
