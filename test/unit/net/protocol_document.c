/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/net/protocol_document.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

enum {
    LINE_BYTES = 512,
    EXAMPLE_BYTES = 4096,
};

static const char fence[] = "```hex ";

static FILE *
open_document(void)
{
    FILE *file = fopen(UC_PROTOCOL_DOCUMENT, "r");

    ck_assert_msg(file != NULL, "cannot read %s", UC_PROTOCOL_DOCUMENT);
    return file;
}

static bool
begins_with_any(const char *text, const char *const *prefixes)
{
    for (; *prefixes != NULL; prefixes++) {
        if (strncmp(text, *prefixes, strlen(*prefixes)) == 0) {
            return true;
        }
    }
    return false;
}

size_t
uc_protocol_example_count(const char *const *except)
{
    FILE *file = open_document();
    char line[LINE_BYTES];
    size_t count = 0;

    while (fgets(line, sizeof(line), file) != NULL) {
        count += strncmp(line, fence, sizeof(fence) - 1) == 0 &&
                 !begins_with_any(line + sizeof(fence) - 1, except);
    }
    (void)fclose(file);
    return count;
}

static size_t
parse_line(char *line, uint8_t *bytes, size_t room)
{
    char *at = line;
    size_t length = 0;

    line[strcspn(line, "#\n")] = '\0';
    for (;;) {
        char *end;
        unsigned long value;

        at += strspn(at, " ");
        if (*at == '\0') {
            return length;
        }
        value = strtoul(at, &end, 16);
        ck_assert_msg(end == at + 2 && length < room, "not a byte in hex: \"%s\"", at);
        bytes[length++] = (uint8_t)value;
        at = end;
    }
}

size_t
uc_protocol_example(const char *name, uint8_t *bytes, size_t room)
{
    FILE *file = open_document();
    char line[LINE_BYTES];
    bool inside = false;
    size_t length = 0;

    while (fgets(line, sizeof(line), file) != NULL) {
        if (inside && strncmp(line, "```", 3) == 0) {
            (void)fclose(file);
            return length;
        }
        if (inside) {
            length += parse_line(line, bytes + length, room - length);
        } else if (strncmp(line, fence, sizeof(fence) - 1) == 0) {
            line[strcspn(line, "\n")] = '\0';
            inside = strcmp(line + sizeof(fence) - 1, name) == 0;
        }
    }
    (void)fclose(file);
    ck_abort_msg("no example \"%s\" in %s", name, UC_PROTOCOL_DOCUMENT);
    return 0;
}

void
uc_protocol_compare(const char *name, const uint8_t *bytes, size_t length)
{
    uint8_t example[EXAMPLE_BYTES];
    size_t example_length = uc_protocol_example(name, example, sizeof(example));

    if (example_length == length && memcmp(example, bytes, length) == 0) {
        return;
    }

    (void)printf("```hex %s", name);
    for (size_t idx = 0; idx < length; idx++) {
        (void)printf("%s%02x", idx % 16 == 0 ? "\n" : " ", bytes[idx]);
    }
    (void)printf("\n```\n");
    (void)fflush(stdout);
    ck_abort_msg("example \"%s\" differs from what the code writes, printed above", name);
}
