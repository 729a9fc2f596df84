/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file routing.h
 * What a routing strategy provides: it picks the branch of a peer for each request (section 13 of
 * core/CONTRACT.md). A strategy of your own enters through the options of an assembler.
 *
 * Threads: create and destroy on the assembling thread, select on the control thread.
 */

#ifndef UC_ROUTING_H
#define UC_ROUTING_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/dict.h>
#include <ucm/request.h>
#include <ucm/status.h>

/** A strategy's own state; only the strategy knows what is in it. */
struct uc_routing;

struct uc_routing_ops {
    uint32_t struct_size; /* sizeof(struct uc_routing_ops) of the strategy */
    uint32_t reserved;
    const char *name; /* lower case, used in configuration; static */

    /**
     * Check the parameters and remember the branch count. Mandatory.
     *
     * @param[in]  config       `routing.config`, empty if there is none; borrowed for the call
     * @param[out] routing_out  set on success only; may be set to NULL if there is nothing to keep
     * @retval UC_ERR_INVALID_PARAM  a parameter is wrong; uc_error() names its key and what is allowed
     */
    enum uc_status (*create)(
            const struct uc_dict *config, size_t branch_count, struct uc_routing **routing_out);

    /**
     * Pick a branch below the branch count. Mandatory. Never blocks, never fails, depends on the facts
     * and the configuration alone. The facts are complete up to sizeof(*context).
     */
    size_t (*select)(const struct uc_routing *routing, const struct uc_request_context *context);

    /** Undo create. Optional: NULL when create allocates nothing. */
    void (*destroy)(struct uc_routing *routing);
};

#endif /* UC_ROUTING_H */
