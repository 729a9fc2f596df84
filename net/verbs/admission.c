/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The target's way up. The request names a nonce; without a good one there is no queue pair. The
 * target hears of the endpoint as soon as the answer is sent: from then on the peer may write, so
 * from then on the target must be able to fence it. The answer says how many queue pairs the endpoint
 * may have; the others join with the same nonce, from the same address, until the last one is there. The
 * peer's confirmation of all of them ends the deadline.
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
read_hello(struct uc_fabric *fabric, const struct uc_verbs_cm_event *event,
        struct uc_verbs_hello *hello_out)
{
    enum uc_status status;

    if (strcmp(ibv_get_device_name(event->id->verbs->device), fabric->device_name) != 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "verbs %s: a peer came through another device",
                fabric->device_name);
    }
    status = uc_verbs_hello_decode(event->private_data, event->private_length, hello_out);
    if (status != UC_OK) {
        return uc_error(status, "verbs %s: a stranger asked to connect", fabric->device_name);
    }
    return UC_OK;
}

static enum uc_status
accept_peer(struct uc_verbs_queue_pair *pair, const struct uc_verbs_cm_event *event)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;
    const struct ibv_device_attr *attr = &endpoint->fabric->attr;
    unsigned flags = IBV_ACCESS_REMOTE_READ;
    struct uc_verbs_agreement agreement = {
            .responder_resources = min_depth(event->responder_resources, attr->max_qp_rd_atom),
            .initiator_depth = min_depth(event->initiator_depth, attr->max_qp_init_rd_atom),
            .mtu = uc_verbs_mtu_of_bytes(endpoint->hello.mtu_bytes),
    };
    uint8_t bytes[UC_VERBS_ANSWER_BYTES];
    struct uc_verbs_answer answer = {.count = (uint16_t)endpoint->pair_count};
    struct rdma_conn_param param = {
            .private_data = bytes,
            .private_data_len = sizeof(bytes),
            .responder_resources = agreement.responder_resources,
            .initiator_depth = agreement.initiator_depth,
            .rnr_retry_count = UC_VERBS_RNR_RETRY_COUNT,
    };
    enum uc_status status;

    if (endpoint->fabric->mtu < agreement.mtu) {
        agreement.mtu = endpoint->fabric->mtu;
    }
    if (endpoint->access == UC_FABRIC_READ_WRITE) {
        flags |= IBV_ACCESS_REMOTE_WRITE;
    }
    status = uc_verbs_queue_pair_create(pair);
    if (status == UC_OK) {
        status = uc_verbs_queue_pair_init(pair, flags);
    }
    if (status == UC_OK) {
        status = uc_verbs_queue_pair_start(pair, &agreement);
    }
    if (status != UC_OK) {
        return status;
    }

    answer.mtu_bytes = (uint16_t)uc_verbs_mtu_bytes(agreement.mtu);
    uc_verbs_answer_encode(&answer, bytes);
    param.qp_num = pair->qp->qp_num;
    if (rdma_accept(pair->id, &param) != 0) {
        return uc_error(UC_ERR_UNHEALTHY, "verbs %s: rdma_accept: %s",
                endpoint->fabric->device_name, strerror(errno));
    }
    return UC_OK;
}

static struct uc_fabric_endpoint *
create_target(struct uc_fabric_listener *listener, const struct uc_fabric_admission *admission,
        const struct uc_verbs_hello *hello)
{
    struct uc_fabric_endpoint *endpoint = uc_verbs_endpoint_create(admission->domain);

    if (endpoint == NULL) {
        return NULL;
    }

    endpoint->is_target = true;
    endpoint->target_ops = listener->ops;
    endpoint->context = listener->context;
    endpoint->peer = admission->peer;
    endpoint->access = admission->access;
    endpoint->hello = *hello;
    endpoint->pair_count = hello->count;
    if (endpoint->pair_count > endpoint->fabric->pair_limit) {
        endpoint->pair_count = endpoint->fabric->pair_limit;
    }
    endpoint->timeout_ms = UC_VERBS_ACCEPT_TIMEOUT_MS;
    endpoint->deadline_ms = uc_time_add_ms(uc_verbs_now_ms(), UC_VERBS_ACCEPT_TIMEOUT_MS);
    return endpoint;
}

/* The first queue pair: only here is the target asked, so a nonce is spent once. */
static enum uc_status
admit_first(struct uc_fabric_listener *listener, const struct uc_verbs_cm_event *event,
        const struct uc_verbs_hello *hello)
{
    struct uc_fabric_admission admission = {.domain = NULL};
    struct uc_fabric_endpoint *endpoint;
    enum uc_status status = listener->ops->admit(listener->context, hello->nonce, &admission);

    if (status != UC_OK) {
        return status;
    }

    assert(admission.domain != NULL && admission.domain->fabric == listener->fabric);
    endpoint = create_target(listener, &admission, hello);
    if (endpoint == NULL) {
        status = uc_error(UC_ERR_OUT_OF_MEMORY, "verbs: no memory for an endpoint");
        goto err_gone;
    }
    endpoint->pairs[0].id = event->id;
    status = accept_peer(&endpoint->pairs[0], event);
    if (status != UC_OK) {
        goto err_discard;
    }

    event->id->context = &endpoint->pairs[0];
    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_ACCEPTING);
    endpoint->target_ops->connected(endpoint->context, endpoint->peer, endpoint);
    return UC_OK;

err_discard:
    endpoint->pairs[0].id = NULL; /* still needed to refuse */
    uc_verbs_endpoint_discard(endpoint);
err_gone:
    listener->ops->gone(listener->context, admission.peer);
    return status;
}

static bool
is_same_host(struct rdma_cm_id *left, struct rdma_cm_id *right)
{
    const struct sockaddr *one = rdma_get_peer_addr(left);
    const struct sockaddr *other = rdma_get_peer_addr(right);

    if (one->sa_family != other->sa_family) {
        return false;
    }
    if (one->sa_family == AF_INET6) {
        return memcmp(&((const struct sockaddr_in6 *)(const void *)one)->sin6_addr,
                       &((const struct sockaddr_in6 *)(const void *)other)->sin6_addr,
                       sizeof(struct in6_addr)) == 0;
    }
    return ((const struct sockaddr_in *)(const void *)one)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)(const void *)other)->sin_addr.s_addr;
}

/* The endpoint that a further queue pair belongs to: the nonce was its, and its place is free. */
static struct uc_fabric_endpoint *
find_unfinished(struct uc_fabric_listener *listener, const struct uc_verbs_cm_event *event,
        const struct uc_verbs_hello *hello)
{
    uc_list_for_each (node, &listener->fabric->pending) {
        struct uc_fabric_endpoint *endpoint = uc_list_entry(node, struct uc_fabric_endpoint, node);

        if (endpoint->state == UC_VERBS_ACCEPTING && endpoint->context == listener->context &&
                memcmp(endpoint->hello.nonce, hello->nonce, UC_FABRIC_NONCE_BYTES) == 0 &&
                hello->idx < endpoint->pair_count && endpoint->pairs[hello->idx].id == NULL &&
                is_same_host(endpoint->pairs[0].id, event->id)) {
            return endpoint;
        }
    }
    return NULL;
}

static enum uc_status
admit_other(struct uc_fabric_listener *listener, const struct uc_verbs_cm_event *event,
        const struct uc_verbs_hello *hello)
{
    struct uc_fabric_endpoint *endpoint = find_unfinished(listener, event, hello);
    struct uc_verbs_queue_pair *pair;
    enum uc_status status;

    if (endpoint == NULL) {
        return uc_error(UC_ERR_PERMISSION_DENIED, "verbs %s: a queue pair that no endpoint expects",
                listener->fabric->device_name);
    }

    pair = &endpoint->pairs[hello->idx];
    pair->id = event->id;
    status = accept_peer(pair, event);
    if (status != UC_OK) {
        pair->id = NULL; /* still needed to refuse */
        uc_verbs_endpoint_fail(endpoint, status, "%s", uc_last_error());
        return status;
    }

    event->id->context = pair;
    return UC_OK;
}

void
uc_verbs_admit(struct uc_fabric_listener *listener, const struct uc_verbs_cm_event *event)
{
    struct uc_verbs_hello hello;
    enum uc_status status = read_hello(listener->fabric, event, &hello);

    if (status == UC_OK && hello.idx == 0) {
        status = admit_first(listener, event, &hello);
    } else if (status == UC_OK) {
        status = admit_other(listener, event, &hello);
    }
    if (status != UC_OK) {
        uc_log_debug("verbs %s: refused: %s", listener->fabric->device_name, uc_last_error());
        refuse(event->id, status);
    }
}

void
uc_verbs_admission_confirmed(struct uc_verbs_queue_pair *pair)
{
    struct uc_fabric_endpoint *endpoint = pair->endpoint;

    pair->is_connected = true;
    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        if (!endpoint->pairs[idx].is_connected) {
            return;
        }
    }
    memset(endpoint->hello.nonce, 0, sizeof(endpoint->hello.nonce));
    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_READY);
}
