/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <string.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

enum {
    SEND_DEPTH_MIN = 16,
    CQ_SPARE = 8,
    HOP_LIMIT = 64,
};

static uint32_t
min_u32(uint32_t left, uint32_t right)
{
    return left < right ? left : right;
}

/* A completion per work request: after an error each of them is reported, signalled or not. */
static enum uc_status
create_completion_queue(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric *fabric = endpoint->fabric;
    int count = (int)(endpoint->send_depth * endpoint->pair_count) + CQ_SPARE;

    endpoint->cq = ibv_create_cq(fabric->device, count, endpoint, fabric->completion_channel, 0);
    if (endpoint->cq == NULL) {
        return uc_log_errno(errno, "verbs %s: ibv_create_cq of %d entries (max_cqe %d, max_cq %d)",
                fabric->device_name, count, fabric->attr.max_cqe, fabric->attr.max_cq);
    }
    return UC_OK;
}

/* What all queue pairs of an initiator share; made with the first. */
static enum uc_status
prepare_initiator(struct uc_fabric_endpoint *endpoint)
{
    const struct ibv_device_attr *attr = &endpoint->fabric->attr;
    uint32_t share;

    if (endpoint->cq != NULL) {
        return UC_OK;
    }

    share = attr->max_cqe > CQ_SPARE ? (uint32_t)(attr->max_cqe - CQ_SPARE) : 0;
    share /= endpoint->pair_count;
    endpoint->send_depth = min_u32(UC_VERBS_SEND_DEPTH, (uint32_t)attr->max_qp_wr);
    endpoint->send_depth = min_u32(endpoint->send_depth, share);
    if (endpoint->send_depth < SEND_DEPTH_MIN) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "verbs %s: max_qp_wr %d and max_cqe %d are too small for %u queue pairs; at least "
                "%d and %d are needed",
                endpoint->fabric->device_name, attr->max_qp_wr, attr->max_cqe, endpoint->pair_count,
                SEND_DEPTH_MIN, SEND_DEPTH_MIN * (int)endpoint->pair_count + CQ_SPARE);
    }
    endpoint->limits.sge_count = min_u32(UC_VERBS_SGE_MAX, (uint32_t)attr->max_sge);
    endpoint->limits.message_bytes = endpoint->fabric->max_message_bytes;
    return create_completion_queue(endpoint);
}

enum uc_status
uc_verbs_queue_pair_create(struct uc_verbs_queue_pair *pair)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;
    struct uc_fabric *fabric = endpoint->fabric;
    struct ibv_qp_init_attr attr = {
            .qp_context = pair,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };

    attr.send_cq = fabric->idle_cq;
    if (!endpoint->is_target) {
        enum uc_status status = prepare_initiator(endpoint);

        if (status != UC_OK) {
            return status;
        }
        attr.send_cq = endpoint->cq;
        attr.cap.max_send_wr = endpoint->send_depth;
        attr.cap.max_send_sge = endpoint->limits.sge_count;
    }
    attr.recv_cq = attr.send_cq;

    pair->qp = ibv_create_qp(endpoint->domain->pd, &attr);
    if (pair->qp == NULL) {
        return uc_log_errno(errno,
                "verbs %s: ibv_create_qp of %u work requests with %u pieces (max_qp_wr %d, "
                "max_sge %d, max_qp %d)",
                fabric->device_name, attr.cap.max_send_wr, attr.cap.max_send_sge,
                fabric->attr.max_qp_wr, fabric->attr.max_sge, fabric->attr.max_qp);
    }
    return UC_OK;
}

/* What rdma_cm knows about the connection (addresses, packet numbers, the peer's queue pair). */
static enum uc_status
get_attr(struct uc_verbs_queue_pair *pair, enum ibv_qp_state state, struct ibv_qp_attr *attr_out,
        int *mask_out)
{
    attr_out->qp_state = state;
    if (rdma_init_qp_attr(pair->id, attr_out, mask_out) != 0) {
        /* Not logged: a peer that leaves while it connects gets us here. */
        return uc_error(UC_ERR_UNHEALTHY, "verbs %s: rdma_init_qp_attr for state %d: %s",
                pair->endpoint->fabric->device_name, (int)state, strerror(errno));
    }
    return UC_OK;
}

static enum uc_status
modify(struct uc_verbs_queue_pair *pair, struct ibv_qp_attr *attr, int mask)
{
    int error = ibv_modify_qp(pair->qp, attr, mask);

    if (error != 0) {
        return uc_log_errno(error, "verbs %s: ibv_modify_qp to state %d",
                pair->endpoint->fabric->device_name, (int)attr->qp_state);
    }
    return UC_OK;
}

enum uc_status
uc_verbs_queue_pair_init(struct uc_verbs_queue_pair *pair, unsigned access_flags)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    enum uc_status status;
    int mask = 0;

    status = get_attr(pair, IBV_QPS_INIT, &attr, &mask);
    if (status != UC_OK) {
        return status;
    }

    /* rdma_cm would grant remote write to everybody. */
    attr.qp_access_flags = access_flags;
    return modify(pair, &attr, mask | IBV_QP_ACCESS_FLAGS);
}

/*
 * rdma_cm picks the GID by the address and the type that the system prefers, which is RoCE v2 unless an
 * administrator said otherwise or the device is old. Both sides and the handshake must agree on the
 * type, so it is not changed here; but RoCE v1 ends at the next router, which is worth a word.
 */
static void
check_gid(struct uc_verbs_queue_pair *pair, struct ibv_qp_attr *attr)
{
    struct uc_fabric *fabric = pair->endpoint->fabric;
    struct ibv_gid_entry entry = {.gid_index = 0};

    if (attr->ah_attr.is_global == 0 || ibv_query_gid_ex(fabric->device, pair->id->port_num,
                                                attr->ah_attr.grh.sgid_index, &entry, 0) != 0) {
        return;
    }
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V1 && !fabric->warned_of_roce_v1) {
        uc_log_warn(
                "verbs %s: port %u: connections use RoCE v1 (GID %u), which no router forwards; "
                "prefer v2 with `cma_roce_mode -d %s -p %u -m 2`",
                fabric->device_name, pair->id->port_num, attr->ah_attr.grh.sgid_index,
                fabric->device_name, pair->id->port_num);
        fabric->warned_of_roce_v1 = true;
    }
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && attr->ah_attr.grh.hop_limit < 2) {
        attr->ah_attr.grh.hop_limit = HOP_LIMIT;
    }
}

static enum uc_status
ready_to_receive(struct uc_verbs_queue_pair *pair, struct uc_verbs_agreement *agreement)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    enum uc_status status;
    int mask = 0;

    status = get_attr(pair, IBV_QPS_RTR, &attr, &mask);
    if (status != UC_OK) {
        return status;
    }

    /* Both sides must use the same one: a packet of another size breaks the connection. */
    if (agreement->mtu < attr.path_mtu) {
        attr.path_mtu = agreement->mtu;
    }
    agreement->mtu = attr.path_mtu;
    attr.max_dest_rd_atomic = agreement->responder_resources;
    check_gid(pair, &attr);
    return modify(pair, &attr,
            (mask | IBV_QP_PATH_MTU | IBV_QP_MAX_DEST_RD_ATOMIC) & ~IBV_QP_ACCESS_FLAGS);
}

enum uc_status
uc_verbs_queue_pair_start(struct uc_verbs_queue_pair *pair, struct uc_verbs_agreement *agreement)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    enum uc_status status;
    int mask = 0;

    status = ready_to_receive(pair, agreement);
    if (status == UC_OK) {
        status = get_attr(pair, IBV_QPS_RTS, &attr, &mask);
    }
    if (status != UC_OK) {
        return status;
    }

    attr.max_rd_atomic = agreement->initiator_depth;
    attr.timeout = UC_VERBS_ACK_TIMEOUT;
    attr.retry_cnt = UC_VERBS_RETRY_COUNT;
    attr.rnr_retry = UC_VERBS_RNR_RETRY_COUNT;
    mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    return modify(pair, &attr, mask & ~IBV_QP_ACCESS_FLAGS);
}

static void
destroy_completion_queue(struct uc_fabric_endpoint *endpoint)
{
    int error;

    if (endpoint->cq == NULL) {
        return;
    }

    /* Destroying waits for events that were read and not acknowledged. */
    ibv_ack_cq_events(endpoint->cq, endpoint->unacked_events);
    endpoint->unacked_events = 0;
    error = ibv_destroy_cq(endpoint->cq);
    if (error != 0) {
        (void)uc_log_errno(error, "verbs %s: ibv_destroy_cq", endpoint->fabric->device_name);
    }
    endpoint->cq = NULL;
}

void
uc_verbs_queue_pairs_destroy(struct uc_fabric_endpoint *endpoint)
{
    /* All are stopped before one is waited for. A device that is gone refuses, and touches nothing. */
    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

        if (endpoint->pairs[idx].qp != NULL) {
            (void)ibv_modify_qp(endpoint->pairs[idx].qp, &attr, IBV_QP_STATE);
        }
    }
    if (endpoint->cq != NULL) {
        uc_verbs_endpoint_drain(endpoint);
    }

    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        struct uc_verbs_queue_pair *pair = &endpoint->pairs[idx];
        int error = pair->qp == NULL ? 0 : ibv_destroy_qp(pair->qp);

        if (error != 0) {
            (void)uc_log_errno(error, "verbs %s: ibv_destroy_qp", endpoint->fabric->device_name);
        }
        pair->qp = NULL;
    }
    destroy_completion_queue(endpoint);
}
