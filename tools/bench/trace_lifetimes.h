/* SPDX-License-Identifier: Apache-2.0 */

/** @file trace_lifetimes.h Lifetimes of requests, drawn from a seed. Any thread. */

#ifndef UC_BENCH_TRACE_LIFETIMES_H
#define UC_BENCH_TRACE_LIFETIMES_H

#include <stdint.h>

enum {
    UC_TRACE_TTL_MIN_MS = 60000,
    UC_TRACE_TTL_OCTAVES = 10, /* up to 17 hours */
    UC_TRACE_TTL_NONE = 8      /* one request in so many has none */
};

/**
 * @return the lifetime in ms of request number @p sequence, 0 for none. From a minute to 17 hours, each
 * doubling as likely as the next; the same seed gives the same for ever.
 */
uint64_t uc_trace_ttl_ms(uint64_t seed, uint64_t sequence);

#endif /* UC_BENCH_TRACE_LIFETIMES_H */
