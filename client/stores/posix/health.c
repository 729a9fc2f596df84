/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/health.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <ucm/clock.h>
#include <ucm/log.h>

enum {
    WARN_PAUSE_MS = 1000
};

void
uc_posix_health_init(struct uc_posix_health *health)
{
    memset(health, 0, sizeof(*health));
    uc_mutex_init(&health->lock);
}

void
uc_posix_health_fini(struct uc_posix_health *health)
{
    uc_mutex_fini(&health->lock);
}

bool
uc_posix_health_is_ok(const struct uc_posix_health *health)
{
    return !atomic_load_explicit(&health->is_bad, memory_order_relaxed);
}

enum uc_status
uc_posix_health_check(struct uc_posix_health *health, const char *what)
{
    enum uc_status status;

    if (uc_posix_health_is_ok(health)) {
        return UC_OK;
    }

    uc_mutex_lock(&health->lock);
    status = uc_error(UC_ERR_UNHEALTHY,
            "posix store: %s: %s; probing in the background until it works again", what,
            health->reason);
    uc_mutex_unlock(&health->lock);
    return status;
}

bool
uc_posix_health_set_bad(struct uc_posix_health *health, const char *reason)
{
    bool was_ok;

    uc_mutex_lock(&health->lock);
    was_ok = !atomic_exchange_explicit(&health->is_bad, true, memory_order_relaxed);
    if (was_ok) {
        (void)snprintf(health->reason, sizeof(health->reason), "%s", reason);
    }
    uc_mutex_unlock(&health->lock);
    if (was_ok) {
        uc_log_error("posix store: unhealthy: %s", reason);
    }
    return was_ok;
}

void
uc_posix_health_set_ok(struct uc_posix_health *health)
{
    if (atomic_exchange_explicit(&health->is_bad, false, memory_order_relaxed)) {
        uc_log_info("posix store: healthy again");
    }
}

void
uc_posix_health_warn(struct uc_posix_health *health, const char *format, ...)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t now_ms = uc_clock_now_ms(&clock);
    uint64_t may_ms = atomic_load_explicit(&health->may_warn_ms, memory_order_relaxed);
    char text[UC_POSIX_REASON_BYTES];
    va_list args;

    if (now_ms < may_ms || !atomic_compare_exchange_strong_explicit(&health->may_warn_ms, &may_ms,
                                   uc_time_add_ms(now_ms, WARN_PAUSE_MS), memory_order_relaxed,
                                   memory_order_relaxed)) {
        return;
    }

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    uc_log_warn("%s", text);
}

static enum uc_status
status_of(int error)
{
    switch (error) {
    case ENOENT:
        return UC_ERR_NOT_FOUND;
    case ENOMEM:
        return UC_ERR_OUT_OF_MEMORY;
    case ENOSPC:
    case EDQUOT:
        return UC_ERR_NO_SPACE;
    case EACCES:
    case EPERM:
        return UC_ERR_PERMISSION_DENIED;
    case ECANCELED:
        return UC_ERR_TIMEOUT;
    case EFAULT:
        return UC_ERR_INVALID_PARAM;
    default:
        return UC_ERR_OS_API;
    }
}

/* Errors that say something of the medium and not of one file. */
static bool
is_fault_of_medium(int error)
{
    return error == EIO || error == ENODEV || error == ENXIO || error == EROFS ||
           error == ENOTCONN || error == ESTALE || error == EREMOTEIO || error == EUCLEAN;
}

enum uc_status
uc_posix_health_failed(struct uc_posix_health *health, int error, const char *what,
        const char *root, const char *path)
{
    char message[UC_POSIX_REASON_BYTES];
    char reason[128];

    if (error == ECANCELED) {
        return UC_ERR_TIMEOUT;
    }

    (void)snprintf(message, sizeof(message), "%s %.300s/%s: %s%s", what, root, path,
            strerror_r(error, reason, sizeof(reason)),
            status_of(error) == UC_ERR_NO_SPACE ? "; free space there, or set a capacity" : "");
    uc_mutex_lock(&health->lock);
    (void)memcpy(health->last_error, message, sizeof(message));
    uc_mutex_unlock(&health->lock);
    uc_posix_count(health, UC_POSIX_COUNT_io_errors, 1);
    if (is_fault_of_medium(error)) {
        (void)uc_posix_health_set_bad(health, message);
        return UC_ERR_UNHEALTHY;
    }
    uc_posix_health_warn(health, "posix store: %s", message);
    return status_of(error);
}
