/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The target's way up. The request names a nonce; without a good one there is no queue pair. The
 * target hears of the endpoint as soon as the answer is sent: from then on the peer may write, so
 * from then on the target must be able to fence it. The peer's confirmation ends the deadline.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "net/verbs/verbs.h"

static uint8_t
min_depth(uint8_t wanted, int device_max)
{
    uint8_t depth = wanted < UC_VERBS_READ_DEPTH ? wanted : UC_VERBS_READ_DEPTH;

    return depth < device_max ? depth : (uint8_t)device_max;
}

static void
refuse(struct rdma_cm_id *id, enum uc_status status)
{
    uint8_t bytes[UC_VERBS_REJECT_BYTES];

    uc_verbs_reject_encode(status, bytes);
    (void)rdma_reject(id, bytes, sizeof(bytes));
    (void)rdma_destroy_id(id);
}

static enum uc_status
ask_target(struct uc_fabric_listener *listener, const struct uc_verbs_cm_event *event,
        struct uc_fabric_admission *admission_out)
{
    const char *device_name = listener->fabric->device_name;
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    enum uc_status status;

    if (strcmp(ibv_get_device_name(event->id->verbs->device), device_name) != 0) {
        return uc_error(
                UC_ERR_UNSUPPORTED, "verbs %s: a peer came through another device", device_name);
    }
    status = uc_verbs_hello_decode(event->private_data, event->private_length, nonce);
    if (status != UC_OK) {
        return uc_error(status, "verbs %s: a stranger asked to connect", device_name);
    }
    return listener->ops->admit(listener->context, nonce, admission_out);
}

static enum uc_status
accept_peer(struct uc_fabric_endpoint *endpoint, const struct uc_verbs_cm_event *event,
        enum uc_fabric_access access)
{
    const struct ibv_device_attr *attr = &endpoint->fabric->attr;
    unsigned flags = IBV_ACCESS_REMOTE_READ;
    struct rdma_conn_param param = {
            .responder_resources = min_depth(event->responder_resources, attr->max_qp_rd_atom),
            .initiator_depth = min_depth(event->initiator_depth, attr->max_qp_init_rd_atom),
            .rnr_retry_count = UC_VERBS_RNR_RETRY_COUNT,
    };
    enum uc_status status;

    if (access == UC_FABRIC_READ_WRITE) {
        flags |= IBV_ACCESS_REMOTE_WRITE;
    }
    status = uc_verbs_queue_pair_create(endpoint);
    if (status == UC_OK) {
        status = uc_verbs_queue_pair_init(endpoint, flags);
    }
    if (status == UC_OK) {
        status = uc_verbs_queue_pair_start(
                endpoint, param.responder_resources, param.initiator_depth);
    }
    if (status != UC_OK) {
        return status;
    }

    param.qp_num = endpoint->qp->qp_num;
    if (rdma_accept(endpoint->id, &param) != 0) {
        return uc_error(UC_ERR_UNHEALTHY, "verbs %s: rdma_accept: %s",
                endpoint->fabric->device_name, strerror(errno));
    }
    return UC_OK;
}

void
uc_verbs_admit(struct uc_fabric_listener *listener, const struct uc_verbs_cm_event *event)
{
    struct uc_fabric_admission admission = {.domain = NULL};
    struct uc_fabric_endpoint *endpoint = NULL;
    enum uc_status status;

    status = ask_target(listener, event, &admission);
    if (status != UC_OK) {
        uc_log_debug("verbs %s: refused: %s", listener->fabric->device_name, uc_last_error());
        refuse(event->id, status);
        return;
    }

    assert(admission.domain != NULL && admission.domain->fabric == listener->fabric);
    endpoint = uc_verbs_endpoint_create(admission.domain);
    if (endpoint == NULL) {
        status = UC_ERR_OUT_OF_MEMORY;
        goto err_refuse;
    }
    endpoint->is_target = true;
    endpoint->target_ops = listener->ops;
    endpoint->context = listener->context;
    endpoint->peer = admission.peer;
    endpoint->timeout_ms = UC_VERBS_ACCEPT_TIMEOUT_MS;
    endpoint->deadline_ms = uc_time_add_ms(uc_verbs_now_ms(), UC_VERBS_ACCEPT_TIMEOUT_MS);
    endpoint->id = event->id;

    status = accept_peer(endpoint, event, admission.access);
    if (status != UC_OK) {
        goto err_discard;
    }

    endpoint->id->context = endpoint;
    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_ACCEPTING);
    endpoint->target_ops->connected(endpoint->context, endpoint->peer, endpoint);
    return;

err_discard:
    endpoint->id = NULL; /* still needed to refuse */
    uc_verbs_endpoint_discard(endpoint);
err_refuse:
    refuse(event->id, status);
    listener->ops->gone(listener->context, admission.peer);
}
