/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/trace_lifetimes.h"

/* Finaliser of a 64-bit counter generator. */
static uint64_t
mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t
uc_trace_ttl_ms(uint64_t seed, uint64_t sequence)
{
    uint64_t word = mix(mix(seed) ^ sequence);
    uint64_t floor_ms = (uint64_t)UC_TRACE_TTL_MIN_MS << ((word >> 8) % UC_TRACE_TTL_OCTAVES);

    if (word % UC_TRACE_TTL_NONE == 0) {
        return 0;
    }
    return floor_ms + (word >> 16) % floor_ms;
}
