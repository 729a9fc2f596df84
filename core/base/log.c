/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/text.h"

enum {
    MESSAGE_BYTES = 2048,
    /* A message of control characters grows sixfold as JSON; time and level come on top. */
    LINE_BYTES = 6 * MESSAGE_BYTES + 128
};

static const char *const level_names[] = {
        [UC_LOG_ERROR] = "error",
        [UC_LOG_WARN] = "warn",
        [UC_LOG_INFO] = "info",
        [UC_LOG_DEBUG] = "debug",
        [UC_LOG_TRACE] = "trace",
};

/* The log sink belongs to the process. Relaxed: a line more or less at a switch is fine. */
static _Atomic int log_level = UC_LOG_INFO;
static _Atomic bool log_json;

void
uc_log_set_level(enum uc_log_level level)
{
    atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

enum uc_status
uc_log_level_parse(const char *text, enum uc_log_level *level_out)
{
    for (size_t idx = 0; idx < sizeof(level_names) / sizeof(level_names[0]); idx++) {
        if (text != NULL && strcmp(text, level_names[idx]) == 0) {
            *level_out = (enum uc_log_level)idx;
            return UC_OK;
        }
    }

    return uc_error(UC_ERR_INVALID_PARAM,
            "log level '%.64s' is not known; use error, warn, info, debug or trace",
            text == NULL ? "" : text);
}

void
uc_log_set_json(bool json)
{
    atomic_store_explicit(&log_json, json, memory_order_relaxed);
}

bool
uc_log_enabled(enum uc_log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

/*
 * Append a message, harmless for whoever reads the log: texts of peers must not be able to start a line of
 * their own or to break the JSON.
 */
static size_t
append_message(char *line, size_t used, const char *message, bool json)
{
    const char *text = message;

    while (*text != '\0') {
        size_t length = uc_text_utf8_length(text);

        if (length == 0) {
            line[used++] = '?';
            length = 1;
        } else if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            used += (size_t)sprintf(line + used, json ? "\\u%04x" : "?", (unsigned)*text);
        } else {
            if (json && (*text == '"' || *text == '\\')) {
                line[used++] = '\\';
            }
            memcpy(line + used, text, length);
            used += length;
        }
        text += length;
    }
    return used;
}

static size_t
format_line(enum uc_log_level level, const char *message, char *line)
{
    bool json = atomic_load_explicit(&log_json, memory_order_relaxed);
    char stamp[32];
    struct timespec now = {0};
    struct tm parts = {0};
    size_t used;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* for people; deadlines never use it */
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &parts);
    used = (size_t)sprintf(line,
            json ? "{\"ts\":\"%s.%03uZ\",\"level\":\"%s\",\"msg\":\"" : "%s.%03uZ %-5s ", stamp,
            (unsigned)(now.tv_nsec / 1000000), level_names[level]);
    used = append_message(line, used, message, json);
    used += (size_t)sprintf(line + used, json ? "\"}\n" : "\n");
    return used;
}

static void
write_message(enum uc_log_level level, const char *message)
{
    char line[LINE_BYTES];
    size_t length = format_line(level, message, line);

    /* One write per line keeps lines of several threads apart. Nobody could be told of its failure. */
    if (write(STDERR_FILENO, line, length) < 0) {
        return;
    }
}

void
uc_log_write(enum uc_log_level level, const char *format, ...)
{
    int saved_errno = errno;
    char message[MESSAGE_BYTES];
    va_list args;

    if (!uc_log_enabled(level)) {
        return;
    }

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    write_message(level, message);
    errno = saved_errno;
}

static enum uc_status
status_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOMEM:
        return UC_ERR_OUT_OF_MEMORY;
    case ENOSPC:
        return UC_ERR_NO_SPACE;
    case EPERM:
    case EACCES:
        return UC_ERR_PERMISSION_DENIED;
    case ETIMEDOUT:
        return UC_ERR_TIMEOUT;
    default:
        return UC_ERR_OS_API;
    }
}

enum uc_status
uc_log_errno(int errno_value, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    char reason[128];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    (void)uc_error(UC_OK, "%s: %s", message, strerror_r(errno_value, reason, sizeof(reason)));
    uc_log_error("%s", uc_last_error());
    return status_of_errno(errno_value);
}
