/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/entry.h"

#include <stdlib.h>

#include <ucm/log.h>

#include "client/proxy/entry_internal.h"

enum uc_status
uc_entry_create(struct uc_store *store, struct uc_entry **entry_out)
{
    struct uc_entry *entry;
    enum uc_status status;

    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a store entry");
    }

    entry->scheduler.ops = &uc_entry_scheduler_ops;
    entry->worker.ops = &uc_entry_worker_ops;
    entry->store = store;
    entry->tokened = uc_store_as_token_addressed(store);
    entry->prefetchable = uc_store_as_prefetchable(store);
    uc_entry_data_init(&entry->data);
    status = uc_request_table_create(&entry->control.requests);
    if (status != UC_OK) {
        goto err_free_entry;
    }

    *entry_out = entry;
    return UC_OK;

err_free_entry:
    free(entry);
    return status;
}

void
uc_entry_destroy(struct uc_entry *entry)
{
    if (entry == NULL) {
        return;
    }

    if (entry->data.jobs.count != entry->data.finished.alive_count) {
        uc_log_warn("entry: destroyed with %zu jobs in flight: wait for them first",
                entry->data.jobs.count - entry->data.finished.alive_count);
    }
    uc_entry_control_fini(entry);
    uc_entry_data_fini(&entry->data);
    free(entry);
}

struct uc_scheduler *
uc_entry_scheduler(struct uc_entry *entry)
{
    return &entry->scheduler;
}

struct uc_worker *
uc_entry_worker(struct uc_entry *entry)
{
    return &entry->worker;
}

enum uc_status
uc_entry_describe(const struct uc_entry *entry, struct uc_dict *description)
{
    enum uc_status status = uc_store_describe(entry->store, description);

    if (status != UC_OK) {
        return status;
    }
    if (!uc_dict_has(description, "token_addressed")) {
        status = uc_dict_set_bool(description, "token_addressed", entry->tokened != NULL);
        if (status != UC_OK) {
            return status;
        }
    }
    if (!uc_dict_has(description, "prefetchable")) {
        status = uc_dict_set_bool(description, "prefetchable", entry->prefetchable != NULL);
    }

    return status;
}
