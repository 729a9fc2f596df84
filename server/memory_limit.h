/* SPDX-License-Identifier: Apache-2.0 */

/** @file memory_limit.h How much memory this process may still take. Reads files; any thread. */

#ifndef UC_SERVER_MEMORY_LIMIT_H
#define UC_SERVER_MEMORY_LIMIT_H

#include <stddef.h>
#include <stdint.h>

/** What is left, and who says so. A plain value. */
struct uc_memory_limit {
    uint64_t available_bytes; /* UINT64_MAX when nothing is known */
    char source[256];         /* for error texts, e.g. "MemAvailable in /proc/meminfo" */
};

/**
 * The smallest of MemAvailable and what the cgroups above this process (v2 or v1) have left.
 *
 * @param[in] root  prefix of /proc and /sys; "" but in tests
 */
struct uc_memory_limit uc_memory_limit_read(const char *root);

#endif /* UC_SERVER_MEMORY_LIMIT_H */
