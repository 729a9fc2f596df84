/* SPDX-License-Identifier: Apache-2.0 */

/* StorePipe (section 11): an entry over the head that owns every tier. Cascading is the stores' business. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/proxy/entry.h"
#include "client/proxy/node.h"
#include "client/proxy/tier.h"

struct pipe_node {
    struct uc_node node;
    struct uc_entry *entry; /* borrows the tiers, so it goes first */
    size_t tier_count;
    struct uc_loaded_store *tiers; /* head first */
    struct uc_store **stores;      /* those of the tiers */
};

static const char *const known_keys[] = {"type", "stores"};

/* `type` may be left out in a pipe, where everything is a store. */
static enum uc_status
check_tier(const struct uc_dict *config, const char *path)
{
    const char *type = NULL;
    enum uc_status status = uc_dict_get_string(config, "type", &type);

    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return uc_node_error(UC_ERR_INVALID_PARAM, path, "type", "must be a text");
    }
    if (status == UC_OK && strcmp(type, "store") != 0) {
        return uc_node_error(UC_ERR_INVALID_PARAM, path, "type",
                "is '%.64s': the tiers of a pipe are stores, nothing else", type);
    }

    return uc_tier_check(config, path);
}

enum uc_status
uc_node_check_pipe(const struct uc_build *build, const struct uc_dict *config, const char *path)
{
    size_t count = 0;
    enum uc_status status = uc_node_check_keys(
            config, path, known_keys, sizeof(known_keys) / sizeof(known_keys[0]));

    (void)build;
    if (status != UC_OK) {
        return status;
    }
    status = uc_node_check_children(config, path, "stores", "tier, head first", &count);
    for (size_t idx = 0; status == UC_OK && idx < count; idx++) {
        const struct uc_dict *tier = NULL;
        char tier_path[UC_NODE_PATH_BYTES];

        uc_node_child_path(path, "stores", idx, tier_path);
        status = uc_dict_get_dict_at(config, "stores", idx, &tier);
        if (status == UC_OK) {
            status = check_tier(tier, tier_path);
        }
    }
    return status;
}

/* Head first: whoever holds a lower pointer dies before its target. Tiers not there yet are skipped. */
static void
destroy_pipe_node(struct uc_node *node)
{
    struct pipe_node *self = (struct pipe_node *)node;

    uc_entry_destroy(self->entry);
    for (size_t idx = 0; idx < self->tier_count; idx++) {
        uc_loaded_store_close(&self->tiers[idx]);
    }
    free(self->stores);
    free(self->tiers);
    free(self);
}

/* Bottom-up, so that each tier finds a configured one below it. */
static enum uc_status
load_tiers(struct pipe_node *self, const struct uc_build *build, const struct uc_dict *config,
        const char *path)
{
    for (size_t idx = self->tier_count; idx > 0; idx--) {
        size_t at = idx - 1;
        bool is_bottom = idx == self->tier_count;
        const struct uc_dict *tier = NULL;
        char tier_path[UC_NODE_PATH_BYTES];
        struct uc_tier_place place = {
                .build = build,
                .path = tier_path,
                .tiers_below = self->tier_count - idx,
                .lower = is_bottom ? NULL : self->stores[idx],
        };
        enum uc_status status = uc_dict_get_dict_at(config, "stores", at, &tier);

        uc_node_child_path(path, "stores", at, tier_path);
        if (status == UC_OK) {
            status = uc_tier_load(&place, tier, &self->tiers[at]);
        }
        if (status != UC_OK) {
            return status;
        }
        self->stores[at] = self->tiers[at].store;
    }

    return UC_OK;
}

enum uc_status
uc_node_create_pipe(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_node **node_out)
{
    struct pipe_node *self = calloc(1, sizeof(*self));
    size_t count = 0;
    enum uc_status status;

    if (self == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory for a pipe", path);
    }
    status = uc_dict_get_list_count(config, "stores", &count);
    if (status != UC_OK) {
        goto err_destroy_self;
    }
    assert(count != 0); /* checked */
    self->tiers = calloc(count, sizeof(self->tiers[0]));
    self->stores = calloc(count, sizeof(self->stores[0]));
    if (self->tiers == NULL || self->stores == NULL) {
        status = uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory for %zu tiers", path, count);
        goto err_destroy_self;
    }
    self->tier_count = count;
    status = load_tiers(self, build, config, path);
    if (status != UC_OK) {
        goto err_destroy_self;
    }
    status = uc_entry_create_piped(self->stores, count, &self->entry);
    if (status != UC_OK) {
        goto err_destroy_self;
    }

    self->node.scheduler = uc_entry_scheduler(self->entry);
    self->node.worker = uc_entry_worker(self->entry);
    self->node.destroy = destroy_pipe_node;
    *node_out = &self->node;
    return UC_OK;

err_destroy_self:
    destroy_pipe_node(&self->node);
    return status;
}
