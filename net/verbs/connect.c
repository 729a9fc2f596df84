/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The initiator's way up: address, route, request, answer. Every step is started by an event, so
 * nothing waits; rdma_cm itself would try for a minute, so the endpoint keeps its own deadline.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "net/verbs/verbs.h"

static int
timeout_of(const struct uc_fabric_endpoint *endpoint)
{
    return endpoint->timeout_ms > INT32_MAX ? INT32_MAX : (int)endpoint->timeout_ms;
}

static uint8_t
read_depth(int device_max)
{
    return (uint8_t)(device_max < UC_VERBS_READ_DEPTH ? device_max : UC_VERBS_READ_DEPTH);
}

void
uc_verbs_connect_address_resolved(struct uc_fabric_endpoint *endpoint)
{
    const char *found = ibv_get_device_name(endpoint->id->verbs->device);

    if (strcmp(found, endpoint->fabric->device_name) != 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY,
                "the route to the peer is through device %s; set the device to it", found);
        return;
    }
    if (uc_verbs_queue_pair_create(endpoint) != UC_OK) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "%s", uc_last_error());
        return;
    }
    if (rdma_resolve_route(endpoint->id, timeout_of(endpoint)) != 0) {
        uc_verbs_endpoint_fail(
                endpoint, UC_ERR_UNHEALTHY, "rdma_resolve_route: %s", strerror(errno));
    }
}

void
uc_verbs_connect_route_resolved(struct uc_fabric_endpoint *endpoint)
{
    const struct ibv_device_attr *attr = &endpoint->fabric->attr;
    struct rdma_conn_param param = {
            .private_data = endpoint->hello,
            .private_data_len = sizeof(endpoint->hello),
            .responder_resources = 1, /* the server never reads from us; some stacks refuse 0 */
            .initiator_depth = read_depth(attr->max_qp_init_rd_atom),
            .retry_count = UC_VERBS_RETRY_COUNT,
            .rnr_retry_count = UC_VERBS_RNR_RETRY_COUNT,
    };

    /* No access: nobody may read or write the memory of an initiator. */
    if (uc_verbs_queue_pair_init(endpoint, 0) != UC_OK) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "%s", uc_last_error());
        return;
    }
    param.qp_num = endpoint->qp->qp_num;
    if (rdma_connect(endpoint->id, &param) != 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "rdma_connect: %s", strerror(errno));
    }
}

void
uc_verbs_connect_answered(
        struct uc_fabric_endpoint *endpoint, const struct uc_verbs_cm_event *event)
{
    uint8_t depth = read_depth(endpoint->fabric->attr.max_qp_init_rd_atom);

    if (event->status != 0) {
        uc_verbs_endpoint_fail(
                endpoint, UC_ERR_UNHEALTHY, "connecting: %s", strerror(abs(event->status)));
        return;
    }
    if (event->initiator_depth == 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "the peer allows no reads");
        return;
    }
    if (event->initiator_depth < depth) {
        depth = event->initiator_depth;
    }
    if (uc_verbs_queue_pair_start(endpoint, 1, depth) != UC_OK) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "%s", uc_last_error());
        return;
    }
    if (rdma_establish(endpoint->id) != 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "rdma_establish: %s", strerror(errno));
        return;
    }

    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_READY);
    uc_log_debug("verbs %s: connected, %u reads in flight", endpoint->fabric->device_name, depth);
    uc_verbs_endpoint_pump(endpoint);
    endpoint->on_state(endpoint->context, endpoint, UC_OK);
}

void
uc_verbs_connect_rejected(
        struct uc_fabric_endpoint *endpoint, const struct uc_verbs_cm_event *event)
{
    enum uc_status status = uc_verbs_reject_decode(event->private_data, event->private_length);

    uc_verbs_endpoint_fail(endpoint, status, "the peer refused the connection: %s (reason %d)",
            uc_status_name(status), event->status);
}

static enum uc_status
check_params(const struct uc_fabric_connect *params)
{
    if (params->address == NULL || params->port == 0 || params->nonce == NULL ||
            params->on_state == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "verbs connect: an address, a port, a nonce and on_state are needed");
    }
    if (params->region_count > UC_VERBS_MAX_REGIONS ||
            (params->region_count > 0 && params->regions == NULL)) {
        return uc_error(UC_ERR_INVALID_PARAM, "verbs connect: %zu regions, %d are the most",
                params->region_count, UC_VERBS_MAX_REGIONS);
    }
    return UC_OK;
}

static enum uc_status
create_initiator(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params,
        struct uc_fabric_endpoint **endpoint_out)
{
    struct uc_fabric_endpoint *endpoint = uc_verbs_endpoint_create(domain);
    enum uc_status status;

    if (endpoint == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "verbs connect: no memory for an endpoint");
    }
    endpoint->timeout_ms = params->timeout_ms;
    endpoint->deadline_ms = uc_time_add_ms(uc_verbs_now_ms(), params->timeout_ms);
    endpoint->on_state = params->on_state;
    endpoint->context = params->context;
    endpoint->region_count = params->region_count;
    uc_verbs_hello_encode(params->nonce, endpoint->hello);

    if (params->region_count > 0) {
        endpoint->regions = calloc(params->region_count, sizeof(*endpoint->regions));
        if (endpoint->regions == NULL) {
            status = uc_error(UC_ERR_OUT_OF_MEMORY, "verbs connect: no memory for %zu regions",
                    params->region_count);
            goto err_discard;
        }
        memcpy(endpoint->regions, params->regions,
                params->region_count * sizeof(*endpoint->regions));
    }
    if (rdma_create_id(domain->fabric->cm_channel, &endpoint->id, endpoint, RDMA_PS_TCP) != 0) {
        status = uc_log_errno(errno, "verbs %s: rdma_create_id", domain->fabric->device_name);
        goto err_discard;
    }

    *endpoint_out = endpoint;
    return UC_OK;

err_discard:
    uc_verbs_endpoint_discard(endpoint);
    return status;
}

enum uc_status
uc_verbs_connect(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params,
        struct uc_fabric_endpoint **endpoint_out)
{
    struct uc_fabric_endpoint *endpoint = NULL;
    struct sockaddr_storage address;
    enum uc_status status = check_params(params);

    if (status == UC_OK) {
        status = uc_verbs_address_resolve(domain->fabric, params->address, params->port, &address);
    }
    if (status == UC_OK) {
        status = create_initiator(domain, params, &endpoint);
    }
    if (status != UC_OK) {
        return status;
    }

    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_CONNECTING);
    if (rdma_resolve_addr(endpoint->id, NULL, (struct sockaddr *)&address, timeout_of(endpoint)) !=
            0) {
        /* A matter of the network, not of the call: told like every other failure to connect. */
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "no RDMA route to %s: %s",
                params->address, strerror(errno));
    }

    *endpoint_out = endpoint;
    return UC_OK;
}
