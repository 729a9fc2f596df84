/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file log.h
 * One line per event to standard error, as text or JSON. May be called from any thread.
 *
 * Lower case, no newline, object first: `uc_log_warn("conn %u: peer %s closed", id, peer)`.
 */

#ifndef UC_LOG_H
#define UC_LOG_H

#include <stdbool.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum uc_log_level {
    UC_LOG_ERROR, /* something is lost or will not work */
    UC_LOG_WARN,  /* degraded, goes on */
    UC_LOG_INFO,  /* life of the process */
    UC_LOG_DEBUG, /* per object */
    UC_LOG_TRACE, /* per operation */
};

/** Change the level (info by default). */
UC_API void uc_log_set_level(enum uc_log_level level);

/** Parse "error" … "trace". @retval UC_ERR_INVALID_PARAM not a level; the text lists them */
UC_API UC_MUST_CHECK enum uc_status uc_log_level_parse(
        const char *text, enum uc_log_level *level_out);

/** Write lines as JSON objects {"ts","level","msg"} instead of text. */
UC_API void uc_log_set_json(bool json);

/** @return whether a line of this level would be written. */
UC_API bool uc_log_enabled(enum uc_log_level level);

/** Write one line. Prefer the macros, which skip the arguments of disabled levels. */
UC_API void uc_log_write(enum uc_log_level level, const char *format, ...) UC_PRINTF(2, 3);

/**
 * Log "message: errno text" as an error, set the thread's error text to the same, and return the
 * status that fits the errno (ENOMEM OutOfMemory, ENOSPC NoSpace, EPERM/EACCES PermissionDenied,
 * ETIMEDOUT Timeout, else OsApiError).
 */
UC_API enum uc_status uc_log_errno(int errno_value, const char *format, ...) UC_PRINTF(2, 3);

#define uc_log_at_(level, ...)                  \
    do {                                        \
        if (uc_log_enabled(level)) {            \
            uc_log_write((level), __VA_ARGS__); \
        }                                       \
    } while (0)
#define uc_log_error(...) uc_log_at_(UC_LOG_ERROR, __VA_ARGS__)
#define uc_log_warn(...)  uc_log_at_(UC_LOG_WARN, __VA_ARGS__)
#define uc_log_info(...)  uc_log_at_(UC_LOG_INFO, __VA_ARGS__)
#define uc_log_debug(...) uc_log_at_(UC_LOG_DEBUG, __VA_ARGS__)
#define uc_log_trace(...) uc_log_at_(UC_LOG_TRACE, __VA_ARGS__)

#endif /* UC_LOG_H */
