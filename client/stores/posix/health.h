/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file health.h
 * State of the medium and counters. A failing device or an operation that hangs past a
 * job's deadline makes the store unhealthy; a successful probe makes it healthy again.
 *
 * Threads: any.
 */

#ifndef UC_POSIX_HEALTH_H
#define UC_POSIX_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/mutex.h"

/* X(name): counters, shown by describe. */
#define UC_POSIX_COUNTER_MAP(X) \
    X(blocks_loaded)            \
    X(blocks_dumped)            \
    X(bytes_loaded)             \
    X(bytes_dumped)             \
    X(dumps_skipped)            \
    X(revoked_blocks)           \
    X(collected_blocks)         \
    X(leftovers_removed)        \
    X(timeouts)                 \
    X(io_errors)

#define UC_POSIX_COUNTER_ENUM_(name) UC_POSIX_COUNT_##name,
enum uc_posix_counter {
    UC_POSIX_COUNTER_MAP(UC_POSIX_COUNTER_ENUM_) UC_POSIX_COUNTER_COUNT
};
#undef UC_POSIX_COUNTER_ENUM_

enum {
    UC_POSIX_REASON_BYTES = 512
};

struct uc_posix_health {
    _Atomic uint64_t counters[UC_POSIX_COUNTER_COUNT];
    _Atomic uint64_t may_warn_ms;
    atomic_bool is_bad;
    struct uc_mutex lock;
    char reason[UC_POSIX_REASON_BYTES];     /* guarded by lock: why it is bad */
    char last_error[UC_POSIX_REASON_BYTES]; /* guarded by lock: of the last transfer that failed */
};

void uc_posix_health_init(struct uc_posix_health *health);
void uc_posix_health_fini(struct uc_posix_health *health);

bool uc_posix_health_is_ok(const struct uc_posix_health *health);

/** UC_OK, or UC_ERR_UNHEALTHY with the reason in the error text. */
UC_MUST_CHECK enum uc_status uc_posix_health_check(
        struct uc_posix_health *health, const char *what);

/** @return whether the store was healthy until now */
bool uc_posix_health_set_bad(struct uc_posix_health *health, const char *reason);
void uc_posix_health_set_ok(struct uc_posix_health *health);

/**
 * Judge a failed system call: remember it, warn at most once a second, turn unhealthy where the medium is
 * at fault.
 *
 * @param[in] what  e.g. "write"
 * @param[in] root  directory that @p path is relative to
 * @return status that fits the errno
 */
enum uc_status uc_posix_health_failed(struct uc_posix_health *health, int error, const char *what,
        const char *root, const char *path);

/** Log a warning, but not more than one a second. */
void uc_posix_health_warn(struct uc_posix_health *health, const char *format, ...) UC_PRINTF(2, 3);

static inline void
uc_posix_count(struct uc_posix_health *health, enum uc_posix_counter counter, uint64_t by)
{
    atomic_fetch_add_explicit(&health->counters[counter], by, memory_order_relaxed);
}

#endif /* UC_POSIX_HEALTH_H */
