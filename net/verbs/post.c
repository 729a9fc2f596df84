/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "net/region_table.h"
#include "net/verbs/verbs.h"

static enum uc_status
check_op(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_caps *caps,
        const struct uc_fabric_op *op)
{
    uint64_t length_bytes;
    enum uc_status status;

    status = uc_fabric_op_check(op, endpoint->regions, endpoint->region_count, caps, &length_bytes);
    if (status != UC_OK || op->opcode == UC_FABRIC_FLUSH) {
        return status;
    }

    for (size_t idx = 0; idx < op->piece_count; idx++) {
        const struct uc_fabric_piece *piece = &op->pieces[idx];
        const struct uc_fabric_region *region = piece->region;

        if (region == NULL || region->domain != endpoint->domain ||
                !uc_region_covers_piece(region->address, region->length_bytes, piece)) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "verbs post: piece %zu is not inside its region; register the memory in the "
                    "endpoint's domain",
                    idx);
        }
    }
    return UC_OK;
}

static enum uc_status
check_list(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_op *list)
{
    struct uc_fabric_caps caps;

    if (endpoint->is_target) {
        return uc_error(UC_ERR_INVALID_PARAM, "verbs post: a target's endpoint only serves");
    }
    if (endpoint->state != UC_VERBS_CONNECTING && endpoint->state != UC_VERBS_READY) {
        return uc_error(UC_ERR_UNHEALTHY, "verbs post: the endpoint is %s",
                endpoint->state == UC_VERBS_FAILED ? "broken" : "fenced");
    }

    uc_verbs_fabric_caps(endpoint->fabric, &caps);
    for (const struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        enum uc_status status = check_op(endpoint, &caps, op);

        if (status != UC_OK) {
            return status;
        }
    }
    return UC_OK;
}

enum uc_status
uc_verbs_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list)
{
    enum uc_status status = check_list(endpoint, list);

    if (status != UC_OK) {
        return status;
    }

    while (list != NULL) {
        struct uc_fabric_op *op = list;

        list = op->next;
        memset(op->provider_data, 0, sizeof(op->provider_data));
        op->provider_data[UC_VERBS_OP_LAST_SEQ] = UINT64_MAX;
        uc_verbs_op_push(&endpoint->waiting, op);
    }
    uc_verbs_endpoint_pump(endpoint);
    return UC_OK;
}

/* Moves waiting operations into the chain and the whole ones on to the flying queue. */
static void
build_chain(struct uc_fabric_endpoint *endpoint, struct uc_verbs_chain *chain, size_t request_max)
{
    struct uc_verbs_scratch scratch = {
            .address = &endpoint->domain->scratch,
            .local_key = endpoint->domain->scratch_mr->lkey,
    };
    struct uc_fabric_op *op;

    uc_verbs_chain_reset(chain);
    while ((op = endpoint->waiting.head) != NULL) {
        uint64_t sent_bytes = op->provider_data[UC_VERBS_OP_SENT_BYTES];
        bool whole = uc_verbs_chain_add(chain, request_max, &endpoint->limits,
                &endpoint->regions[op->region_idx], &scratch, op);

        endpoint->unsignalled_bytes += op->provider_data[UC_VERBS_OP_SENT_BYTES] - sent_bytes;
        if (!whole) {
            break;
        }
        op->provider_data[UC_VERBS_OP_LAST_SEQ] = endpoint->posted_seq + chain->count;
        uc_verbs_op_push(&endpoint->flying, uc_verbs_op_pop(&endpoint->waiting));
        if (endpoint->unsignalled_bytes >= UC_VERBS_SIGNAL_BYTES) {
            chain->requests[chain->count - 1].send_flags = IBV_SEND_SIGNALED;
            endpoint->unsignalled_bytes = 0;
        }
    }

    /*
     * The last of a chain always reports: so everything posted is confirmed sooner or later, slots of
     * requests that do not report are reclaimed, and drain can wait for the last number.
     */
    chain->requests[chain->count - 1].send_flags = IBV_SEND_SIGNALED;
    endpoint->unsignalled_bytes = 0;
    for (size_t idx = 0; idx < chain->count; idx++) {
        chain->requests[idx].wr_id = endpoint->posted_seq + idx + 1;
    }
}

void
uc_verbs_endpoint_pump(struct uc_fabric_endpoint *endpoint)
{
    struct uc_verbs_chain *chain = &endpoint->fabric->chain;

    while (endpoint->state == UC_VERBS_READY && endpoint->waiting.head != NULL) {
        uint64_t room = endpoint->send_depth - (endpoint->posted_seq - endpoint->done_seq);
        struct ibv_send_wr *bad = NULL;
        int error;

        if (room == 0) {
            break;
        }
        build_chain(endpoint, chain, room < UC_VERBS_CHAIN_MAX ? room : UC_VERBS_CHAIN_MAX);
        error = ibv_post_send(endpoint->qp, chain->requests, &bad);
        if (error != 0) {
            endpoint->posted_seq += bad == NULL ? 0 : (uint64_t)(bad - chain->requests);
            uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "ibv_post_send: error %d", error);
            break;
        }
        endpoint->posted_seq += chain->count;
    }
}
