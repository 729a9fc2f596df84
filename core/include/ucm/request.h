/* SPDX-License-Identifier: Apache-2.0 */

/** @file request.h Facts about a request. A plain value that borrows its id. */

#ifndef UC_REQUEST_H
#define UC_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UC_REQUEST_ID_MAX = 1023 /* bytes, without terminator */
};

/* Bits of `present`. Consumers ignore bits they do not know. */
#define UC_REQUEST_TTL               (1ull << 0)
#define UC_REQUEST_TOTAL_BLOCK_COUNT (1ull << 1)

struct uc_request_context {
    uint32_t struct_size; /* sizeof of the caller's struct; members beyond it count as absent */
    uint32_t reserved;
    uint64_t present; /* UC_REQUEST_ bits of the optional facts below */
    const char *request_id;
    uint64_t ttl_ms;            /* predicted lifetime */
    uint64_t total_block_count; /* predicted length */
};

/** @return a context with no facts. */
static inline struct uc_request_context
uc_request_context_init(const char *request_id)
{
    struct uc_request_context context = {
            .struct_size = sizeof(context),
            .request_id = request_id,
    };

    return context;
}

/** @return whether the context (may be NULL) carries a TTL; @p ttl_ms_out is set only then. */
static inline bool
uc_request_ttl(const struct uc_request_context *context, uint64_t *ttl_ms_out)
{
    if (context == NULL || (context->present & UC_REQUEST_TTL) == 0) {
        return false;
    }

    *ttl_ms_out = context->ttl_ms;
    return true;
}

#endif /* UC_REQUEST_H */
