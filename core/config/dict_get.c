/* SPDX-License-Identifier: Apache-2.0 */

#include <ucm/dict.h>

#include "core/config/dict_value.h"
#include "core/config/fields.h"

static enum uc_status
find(const struct uc_dict *dict, const char *key, const struct uc_dict_value **value_out)
{
    const struct uc_dict_entry *entry = uc_dict_find(dict, key);

    if (dict == NULL || key == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "dictionary or key is null");
    }
    if (entry == NULL) {
        return uc_error(UC_ERR_NOT_FOUND, "key '%s' is missing", key);
    }

    *value_out = &entry->value;
    return UC_OK;
}

static enum uc_status
wrong_type(const char *key, const struct uc_dict_value *value, const char *wanted)
{
    return uc_error(UC_ERR_INVALID_PARAM, "key '%s' must be %s, but is %s", key, wanted,
            uc_dict_type_text(value->type));
}

static enum uc_status
find_typed(const struct uc_dict *dict, const char *key, enum uc_dict_type type,
        const struct uc_dict_value **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find(dict, key, &value);

    if (status != UC_OK) {
        return status;
    }
    if (value->type != type) {
        return wrong_type(key, value, uc_dict_type_text(type));
    }

    *value_out = value;
    return UC_OK;
}

/* An empty list has no element of any type: whoever asks for one is past the end. */
static enum uc_status
find_item(const struct uc_dict *dict, const char *key, size_t idx,
        const struct uc_dict_value **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_typed(dict, key, UC_DICT_LIST, &value);

    if (status != UC_OK) {
        return status;
    }
    if (idx >= value->as.list.count) {
        return uc_error(UC_ERR_NOT_FOUND, "key '%s' has %zu elements, number %zu is asked for", key,
                value->as.list.count, idx);
    }

    *value_out = &value->as.list.items[idx];
    return UC_OK;
}

static enum uc_status
find_item_typed(const struct uc_dict *dict, const char *key, size_t idx, enum uc_dict_type type,
        const struct uc_dict_value **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_item(dict, key, idx, &value);

    if (status != UC_OK) {
        return status;
    }
    if (value->type != type) {
        return uc_error(UC_ERR_INVALID_PARAM, "key '%s': element %zu must be %s, but is %s", key,
                idx, uc_dict_type_text(type), uc_dict_type_text(value->type));
    }

    *value_out = value;
    return UC_OK;
}

enum uc_status
uc_dict_get_bool(const struct uc_dict *dict, const char *key, bool *value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_typed(dict, key, UC_DICT_BOOL, &value);

    if (status == UC_OK) {
        *value_out = value->as.boolean;
    }
    return status;
}

enum uc_status
uc_dict_get_int(const struct uc_dict *dict, const char *key, int64_t *value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_typed(dict, key, UC_DICT_INT, &value);

    if (status == UC_OK) {
        *value_out = value->as.integer;
    }
    return status;
}

enum uc_status
uc_dict_get_double(const struct uc_dict *dict, const char *key, double *value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find(dict, key, &value);

    if (status != UC_OK) {
        return status;
    }
    if (value->type == UC_DICT_INT) {
        *value_out = (double)value->as.integer;
    } else if (value->type == UC_DICT_DOUBLE) {
        *value_out = value->as.number;
    } else {
        return wrong_type(key, value, "a number");
    }
    return UC_OK;
}

enum uc_status
uc_dict_get_string(const struct uc_dict *dict, const char *key, const char **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_typed(dict, key, UC_DICT_STRING, &value);

    if (status == UC_OK) {
        *value_out = value->as.text;
    }
    return status;
}

enum uc_status
uc_dict_get_dict(const struct uc_dict *dict, const char *key, const struct uc_dict **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_typed(dict, key, UC_DICT_DICT, &value);

    if (status == UC_OK) {
        *value_out = value->as.dict;
    }
    return status;
}

enum uc_status
uc_dict_get_pointer(const struct uc_dict *dict, const char *key, void **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_typed(dict, key, UC_DICT_POINTER, &value);

    if (status == UC_OK) {
        *value_out = value->as.pointer;
    }
    return status;
}

/* A size or a time: an integer from 0 up, or text with a unit. */
static enum uc_status
get_quantity(const struct uc_dict *dict, const char *key, const char *wanted,
        enum uc_status (*parse)(const char *text, uint64_t *value_out), uint64_t *value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find(dict, key, &value);

    if (status != UC_OK) {
        return status;
    }
    if (value->type == UC_DICT_STRING) {
        status = parse(value->as.text, value_out);
        return status == UC_OK ? UC_OK : uc_error(status, "key '%s': %s", key, uc_last_error());
    }
    if (value->type != UC_DICT_INT) {
        return wrong_type(key, value, wanted);
    }
    if (value->as.integer < 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "key '%s' must be %s, but is %lld", key, wanted,
                (long long)value->as.integer);
    }

    *value_out = (uint64_t)value->as.integer;
    return UC_OK;
}

enum uc_status
uc_dict_get_bytes(const struct uc_dict *dict, const char *key, uint64_t *bytes_out)
{
    return get_quantity(dict, key, "a size such as 64MiB", uc_bytes_parse, bytes_out);
}

enum uc_status
uc_dict_get_ms(const struct uc_dict *dict, const char *key, uint64_t *ms_out)
{
    return get_quantity(dict, key, "a time in ms or such as 10s", uc_config_parse_ms, ms_out);
}

enum uc_status
uc_dict_get_list_count(const struct uc_dict *dict, const char *key, size_t *count_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_typed(dict, key, UC_DICT_LIST, &value);

    if (status == UC_OK) {
        *count_out = value->as.list.count;
    }
    return status;
}

enum uc_status
uc_dict_get_bool_at(const struct uc_dict *dict, const char *key, size_t idx, bool *value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_item_typed(dict, key, idx, UC_DICT_BOOL, &value);

    if (status == UC_OK) {
        *value_out = value->as.boolean;
    }
    return status;
}

enum uc_status
uc_dict_get_int_at(const struct uc_dict *dict, const char *key, size_t idx, int64_t *value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_item_typed(dict, key, idx, UC_DICT_INT, &value);

    if (status == UC_OK) {
        *value_out = value->as.integer;
    }
    return status;
}

enum uc_status
uc_dict_get_double_at(const struct uc_dict *dict, const char *key, size_t idx, double *value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_item(dict, key, idx, &value);

    if (status == UC_OK && value->type == UC_DICT_INT) {
        *value_out = (double)value->as.integer;
        return UC_OK;
    }

    status = find_item_typed(dict, key, idx, UC_DICT_DOUBLE, &value);
    if (status == UC_OK) {
        *value_out = value->as.number;
    }
    return status;
}

enum uc_status
uc_dict_get_string_at(
        const struct uc_dict *dict, const char *key, size_t idx, const char **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_item_typed(dict, key, idx, UC_DICT_STRING, &value);

    if (status == UC_OK) {
        *value_out = value->as.text;
    }
    return status;
}

enum uc_status
uc_dict_get_dict_at(
        const struct uc_dict *dict, const char *key, size_t idx, const struct uc_dict **value_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find_item_typed(dict, key, idx, UC_DICT_DICT, &value);

    if (status == UC_OK) {
        *value_out = value->as.dict;
    }
    return status;
}

enum uc_status
uc_dict_get_type(const struct uc_dict *dict, const char *key, enum uc_dict_type *type_out)
{
    const struct uc_dict_value *value = NULL;
    enum uc_status status = find(dict, key, &value);

    if (status == UC_OK) {
        *type_out = value->type;
    }
    return status;
}
