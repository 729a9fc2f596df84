/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file dict_value.h
 * Representation of dictionaries, shared by the files of core/config. Threads as ucm/dict.h.
 */

#ifndef UC_CONFIG_DICT_VALUE_H
#define UC_CONFIG_DICT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

struct uc_dict_value;

/** Elements share one type; `items` never holds a list. */
struct uc_dict_list {
    struct uc_dict_value *items;
    size_t count;
    size_t capacity;
};

/** A tagged value that owns what it points to, except for pointers. */
struct uc_dict_value {
    enum uc_dict_type type;
    union {
        bool boolean;
        int64_t integer;
        double number;
        char *text;
        struct uc_dict *dict;
        struct uc_dict_list list;
        void *pointer;
    } as;
};

struct uc_dict_entry {
    char *key;
    struct uc_dict_value value;
    unsigned line; /* 0 = unknown */
};

/** Searched from the start: configurations are short, and their order is that of insertion. */
struct uc_dict {
    struct uc_dict_entry *entries;
    size_t count;
    size_t capacity;
};

/** @return the type in words for error texts, e.g. "a list". */
const char *uc_dict_type_text(enum uc_dict_type type);

/** Free what the value owns. */
void uc_dict_value_fini(struct uc_dict_value *value);

/** Make a text value that owns a copy. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_dict_value_text(
        const char *text, size_t length, struct uc_dict_value *value_out);

/** Deep copy. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_dict_value_copy(
        const struct uc_dict_value *value, struct uc_dict_value *copy_out);

/** @return the entry, borrowed until the dictionary changes, or NULL. */
struct uc_dict_entry *uc_dict_find(const struct uc_dict *dict, const char *key);

/**
 * Set @p key to @p value, which passes into the dictionary; on failure it is released and the old value
 * stays. InvalidParam for a bad key, OutOfMemory.
 */
UC_MUST_CHECK enum uc_status uc_dict_put(
        struct uc_dict *dict, const char *key, struct uc_dict_value *value);

/** Append to a list; @p value passes into it or is released, as in uc_dict_put(). @p key: for texts. */
UC_MUST_CHECK enum uc_status uc_dict_list_push(
        struct uc_dict_list *list, const char *key, struct uc_dict_value *value);

#endif /* UC_CONFIG_DICT_VALUE_H */
