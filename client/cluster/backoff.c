/* SPDX-License-Identifier: Apache-2.0 */

#include "client/cluster/backoff.h"

void
uc_backoff_init(struct uc_backoff *backoff, uint64_t base_ms, uint64_t cap_ms, uint64_t seed)
{
    backoff->base_ms = base_ms == 0 ? 1 : base_ms;
    backoff->cap_ms = cap_ms < backoff->base_ms ? backoff->base_ms : cap_ms;
    backoff->random = seed == 0 ? 0x9e3779b97f4a7c15u : seed;
    backoff->attempt_count = 0;
}

static uint64_t
next_random(struct uc_backoff *backoff)
{
    /* xorshift64: any state but 0 walks through all others. */
    backoff->random ^= backoff->random << 13;
    backoff->random ^= backoff->random >> 7;
    backoff->random ^= backoff->random << 17;
    return backoff->random;
}

uint64_t
uc_backoff_next_ms(struct uc_backoff *backoff)
{
    uint64_t full_ms = backoff->base_ms;
    uint64_t half_ms;

    for (unsigned idx = 0; idx < backoff->attempt_count && full_ms < backoff->cap_ms; idx++) {
        full_ms = full_ms > backoff->cap_ms / 2 ? backoff->cap_ms : full_ms * 2;
    }
    if (backoff->attempt_count < 64) {
        backoff->attempt_count++;
    }

    half_ms = full_ms / 2;
    half_ms += next_random(backoff) % (full_ms - half_ms + 1);
    return half_ms == 0 ? 1 : half_ms;
}

void
uc_backoff_reset(struct uc_backoff *backoff)
{
    backoff->attempt_count = 0;
}
