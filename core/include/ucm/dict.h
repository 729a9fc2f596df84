/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file dict.h
 * Typed dictionary, the only configuration channel. Values are copied in.
 *
 * Threads: no locking; a dictionary that nobody changes may be read from any thread.
 */

#ifndef UC_DICT_H
#define UC_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_dict;

enum uc_dict_type {
    UC_DICT_BOOL,
    UC_DICT_INT,
    UC_DICT_DOUBLE,
    UC_DICT_STRING,
    UC_DICT_DICT,
    UC_DICT_LIST, /* homogeneous; an empty one satisfies every element type */
    UC_DICT_POINTER,
};

UC_API UC_MUST_CHECK enum uc_status uc_dict_create(struct uc_dict **dict_out);

/** Deep. NULL is allowed. */
UC_API void uc_dict_destroy(struct uc_dict *dict);

/** Deep copy; the caller owns it. */
UC_API UC_MUST_CHECK enum uc_status uc_dict_clone(
        const struct uc_dict *dict, struct uc_dict **copy_out);

/*
 * Setters replace an existing value. Each may answer UC_ERR_OUT_OF_MEMORY, leaving the old value,
 * and UC_ERR_INVALID_PARAM for an empty or NULL key.
 */
UC_API UC_MUST_CHECK enum uc_status uc_dict_set_bool(
        struct uc_dict *dict, const char *key, bool value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_set_int(
        struct uc_dict *dict, const char *key, int64_t value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_set_double(
        struct uc_dict *dict, const char *key, double value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_set_string(
        struct uc_dict *dict, const char *key, const char *value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_set_dict(
        struct uc_dict *dict, const char *key, const struct uc_dict *value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_set_pointer(
        struct uc_dict *dict, const char *key, void *value);
/** Start an empty list under @p key; the append functions make one where there is none. */
UC_API UC_MUST_CHECK enum uc_status uc_dict_set_list(struct uc_dict *dict, const char *key);

/* Appending a value of another type than the list holds is UC_ERR_INVALID_PARAM. */
UC_API UC_MUST_CHECK enum uc_status uc_dict_append_bool(
        struct uc_dict *dict, const char *key, bool value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_append_int(
        struct uc_dict *dict, const char *key, int64_t value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_append_double(
        struct uc_dict *dict, const char *key, double value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_append_string(
        struct uc_dict *dict, const char *key, const char *value);
UC_API UC_MUST_CHECK enum uc_status uc_dict_append_dict(
        struct uc_dict *dict, const char *key, const struct uc_dict *value);

/*
 * Typed getters. Outputs are set on success only, so a default put there before survives.
 * Strings and dictionaries are borrowed from @p dict.
 *
 * UC_ERR_NOT_FOUND: no such key. UC_ERR_INVALID_PARAM: another type, or out of range; the error text
 * names the key. int64 widens to double; sizes and times also accept text with a unit.
 */
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_bool(
        const struct uc_dict *dict, const char *key, bool *value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_int(
        const struct uc_dict *dict, const char *key, int64_t *value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_double(
        const struct uc_dict *dict, const char *key, double *value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_string(
        const struct uc_dict *dict, const char *key, const char **value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_dict(
        const struct uc_dict *dict, const char *key, const struct uc_dict **value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_pointer(
        const struct uc_dict *dict, const char *key, void **value_out);
/** A size: an int64 ≥ 0, or text such as "64MiB" (units B KiB MiB GiB TiB kB MB GB TB). */
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_bytes(
        const struct uc_dict *dict, const char *key, uint64_t *bytes_out);
/** A time: an int64 ≥ 0 in milliseconds, or text such as "10s" (units ms s m h). */
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_ms(
        const struct uc_dict *dict, const char *key, uint64_t *ms_out);

/** Number of elements of a list. */
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_list_count(
        const struct uc_dict *dict, const char *key, size_t *count_out);
/* Elements; an index past the end is UC_ERR_NOT_FOUND. */
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_bool_at(
        const struct uc_dict *dict, const char *key, size_t idx, bool *value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_int_at(
        const struct uc_dict *dict, const char *key, size_t idx, int64_t *value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_double_at(
        const struct uc_dict *dict, const char *key, size_t idx, double *value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_string_at(
        const struct uc_dict *dict, const char *key, size_t idx, const char **value_out);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_dict_at(
        const struct uc_dict *dict, const char *key, size_t idx, const struct uc_dict **value_out);

/* Iteration, in order of insertion. */
UC_API size_t uc_dict_count(const struct uc_dict *dict);
UC_API const char *uc_dict_key_at(const struct uc_dict *dict, size_t idx);
UC_API bool uc_dict_has(const struct uc_dict *dict, const char *key);
UC_API UC_MUST_CHECK enum uc_status uc_dict_get_type(
        const struct uc_dict *dict, const char *key, enum uc_dict_type *type_out);

/** Remember where a key came from, for error messages; 0 = unknown. */
UC_API void uc_dict_set_line(struct uc_dict *dict, const char *key, unsigned line);
UC_API unsigned uc_dict_line(const struct uc_dict *dict, const char *key);

#endif /* UC_DICT_H */
