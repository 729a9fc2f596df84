/* SPDX-License-Identifier: Apache-2.0 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/dict_value.h"
#include "core/config/fields.h"
#include "core/config/scalar.h"

enum {
    PART_BYTES_MAX = 255,
    PART_COUNT_MAX = 16
};

/* What is left of a dotted key, and the whole assignment for texts. */
struct path {
    const char *rest;
    size_t rest_length;
    const char *assignment;
    unsigned part_count;
};

static enum uc_status put_in_dict(
        struct uc_dict *dict, struct path path, struct uc_dict_value *value);

/* Cut the first part off the path. */
static enum uc_status
take_part(struct path *path, char *part_out)
{
    const char *dot = memchr(path->rest, '.', path->rest_length);
    size_t length = dot == NULL ? path->rest_length : (size_t)(dot - path->rest);

    if (length == 0 || length > PART_BYTES_MAX || path->part_count == PART_COUNT_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%.128s': expected key=value or key.sub=value",
                path->assignment);
    }
    if (dot != NULL && length + 1 == path->rest_length) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "'%.128s': the key ends with a dot", path->assignment);
    }

    memcpy(part_out, path->rest, length);
    part_out[length] = '\0';
    path->part_count++;
    path->rest += dot == NULL ? length : length + 1;
    path->rest_length -= dot == NULL ? length : length + 1;
    return UC_OK;
}

static bool
starts_with_number(const struct path *path)
{
    size_t idx = 0;

    while (idx < path->rest_length && isdigit((unsigned char)path->rest[idx])) {
        idx++;
    }
    return idx > 0 && (idx == path->rest_length || path->rest[idx] == '.');
}

/* The element that the path names, at most one past the end: then it is new. */
static enum uc_status
take_index(struct path *path, size_t count, size_t *idx_out)
{
    char part[PART_BYTES_MAX + 1] = "";
    enum uc_status status;
    size_t idx = 0;

    if (!starts_with_number(path)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "'%.128s': a list is addressed by number, e.g. name.0", path->assignment);
    }
    status = take_part(path, part);
    if (status != UC_OK) {
        return status;
    }

    for (const char *digit = part; *digit != '\0' && idx <= count; digit++) {
        idx = idx * 10 + (size_t)(*digit - '0');
    }
    if (idx > count) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "'%.128s': the list has %zu elements; the next one is number %zu", path->assignment,
                count, count);
    }

    *idx_out = idx;
    return UC_OK;
}

static enum uc_status
append_dict(struct uc_dict_list *list, const char *assignment)
{
    struct uc_dict_value value = {.type = UC_DICT_DICT};
    enum uc_status status = uc_dict_create(&value.as.dict);

    return status != UC_OK ? status : uc_dict_list_push(list, assignment, &value);
}

/* Releases the value on failure, like all put_ functions here. */
static enum uc_status
put_in_list(struct uc_dict_list *list, struct path path, struct uc_dict_value *value)
{
    enum uc_status status;
    size_t idx = 0;

    status = take_index(&path, list->count, &idx);
    if (status == UC_OK && path.rest_length == 0) {
        if (idx == list->count) {
            return uc_dict_list_push(list, path.assignment, value);
        }
        if (list->items[idx].type == value->type) {
            uc_dict_value_fini(&list->items[idx]);
            list->items[idx] = *value;
            return UC_OK;
        }
        status = uc_error(UC_ERR_INVALID_PARAM, "'%.128s': elements are each %s, this is %s",
                path.assignment, uc_dict_type_text(list->items[idx].type),
                uc_dict_type_text(value->type));
    } else if (status == UC_OK) {
        if (idx == list->count) {
            status = append_dict(list, path.assignment);
        } else if (list->items[idx].type != UC_DICT_DICT) {
            status = uc_error(UC_ERR_INVALID_PARAM, "'%.128s': element %zu is %s and has no keys",
                    path.assignment, idx, uc_dict_type_text(list->items[idx].type));
        }
        if (status == UC_OK) {
            return put_in_dict(list->items[idx].as.dict, path, value);
        }
    }

    uc_dict_value_fini(value);
    return status;
}

/* The entry of `key`, made as a list or dictionary, whichever the rest of the path asks for. */
static enum uc_status
open_entry(struct uc_dict *dict, const char *key, const struct path *path,
        struct uc_dict_entry **entry_out)
{
    struct uc_dict_value empty = {.type = UC_DICT_LIST};
    struct uc_dict_entry *entry = uc_dict_find(dict, key);
    enum uc_status status = UC_OK;

    if (entry == NULL) {
        if (!starts_with_number(path)) {
            empty.type = UC_DICT_DICT;
            status = uc_dict_create(&empty.as.dict);
        }
        if (status == UC_OK) {
            status = uc_dict_put(dict, key, &empty);
        }
        if (status != UC_OK) {
            return status;
        }
        entry = uc_dict_find(dict, key);
    }
    if (entry->value.type != UC_DICT_LIST && entry->value.type != UC_DICT_DICT) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%.128s': '%s' is %s and has no keys",
                path->assignment, key, uc_dict_type_text(entry->value.type));
    }

    *entry_out = entry;
    return UC_OK;
}

static enum uc_status
put_in_dict(struct uc_dict *dict, struct path path, struct uc_dict_value *value)
{
    char part[PART_BYTES_MAX + 1] = "";
    struct uc_dict_entry *entry = NULL;
    enum uc_status status = take_part(&path, part);

    if (status == UC_OK && path.rest_length == 0) {
        return uc_dict_put(dict, part, value);
    }
    if (status == UC_OK) {
        status = open_entry(dict, part, &path, &entry);
    }
    if (status != UC_OK) {
        uc_dict_value_fini(value);
        return status;
    }

    if (entry->value.type == UC_DICT_LIST) {
        return put_in_list(&entry->value.as.list, path, value);
    }
    return put_in_dict(entry->value.as.dict, path, value);
}

/* Quotes make text of anything; without them nothing at all is empty text. */
static enum uc_status
parse_value(const char *text, struct uc_dict_value *value_out)
{
    size_t length = strlen(text);

    if (length >= 2 && (text[0] == '"' || text[0] == '\'') && text[length - 1] == text[0]) {
        return uc_dict_value_text(text + 1, length - 2, value_out);
    }
    if (length == 0) {
        return uc_dict_value_text("", 0, value_out);
    }

    return uc_config_scalar(text, length, value_out);
}

enum uc_status
uc_config_set_text(struct uc_dict *dict, const char *assignment)
{
    const char *key = assignment == NULL ? "" : assignment;
    const char *equals = strchr(key, '=');
    struct uc_dict_value value = {.type = UC_DICT_BOOL};
    struct uc_dict *changed = NULL;
    struct uc_dict swapped;
    struct path path;
    enum uc_status status;

    if (dict == NULL || equals == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%.128s': expected key=value", key);
    }
    if (strncmp(key, "--", 2) == 0) {
        key += 2;
    }

    /* Work on a copy, so that a path that fails half-way leaves nothing behind. */
    status = uc_dict_clone(dict, &changed);
    if (status != UC_OK) {
        return status;
    }
    status = parse_value(equals + 1, &value);
    if (status != UC_OK) {
        status = uc_error(status, "'%.128s': %s", assignment, uc_last_error());
        goto out_destroy;
    }
    path = (struct path){
            .rest = key, .rest_length = (size_t)(equals - key), .assignment = assignment};
    status = put_in_dict(changed, path, &value);
    if (status == UC_OK) {
        swapped = *dict;
        *dict = *changed;
        *changed = swapped;
    }

out_destroy:
    uc_dict_destroy(changed);
    return status;
}
