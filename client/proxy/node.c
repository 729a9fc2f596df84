/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/node.h"

#include <string.h>

#include "core/config/fields.h"

/* Pipes and peers are in the contract (sections 11 and 12), but not in this build. */
static enum uc_status
refuse_composite(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_node **node_out)
{
    const char *type = "";

    (void)build;
    (void)node_out;
    (void)!uc_dict_get_string(config, "type", &type);
    return uc_error(UC_ERR_UNSUPPORTED,
            "%s: type \"%s\": this build assembles single stores only: use type \"store\"", path,
            type);
}

static const struct uc_node_type node_types[] = {
        {.name = "store", .create = uc_node_create_store},
        {.name = "pipe", .create = refuse_composite},
        {.name = "peer", .create = refuse_composite},
};

enum {
    NODE_TYPE_COUNT = sizeof(node_types) / sizeof(node_types[0])
};

enum uc_status
uc_node_create(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_node **node_out)
{
    const char *type = NULL;
    enum uc_status status = uc_dict_get_string(config, "type", &type);

    if (status == UC_ERR_NOT_FOUND) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: key 'type' is missing: it is one of store, pipe, peer", path);
    }
    if (status != UC_OK) {
        return uc_error(status, "%s: key 'type' must be a text: one of store, pipe, peer", path);
    }

    for (size_t idx = 0; idx < NODE_TYPE_COUNT; idx++) {
        if (strcmp(node_types[idx].name, type) == 0) {
            return node_types[idx].create(build, config, path, node_out);
        }
    }

    return uc_error(UC_ERR_INVALID_PARAM,
            "%s: type '%.64s' is unknown: it is one of store, pipe, peer", path, type);
}

void
uc_node_destroy(struct uc_node *node)
{
    if (node != NULL) {
        node->destroy(node);
    }
}

enum uc_status
uc_node_check_keys(const struct uc_dict *config, const char *path, const char *const *known,
        size_t known_count)
{
    for (size_t idx = 0; idx < uc_dict_count(config); idx++) {
        const char *key = uc_dict_key_at(config, idx);
        const char *nearest;
        size_t at = 0;

        while (at < known_count && strcmp(known[at], key) != 0) {
            at++;
        }
        if (at < known_count) {
            continue;
        }
        nearest = uc_field_nearest(key, known, known_count);
        return uc_error(UC_ERR_INVALID_PARAM, "%s: key '%.64s' is unknown%s%s%s", path, key,
                nearest == NULL ? "" : ": did you mean '", nearest == NULL ? "" : nearest,
                nearest == NULL ? "" : "'?");
    }

    return UC_OK;
}
