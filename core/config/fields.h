/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fields.h
 * Configuration as a table: one row per key parses, validates, prints and documents it. Unknown keys are
 * reported with the nearest known one.
 */

#ifndef UC_CONFIG_FIELDS_H
#define UC_CONFIG_FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

enum uc_field_type {
    UC_FIELD_BOOL,   /* bool */
    UC_FIELD_COUNT,  /* uint64_t */
    UC_FIELD_BYTES,  /* uint64_t; text with a unit allowed */
    UC_FIELD_MS,     /* uint64_t; text with a unit allowed */
    UC_FIELD_STRING, /* char[UC_FIELD_STRING_BYTES] inside the struct */
};

enum {
    UC_FIELD_STRING_BYTES = 256
};

struct uc_field {
    const char *key;
    enum uc_field_type type;
    const char *default_text; /* NULL = required */
    uint64_t min;             /* numbers; ignored if min == max == 0 */
    uint64_t max;
    size_t offset;              /* offsetof in the struct that is filled */
    const char *help;           /* one line */
    const char *const *choices; /* strings: NULL, or a NULL-terminated list */
};

/**
 * Fill @p target from @p dict: defaults first, then every key.
 *
 * @param[in] where    named in errors, e.g. "server.yaml" or "config"; lines come from the dictionary
 * @param[in] ignored  NULL, or a NULL-terminated list of keys that somebody else reads
 * @retval UC_ERR_INVALID_PARAM  unknown key (nearest known one named), wrong type, out of range, missing;
 *                               uc_last_error() says where, what and what is allowed
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_field_apply(const struct uc_field *fields,
        size_t field_count, const struct uc_dict *dict, const char *where,
        const char *const *ignored, void *target);

/** Print "key: value  # help" lines of the effective configuration, YAML. */
UC_PRIVATE_API void uc_field_print(const struct uc_field *fields, size_t field_count,
        const void *source, const char *indent, FILE *file);

/** Print "--key=VALUE  help (default …)" lines. */
UC_PRIVATE_API void uc_field_print_help(
        const struct uc_field *fields, size_t field_count, FILE *file);

/** @return the member of @p names nearest to @p text by edit distance, or NULL if none is near. */
UC_PRIVATE_API const char *uc_field_nearest(
        const char *text, const char *const *names, size_t name_count);

/** Parse "64MiB" / "10s" (units as in ucm/dict.h). InvalidParam, with the text named. */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_bytes_parse(const char *text, uint64_t *bytes_out);
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_config_parse_ms(const char *text, uint64_t *ms_out);

/**
 * Read YAML (mappings, sequences, scalars; a scalar is bool, int64, double or string by YAML's core rules)
 * into a dictionary that remembers lines. Anchors, tags, duplicate keys, several documents: InvalidParam
 * with file and line. @p name is used in errors.
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_yaml_read_file(
        const char *path, struct uc_dict **dict_out);
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_yaml_read_text(
        const char *text, size_t length, const char *name, struct uc_dict **dict_out);

/**
 * Set dotted `key.sub=value` (from a command line `--key=value`) in @p dict; the value is typed as a YAML
 * scalar. Lists are addressed by number: `namespaces.0.capacity=1GiB`.
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_config_set_text(
        struct uc_dict *dict, const char *assignment);

#endif /* UC_CONFIG_FIELDS_H */
