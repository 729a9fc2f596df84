/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/option_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/fields.h"

enum uc_status
uc_option_digits(const char *text, uint64_t *value_out)
{
    unsigned long long value;
    char *end;

    if (text[0] < '0' || text[0] > '9') {
        return UC_ERR_INVALID_PARAM; /* no sign, no space */
    }

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return UC_ERR_INVALID_PARAM;
    }

    *value_out = value;
    return UC_OK;
}

enum uc_status
uc_option_number(const struct uc_option *option, const char *text, uint64_t *value_out)
{
    enum uc_status status;
    uint64_t value = 0;

    status = option->kind == UC_OPTION_BYTES ? uc_bytes_parse(text, &value)
                                             : uc_option_digits(text, &value);
    if (status != UC_OK || value < option->min || value > option->max) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "%s", option->name, text,
                option->min, option->max,
                option->kind == UC_OPTION_BYTES ? " bytes (a unit such as KiB is allowed)" : "");
    }

    *value_out = value;
    return UC_OK;
}

enum uc_status
uc_option_numbers(const struct uc_option *option, const char *text, uint64_t *values,
        size_t capacity, size_t *count_out)
{
    size_t count = 0;

    while (text != NULL) {
        size_t length = strcspn(text, ",");
        char number[32] = {0};
        enum uc_status status;

        if (count == capacity) {
            return uc_error(
                    UC_ERR_INVALID_PARAM, "--%s: more than %zu numbers", option->name, capacity);
        }
        memcpy(number, text, length < sizeof(number) ? length : sizeof(number) - 1);
        status = uc_option_number(option, number, &values[count]);
        if (status != UC_OK) {
            return uc_error(status,
                    "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64
                    ", or several with commas between them",
                    option->name, number, option->min, option->max);
        }
        count++;
        text = text[length] == ',' ? text + length + 1 : NULL;
    }

    *count_out = count;
    return UC_OK;
}

static enum uc_status
set_on_off(const struct uc_option *option, const char *text, bool *target)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "--%s: '%s' is neither on nor off", option->name, text);
    }

    *target = strcmp(text, "on") == 0;
    return UC_OK;
}

static enum uc_status
set_text(const struct uc_option *option, const char *text, const char **target)
{
    bool found = option->choices == NULL;

    for (size_t idx = 0; !found && option->choices[idx] != NULL; idx++) {
        found = strcmp(option->choices[idx], text) == 0;
    }
    if (!found || text[0] == '\0') {
        return uc_error(UC_ERR_INVALID_PARAM, "--%s: '%s' is not %s", option->name, text,
                option->value_text);
    }

    *target = text;
    return UC_OK;
}

static enum uc_status
set_option(const struct uc_option *option, const char *text, void *members)
{
    void *target = (char *)members + option->offset;

    switch (option->kind) {
    case UC_OPTION_FLAG:
        *(bool *)target = true;
        return UC_OK;
    case UC_OPTION_ON_OFF:
        return set_on_off(option, text, target);
    case UC_OPTION_TEXT:
    case UC_OPTION_CHOICE:
        return set_text(option, text, target);
    case UC_OPTION_COUNT:
    case UC_OPTION_BYTES:
        return uc_option_number(option, text, target);
    case UC_OPTION_CUSTOM:
        return option->set(option, text, target);
    }

    return UC_ERR_GENERAL;
}

static const struct uc_option *
find_option(const struct uc_option *table, size_t count, const char *name, size_t length)
{
    for (size_t idx = 0; idx < count; idx++) {
        if (strlen(table[idx].name) == length && memcmp(table[idx].name, name, length) == 0) {
            return &table[idx];
        }
    }

    return NULL;
}

/* One option at argv[*at]; moves *at behind what it used. */
static enum uc_status
parse_one(const struct uc_option *table, size_t count, int argc, char *const argv[], int *at,
        void *target)
{
    const char *word = argv[(*at)++];
    const char *name = word + 2;
    const char *equals;
    const struct uc_option *option;

    if (strcmp(word, "-h") == 0) {
        word = "--help";
        name = "help";
    }
    if (strncmp(word, "--", 2) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%s' is not an option", word);
    }

    equals = strchr(name, '=');
    option = find_option(
            table, count, name, equals == NULL ? strlen(name) : (size_t)(equals - name));
    if (option == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "unknown option '%s'", word);
    }
    if (option->kind == UC_OPTION_FLAG) {
        return equals == NULL ? set_option(option, NULL, target)
                              : uc_error(UC_ERR_INVALID_PARAM, "--%s takes no value", option->name);
    }
    if (equals != NULL) {
        return set_option(option, equals + 1, target);
    }
    if (*at == argc) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "--%s needs a value: %s", option->name, option->value_text);
    }

    return set_option(option, argv[(*at)++], target);
}

enum uc_status
uc_options_default(const struct uc_option *table, size_t count, void *target)
{
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        if (table[idx].default_text != NULL) {
            status = set_option(&table[idx], table[idx].default_text, target);
        }
    }
    return status;
}

enum uc_status
uc_options_parse(
        const struct uc_option *table, size_t count, int argc, char *const argv[], void *target)
{
    enum uc_status status = UC_OK;
    int at = 0;

    while (status == UC_OK && at < argc) {
        status = parse_one(table, count, argc, argv, &at, target);
    }
    return status;
}

/* Bytes that take no column of their own: what UTF-8 adds to a character. */
static int
hidden_bytes(const char *text)
{
    int count = 0;

    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xc0) == 0x80 ? 1 : 0;
    }
    return count;
}

void
uc_options_print(const struct uc_option *table, size_t count, FILE *file)
{
    for (size_t idx = 0; idx < count; idx++) {
        const struct uc_option *option = &table[idx];
        char usage[64];

        (void)snprintf(usage, sizeof(usage), "--%s%s%s", option->name,
                option->value_text == NULL ? "" : " ",
                option->value_text == NULL ? "" : option->value_text);
        (void)fprintf(file, "  %-*s %s", 28 + hidden_bytes(usage), usage, option->help);
        if (option->default_text != NULL) {
            (void)fprintf(file, " (default %s)", option->default_text);
        }
        (void)fputc('\n', file);
    }
}
