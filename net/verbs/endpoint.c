/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

struct uc_fabric_endpoint *
uc_verbs_endpoint_create(struct uc_fabric_domain *domain)
{
    struct uc_fabric_endpoint *endpoint = calloc(1, sizeof(*endpoint));

    if (endpoint == NULL) {
        return NULL;
    }

    uc_list_init(&endpoint->node);
    for (size_t idx = 0; idx < UC_VERBS_PAIRS_MAX; idx++) {
        endpoint->pairs[idx].owner.kind = UC_VERBS_OWNER_QUEUE_PAIR;
        endpoint->pairs[idx].endpoint = endpoint;
    }
    endpoint->pair_count = 1;
    endpoint->fabric = domain->fabric;
    endpoint->domain = domain;
    endpoint->state = UC_VERBS_CONNECTING;
    domain->endpoint_count++;
    domain->fabric->endpoint_count++;
    return endpoint;
}

static void
endpoint_free(struct uc_fabric_endpoint *endpoint)
{
    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        if (endpoint->pairs[idx].id != NULL) {
            (void)rdma_destroy_id(endpoint->pairs[idx].id);
        }
    }
    endpoint->fabric->endpoint_count--;
    free(endpoint->regions);
    free(endpoint->marks);
    free(endpoint);
}

/* Nothing can touch memory of this side afterwards; operations still wait for their flush. */
static void
endpoint_close(struct uc_fabric_endpoint *endpoint)
{
    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_CLOSED);
    uc_verbs_queue_pairs_destroy(endpoint);
    endpoint->domain->endpoint_count--;
}

static void
endpoint_release(struct uc_fabric_endpoint *endpoint)
{
    endpoint->released = true;
    uc_list_remove(&endpoint->node);
    uc_list_add(&endpoint->fabric->released, &endpoint->node);
}

void
uc_verbs_endpoint_discard(struct uc_fabric_endpoint *endpoint)
{
    endpoint_close(endpoint);
    uc_list_remove(&endpoint->node);
    endpoint_free(endpoint);
}

void
uc_verbs_endpoint_set_state(struct uc_fabric_endpoint *endpoint, enum uc_verbs_state state)
{
    struct uc_fabric *fabric = endpoint->fabric;
    struct uc_list *list = &fabric->passive;

    if (endpoint->state == UC_VERBS_READY && !endpoint->is_target) {
        fabric->active_count--;
    }

    switch (state) {
    case UC_VERBS_CONNECTING:
    case UC_VERBS_ACCEPTING:
        list = &fabric->pending;
        break;
    case UC_VERBS_READY:
        if (!endpoint->is_target) {
            fabric->active_count++;
            list = &fabric->active;
        }
        break;
    case UC_VERBS_FAILED:
        list = &fabric->failed;
        break;
    case UC_VERBS_CLOSED:
        break;
    }

    uc_list_remove(&endpoint->node);
    uc_list_add(list, &endpoint->node);
    endpoint->state = state;
}

void
uc_verbs_endpoint_fail(
        struct uc_fabric_endpoint *endpoint, enum uc_status status, const char *format, ...)
{
    va_list arguments;

    if (endpoint->state == UC_VERBS_FAILED || endpoint->state == UC_VERBS_CLOSED) {
        return;
    }

    va_start(arguments, format);
    (void)vsnprintf(endpoint->failure_text, sizeof(endpoint->failure_text), format, arguments);
    va_end(arguments);
    endpoint->failure = status;
    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_FAILED);
    uc_log_debug("verbs %s: endpoint: %s", endpoint->fabric->device_name, endpoint->failure_text);
}

size_t
uc_verbs_endpoint_conclude(struct uc_fabric_endpoint *endpoint)
{
    size_t handled;

    endpoint_close(endpoint);
    handled = uc_verbs_endpoint_flush(endpoint);
    if (endpoint->released) { /* by one of the callbacks */
        return handled;
    }

    (void)uc_error(endpoint->failure, "verbs %s: %s", endpoint->fabric->device_name,
            endpoint->failure_text);
    if (endpoint->is_target) {
        endpoint->target_ops->gone(endpoint->context, endpoint->peer);
        endpoint_release(endpoint);
    } else {
        endpoint->on_state(endpoint->context, endpoint, endpoint->failure);
    }
    return handled + 1;
}

/* Tells the peer, queue pair by queue pair; fails where it left already. */
static void
say_goodbye(struct uc_fabric_endpoint *endpoint)
{
    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        const struct uc_verbs_queue_pair *pair = &endpoint->pairs[idx];

        if (pair->id != NULL && (endpoint->is_target || pair->is_connected)) {
            (void)rdma_disconnect(pair->id);
        }
    }
}

void
uc_verbs_endpoint_fence(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric *fabric = endpoint->fabric;

    uc_verbs_fabric_enter(fabric);
    if (endpoint->state != UC_VERBS_CLOSED) {
        endpoint_close(endpoint);
        say_goodbye(endpoint);
    }
    (void)uc_verbs_endpoint_flush(endpoint);
    uc_verbs_fabric_leave(fabric);
}

void
uc_verbs_endpoint_disconnect(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric *fabric;

    if (endpoint == NULL || endpoint->released) {
        return;
    }

    fabric = endpoint->fabric;
    uc_verbs_fabric_enter(fabric);
    uc_verbs_endpoint_fence(endpoint);
    endpoint_release(endpoint);
    uc_verbs_fabric_leave(fabric);
}

void
uc_verbs_endpoints_sweep(struct uc_fabric *fabric)
{
    struct uc_list *node;

    while ((node = uc_list_take(&fabric->released)) != NULL) {
        endpoint_free(uc_list_entry(node, struct uc_fabric_endpoint, node));
    }
}
