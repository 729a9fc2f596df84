/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <time.h>

#include <ucm/clock.h>

uint64_t
uc_clock_now_ns(void)
{
    struct timespec now = {0};

    /* Cannot fail: the clock exists on every kernel that we run on, the pointer is valid. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t
monotonic_now_ms(void *context)
{
    (void)context;
    return uc_clock_now_ns() / 1000000u;
}

struct uc_clock
uc_clock_monotonic(void)
{
    struct uc_clock clock = {.now_ms = monotonic_now_ms, .context = NULL};

    return clock;
}
