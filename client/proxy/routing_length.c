/* SPDX-License-Identifier: Apache-2.0 */

/* Strategy `length`: requests of many blocks go to the first branches; without prediction, to the last. */

#include "client/proxy/routing_thresholds.h"

extern const struct uc_routing_ops uc_routing_length;

static size_t
select_by_length(const struct uc_routing *routing, const struct uc_request_context *context)
{
    bool has_length = (context->present & UC_REQUEST_TOTAL_BLOCK_COUNT) != 0;

    return uc_routing_thresholds_select(
            routing, has_length, has_length ? context->total_block_count : 0);
}

const struct uc_routing_ops uc_routing_length = {
        .struct_size = sizeof(uc_routing_length),
        .name = "length",
        .create = uc_routing_thresholds_create,
        .select = select_by_length,
        .destroy = uc_routing_thresholds_destroy,
};
