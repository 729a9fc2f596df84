/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <ucm/status.h>

#include "core/base/text.h"

enum {
    ERROR_TEXT_BYTES = 1024
};

/* The only state that is not hung off a context besides the log sink. */
static _Thread_local char error_text[ERROR_TEXT_BYTES];

#define STATUS_NAME_(name, number, text) \
    case UC_##name:                      \
        return (text);

const char *
uc_status_name(enum uc_status status)
{
    switch (status) {
        UC_STATUS_MAP(STATUS_NAME_)
    }

    return "Unknown"; /* a newer peer may send numbers that this build does not know */
}

const char *
uc_status_format(enum uc_status status, const char *detail, char *buffer, size_t buffer_bytes)
{
    const char *separator = detail == NULL || detail[0] == '\0' ? "" : ": ";

    if (buffer_bytes == 0) {
        return "";
    }

    (void)snprintf(buffer, buffer_bytes, "%s (%d)%s%s", uc_status_name(status), (int)status,
            separator, detail == NULL ? "" : detail);
    return buffer;
}

const char *
uc_last_error(void)
{
    return error_text;
}

enum uc_status
uc_error(enum uc_status status, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES]; /* the arguments may quote the present text */
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    uc_text_sanitize(text); /* an argument may be a peer's */
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}
