/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "client/proxy/entry.h"
#include "client/proxy/loader.h"
#include "client/proxy/node.h"

struct store_node {
    struct uc_node node;
    struct uc_loaded_store loaded;
    struct uc_entry *entry; /* borrows the store, so it goes first */
};

static const char *const known_keys[] = {"type", "store", "config"};

/* Added by the assembler and by nobody else. */
static const char *const injected_keys[] = {
        UC_SETUP_PIPED_LOWER_STORE,
        UC_SETUP_TIERS_BELOW,
        UC_SETUP_NODE_PATH,
        UC_SETUP_STORE_ROLE,
        UC_SETUP_PREREQUISITE_HOOK,
};

static const char *const role_names[] = {
        [UC_ROLE_BOTH] = "both",
        [UC_ROLE_SCHEDULER] = "scheduler",
        [UC_ROLE_WORKER] = "worker",
};

static enum uc_status
read_name(const struct uc_dict *config, const char *path, const char **name_out)
{
    const char *name = NULL;
    enum uc_status status = uc_dict_get_string(config, "store", &name);

    if (status == UC_ERR_NOT_FOUND || (status == UC_OK && name[0] == '\0')) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: key 'store' is %s: it is the name of a built-in store or the path of a plugin",
                path, status == UC_OK ? "empty" : "missing");
    }
    if (status != UC_OK) {
        return uc_error(status, "%s: key 'store' must be a text", path);
    }

    *name_out = name;
    return UC_OK;
}

/* A copy of `config`, which may be absent, that belongs to the caller. */
static enum uc_status
copy_config(const struct uc_dict *config, const char *path, struct uc_dict **setup_out)
{
    const struct uc_dict *user = NULL;
    enum uc_status status = uc_dict_get_dict(config, "config", &user);

    if (status == UC_ERR_NOT_FOUND) {
        return uc_dict_create(setup_out);
    }
    if (status != UC_OK) {
        return uc_error(status, "%s: key 'config' must be a dictionary", path);
    }
    for (size_t idx = 0; idx < sizeof(injected_keys) / sizeof(injected_keys[0]); idx++) {
        if (uc_dict_has(user, injected_keys[idx])) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "%s.config: key '%s' is set by the assembler: remove it", path,
                    injected_keys[idx]);
        }
    }

    return uc_dict_clone(user, setup_out);
}

static enum uc_status
inject(const struct uc_build *build, const char *path, struct uc_dict *setup)
{
    enum uc_status status = uc_dict_set_string(setup, UC_SETUP_NODE_PATH, path);

    if (status != UC_OK) {
        return status;
    }
    status = uc_dict_set_string(setup, UC_SETUP_STORE_ROLE, role_names[build->role]);
    if (status != UC_OK) {
        return status;
    }
    status = uc_dict_set_int(setup, UC_SETUP_TIERS_BELOW, 0);
    if (status != UC_OK || build->prerequisite.poll == NULL) {
        return status;
    }

    /* A dictionary holds plain pointers; the hook behind this one is constant all the same. */
    return uc_dict_set_pointer(
            setup, UC_SETUP_PREREQUISITE_HOOK, (void *)(uintptr_t)&build->prerequisite);
}

static enum uc_status
set_up(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_store *store)
{
    struct uc_dict *setup = NULL;
    enum uc_status status = copy_config(config, path, &setup);

    if (status != UC_OK) {
        return status;
    }
    status = inject(build, path, setup);
    if (status == UC_OK) {
        status = uc_store_setup(store, setup);
    }
    uc_dict_destroy(setup);
    return status;
}

static void
destroy_store_node(struct uc_node *node)
{
    struct store_node *self = (struct store_node *)node;

    uc_entry_destroy(self->entry);
    uc_loaded_store_close(&self->loaded);
    free(self);
}

enum uc_status
uc_node_create_store(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_node **node_out)
{
    struct store_node *self;
    const char *name = NULL;
    enum uc_status status;

    status = uc_node_check_keys(
            config, path, known_keys, sizeof(known_keys) / sizeof(known_keys[0]));
    if (status != UC_OK) {
        return status;
    }
    status = read_name(config, path, &name);
    if (status != UC_OK) {
        return status;
    }

    self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory for a store node", path);
    }
    status = uc_store_loader_load(name, &self->loaded);
    if (status != UC_OK) {
        goto err_free_self;
    }
    status = set_up(build, config, path, self->loaded.store);
    if (status != UC_OK) {
        goto err_close_store;
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
