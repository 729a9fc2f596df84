/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <string.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

/* Destroying an id waits for its events, so they are copied and given back before anyone acts. */
static bool
take_event(struct uc_fabric *fabric, struct uc_verbs_cm_event *event_out)
{
    struct rdma_cm_event *event = NULL;

    if (rdma_get_cm_event(fabric->cm_channel, &event) != 0) {
        if (errno != EAGAIN && errno != EINTR) {
            (void)uc_log_errno(errno, "verbs %s: rdma_get_cm_event", fabric->device_name);
        }
        return false;
    }

    *event_out = (struct uc_verbs_cm_event){
            .type = event->event,
            .status = event->status,
            .id = event->id,
            .listen_id = event->listen_id,
            .responder_resources = event->param.conn.responder_resources,
            .initiator_depth = event->param.conn.initiator_depth,
    };
    if (event->param.conn.private_data != NULL) {
        event_out->private_length = event->param.conn.private_data_len;
        memcpy(event_out->private_data, event->param.conn.private_data, event_out->private_length);
    }
    (void)rdma_ack_cm_event(event);
    return true;
}

/* What an event means for a queue pair and its endpoint. */
static void
handle_event(struct uc_verbs_queue_pair *pair, const struct uc_verbs_cm_event *event)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;

    if (endpoint->state == UC_VERBS_FAILED || endpoint->state == UC_VERBS_CLOSED) {
        return;
    }

    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        uc_verbs_connect_address_resolved(pair);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        uc_verbs_connect_route_resolved(pair);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        uc_verbs_connect_answered(pair, event);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (endpoint->state == UC_VERBS_ACCEPTING) {
            uc_verbs_admission_confirmed(pair);
        }
        break;
    case RDMA_CM_EVENT_REJECTED:
        uc_verbs_connect_rejected(pair, event);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "connecting: %s: %s",
                rdma_event_str(event->type), strerror(-event->status));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "the peer disconnected");
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "the device was removed");
        break;
    default:
        break; /* address changes and the end of TIMEWAIT change nothing for us */
    }
}

static void
dispatch(struct uc_fabric *fabric, const struct uc_verbs_cm_event *event)
{
    struct uc_verbs_cm_owner *owner = event->id->context;

    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        /* The new id still has the context of the one that listens. */
        uc_verbs_admit((struct uc_fabric_listener *)(void *)owner, event);
    } else if (owner->kind == UC_VERBS_OWNER_QUEUE_PAIR) {
        handle_event((struct uc_verbs_queue_pair *)(void *)owner, event);
    } else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
        uc_log_error("verbs %s: the device of a listener was removed", fabric->device_name);
    }
}

size_t
uc_verbs_cm_poll(struct uc_fabric *fabric, size_t budget)
{
    struct uc_verbs_cm_event event;
    size_t handled = 0;

    while (handled < budget && take_event(fabric, &event)) {
        dispatch(fabric, &event);
        handled++;
    }
    return handled;
}

/* All endpoints of a list that can still fail; failing moves them to another list. */
static void
fail_all(struct uc_list *list, const char *what)
{
    uc_list_for_each_safe (node, following, list) {
        uc_verbs_endpoint_fail(uc_list_entry(node, struct uc_fabric_endpoint, node),
                UC_ERR_UNHEALTHY, "device event: %s", what);
    }
}

static void
handle_async(struct uc_fabric *fabric, const struct ibv_async_event *event)
{
    const char *what = ibv_event_type_str(event->event_type);
    struct uc_fabric_endpoint *endpoint;
    struct uc_verbs_queue_pair *pair;

    switch (event->event_type) {
    case IBV_EVENT_COMM_EST:
        /* The first data overtook the last message of the handshake. */
        pair = event->element.qp->qp_context;
        if (pair->id != NULL) { /* a refused one has none, and its endpoint fails */
            (void)rdma_notify(pair->id, IBV_EVENT_COMM_EST);
        }
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        pair = event->element.qp->qp_context;
        uc_verbs_endpoint_fail(pair->endpoint, UC_ERR_UNHEALTHY, "device event: %s", what);
        break;
    case IBV_EVENT_CQ_ERR:
        endpoint = event->element.cq->cq_context; /* NULL for the targets' */
        if (endpoint != NULL) {
            uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "device event: %s", what);
        }
        break;
    case IBV_EVENT_DEVICE_FATAL:
        uc_log_error("verbs %s: %s; all connections are lost", fabric->device_name, what);
        fail_all(&fabric->pending, what);
        fail_all(&fabric->active, what);
        fail_all(&fabric->passive, what);
        break;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        uc_log_warn("verbs %s: port %d: %s", fabric->device_name, event->element.port_num, what);
        break;
    default:
        uc_log_debug("verbs %s: %s", fabric->device_name, what);
        break;
    }
}

size_t
uc_verbs_async_poll(struct uc_fabric *fabric)
{
    struct ibv_async_event event;
    size_t handled = 0;

    while (ibv_get_async_event(fabric->device, &event) == 0) {
        handle_async(fabric, &event);
        ibv_ack_async_event(&event); /* destroying a queue pair waits for this */
        handled++;
    }
    return handled;
}
