/* SPDX-License-Identifier: Apache-2.0 */

#include "core/config/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/dict_value.h"
#include "core/config/units.h"

enum {
    PLACE_BYTES = 384,
    KEY_TEXT_BYTES = 64 /* longer keys are no near miss of ours */
};

/* "server.yaml:12" where the line is known, else "server.yaml". */
static const char *
place_of(const struct uc_dict *dict, const char *key, const char *where, char *buffer)
{
    unsigned line = uc_dict_line(dict, key);

    if (line > 0) {
        (void)snprintf(buffer, PLACE_BYTES, "%s:%u", where, line);
    } else {
        (void)snprintf(buffer, PLACE_BYTES, "%s", where);
    }
    return buffer;
}

/* Edit distance with one row; swapped neighbours count as two. */
static size_t
edit_distance(const char *text, const char *name)
{
    size_t row[KEY_TEXT_BYTES + 1];
    size_t width = strlen(name);

    for (size_t column = 0; column <= width; column++) {
        row[column] = column;
    }
    for (size_t line = 0; text[line] != '\0'; line++) {
        size_t diagonal = row[0];

        row[0] = line + 1;
        for (size_t column = 0; column < width; column++) {
            size_t above = row[column + 1];
            size_t best = diagonal + (text[line] == name[column] ? 0 : 1);

            best = best < above + 1 ? best : above + 1;
            best = best < row[column] + 1 ? best : row[column] + 1;
            row[column + 1] = best;
            diagonal = above;
        }
    }
    return row[width];
}

const char *
uc_field_nearest(const char *text, const char *const *names, size_t name_count)
{
    size_t length = text == NULL ? 0 : strlen(text);
    const char *best = NULL;
    size_t best_distance;

    if (length == 0 || length > KEY_TEXT_BYTES) {
        return NULL;
    }

    best_distance = length / 3 + 2; /* further away than this is another word */
    for (size_t idx = 0; idx < name_count; idx++) {
        size_t distance =
                strlen(names[idx]) > KEY_TEXT_BYTES ? SIZE_MAX : edit_distance(text, names[idx]);

        /* A distance of the whole length shares no letter. */
        if (distance < best_distance && distance < length) {
            best = names[idx];
            best_distance = distance;
        }
    }
    return best;
}

static const struct uc_field *
find_field(const struct uc_field *fields, size_t field_count, const char *key)
{
    for (size_t idx = 0; idx < field_count; idx++) {
        if (strcmp(fields[idx].key, key) == 0) {
            return &fields[idx];
        }
    }

    return NULL;
}

static bool
is_listed(const char *key, const char *const *names)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(key, *names) == 0) {
            return true;
        }
    }

    return false;
}

static enum uc_status
unknown_key(const struct uc_field *fields, size_t field_count, const char *const *ignored,
        const char *key, const char *place)
{
    const char *nearest = NULL;
    size_t ignored_count = 0;
    const char **names;

    while (ignored != NULL && ignored[ignored_count] != NULL) {
        ignored_count++;
    }
    names = calloc(field_count + ignored_count + 1, sizeof(*names));
    if (names != NULL) {
        for (size_t idx = 0; idx < field_count; idx++) {
            names[idx] = fields[idx].key;
        }
        for (size_t idx = 0; idx < ignored_count; idx++) {
            names[field_count + idx] = ignored[idx];
        }
        nearest = uc_field_nearest(key, names, field_count + ignored_count);
        free(names);
    }

    return uc_error(UC_ERR_INVALID_PARAM, "%s: key '%.64s' is not known%s%s%s", place, key,
            nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
            nearest == NULL ? "" : "'?");
}

/* Write "16MiB" or the bare number, as the type wants it. */
static const char *
format_number(enum uc_field_type type, uint64_t number, char *buffer, size_t buffer_bytes)
{
    struct uc_unit unit = {"", 1};

    if (type == UC_FIELD_BYTES) {
        unit = uc_unit_for_bytes(number);
    } else if (type == UC_FIELD_MS) {
        unit = uc_unit_for_ms(number);
    }
    (void)snprintf(buffer, buffer_bytes, "%" PRIu64 "%s", number / unit.factor, unit.name);
    return buffer;
}

static enum uc_status
check_range(const struct uc_field *field, uint64_t number, const char *place)
{
    char actual[32];
    char min[32];
    char max[32];

    if ((field->min == 0 && field->max == 0) || (number >= field->min && number <= field->max)) {
        return UC_OK;
    }

    (void)format_number(field->type, number, actual, sizeof(actual));
    (void)format_number(field->type, field->min, min, sizeof(min));
    if (field->max == UINT64_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: key '%s' is %s, must be at least %s", place,
                field->key, actual, min);
    }
    return uc_error(UC_ERR_INVALID_PARAM, "%s: key '%s' is %s, must be from %s to %s", place,
            field->key, actual, min, format_number(field->type, field->max, max, sizeof(max)));
}

static enum uc_status
check_choice(const struct uc_field *field, const char *text, const char *place)
{
    char list[256] = "";
    size_t used = 0;

    if (field->choices == NULL || is_listed(text, field->choices)) {
        return UC_OK;
    }

    for (size_t idx = 0; field->choices[idx] != NULL && used < sizeof(list); idx++) {
        int length = snprintf(list + used, sizeof(list) - used, "%s%s", idx == 0 ? "" : ", ",
                field->choices[idx]);

        used += length < 0 ? 0 : (size_t)length;
    }
    return uc_error(UC_ERR_INVALID_PARAM, "%s: key '%s' is '%.64s', must be one of: %s", place,
            field->key, text, list);
}

static enum uc_status
store_text(const struct uc_field *field, const char *text, const char *place, void *target)
{
    size_t length = strlen(text);
    enum uc_status status = check_choice(field, text, place);

    if (status != UC_OK) {
        return status;
    }
    if (length >= UC_FIELD_STRING_BYTES) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: key '%s' has %zu bytes, at most %d are allowed",
                place, field->key, length, UC_FIELD_STRING_BYTES - 1);
    }

    memcpy((char *)target + field->offset, text, length + 1);
    return UC_OK;
}

static enum uc_status
store_number(const struct uc_field *field, uint64_t number, const char *place, void *target)
{
    enum uc_status status = check_range(field, number, place);

    if (status == UC_OK) {
        memcpy((char *)target + field->offset, &number, sizeof(number));
    }
    return status;
}

static void
store_bool(const struct uc_field *field, bool value, void *target)
{
    memcpy((char *)target + field->offset, &value, sizeof(value));
}

/* Defaults are ours: a bad one is a bug, which the test of each table finds. */
static enum uc_status
apply_default(const struct uc_field *field, const char *where, void *target)
{
    const char *text = field->default_text;
    enum uc_status status = UC_OK;
    uint64_t number = 0;

    switch (field->type) {
    case UC_FIELD_BOOL:
        store_bool(field, strcmp(text, "true") == 0, target);
        return UC_OK;
    case UC_FIELD_STRING:
        return store_text(field, text, where, target);
    case UC_FIELD_COUNT:
        number = strtoull(text, NULL, 10);
        break;
    case UC_FIELD_BYTES:
        status = uc_bytes_parse(text, &number);
        break;
    case UC_FIELD_MS:
        status = uc_config_parse_ms(text, &number);
        break;
    }
    return status != UC_OK ? status : store_number(field, number, where, target);
}

static enum uc_status
get_count(const struct uc_dict *dict, const char *key, uint64_t *number_out)
{
    int64_t number = 0;
    enum uc_status status = uc_dict_get_int(dict, key, &number);

    if (status == UC_OK && number < 0) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "key '%s' is %" PRId64 ", must not be negative", key, number);
    }
    if (status == UC_OK) {
        *number_out = (uint64_t)number;
    }
    return status;
}

static enum uc_status
apply_value(
        const struct uc_field *field, const struct uc_dict *dict, const char *place, void *target)
{
    enum uc_status status = UC_OK;
    const char *text = NULL;
    uint64_t number = 0;
    bool flag = false;

    switch (field->type) {
    case UC_FIELD_BOOL:
        status = uc_dict_get_bool(dict, field->key, &flag);
        break;
    case UC_FIELD_STRING:
        status = uc_dict_get_string(dict, field->key, &text);
        break;
    case UC_FIELD_COUNT:
        status = get_count(dict, field->key, &number);
        break;
    case UC_FIELD_BYTES:
        status = uc_dict_get_bytes(dict, field->key, &number);
        break;
    case UC_FIELD_MS:
        status = uc_dict_get_ms(dict, field->key, &number);
        break;
    }
    if (status != UC_OK) {
        return uc_error(status, "%s: %s", place, uc_last_error());
    }

    if (field->type == UC_FIELD_BOOL) {
        store_bool(field, flag, target);
        return UC_OK;
    }
    if (field->type == UC_FIELD_STRING) {
        return store_text(field, text, place, target);
    }
    return store_number(field, number, place, target);
}

enum uc_status
uc_field_apply(const struct uc_field *fields, size_t field_count, const struct uc_dict *dict,
        const char *where, const char *const *ignored, void *target)
{
    char place[PLACE_BYTES];

    for (size_t idx = 0; idx < uc_dict_count(dict); idx++) {
        const char *key = uc_dict_key_at(dict, idx);

        if (find_field(fields, field_count, key) == NULL && !is_listed(key, ignored)) {
            return unknown_key(
                    fields, field_count, ignored, key, place_of(dict, key, where, place));
        }
    }

    for (size_t idx = 0; idx < field_count; idx++) {
        const struct uc_field *field = &fields[idx];
        enum uc_status status = UC_OK;

        if (uc_dict_has(dict, field->key)) {
            status = apply_value(field, dict, place_of(dict, field->key, where, place), target);
        } else if (field->default_text != NULL) {
            status = apply_default(field, where, target);
        } else {
            status = uc_error(UC_ERR_INVALID_PARAM, "%s: key '%s' is missing: %s", where,
                    field->key, field->help);
        }
        if (status != UC_OK) {
            return status;
        }
    }
    return UC_OK;
}
