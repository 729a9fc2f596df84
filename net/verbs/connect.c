/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The initiator's way up: address, route, request, answer; then the same for the other queue pairs that
 * the answer grants. Every step is started by an event, so nothing waits; rdma_cm itself would try for a
 * minute, so the endpoint keeps its own deadline.
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

static void
fail_with(struct uc_verbs_queue_pair *pair, const char *what)
{
    uc_verbs_endpoint_fail(pair->endpoint, UC_ERR_UNHEALTHY, "%s: %s", what, strerror(errno));
}

void
uc_verbs_connect_address_resolved(struct uc_verbs_queue_pair *pair)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;
    const char *found = ibv_get_device_name(pair->id->verbs->device);

    if (strcmp(found, endpoint->fabric->device_name) != 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY,
                "the route to the peer is through device %s; set the device to it", found);
        return;
    }
    if (uc_verbs_queue_pair_create(pair) != UC_OK) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "%s", uc_last_error());
        return;
    }
    if (rdma_resolve_route(pair->id, timeout_of(endpoint)) != 0) {
        fail_with(pair, "rdma_resolve_route");
    }
}

void
uc_verbs_connect_route_resolved(struct uc_verbs_queue_pair *pair)
{
    const struct ibv_device_attr *attr = &pair->endpoint->fabric->attr;
    struct uc_verbs_hello hello = pair->endpoint->hello;
    uint8_t bytes[UC_VERBS_HELLO_BYTES];
    struct rdma_conn_param param = {
            .private_data = bytes,
            .private_data_len = sizeof(bytes),
            .responder_resources = 1, /* the server never reads from us; some stacks refuse 0 */
            .initiator_depth = read_depth(attr->max_qp_init_rd_atom),
            .retry_count = UC_VERBS_RETRY_COUNT,
            .rnr_retry_count = UC_VERBS_RNR_RETRY_COUNT,
    };

    hello.idx = (uint8_t)uc_verbs_queue_pair_idx(pair);
    uc_verbs_hello_encode(&hello, bytes);
    /* No access: nobody may read or write the memory of an initiator. */
    if (uc_verbs_queue_pair_init(pair, 0) != UC_OK) {
        uc_verbs_endpoint_fail(pair->endpoint, UC_ERR_UNHEALTHY, "%s", uc_last_error());
        return;
    }
    param.qp_num = pair->qp->qp_num;
    if (rdma_connect(pair->id, &param) != 0) {
        fail_with(pair, "rdma_connect");
    }
}

static void
start_resolving(struct uc_verbs_queue_pair *pair)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;

    if (rdma_create_id(endpoint->fabric->cm_channel, &pair->id, pair, RDMA_PS_TCP) != 0) {
        fail_with(pair, "rdma_create_id");
    } else if (rdma_resolve_addr(pair->id, NULL, (struct sockaddr *)&endpoint->address,
                       timeout_of(endpoint)) != 0) {
        /* A matter of the network, not of the call: told like every other failure to connect. */
        fail_with(pair, "no RDMA route to the peer");
    }
}

/* The answer to the first request says how many queue pairs the endpoint gets. */
static void
connect_others(struct uc_fabric_endpoint *endpoint, const struct uc_verbs_answer *answer)
{
    if (answer->count < endpoint->pair_count) {
        endpoint->pair_count = answer->count;
    }
    for (uint32_t idx = 1; idx < endpoint->pair_count; idx++) {
        start_resolving(&endpoint->pairs[idx]);
    }
}

static bool
is_whole(const struct uc_fabric_endpoint *endpoint)
{
    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        if (!endpoint->pairs[idx].is_connected) {
            return false;
        }
    }
    return true;
}

static bool
start_queue_pair(struct uc_verbs_queue_pair *pair, const struct uc_verbs_answer *answer,
        const struct uc_verbs_cm_event *event)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;
    struct uc_verbs_agreement agreement = {
            .responder_resources = 1,
            .initiator_depth = read_depth(endpoint->fabric->attr.max_qp_init_rd_atom),
            .mtu = uc_verbs_mtu_of_bytes(answer->mtu_bytes),
    };

    if (event->initiator_depth < agreement.initiator_depth) {
        agreement.initiator_depth = event->initiator_depth;
    }
    if (uc_verbs_queue_pair_start(pair, &agreement) != UC_OK) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "%s", uc_last_error());
        return false;
    }
    if (rdma_establish(pair->id) != 0) {
        fail_with(pair, "rdma_establish");
        return false;
    }

    uc_log_debug("verbs %s: queue pair %u of %u connected, %u reads in flight, path MTU %u",
            endpoint->fabric->device_name, uc_verbs_queue_pair_idx(pair) + 1, endpoint->pair_count,
            agreement.initiator_depth, uc_verbs_mtu_bytes(agreement.mtu));
    return true;
}

void
uc_verbs_connect_answered(struct uc_verbs_queue_pair *pair, const struct uc_verbs_cm_event *event)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;
    struct uc_verbs_answer answer =
            uc_verbs_answer_decode(event->private_data, event->private_length);

    if (event->status != 0) {
        uc_verbs_endpoint_fail(
                endpoint, UC_ERR_UNHEALTHY, "connecting: %s", strerror(abs(event->status)));
        return;
    }
    if (event->initiator_depth == 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "the peer allows no reads");
        return;
    }
    if (!start_queue_pair(pair, &answer, event)) {
        return;
    }

    pair->is_connected = true;
    if (pair == &endpoint->pairs[0]) {
        connect_others(endpoint, &answer);
    }
    if (endpoint->state == UC_VERBS_CONNECTING && is_whole(endpoint)) {
        uc_verbs_endpoint_set_state(endpoint, UC_VERBS_READY);
        uc_verbs_endpoint_pump(endpoint);
        endpoint->on_state(endpoint->context, endpoint, UC_OK);
    }
}

void
uc_verbs_connect_rejected(struct uc_verbs_queue_pair *pair, const struct uc_verbs_cm_event *event)
{
    enum uc_status status = uc_verbs_reject_decode(event->private_data, event->private_length);

    uc_verbs_endpoint_fail(pair->endpoint, status,
            "the peer refused the connection: %s (reason %d)", uc_status_name(status),
            event->status);
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

/* Tables of its own; endpoint_free frees them. */
static enum uc_status
allocate_tables(struct uc_fabric_endpoint *endpoint, const struct uc_fabric_connect *params)
{
    endpoint->marks =
            calloc((size_t)endpoint->pair_count * UC_VERBS_SEND_DEPTH, sizeof(*endpoint->marks));
    endpoint->regions = calloc(params->region_count + 1, sizeof(*endpoint->regions));
    if (endpoint->marks == NULL || endpoint->regions == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "verbs connect: no memory for %zu regions",
                params->region_count);
    }

    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        endpoint->pairs[idx].marks = endpoint->marks + (size_t)idx * UC_VERBS_SEND_DEPTH;
    }
    if (params->region_count > 0) {
        memcpy(endpoint->regions, params->regions,
                params->region_count * sizeof(*endpoint->regions));
    }
    endpoint->region_count = params->region_count;
    return UC_OK;
}

enum uc_status
uc_verbs_connect(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params,
        struct uc_fabric_endpoint **endpoint_out)
{
    const struct uc_fabric *fabric = domain->fabric;
    struct uc_fabric_endpoint *endpoint;
    struct sockaddr_storage address;
    enum uc_status status = check_params(params);

    if (status == UC_OK) {
        status = uc_verbs_address_resolve(fabric, params->address, params->port, &address);
    }
    if (status != UC_OK) {
        return status;
    }

    endpoint = uc_verbs_endpoint_create(domain);
    if (endpoint == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "verbs connect: no memory for an endpoint");
    }
    endpoint->pair_count = fabric->pair_count;
    endpoint->address = address;
    endpoint->timeout_ms = params->timeout_ms;
    endpoint->deadline_ms = uc_time_add_ms(uc_verbs_now_ms(), params->timeout_ms);
    endpoint->on_state = params->on_state;
    endpoint->context = params->context;
    endpoint->hello.count = (uint8_t)fabric->pair_count;
    endpoint->hello.mtu_bytes = (uint16_t)uc_verbs_mtu_bytes(fabric->mtu);
    memcpy(endpoint->hello.nonce, params->nonce, UC_FABRIC_NONCE_BYTES);
    status = allocate_tables(endpoint, params);
    if (status != UC_OK) {
        uc_verbs_endpoint_discard(endpoint);
        return status;
    }

    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_CONNECTING);
    start_resolving(&endpoint->pairs[0]);
    *endpoint_out = endpoint;
    return UC_OK;
}
