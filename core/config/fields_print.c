/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <string.h>

#include "core/config/fields.h"
#include "core/config/units.h"

static void
print_number(enum uc_field_type type, uint64_t number, FILE *file)
{
    struct uc_unit unit = {"", 1};

    if (type == UC_FIELD_BYTES) {
        unit = uc_unit_for_bytes(number);
    } else if (type == UC_FIELD_MS) {
        unit = uc_unit_for_ms(number);
    }
    (void)fprintf(file, "%" PRIu64 "%s", number / unit.factor, unit.name);
}

/* Always in quotes: nobody needs to know which plain words YAML takes for something else. */
static void
print_text(const char *text, FILE *file)
{
    (void)fputc('"', file);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\') {
            (void)fprintf(file, "\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7f) {
            (void)fprintf(file, "\\x%02x", byte);
        } else {
            (void)fputc(byte, file);
        }
    }
    (void)fputc('"', file);
}

static void
print_value(const struct uc_field *field, const void *source, FILE *file)
{
    const char *member = (const char *)source + field->offset;
    uint64_t number;
    bool flag;

    switch (field->type) {
    case UC_FIELD_BOOL:
        memcpy(&flag, member, sizeof(flag));
        (void)fputs(flag ? "true" : "false", file);
        break;
    case UC_FIELD_STRING:
        print_text(member, file);
        break;
    case UC_FIELD_COUNT:
    case UC_FIELD_BYTES:
    case UC_FIELD_MS:
        memcpy(&number, member, sizeof(number));
        print_number(field->type, number, file);
        break;
    }
}

void
uc_field_print(const struct uc_field *fields, size_t field_count, const void *source,
        const char *indent, FILE *file)
{
    for (size_t idx = 0; idx < field_count; idx++) {
        (void)fprintf(file, "%s%s: ", indent == NULL ? "" : indent, fields[idx].key);
        print_value(&fields[idx], source, file);
        (void)fprintf(file, "  # %s\n", fields[idx].help);
    }
}

static const char *
value_name(enum uc_field_type type)
{
    switch (type) {
    case UC_FIELD_BOOL:
        return "true|false";
    case UC_FIELD_COUNT:
        return "NUMBER";
    case UC_FIELD_BYTES:
        return "SIZE";
    case UC_FIELD_MS:
        return "TIME";
    case UC_FIELD_STRING:
        return "TEXT";
    }

    return "VALUE";
}

void
uc_field_print_help(const struct uc_field *fields, size_t field_count, FILE *file)
{
    for (size_t idx = 0; idx < field_count; idx++) {
        const struct uc_field *field = &fields[idx];
        int width = fprintf(file, "  --%s=%s", field->key, value_name(field->type));
        int gap = width < 0 || width >= 34 ? 2 : 36 - width;

        (void)fprintf(file, "%*s%s", gap, "", field->help);
        for (size_t choice = 0; field->choices != NULL && field->choices[choice] != NULL;
                choice++) {
            (void)fprintf(file, "%s%s", choice == 0 ? ": " : ", ", field->choices[choice]);
        }
        if (field->default_text == NULL) {
            (void)fputs(" (required)\n", file);
        } else {
            (void)fprintf(file, " (default %s)\n",
                    field->default_text[0] == '\0' ? "none" : field->default_text);
        }
    }
}
