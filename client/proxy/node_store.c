/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "client/proxy/entry.h"
#include "client/proxy/node.h"
#include "client/proxy/tier.h"

struct store_node {
    struct uc_node node;
    struct uc_loaded_store loaded;
    struct uc_entry *entry; /* borrows the store, so it goes first */
};

static void
destroy_store_node(struct uc_node *node)
{
    struct store_node *self = (struct store_node *)node;

    uc_entry_destroy(self->entry);
    uc_loaded_store_close(&self->loaded);
    free(self);
}

enum uc_status
uc_node_check_store(const struct uc_build *build, const struct uc_dict *config, const char *path)
{
    (void)build;
    return uc_tier_check(config, path);
}

enum uc_status
uc_node_create_store(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_node **node_out)
{
    struct uc_tier_place place = {.build = build, .path = path};
    struct store_node *self = calloc(1, sizeof(*self));
    enum uc_status status;

    if (self == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory for a store node", path);
    }
    status = uc_tier_load(&place, config, &self->loaded);
    if (status != UC_OK) {
        goto err_free_self;
    }
    status = uc_entry_create(self->loaded.store, &self->entry);
    if (status != UC_OK) {
        goto err_close_store;
    }

    self->node.scheduler = uc_entry_scheduler(self->entry);
    self->node.worker = uc_entry_worker(self->entry);
    self->node.destroy = destroy_store_node;
    *node_out = &self->node;
    return UC_OK;

err_close_store:
    uc_loaded_store_close(&self->loaded);
err_free_self:
    free(self);
    return status;
}
