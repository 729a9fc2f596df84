/* SPDX-License-Identifier: Apache-2.0 */

/* Strategy `ttl`: requests that live long go to the first branches; without prediction, to the last. */

#include "client/proxy/routing_thresholds.h"

extern const struct uc_routing_ops uc_routing_ttl;

static size_t
select_by_ttl(const struct uc_routing *routing, const struct uc_request_context *context)
{
    uint64_t ttl_ms = 0;
    bool has_ttl = uc_request_ttl(context, &ttl_ms);

    return uc_routing_thresholds_select(routing, has_ttl, ttl_ms);
}

const struct uc_routing_ops uc_routing_ttl = {
        .struct_size = sizeof(uc_routing_ttl),
        .name = "ttl",
        .create = uc_routing_thresholds_create,
        .select = select_by_ttl,
        .destroy = uc_routing_thresholds_destroy,
};
