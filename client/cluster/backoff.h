/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file backoff.h
 * Pauses between attempts: doubling up to a cap, jittered so that many clients of one server do not come
 * back in step. A plain value of one thread.
 */

#ifndef UC_CLUSTER_BACKOFF_H
#define UC_CLUSTER_BACKOFF_H

#include <stdint.h>

struct uc_backoff {
    uint64_t base_ms;
    uint64_t cap_ms;
    uint64_t random; /* state of the generator, never 0 */
    unsigned attempt_count;
};

/** @param[in] seed  anything; equal seeds give equal pauses */
void uc_backoff_init(struct uc_backoff *backoff, uint64_t base_ms, uint64_t cap_ms, uint64_t seed);

/** @return the next pause: between half of min(cap, base · 2^attempts) and all of it, at least 1. */
uint64_t uc_backoff_next_ms(struct uc_backoff *backoff);

/** After a success: start small again. */
void uc_backoff_reset(struct uc_backoff *backoff);

#endif /* UC_CLUSTER_BACKOFF_H */
