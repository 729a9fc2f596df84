/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <string.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

enum {
    SEND_DEPTH_MIN = 16,
    CQ_SPARE = 8,
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
    int count = (int)endpoint->send_depth + CQ_SPARE;

    endpoint->cq = ibv_create_cq(fabric->device, count, endpoint, fabric->completion_channel, 0);
    if (endpoint->cq == NULL) {
        return uc_log_errno(errno, "verbs %s: ibv_create_cq of %d entries (max_cqe %d, max_cq %d)",
                fabric->device_name, count, fabric->attr.max_cqe, fabric->attr.max_cq);
    }
    return UC_OK;
}

static enum uc_status
create_queue_pair(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric *fabric = endpoint->fabric;
    struct ibv_cq *cq = endpoint->is_target ? fabric->idle_cq : endpoint->cq;
    struct ibv_qp_init_attr attr = {
            .qp_context = endpoint,
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap =
                    {
                            .max_send_wr = endpoint->send_depth,
                            .max_recv_wr = 1,
                            .max_send_sge = endpoint->limits.sge_count,
                            .max_recv_sge = 1,
                    },
    };

    endpoint->qp = ibv_create_qp(endpoint->domain->pd, &attr);
    if (endpoint->qp == NULL) {
        return uc_log_errno(errno,
                "verbs %s: ibv_create_qp of %u work requests with %u pieces (max_qp_wr %d, "
                "max_sge %d, max_qp %d)",
                fabric->device_name, endpoint->send_depth, endpoint->limits.sge_count,
                fabric->attr.max_qp_wr, fabric->attr.max_sge, fabric->attr.max_qp);
    }
    return UC_OK;
}

enum uc_status
uc_verbs_queue_pair_create(struct uc_fabric_endpoint *endpoint)
{
    const struct ibv_device_attr *attr = &endpoint->fabric->attr;
    enum uc_status status = UC_OK;

    if (endpoint->is_target) {
        endpoint->send_depth = 1;
        endpoint->limits.sge_count = 1;
        return create_queue_pair(endpoint);
    }

    endpoint->send_depth = min_u32(UC_VERBS_SEND_DEPTH, (uint32_t)attr->max_qp_wr);
    endpoint->send_depth = min_u32(endpoint->send_depth, (uint32_t)attr->max_cqe - CQ_SPARE);
    if (attr->max_cqe <= CQ_SPARE || endpoint->send_depth < SEND_DEPTH_MIN) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "verbs %s: max_qp_wr %d and max_cqe %d are too small; at least %d are needed",
                endpoint->fabric->device_name, attr->max_qp_wr, attr->max_cqe,
                SEND_DEPTH_MIN + CQ_SPARE);
    }
    endpoint->limits.sge_count = min_u32(UC_VERBS_SGE_MAX, (uint32_t)attr->max_sge);
    endpoint->limits.message_bytes = endpoint->fabric->max_message_bytes;

    status = create_completion_queue(endpoint);
    return status == UC_OK ? create_queue_pair(endpoint) : status;
}

/* What rdma_cm knows about the connection (addresses, packet numbers, the peer's queue pair). */
static enum uc_status
get_attr(struct uc_fabric_endpoint *endpoint, enum ibv_qp_state state, struct ibv_qp_attr *attr_out,
        int *mask_out)
{
    attr_out->qp_state = state;
    if (rdma_init_qp_attr(endpoint->id, attr_out, mask_out) != 0) {
        /* Not logged: a peer that leaves while it connects gets us here. */
        return uc_error(UC_ERR_UNHEALTHY, "verbs %s: rdma_init_qp_attr for state %d: %s",
                endpoint->fabric->device_name, (int)state, strerror(errno));
    }
    return UC_OK;
}

static enum uc_status
modify(struct uc_fabric_endpoint *endpoint, struct ibv_qp_attr *attr, int mask)
{
    int error = ibv_modify_qp(endpoint->qp, attr, mask);

    if (error != 0) {
        return uc_log_errno(error, "verbs %s: ibv_modify_qp to state %d",
                endpoint->fabric->device_name, (int)attr->qp_state);
    }
    return UC_OK;
}

enum uc_status
uc_verbs_queue_pair_init(struct uc_fabric_endpoint *endpoint, unsigned access_flags)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    enum uc_status status;
    int mask = 0;

    status = get_attr(endpoint, IBV_QPS_INIT, &attr, &mask);
    if (status != UC_OK) {
        return status;
    }

    /* rdma_cm would grant remote write to everybody. */
    attr.qp_access_flags = access_flags;
    return modify(endpoint, &attr, mask | IBV_QP_ACCESS_FLAGS);
}

enum uc_status
uc_verbs_queue_pair_start(
        struct uc_fabric_endpoint *endpoint, uint8_t responder_resources, uint8_t initiator_depth)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    enum uc_status status;
    int mask = 0;

    status = get_attr(endpoint, IBV_QPS_RTR, &attr, &mask);
    if (status != UC_OK) {
        return status;
    }
    attr.max_dest_rd_atomic = responder_resources;
    status = modify(endpoint, &attr, (mask | IBV_QP_MAX_DEST_RD_ATOMIC) & ~IBV_QP_ACCESS_FLAGS);
    if (status != UC_OK) {
        return status;
    }

    mask = 0;
    status = get_attr(endpoint, IBV_QPS_RTS, &attr, &mask);
    if (status != UC_OK) {
        return status;
    }
    attr.max_rd_atomic = initiator_depth;
    attr.timeout = UC_VERBS_ACK_TIMEOUT;
    attr.retry_cnt = UC_VERBS_RETRY_COUNT;
    attr.rnr_retry = UC_VERBS_RNR_RETRY_COUNT;
    mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    return modify(endpoint, &attr, mask & ~IBV_QP_ACCESS_FLAGS);
}

void
uc_verbs_queue_pair_destroy(struct uc_fabric_endpoint *endpoint)
{
    if (endpoint->qp != NULL) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
        int error;

        /* A device that is gone refuses, and touches nothing either. */
        (void)ibv_modify_qp(endpoint->qp, &attr, IBV_QP_STATE);
        if (!endpoint->is_target) {
            uc_verbs_endpoint_drain(endpoint);
        }
        error = ibv_destroy_qp(endpoint->qp);
        if (error != 0) {
            (void)uc_log_errno(error, "verbs %s: ibv_destroy_qp", endpoint->fabric->device_name);
        }
        endpoint->qp = NULL;
    }

    if (endpoint->cq != NULL) {
        int error;

        /* Destroying waits for events that were read and not acknowledged. */
        ibv_ack_cq_events(endpoint->cq, endpoint->unacked_events);
        endpoint->unacked_events = 0;
        error = ibv_destroy_cq(endpoint->cq);
        if (error != 0) {
            (void)uc_log_errno(error, "verbs %s: ibv_destroy_cq", endpoint->fabric->device_name);
        }
        endpoint->cq = NULL;
    }
}
