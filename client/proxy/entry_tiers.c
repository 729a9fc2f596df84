/* SPDX-License-Identifier: Apache-2.0 */

/* What goes to every tier of a pipe, not to the head alone. A single store is a pipe of one tier. */

#include <stdio.h>

#include <ucm/log.h>

#include "client/proxy/entry_internal.h"

enum {
    SAVED_TEXT_BYTES = 512
};

static struct uc_store *
tier_at(const struct uc_entry *entry, size_t idx)
{
    return idx == 0 ? entry->store : entry->lower[idx - 1].store;
}

enum uc_status
uc_entry_health(const struct uc_entry *entry)
{
    for (size_t idx = 0; idx <= entry->lower_count; idx++) {
        enum uc_status status = uc_store_health(tier_at(entry, idx));

        if (status != UC_OK && entry->lower_count != 0) {
            char text[SAVED_TEXT_BYTES];

            (void)snprintf(text, sizeof(text), "%s", uc_last_error());
            return uc_error(status, "tier %zu of %zu: %s", idx, entry->lower_count + 1, text);
        }
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}

static enum uc_status
add_flag(struct uc_dict *description, const char *key, bool value)
{
    return uc_dict_has(description, key) ? UC_OK : uc_dict_set_bool(description, key, value);
}

static enum uc_status
describe_store(
        struct uc_store *store, bool is_tokened, bool is_prefetchable, struct uc_dict *description)
{
    enum uc_status status = uc_store_describe(store, description);

    if (status == UC_OK) {
        status = add_flag(description, "token_addressed", is_tokened);
    }
    if (status == UC_OK) {
        status = add_flag(description, "prefetchable", is_prefetchable);
    }
    return status;
}

static enum uc_status
append_tier(const struct uc_entry *entry, size_t idx, struct uc_dict *description)
{
    struct uc_dict *tier = NULL;
    enum uc_status status = uc_dict_create(&tier);

    if (status != UC_OK) {
        return status;
    }
    status = idx == 0
                     ? describe_store(entry->store, entry->tokened != NULL,
                               entry->prefetchable != NULL, tier)
                     : describe_store(entry->lower[idx - 1].store, entry->lower[idx - 1].is_tokened,
                               entry->lower[idx - 1].is_prefetchable, tier);
    if (status == UC_OK) {
        status = uc_dict_append_dict(description, "tiers", tier);
    }
    uc_dict_destroy(tier);
    return status;
}

enum uc_status
uc_entry_describe(const struct uc_entry *entry, struct uc_dict *description)
{
    enum uc_status status = describe_store(
            entry->store, entry->tokened != NULL, entry->prefetchable != NULL, description);

    if (status != UC_OK || entry->lower_count == 0) {
        return status;
    }
    status = uc_dict_set_list(description, "tiers");
    for (size_t idx = 0; status == UC_OK && idx <= entry->lower_count; idx++) {
        status = append_tier(entry, idx, description);
    }
    return status;
}

static enum uc_status
register_with(const struct uc_entry *entry, size_t idx, const struct uc_region *region)
{
    return uc_store_register_memory(tier_at(entry, idx), region->region_idx,
            (void *)(uintptr_t)region->address, region->length_bytes, region->kind);
}

/* Take back the registration with the first tiers; the text of the failure that led here stays. */
static void
undo_register(const struct uc_entry *entry, uint32_t region_idx, size_t tier_count)
{
    for (size_t idx = tier_count; idx > 0; idx--) {
        enum uc_status status = uc_store_deregister_memory(tier_at(entry, idx - 1), region_idx);

        if (status != UC_OK) {
            uc_log_warn("entry: memory region %u stays registered with tier %zu: %s", region_idx,
                    idx - 1, uc_last_error());
        }
    }
}

enum uc_status
uc_entry_register(struct uc_entry *entry, const struct uc_region *region)
{
    char text[SAVED_TEXT_BYTES];

    for (size_t idx = 0; idx <= entry->lower_count; idx++) {
        enum uc_status status = register_with(entry, idx, region);

        if (status != UC_OK) {
            (void)snprintf(text, sizeof(text), "%s", uc_last_error());
            undo_register(entry, region->region_idx, idx);
            return uc_error(status, "%s", text);
        }
    }

    return UC_OK;
}

enum uc_status
uc_entry_deregister(struct uc_entry *entry, uint32_t region_idx)
{
    const struct uc_region *region = uc_region_set_find(&entry->data.regions, region_idx);
    char text[SAVED_TEXT_BYTES];

    for (size_t idx = 0; idx <= entry->lower_count; idx++) {
        enum uc_status status = uc_store_deregister_memory(tier_at(entry, idx), region_idx);

        /* A tier that does not know it has nothing left to do. */
        if (status == UC_OK || (status == UC_ERR_NOT_FOUND && entry->lower_count != 0)) {
            continue;
        }
        (void)snprintf(text, sizeof(text), "%s", uc_last_error());
        for (size_t done = 0; done < idx; done++) {
            if (register_with(entry, done, region) != UC_OK) {
                uc_log_warn("entry: memory region %u is lost to tier %zu: %s", region_idx, done,
                        uc_last_error());
            }
        }
        return uc_error(status, "%s", text);
    }

    return UC_OK;
}
