/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/topology.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/fields.h"

enum {
    TEXT_BYTES = 4096,
    DEPTH_MAX = 32,
    KEY_BYTES = 128, /* longer keys are no keys of ours */
};

/* Where an expansion is. */
struct place {
    const char *path;
    const struct uc_topology_values *values;
    const char *key;
    unsigned line;
    unsigned depth;
};

static const char *const placeholder_names[] = {
        "SERVERS", "SERVER", "NODE", "BLOCK_BYTES", "FABRIC"};

enum placeholder {
    PLACE_SERVERS,
    PLACE_SERVER,
    PLACE_NODE,
    PLACE_BLOCK_BYTES,
    PLACE_FABRIC,
    PLACE_COUNT,
};

static enum uc_status
refuse(const struct place *place, const char *text, const char *why)
{
    return uc_error(UC_ERR_INVALID_PARAM, "%s:%u: %s: \"%.128s\": %s", place->path, place->line,
            place->key, text, why);
}

/* @return the placeholder whose name starts at @p text, or PLACE_COUNT */
static enum placeholder
find_placeholder(const char *text, size_t *length_out)
{
    *length_out = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    for (size_t idx = 0; idx < PLACE_COUNT; idx++) {
        if (strlen(placeholder_names[idx]) == *length_out &&
                memcmp(placeholder_names[idx], text, *length_out) == 0) {
            return (enum placeholder)idx;
        }
    }
    return PLACE_COUNT;
}

static bool
is_whole(const char *text, enum placeholder placeholder)
{
    return text[0] == '$' && strcmp(text + 1, placeholder_names[placeholder]) == 0;
}

/* What one placeholder inside a text stands for. */
static enum uc_status
value_of(const struct place *place, const char *text, enum placeholder placeholder, char *value,
        size_t capacity)
{
    const char *server = NULL;

    switch (placeholder) {
    case PLACE_NODE:
        (void)snprintf(value, capacity, "%zu", place->values->node);
        return UC_OK;
    case PLACE_FABRIC:
        (void)snprintf(value, capacity, "%s", place->values->fabric);
        return UC_OK;
    case PLACE_SERVER:
        if (place->values->servers == NULL ||
                uc_dict_get_string_at(place->values->servers, "servers", 0, &server) != UC_OK) {
            return refuse(place, text, "there is no server: give --spawn-server or --server");
        }
        (void)snprintf(value, capacity, "%s", server);
        return UC_OK;
    case PLACE_SERVERS:
    case PLACE_BLOCK_BYTES:
        return refuse(place, text, "$SERVERS and $BLOCK_BYTES are whole values, no part of one");
    case PLACE_COUNT:
        break;
    }
    return refuse(place, text,
            "unknown placeholder; known are $SERVERS, $SERVER, $NODE, $BLOCK_BYTES, $FABRIC");
}

/* Replace what is inside a text. A $ that no capital letter follows stands for itself. */
static enum uc_status
expand_text(const struct place *place, const char *text, char *expanded)
{
    size_t used = 0;

    for (const char *at = text; *at != '\0';) {
        char value[512] = {at[0], '\0'};
        size_t value_length;
        size_t length = 0;

        if (at[0] == '$' && at[1] >= 'A' && at[1] <= 'Z') {
            enum placeholder placeholder = find_placeholder(at + 1, &length);
            enum uc_status status = value_of(place, text, placeholder, value, sizeof(value));

            if (status != UC_OK) {
                return status;
            }
        }
        value_length = strlen(value);
        if (value_length >= TEXT_BYTES - used) {
            return refuse(place, text, "too long");
        }
        memcpy(expanded + used, value, value_length);
        used += value_length;
        at += 1 + length;
    }
    expanded[used] = '\0';
    return UC_OK;
}

static enum uc_status
set_servers(const struct place *place, const char *text, struct uc_dict *expanded)
{
    const struct uc_dict *servers = place->values->servers;
    enum uc_status status = UC_OK;
    size_t count = 0;

    if (servers == NULL || uc_dict_get_list_count(servers, "servers", &count) != UC_OK ||
            count == 0) {
        return refuse(place, text, "there is no server: give --spawn-server or --server");
    }
    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        const char *server = "";

        status = uc_dict_get_string_at(servers, "servers", idx, &server);
        if (status == UC_OK) {
            status = uc_dict_append_string(expanded, place->key, server);
        }
    }
    return status;
}

static enum uc_status
set_text(const struct place *place, const char *text, struct uc_dict *expanded)
{
    char value[TEXT_BYTES];
    enum uc_status status;

    if (is_whole(text, PLACE_SERVERS)) {
        return set_servers(place, text, expanded);
    }
    if (is_whole(text, PLACE_BLOCK_BYTES)) {
        return uc_dict_set_int(expanded, place->key, (int64_t)place->values->block_bytes);
    }
    status = expand_text(place, text, value);
    return status == UC_OK ? uc_dict_set_string(expanded, place->key, value) : status;
}

static enum uc_status expand_dict(
        const struct place *outer, const struct uc_dict *dict, struct uc_dict **expanded_out);

static enum uc_status
append_element(
        const struct place *place, const struct uc_dict *dict, size_t idx, struct uc_dict *expanded)
{
    const struct uc_dict *element;
    const char *text;
    double real;
    int64_t whole;
    bool flag;

    if (uc_dict_get_string_at(dict, place->key, idx, &text) == UC_OK) {
        char value[TEXT_BYTES];
        enum uc_status status = is_whole(text, PLACE_SERVERS) ? set_servers(place, text, expanded)
                                                              : UC_ERR_NOT_FOUND;

        if (status != UC_ERR_NOT_FOUND) {
            return status;
        }
        status = expand_text(place, text, value);
        return status == UC_OK ? uc_dict_append_string(expanded, place->key, value) : status;
    }
    if (uc_dict_get_dict_at(dict, place->key, idx, &element) == UC_OK) {
        struct uc_dict *copy = NULL;
        enum uc_status status = expand_dict(place, element, &copy);

        if (status == UC_OK) {
            status = uc_dict_append_dict(expanded, place->key, copy);
        }
        uc_dict_destroy(copy);
        return status;
    }
    if (uc_dict_get_int_at(dict, place->key, idx, &whole) == UC_OK) {
        return uc_dict_append_int(expanded, place->key, whole);
    }
    if (uc_dict_get_double_at(dict, place->key, idx, &real) == UC_OK) {
        return uc_dict_append_double(expanded, place->key, real);
    }
    if (uc_dict_get_bool_at(dict, place->key, idx, &flag) == UC_OK) {
        return uc_dict_append_bool(expanded, place->key, flag);
    }
    return refuse(place, "", "an element of a type that no topology has");
}

static enum uc_status
expand_list(const struct place *place, const struct uc_dict *dict, struct uc_dict *expanded)
{
    size_t count = 0;
    enum uc_status status = uc_dict_get_list_count(dict, place->key, &count);

    if (status == UC_OK) {
        status = uc_dict_set_list(expanded, place->key);
    }
    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        status = append_element(place, dict, idx, expanded);
    }
    return status;
}

static enum uc_status
expand_value(const struct place *place, const struct uc_dict *dict, struct uc_dict *expanded)
{
    enum uc_dict_type type = UC_DICT_POINTER;
    const struct uc_dict *inner = NULL;
    struct uc_dict *copy = NULL;
    const char *text = "";
    double real = 0;
    int64_t whole = 0;
    bool flag = false;
    enum uc_status status = uc_dict_get_type(dict, place->key, &type);

    if (status != UC_OK) {
        return status;
    }
    switch (type) {
    case UC_DICT_BOOL:
        status = uc_dict_get_bool(dict, place->key, &flag);
        return status == UC_OK ? uc_dict_set_bool(expanded, place->key, flag) : status;
    case UC_DICT_INT:
        status = uc_dict_get_int(dict, place->key, &whole);
        return status == UC_OK ? uc_dict_set_int(expanded, place->key, whole) : status;
    case UC_DICT_DOUBLE:
        status = uc_dict_get_double(dict, place->key, &real);
        return status == UC_OK ? uc_dict_set_double(expanded, place->key, real) : status;
    case UC_DICT_STRING:
        status = uc_dict_get_string(dict, place->key, &text);
        return status == UC_OK ? set_text(place, text, expanded) : status;
    case UC_DICT_LIST:
        return expand_list(place, dict, expanded);
    case UC_DICT_DICT:
        status = uc_dict_get_dict(dict, place->key, &inner);
        if (status == UC_OK) {
            status = expand_dict(place, inner, &copy);
        }
        if (status == UC_OK) {
            status = uc_dict_set_dict(expanded, place->key, copy);
        }
        uc_dict_destroy(copy);
        return status;
    case UC_DICT_POINTER:
        break;
    }
    return refuse(place, "", "a value of a type that no topology has");
}

static enum uc_status
expand_dict(const struct place *outer, const struct uc_dict *dict, struct uc_dict **expanded_out)
{
    struct uc_dict *expanded = NULL;
    enum uc_status status = uc_dict_create(&expanded);

    if (outer->depth >= DEPTH_MAX) {
        status = status == UC_OK ? refuse(outer, "", "nested too deeply") : status;
    }
    for (size_t idx = 0; idx < uc_dict_count(dict) && status == UC_OK; idx++) {
        const char *key = uc_dict_key_at(dict, idx);
        unsigned line = uc_dict_line(dict, key);
        struct place place = {.path = outer->path,
                .values = outer->values,
                .key = key,
                .line = line == 0 ? outer->line : line,
                .depth = outer->depth + 1};

        status = expand_value(&place, dict, expanded);
        if (status == UC_OK) {
            uc_dict_set_line(expanded, key, place.line);
        }
    }
    if (status != UC_OK) {
        uc_dict_destroy(expanded);
        return status;
    }

    *expanded_out = expanded;
    return UC_OK;
}

enum uc_status
uc_topology_expand(const struct uc_dict *topology, const char *path,
        const struct uc_topology_values *values, struct uc_dict **expanded_out)
{
    struct place root = {.path = path, .values = values, .key = "", .line = 1};

    return expand_dict(&root, topology, expanded_out);
}

/* The next key of a path, and an index behind it if there is one. @return what follows, NULL = nothing more */
static const char *
take_step(const char *path, char *key, size_t key_bytes, size_t *idx_out, bool *is_indexed_out)
{
    size_t length = strcspn(path, ".[:");
    char *end = NULL;

    if (length == 0 || length >= key_bytes) {
        return NULL;
    }
    memcpy(key, path, length);
    key[length] = '\0';
    path += length;
    *is_indexed_out = path[0] == '[';
    *idx_out = 0;
    if (*is_indexed_out) {
        *idx_out = strtoul(path + 1, &end, 10);
        path = *end == ']' ? end + 1 : "";
    }
    return path;
}

unsigned
uc_topology_line(const struct uc_dict *topology, const char *path)
{
    const struct uc_dict *dict = topology;
    unsigned line = 0;

    while (dict != NULL) {
        const struct uc_dict *inner = NULL;
        char key[KEY_BYTES];
        size_t idx = 0;
        bool is_indexed = false;
        const char *rest = take_step(path, key, sizeof(key), &idx, &is_indexed);

        if (rest == NULL || !uc_dict_has(dict, key)) {
            break;
        }
        line = uc_dict_line(dict, key);
        if (is_indexed && uc_dict_get_dict_at(dict, key, idx, &inner) == UC_OK &&
                uc_dict_count(inner) > 0) {
            line = uc_dict_line(inner, uc_dict_key_at(inner, 0));
        } else if (!is_indexed) {
            (void)!uc_dict_get_dict(dict, key, &inner);
        }
        if (rest[0] != '.') {
            break;
        }
        path = rest + 1;
        dict = inner;
    }
    return line;
}

enum uc_status
uc_topology_error(const struct uc_dict *topology, const char *file, enum uc_status status)
{
    char text[TEXT_BYTES];
    unsigned line;

    (void)snprintf(text, sizeof(text), "%s", uc_last_error());
    line = uc_topology_line(topology, text);
    return line == 0 ? uc_error(status, "%s: %s", file, text)
                     : uc_error(status, "%s:%u: %s", file, line, text);
}

enum uc_status
uc_topology_read(const char *path, struct uc_dict **topology_out)
{
    struct uc_dict *topology = NULL;
    const char *type = NULL;
    enum uc_status status = uc_yaml_read_file(path, &topology);

    if (status != UC_OK) {
        return status;
    }
    if (uc_dict_get_string(topology, "type", &type) != UC_OK) {
        unsigned line = uc_dict_line(topology, "type");

        status = uc_error(UC_ERR_INVALID_PARAM,
                "%s:%u: key \"type\" is %s; a topology starts with type: store, pipe or peer", path,
                line == 0 ? 1 : line, uc_dict_has(topology, "type") ? "no text" : "missing");
        uc_dict_destroy(topology);
        return status;
    }

    *topology_out = topology;
    return UC_OK;
}
