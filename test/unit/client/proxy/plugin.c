/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store plugin for the loader and assembler tests, good or wrong in the one way that the build defines.
 * Its setup checks what the assembler injects and reports it through pointers that the test puts into the
 * configuration.
 */

#include "test/unit/client/proxy/plugin.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/plugin.h>
#include <ucm/setup.h>

struct plugin_store {
    struct uc_store base;
    struct plugin_report *report;
};

static struct plugin_store *
plugin_of(struct uc_store *store)
{
    return (struct plugin_store *)(void *)store;
}

static enum uc_status
plugin_setup(struct uc_store *store, const struct uc_dict *config)
{
    struct plugin_report *report = NULL;
    const char *text = NULL;
    void *pointer = NULL;
    bool fail = false;

    if (uc_dict_get_pointer(config, "report", &pointer) == UC_OK) {
        report = pointer;
        report->setup_count++;
        report->has_lower = uc_dict_has(config, UC_SETUP_PIPED_LOWER_STORE);
        if (uc_dict_get_string(config, UC_SETUP_NODE_PATH, &text) == UC_OK) {
            strncpy(report->node_path, text, sizeof(report->node_path) - 1);
        }
        if (uc_dict_get_string(config, UC_SETUP_STORE_ROLE, &text) == UC_OK) {
            strncpy(report->role, text, sizeof(report->role) - 1);
        }
        if (uc_dict_get_int(config, UC_SETUP_TIERS_BELOW, &report->tiers_below) != UC_OK) {
            report->tiers_below = -1;
        }
        if (uc_dict_get_pointer(config, UC_SETUP_PREREQUISITE_HOOK, &pointer) == UC_OK) {
            const struct uc_prerequisite *hook = pointer;

            report->prerequisite_answer = hook->poll(hook->context, 42);
        }
        plugin_of(store)->report = report;
    }
    if (uc_dict_get_bool(config, "fail", &fail) == UC_OK && fail) {
        return uc_error(UC_ERR_NO_SPACE, "plugin: told to fail");
    }

    return UC_OK;
}

static enum uc_status
plugin_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits)
{
    (void)store;
    (void)ids;
    for (size_t idx = 0; idx < count; idx++) {
        hits[idx] = 0;
    }
    return UC_OK;
}

static enum uc_status
plugin_transfer(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    (void)store;
    (void)job_id;
    (void)job;
    return UC_ERR_UNSUPPORTED;
}

static enum uc_status
plugin_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    (void)store;
    (void)results;
    (void)capacity;
    *count_out = 0;
    return UC_OK;
}

#if !PLUGIN_IS_NULL_SLOT
static enum uc_status
plugin_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    (void)job_ids;
    (void)job_count;
    (void)timeout_ms;
    return plugin_get_finished(store, results, capacity, count_out);
}
#endif

static const struct uc_store_ops plugin_ops = {
        .abi_version = UC_STORE_ABI_VERSION + PLUGIN_IS_OTHER_ABI,
        .struct_size =
                PLUGIN_IS_SHORT_TABLE ? offsetof(struct uc_store_ops, wait) : sizeof(plugin_ops),
        .setup = plugin_setup,
        .lookup = plugin_lookup,
        .load = plugin_transfer,
        .dump = plugin_transfer,
        .get_finished = plugin_get_finished,
#if !PLUGIN_IS_NULL_SLOT
        .wait = plugin_wait,
#endif
};

/* Used by no entry in the variant without entries. */
struct uc_store *plugin_create(void);
void plugin_destroy(struct uc_store *store);

struct uc_store *
plugin_create(void)
{
    struct plugin_store *store = calloc(1, sizeof(*store));

    if (store != NULL) {
        store->base.ops = PLUGIN_IS_NULL_TABLE ? NULL : &plugin_ops;
    }
    return &store->base;
}

void
plugin_destroy(struct uc_store *store)
{
    if (store != NULL && plugin_of(store)->report != NULL) {
        plugin_of(store)->report->destroy_count++;
    }
    free(store);
}

#if !PLUGIN_IS_NO_ENTRIES
struct uc_store *
UCCreateStore(void)
{
    return PLUGIN_IS_NULL_FACTORY ? NULL : plugin_create();
}
#endif

#if !PLUGIN_IS_NO_ENTRIES && !PLUGIN_IS_NO_DESTROY
void
UCDestroyStore(struct uc_store *store)
{
    plugin_destroy(store);
}
#endif
