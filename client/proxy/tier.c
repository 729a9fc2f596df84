/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/tier.h"

#include <stdint.h>

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
check_name(const struct uc_dict *config, const char *path)
{
    const char *name = NULL;
    enum uc_status status = uc_dict_get_string(config, "store", &name);

    if (status == UC_ERR_NOT_FOUND || (status == UC_OK && name[0] == '\0')) {
        return uc_node_error(UC_ERR_INVALID_PARAM, path, "store",
                "is %s: it is the name of a built-in store or the path of a plugin",
                status == UC_OK ? "empty" : "missing");
    }

    return status == UC_OK ? UC_OK : uc_node_error(status, path, "store", "must be a text");
}

enum uc_status
uc_tier_check(const struct uc_dict *config, const char *path)
{
    const struct uc_dict *user = NULL;
    enum uc_status status = uc_node_check_keys(
            config, path, known_keys, sizeof(known_keys) / sizeof(known_keys[0]));

    if (status != UC_OK) {
        return status;
    }
    status = check_name(config, path);
    if (status != UC_OK) {
        return status;
    }
    status = uc_dict_get_dict(config, "config", &user);
    if (status == UC_ERR_NOT_FOUND) {
        return UC_OK;
    }
    if (status != UC_OK) {
        return uc_node_error(status, path, "config", "must be a dictionary");
    }

    for (size_t idx = 0; idx < sizeof(injected_keys) / sizeof(injected_keys[0]); idx++) {
        if (uc_dict_has(user, injected_keys[idx])) {
            return uc_node_error(UC_ERR_INVALID_PARAM, path, "config",
                    "holds '%s', which is set by the assembler: remove it", injected_keys[idx]);
        }
    }
    return UC_OK;
}

/* A copy of `config`, which may be absent: never the caller's own. */
static enum uc_status
copy_config(const struct uc_dict *config, struct uc_dict **setup_out)
{
    const struct uc_dict *user = NULL;

    return uc_dict_get_dict(config, "config", &user) == UC_OK ? uc_dict_clone(user, setup_out)
                                                              : uc_dict_create(setup_out);
}

static enum uc_status
inject(const struct uc_tier_place *place, struct uc_dict *setup)
{
    const struct uc_prerequisite *hook = &place->build->prerequisite;
    enum uc_status status = uc_dict_set_string(setup, UC_SETUP_NODE_PATH, place->path);

    if (status == UC_OK) {
        status = uc_dict_set_string(setup, UC_SETUP_STORE_ROLE, role_names[place->build->role]);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(setup, UC_SETUP_TIERS_BELOW, (int64_t)place->tiers_below);
    }
    if (status == UC_OK && place->lower != NULL) {
        status = uc_dict_set_pointer(setup, UC_SETUP_PIPED_LOWER_STORE, place->lower);
    }
    if (status == UC_OK && hook->poll != NULL) {
        /* A dictionary holds plain pointers; the hook behind this one is constant all the same. */
        status = uc_dict_set_pointer(setup, UC_SETUP_PREREQUISITE_HOOK, (void *)(uintptr_t)hook);
    }
    return status;
}

static enum uc_status
set_up(const struct uc_tier_place *place, const struct uc_dict *config, struct uc_store *store)
{
    struct uc_dict *setup = NULL;
    enum uc_status status = copy_config(config, &setup);

    if (status != UC_OK) {
        return status;
    }
    status = inject(place, setup);
    if (status == UC_OK) {
        status = uc_store_setup(store, setup);
    }
    uc_dict_destroy(setup);
    return status;
}

enum uc_status
uc_tier_load(const struct uc_tier_place *place, const struct uc_dict *config,
        struct uc_loaded_store *loaded_out)
{
    struct uc_loaded_store loaded = {0};
    const char *name = "";
    enum uc_status status = uc_dict_get_string(config, "store", &name);

    if (status == UC_OK) {
        status = uc_store_loader_load(name, &loaded);
    }
    if (status != UC_OK) {
        return uc_node_prefix_error(status, place->path, "store");
    }
    status = set_up(place, config, loaded.store);
    if (status != UC_OK) {
        status = uc_node_prefix_error(status, place->path, "config");
        uc_loaded_store_close(&loaded);
        return status;
    }

    *loaded_out = loaded;
    return UC_OK;
}
