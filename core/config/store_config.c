/* SPDX-License-Identifier: Apache-2.0 */

#include "core/config/store_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

static const char *const injected_keys[] = {UC_SETUP_NODE_PATH, UC_SETUP_STORE_ROLE,
        UC_SETUP_TIERS_BELOW, UC_SETUP_PREREQUISITE_HOOK, UC_SETUP_PIPED_LOWER_STORE};

enum {
    INJECTED_COUNT = sizeof(injected_keys) / sizeof(injected_keys[0]),
};

static bool
is_among(const char *key, const char *const *names, size_t name_count)
{
    for (size_t idx = 0; idx < name_count; idx++) {
        if (strcmp(key, names[idx]) == 0) {
            return true;
        }
    }
    return false;
}

static void
warn_unknown(const char *where, const char *key, const char *const *names, size_t name_count)
{
    const char *nearest = uc_field_nearest(key, names, name_count);

    uc_log_warn("%s: unknown key \"%s\" is ignored%s%s%s", where, key,
            nearest == NULL ? "" : "; did you mean \"", nearest == NULL ? "" : nearest,
            nearest == NULL ? "" : "\"?");
}

/* One list: the table's keys, then those that uc_field_apply() is to leave alone, unknown ones last. */
enum uc_status
uc_config_apply_store_fields(const struct uc_field *fields, size_t field_count,
        const struct uc_dict *dict, const char *where, const char *const *other_keys, void *target)
{
    size_t other_count = 0;
    size_t known_count;
    size_t name_count;
    const char **names;
    enum uc_status status;

    while (other_keys[other_count] != NULL) {
        other_count++;
    }
    known_count = field_count + other_count + INJECTED_COUNT;
    names = calloc(known_count + uc_dict_count(dict) + 1, sizeof(names[0]));
    if (names == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory to read the configuration", where);
    }

    for (size_t idx = 0; idx < field_count; idx++) {
        names[idx] = fields[idx].key;
    }
    memcpy(names + field_count, other_keys, other_count * sizeof(names[0]));
    memcpy(names + field_count + other_count, injected_keys, sizeof(injected_keys));
    name_count = known_count;
    for (size_t idx = 0; idx < uc_dict_count(dict); idx++) {
        const char *key = uc_dict_key_at(dict, idx);

        if (!is_among(key, names, known_count)) {
            warn_unknown(where, key, names, known_count);
            names[name_count++] = key;
        }
    }
    status = uc_field_apply(fields, field_count, dict, where, names + field_count, target);
    free(names);
    return status;
}

enum uc_status
uc_config_read_switch(
        const struct uc_dict *dict, const char *where, const char *key, bool *value_out)
{
    enum uc_dict_type type = UC_DICT_BOOL;
    const char *text = NULL;

    if (!uc_dict_has(dict, key)) {
        return UC_OK;
    }
    if (uc_dict_get_type(dict, key, &type) == UC_OK && type == UC_DICT_BOOL) {
        return uc_dict_get_bool(dict, key, value_out);
    }
    if (uc_dict_get_string(dict, key, &text) == UC_OK &&
            (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)) {
        *value_out = strcmp(text, "on") == 0;
        return UC_OK;
    }

    return uc_error(UC_ERR_INVALID_PARAM, "%s: %s is %s%s%s; write on or off", where, key,
            text == NULL ? "no text" : "\"", text == NULL ? "" : text, text == NULL ? "" : "\"");
}

static enum uc_status
read_role(const struct uc_dict *dict, const char *where, enum uc_role *role_out)
{
    const char *text = "both";

    (void)!uc_dict_get_string(dict, UC_SETUP_STORE_ROLE, &text);
    if (strcmp(text, "both") == 0) {
        *role_out = UC_ROLE_BOTH;
    } else if (strcmp(text, "scheduler") == 0) {
        *role_out = UC_ROLE_SCHEDULER;
    } else if (strcmp(text, "worker") == 0) {
        *role_out = UC_ROLE_WORKER;
    } else {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: store_role is \"%s\"; known are both, scheduler, worker", where, text);
    }
    return UC_OK;
}

enum uc_status
uc_config_read_place(
        const struct uc_dict *dict, const char *where, struct uc_store_place *place_out)
{
    struct uc_store_place place = {.role = UC_ROLE_BOTH};
    const char *text = "";
    void *pointer = NULL;
    int64_t tiers_below = 0;
    enum uc_status status = read_role(dict, where, &place.role);

    if (status != UC_OK) {
        return status;
    }

    (void)!uc_dict_get_string(dict, UC_SETUP_NODE_PATH, &text);
    (void)snprintf(place.node_path, sizeof(place.node_path), "%s", text);
    (void)!uc_dict_get_pointer(dict, UC_SETUP_PIPED_LOWER_STORE, &pointer);
    place.lower = pointer;
    pointer = NULL;
    (void)!uc_dict_get_pointer(dict, UC_SETUP_PREREQUISITE_HOOK, &pointer);
    place.prerequisite = pointer;
    (void)!uc_dict_get_int(dict, UC_SETUP_TIERS_BELOW, &tiers_below);
    place.tiers_below = tiers_below > 0 ? (size_t)tiers_below : place.lower != NULL;
    *place_out = place;
    return UC_OK;
}

enum uc_status
uc_config_refuse_lower(const struct uc_store_place *place, const char *where)
{
    if (place->lower == NULL) {
        return UC_OK;
    }
    return uc_error(UC_ERR_UNSUPPORTED,
            "%s: it cannot stand above another store; put it last in the pipe", where);
}
