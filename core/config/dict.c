/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <ucm/dict.h>

#include "core/config/dict_value.h"

enum {
    FIRST_CAPACITY = 8
};

static enum uc_status
no_memory(void)
{
    return uc_error(UC_ERR_OUT_OF_MEMORY, "dictionary: out of memory");
}

const char *
uc_dict_type_text(enum uc_dict_type type)
{
    switch (type) {
    case UC_DICT_BOOL:
        return "a bool";
    case UC_DICT_INT:
        return "an integer";
    case UC_DICT_DOUBLE:
        return "a number with a fraction";
    case UC_DICT_STRING:
        return "text";
    case UC_DICT_DICT:
        return "a dictionary";
    case UC_DICT_LIST:
        return "a list";
    case UC_DICT_POINTER:
        return "a pointer";
    }

    return "of unknown type";
}

enum uc_status
uc_dict_create(struct uc_dict **dict_out)
{
    struct uc_dict *dict = calloc(1, sizeof(*dict));

    if (dict == NULL) {
        return no_memory();
    }

    *dict_out = dict;
    return UC_OK;
}

void
uc_dict_destroy(struct uc_dict *dict)
{
    if (dict == NULL) {
        return;
    }

    for (size_t idx = 0; idx < dict->count; idx++) {
        uc_dict_value_fini(&dict->entries[idx].value);
        free(dict->entries[idx].key);
    }
    free(dict->entries);
    free(dict);
}

static void
list_fini(struct uc_dict_list *list)
{
    for (size_t idx = 0; idx < list->count; idx++) {
        uc_dict_value_fini(&list->items[idx]);
    }
    free(list->items);
}

void
uc_dict_value_fini(struct uc_dict_value *value)
{
    switch (value->type) {
    case UC_DICT_STRING:
        free(value->as.text);
        break;
    case UC_DICT_DICT:
        uc_dict_destroy(value->as.dict);
        break;
    case UC_DICT_LIST:
        list_fini(&value->as.list);
        break;
    case UC_DICT_BOOL:
    case UC_DICT_INT:
    case UC_DICT_DOUBLE:
    case UC_DICT_POINTER:
        break;
    }
}

enum uc_status
uc_dict_value_text(const char *text, size_t length, struct uc_dict_value *value_out)
{
    char *copy = malloc(length + 1);

    if (copy == NULL) {
        return no_memory();
    }

    memcpy(copy, text, length);
    copy[length] = '\0';
    value_out->type = UC_DICT_STRING;
    value_out->as.text = copy;
    return UC_OK;
}

static enum uc_status
list_copy(const struct uc_dict_list *list, struct uc_dict_value *copy_out)
{
    struct uc_dict_value copy = {.type = UC_DICT_LIST};

    if (list->count > 0) {
        copy.as.list.items = calloc(list->count, sizeof(copy.as.list.items[0]));
        if (copy.as.list.items == NULL) {
            return no_memory();
        }
        copy.as.list.capacity = list->count;
    }
    for (size_t idx = 0; idx < list->count; idx++) {
        enum uc_status status = uc_dict_value_copy(&list->items[idx], &copy.as.list.items[idx]);

        if (status != UC_OK) {
            uc_dict_value_fini(&copy);
            return status;
        }
        copy.as.list.count++;
    }

    *copy_out = copy;
    return UC_OK;
}

enum uc_status
uc_dict_value_copy(const struct uc_dict_value *value, struct uc_dict_value *copy_out)
{
    struct uc_dict *dict = NULL;
    enum uc_status status;

    switch (value->type) {
    case UC_DICT_STRING:
        return uc_dict_value_text(value->as.text, strlen(value->as.text), copy_out);
    case UC_DICT_LIST:
        return list_copy(&value->as.list, copy_out);
    case UC_DICT_DICT:
        status = uc_dict_clone(value->as.dict, &dict);
        if (status == UC_OK) {
            copy_out->type = UC_DICT_DICT;
            copy_out->as.dict = dict;
        }
        return status;
    case UC_DICT_BOOL:
    case UC_DICT_INT:
    case UC_DICT_DOUBLE:
    case UC_DICT_POINTER:
        break;
    }

    *copy_out = *value;
    return UC_OK;
}

enum uc_status
uc_dict_clone(const struct uc_dict *dict, struct uc_dict **copy_out)
{
    struct uc_dict *copy = NULL;
    enum uc_status status;

    if (dict == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "dictionary to clone is null");
    }

    status = uc_dict_create(&copy);
    if (status != UC_OK) {
        return status;
    }
    for (size_t idx = 0; idx < dict->count; idx++) {
        const struct uc_dict_entry *entry = &dict->entries[idx];
        struct uc_dict_value value;

        status = uc_dict_value_copy(&entry->value, &value);
        if (status == UC_OK) {
            status = uc_dict_put(copy, entry->key, &value);
        }
        if (status != UC_OK) {
            goto err_destroy_copy;
        }
        copy->entries[idx].line = entry->line;
    }

    *copy_out = copy;
    return UC_OK;

err_destroy_copy:
    uc_dict_destroy(copy);
    return status;
}

struct uc_dict_entry *
uc_dict_find(const struct uc_dict *dict, const char *key)
{
    if (dict == NULL || key == NULL) {
        return NULL;
    }

    for (size_t idx = 0; idx < dict->count; idx++) {
        if (strcmp(dict->entries[idx].key, key) == 0) {
            return &dict->entries[idx];
        }
    }
    return NULL;
}

/* Room for one more element of an array that doubles. */
static enum uc_status
grow(void **items, size_t count, size_t *capacity, size_t item_bytes)
{
    size_t wanted = *capacity == 0 ? FIRST_CAPACITY : *capacity * 2;
    void *grown;

    if (count < *capacity) {
        return UC_OK;
    }
    if (wanted > SIZE_MAX / item_bytes) {
        return no_memory();
    }

    grown = realloc(*items, wanted * item_bytes);
    if (grown == NULL) {
        return no_memory();
    }

    *items = grown;
    *capacity = wanted;
    return UC_OK;
}

/* Add a key that is not there yet. */
static enum uc_status
add_entry(struct uc_dict *dict, const char *key, const struct uc_dict_value *value)
{
    void *entries = dict->entries;
    enum uc_status status = grow(&entries, dict->count, &dict->capacity, sizeof(dict->entries[0]));
    struct uc_dict_entry *entry;
    struct uc_dict_value key_copy = {.type = UC_DICT_STRING};

    dict->entries = entries;
    if (status == UC_OK) {
        status = uc_dict_value_text(key, strlen(key), &key_copy);
    }
    if (status != UC_OK) {
        return status;
    }

    entry = &dict->entries[dict->count++];
    entry->key = key_copy.as.text;
    entry->value = *value;
    entry->line = 0;
    return UC_OK;
}

enum uc_status
uc_dict_put(struct uc_dict *dict, const char *key, struct uc_dict_value *value)
{
    struct uc_dict_entry *entry;
    enum uc_status status = UC_OK;

    if (dict == NULL || key == NULL || key[0] == '\0') {
        uc_dict_value_fini(value);
        return uc_error(UC_ERR_INVALID_PARAM, "dictionary: a value needs a dictionary and a key");
    }

    entry = uc_dict_find(dict, key);
    if (entry != NULL) {
        uc_dict_value_fini(&entry->value);
        entry->value = *value;
        entry->line = 0; /* where the old value stood says nothing about this one */
        return UC_OK;
    }

    status = add_entry(dict, key, value);
    if (status != UC_OK) {
        uc_dict_value_fini(value);
    }
    return status;
}

enum uc_status
uc_dict_list_push(struct uc_dict_list *list, const char *key, struct uc_dict_value *value)
{
    void *items = list->items;
    enum uc_status status = UC_OK;

    if (list->count > 0 && list->items[0].type != value->type) {
        status = uc_error(UC_ERR_INVALID_PARAM, "key '%s': %s in a list whose elements are each %s",
                key, uc_dict_type_text(value->type), uc_dict_type_text(list->items[0].type));
    } else {
        status = grow(&items, list->count, &list->capacity, sizeof(list->items[0]));
        list->items = items;
    }
    if (status != UC_OK) {
        uc_dict_value_fini(value);
        return status;
    }

    list->items[list->count++] = *value;
    return UC_OK;
}

size_t
uc_dict_count(const struct uc_dict *dict)
{
    return dict == NULL ? 0 : dict->count;
}

const char *
uc_dict_key_at(const struct uc_dict *dict, size_t idx)
{
    return dict == NULL || idx >= dict->count ? NULL : dict->entries[idx].key;
}

bool
uc_dict_has(const struct uc_dict *dict, const char *key)
{
    return uc_dict_find(dict, key) != NULL;
}

void
uc_dict_set_line(struct uc_dict *dict, const char *key, unsigned line)
{
    struct uc_dict_entry *entry = uc_dict_find(dict, key);

    if (entry != NULL) {
        entry->line = line;
    }
}

unsigned
uc_dict_line(const struct uc_dict *dict, const char *key)
{
    const struct uc_dict_entry *entry = uc_dict_find(dict, key);

    return entry == NULL ? 0 : entry->line;
}
