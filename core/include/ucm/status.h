/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file status.h
 * Result codes shared by every ucm library, the RPC protocol and the Python binding.
 *
 * The numbers travel on the wire: never renumber or reuse one, only append.
 */

#ifndef UC_STATUS_H
#define UC_STATUS_H

#include <stddef.h>

#include <ucm/compiler.h>

/* X(name, number, display name): the single source for the enum and for the text forms. */
#define UC_STATUS_MAP(X)                                 \
    X(OK, 0, "Ok")                                       \
    X(ERR_GENERAL, -1, "General")                        \
    X(ERR_INVALID_PARAM, -50000, "InvalidParam")         \
    X(ERR_OUT_OF_MEMORY, -50001, "OutOfMemory")          \
    X(ERR_OS_API, -50002, "OsApiError")                  \
    X(ERR_DUPLICATE_KEY, -50003, "DuplicateKey")         \
    X(ERR_RETRY, -50004, "Retry")                        \
    X(ERR_NOT_FOUND, -50005, "NotFound")                 \
    X(ERR_UNSUPPORTED, -50008, "Unsupported")            \
    X(ERR_NO_SPACE, -50009, "NoSpace")                   \
    X(ERR_TIMEOUT, -50010, "Timeout")                    \
    X(ERR_UNHEALTHY, -50011, "Unhealthy")                \
    X(ERR_PERMISSION_DENIED, -50012, "PermissionDenied") \
    X(ERR_STALE, -50013, "Stale")                        \
    X(ERR_DRAINING, -50014, "Draining")

#define UC_STATUS_ENUM_(name, number, text) UC_##name = (number),
enum uc_status {
    UC_STATUS_MAP(UC_STATUS_ENUM_)
};
#undef UC_STATUS_ENUM_

/**
 * Name of a status as in the contract ("NotFound").
 *
 * @return static storage, never NULL; "Unknown" for numbers this build does not know.
 */
UC_API const char *uc_status_name(enum uc_status status);

/**
 * Write the text form of: "Name (code)", or "Name (code): detail" when there is a detail.
 *
 * @param[in] detail  may be NULL or empty
 * @return @p buffer, always terminated, cut to @p buffer_bytes
 */
UC_API const char *uc_status_format(
        enum uc_status status, const char *detail, char *buffer, size_t buffer_bytes);

/**
 * Text of the last failure on this thread: what failed, on what, and what to do.
 *
 * @return storage of the calling thread, valid until its next failing uc_ call; "" before any.
 */
UC_API const char *uc_last_error(void);

/**
 * Set the thread's error text and hand the status back: `return uc_error(UC_ERR_…, "…", …);`
 * For the function that detects a failure; passers-on return the status alone.
 */
UC_API enum uc_status uc_error(enum uc_status status, const char *format, ...) UC_PRINTF(2, 3);

#endif /* UC_STATUS_H */
