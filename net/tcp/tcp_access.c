/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tcp/tcp_target.h"

enum uc_status
uc_tcp_access_begin(
        struct uc_tcp_target *target, const struct uc_tcp_request *request, uint8_t **data_out)
{
    const struct uc_tcp_group *group = target->group;
    uint64_t length_bytes =
            request->opcode == UC_FABRIC_FLUSH ? UC_FLUSH_BYTES : request->length_bytes;
    struct uc_region region;
    enum uc_status status;

    if (uc_region_table_find(group->base.domain->regions, request->region_idx, &region) != UC_OK ||
            !uc_region_range_fits(region.length_bytes, request->offset_bytes, length_bytes)) {
        return UC_ERR_INVALID_PARAM;
    }
    if (request->opcode == UC_FABRIC_FLUSH) {
        return UC_OK;
    }
    if (request->opcode == UC_FABRIC_WRITE &&
            (group->access != UC_FABRIC_READ_WRITE || region.access != UC_FABRIC_READ_WRITE)) {
        return UC_ERR_PERMISSION_DENIED;
    }

    if (group->ops->hold != NULL) {
        status = group->ops->hold(group->context, group->peer, request->region_idx,
                request->offset_bytes, request->length_bytes, request->generation, request->opcode);
        if (status != UC_OK) {
            return status;
        }
    }
    *data_out = region.address + request->offset_bytes;
    return UC_OK;
}

void
uc_tcp_access_end(struct uc_tcp_target *target, const struct uc_tcp_request *request)
{
    const struct uc_tcp_group *group = target->group;

    if (group->ops->hold != NULL && group->ops->release != NULL) {
        group->ops->release(
                group->context, group->peer, request->region_idx, request->offset_bytes);
    }
}
