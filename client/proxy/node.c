/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/config/fields.h"

enum {
    KEY_PATH_BYTES = 192, /* a path, a point, and 64 bytes of a key */
    TEXT_BYTES = 768
};

static const struct uc_node_type node_types[] = {
        {.name = "store", .check = uc_node_check_store, .create = uc_node_create_store},
        {.name = "pipe", .check = uc_node_check_pipe, .create = uc_node_create_pipe},
        {.name = "peer", .check = uc_node_check_peer, .create = uc_node_create_peer},
};

enum {
    NODE_TYPE_COUNT = sizeof(node_types) / sizeof(node_types[0])
};

/* Where a reader finds the key in the file; the root has no name there. */
static void
key_path(const char *path, const char *key, char *buffer, size_t buffer_bytes)
{
    bool is_root = strcmp(path, UC_NODE_ROOT_PATH) == 0;

    (void)snprintf(buffer, buffer_bytes, "%s%s%.64s", is_root ? "" : path, is_root ? "" : ".", key);
}

void
uc_node_child_path(const char *path, const char *key, size_t idx, char *buffer)
{
    bool is_root = strcmp(path, UC_NODE_ROOT_PATH) == 0;

    (void)snprintf(buffer, UC_NODE_PATH_BYTES, "%.48s%s%s[%zu]", is_root ? "" : path,
            is_root ? "" : ".", key, idx);
}

enum uc_status
uc_node_error(enum uc_status status, const char *path, const char *key, const char *format, ...)
{
    char where[KEY_PATH_BYTES];
    char text[TEXT_BYTES];
    va_list arguments;

    key_path(path, key, where, sizeof(where));
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return uc_error(status, "%s: key '%.64s' %s", where, key, text);
}

enum uc_status
uc_node_prefix_error(enum uc_status status, const char *path, const char *key)
{
    char where[KEY_PATH_BYTES];
    char text[TEXT_BYTES];

    key_path(path, key, where, sizeof(where));
    (void)snprintf(text, sizeof(text), "%s", uc_last_error());
    return uc_error(status, "%s: %s", where, text);
}

static enum uc_status
find_type(const struct uc_dict *config, const char *path, const struct uc_node_type **type_out)
{
    const char *name = NULL;
    enum uc_status status = uc_dict_get_string(config, "type", &name);

    if (status == UC_ERR_NOT_FOUND) {
        return uc_node_error(
                UC_ERR_INVALID_PARAM, path, "type", "is missing: it is one of store, pipe, peer");
    }
    if (status != UC_OK) {
        return uc_node_error(status, path, "type", "must be a text: one of store, pipe, peer");
    }

    for (size_t idx = 0; idx < NODE_TYPE_COUNT; idx++) {
        if (strcmp(node_types[idx].name, name) == 0) {
            *type_out = &node_types[idx];
            return UC_OK;
        }
    }

    return uc_node_error(UC_ERR_INVALID_PARAM, path, "type",
            "'%.64s' is unknown: it is one of store, pipe, peer", name);
}

enum uc_status
uc_node_check(const struct uc_build *build, const struct uc_dict *config, const char *path)
{
    const struct uc_node_type *type = NULL;
    enum uc_status status = find_type(config, path, &type);

    return status == UC_OK ? type->check(build, config, path) : status;
}

enum uc_status
uc_node_create(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_node **node_out)
{
    const struct uc_node_type *type = NULL;
    enum uc_status status = find_type(config, path, &type);

    return status == UC_OK ? type->create(build, config, path, node_out) : status;
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
        return uc_node_error(UC_ERR_INVALID_PARAM, path, key, "is unknown%s%s%s",
                nearest == NULL ? "" : ": did you mean '", nearest == NULL ? "" : nearest,
                nearest == NULL ? "" : "'?");
    }

    return UC_OK;
}

enum uc_status
uc_node_check_children(const struct uc_dict *config, const char *path, const char *key,
        const char *what, size_t *count_out)
{
    size_t count = 0;
    enum uc_status status = uc_dict_get_list_count(config, key, &count);

    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return uc_node_error(
                UC_ERR_INVALID_PARAM, path, key, "must be a list with one dictionary per %s", what);
    }
    if (count == 0) {
        return uc_node_error(UC_ERR_INVALID_PARAM, path, key,
                "is %s: it lists one dictionary per %s", status == UC_OK ? "empty" : "missing",
                what);
    }
    for (size_t idx = 0; idx < count; idx++) {
        const struct uc_dict *child = NULL;

        if (uc_dict_get_dict_at(config, key, idx, &child) != UC_OK) {
            return uc_node_error(UC_ERR_INVALID_PARAM, path, key,
                    "must be a list with one dictionary per %s: element %zu is none", what, idx);
        }
    }

    *count_out = count;
    return UC_OK;
}
