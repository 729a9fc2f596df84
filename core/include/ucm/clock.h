/* SPDX-License-Identifier: Apache-2.0 */

/** @file clock.h Monotonic milliseconds, replaceable in tests. Any thread. */

#ifndef UC_CLOCK_H
#define UC_CLOCK_H

#include <stdint.h>

#include <ucm/compiler.h>

/** A deadline that never arrives; also what saturated additions give. */
#define UC_TIME_NEVER_MS UINT64_MAX

/** A source of time. A plain value: copy it freely; the context is borrowed. */
struct uc_clock {
    uint64_t (*now_ms)(void *context);
    void *context;
};

/** @return the system's monotonic clock. */
UC_API struct uc_clock uc_clock_monotonic(void);

/** @return monotonic nanoseconds, for measuring. */
UC_API uint64_t uc_clock_now_ns(void);

static inline uint64_t
uc_clock_now_ms(const struct uc_clock *clock)
{
    return clock->now_ms(clock->context);
}

/** Add and saturate at UC_TIME_NEVER_MS. */
static inline uint64_t
uc_time_add_ms(uint64_t time_ms, uint64_t delta_ms)
{
    return delta_ms > UC_TIME_NEVER_MS - time_ms ? UC_TIME_NEVER_MS : time_ms + delta_ms;
}

#endif /* UC_CLOCK_H */
