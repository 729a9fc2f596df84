/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include <ucm/dict.h>

#include "core/config/dict_value.h"

enum uc_status
uc_dict_set_bool(struct uc_dict *dict, const char *key, bool value)
{
    struct uc_dict_value tagged = {.type = UC_DICT_BOOL, .as.boolean = value};

    return uc_dict_put(dict, key, &tagged);
}

enum uc_status
uc_dict_set_int(struct uc_dict *dict, const char *key, int64_t value)
{
    struct uc_dict_value tagged = {.type = UC_DICT_INT, .as.integer = value};

    return uc_dict_put(dict, key, &tagged);
}

enum uc_status
uc_dict_set_double(struct uc_dict *dict, const char *key, double value)
{
    struct uc_dict_value tagged = {.type = UC_DICT_DOUBLE, .as.number = value};

    return uc_dict_put(dict, key, &tagged);
}

enum uc_status
uc_dict_set_pointer(struct uc_dict *dict, const char *key, void *value)
{
    struct uc_dict_value tagged = {.type = UC_DICT_POINTER, .as.pointer = value};

    return uc_dict_put(dict, key, &tagged);
}

enum uc_status
uc_dict_set_list(struct uc_dict *dict, const char *key)
{
    struct uc_dict_value tagged = {.type = UC_DICT_LIST};

    return uc_dict_put(dict, key, &tagged);
}

/* Copy text or a dictionary into a value of its own. */
static enum uc_status
copy_text(const char *key, const char *text, struct uc_dict_value *value_out)
{
    if (text == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "key '%s': text is null", key == NULL ? "" : key);
    }

    return uc_dict_value_text(text, strlen(text), value_out);
}

static enum uc_status
copy_dict(const struct uc_dict *dict, struct uc_dict_value *value_out)
{
    struct uc_dict *copy = NULL;
    enum uc_status status = uc_dict_clone(dict, &copy);

    if (status == UC_OK) {
        value_out->type = UC_DICT_DICT;
        value_out->as.dict = copy;
    }
    return status;
}

enum uc_status
uc_dict_set_string(struct uc_dict *dict, const char *key, const char *value)
{
    struct uc_dict_value tagged;
    enum uc_status status = copy_text(key, value, &tagged);

    return status != UC_OK ? status : uc_dict_put(dict, key, &tagged);
}

enum uc_status
uc_dict_set_dict(struct uc_dict *dict, const char *key, const struct uc_dict *value)
{
    struct uc_dict_value tagged;
    enum uc_status status = copy_dict(value, &tagged);

    return status != UC_OK ? status : uc_dict_put(dict, key, &tagged);
}

/* Append a value that passes into the dictionary; a list that is missing is made with it. */
static enum uc_status
append(struct uc_dict *dict, const char *key, struct uc_dict_value *value)
{
    struct uc_dict_entry *entry = uc_dict_find(dict, key);
    struct uc_dict_value list = {.type = UC_DICT_LIST};
    enum uc_status status;

    if (entry != NULL && entry->value.type != UC_DICT_LIST) {
        uc_dict_value_fini(value);
        return uc_error(UC_ERR_INVALID_PARAM, "key '%s' is %s, so nothing can be appended", key,
                uc_dict_type_text(entry->value.type));
    }
    if (entry != NULL) {
        return uc_dict_list_push(&entry->value.as.list, key, value);
    }

    status = uc_dict_list_push(&list.as.list, key, value);
    return status != UC_OK ? status : uc_dict_put(dict, key, &list);
}

enum uc_status
uc_dict_append_bool(struct uc_dict *dict, const char *key, bool value)
{
    struct uc_dict_value tagged = {.type = UC_DICT_BOOL, .as.boolean = value};

    return append(dict, key, &tagged);
}

enum uc_status
uc_dict_append_int(struct uc_dict *dict, const char *key, int64_t value)
{
    struct uc_dict_value tagged = {.type = UC_DICT_INT, .as.integer = value};

    return append(dict, key, &tagged);
}

enum uc_status
uc_dict_append_double(struct uc_dict *dict, const char *key, double value)
{
    struct uc_dict_value tagged = {.type = UC_DICT_DOUBLE, .as.number = value};

    return append(dict, key, &tagged);
}

enum uc_status
uc_dict_append_string(struct uc_dict *dict, const char *key, const char *value)
{
    struct uc_dict_value tagged;
    enum uc_status status = copy_text(key, value, &tagged);

    return status != UC_OK ? status : append(dict, key, &tagged);
}

enum uc_status
uc_dict_append_dict(struct uc_dict *dict, const char *key, const struct uc_dict *value)
{
    struct uc_dict_value tagged;
    enum uc_status status = copy_dict(value, &tagged);

    return status != UC_OK ? status : append(dict, key, &tagged);
}
