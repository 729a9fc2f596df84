/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/entry.h"

#include <assert.h>
#include <stdlib.h>

#include <ucm/log.h>

#include "client/proxy/entry_internal.h"

static enum uc_status
keep_lower(struct uc_entry *entry, struct uc_store *const *tiers, size_t tier_count)
{
    if (tier_count == 1) {
        return UC_OK;
    }
    entry->lower = calloc(tier_count - 1, sizeof(entry->lower[0]));
    if (entry->lower == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for an entry over %zu tiers", tier_count);
    }

    entry->lower_count = tier_count - 1;
    for (size_t idx = 0; idx < entry->lower_count; idx++) {
        struct uc_store *store = tiers[idx + 1];

        entry->lower[idx] = (struct uc_entry_tier){
                .store = store,
                .is_tokened = uc_store_as_token_addressed(store) != NULL,
                .is_prefetchable = uc_store_as_prefetchable(store) != NULL,
        };
    }

    return UC_OK;
}

enum uc_status
uc_entry_create_piped(struct uc_store *const *tiers, size_t tier_count, struct uc_entry **entry_out)
{
    struct uc_entry *entry;
    enum uc_status status;

    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a store entry");
    }

    entry->scheduler.ops = &uc_entry_scheduler_ops;
    entry->worker.ops = &uc_entry_worker_ops;
    entry->store = tiers[0];
    entry->tokened = uc_store_as_token_addressed(entry->store);
    entry->prefetchable = uc_store_as_prefetchable(entry->store);
    uc_entry_data_init(&entry->data);
    status = keep_lower(entry, tiers, tier_count);
    if (status != UC_OK) {
        goto err_free_entry;
    }
    status = uc_request_table_create(&entry->control.requests);
    if (status != UC_OK) {
        goto err_free_lower;
    }

    *entry_out = entry;
    return UC_OK;

err_free_lower:
    free(entry->lower);
err_free_entry:
    free(entry);
    return status;
}

enum uc_status
uc_entry_create(struct uc_store *store, struct uc_entry **entry_out)
{
    return uc_entry_create_piped(&store, 1, entry_out);
}

void
uc_entry_destroy(struct uc_entry *entry)
{
    size_t in_flight;

    if (entry == NULL) {
        return;
    }

    in_flight = entry->data.jobs.count - entry->data.finished.alive_count;
    if (in_flight != 0) {
        uc_log_warn("entry: destroyed with %zu jobs in flight: wait for them first", in_flight);
    }
    assert(in_flight == 0); /* the caller's buffers may still be written */
    uc_entry_control_fini(entry);
    uc_entry_data_fini(&entry->data);
    free(entry->lower);
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
