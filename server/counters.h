/* SPDX-License-Identifier: Apache-2.0 */

/** @file counters.h What the control thread counts; each ends up in `stat` under a similar name. */

#ifndef UC_SERVER_COUNTERS_H
#define UC_SERVER_COUNTERS_H

#include <stdint.h>

/** Control thread. */
struct uc_counters {
    uint64_t sessions;
    uint64_t attachments;
    uint64_t grants;
    uint64_t open_brackets;
    uint64_t lookup_keys;
    uint64_t lookup_hits;
    uint64_t pinned_keys;
    uint64_t alloc_keys;
    uint64_t present_keys;
    uint64_t shared_keys;
    uint64_t released_blocks;
    uint64_t holes;
    uint64_t reports;
    uint64_t revoked_blocks;
    uint64_t fences;
};

#endif /* UC_SERVER_COUNTERS_H */
