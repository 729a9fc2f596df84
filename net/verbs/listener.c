/* SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

enum uc_status
uc_verbs_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out)
{
    const char *name = params->address == NULL ? "any address" : params->address;
    struct uc_fabric_listener *listener;
    struct sockaddr_storage address;
    enum uc_status status;

    if (params->ops == NULL || params->ops->admit == NULL || params->ops->connected == NULL ||
            params->ops->gone == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "verbs listen: admit, connected and gone are needed");
    }
    status = uc_verbs_address_resolve(fabric, params->address, params->port, &address);
    if (status != UC_OK) {
        return status;
    }

    listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "verbs listen: no memory for a listener");
    }
    listener->owner.kind = UC_VERBS_OWNER_LISTENER;
    listener->fabric = fabric;
    listener->ops = params->ops;
    listener->context = params->context;

    if (rdma_create_id(fabric->cm_channel, &listener->id, listener, RDMA_PS_TCP) != 0) {
        status = uc_log_errno(errno, "verbs %s: rdma_create_id", fabric->device_name);
        goto err_free;
    }
    if (rdma_bind_addr(listener->id, (struct sockaddr *)&address) != 0) {
        status = uc_log_errno(errno,
                "verbs %s: rdma_bind_addr %s port %u; is it an address of an RDMA interface, and the "
                "port free?",
                fabric->device_name, name, params->port);
        goto err_destroy_id;
    }
    if (rdma_listen(listener->id, UC_VERBS_BACKLOG) != 0) {
        status = uc_log_errno(errno, "verbs %s: rdma_listen on %s port %u", fabric->device_name,
                name, params->port);
        goto err_destroy_id;
    }

    uc_list_add(&fabric->listeners, &listener->node);
    *listener_out = listener;
    return UC_OK;

err_destroy_id:
    (void)rdma_destroy_id(listener->id);
err_free:
    free(listener);
    return status;
}

uint16_t
uc_verbs_listener_port(const struct uc_fabric_listener *listener)
{
    return ntohs(rdma_get_src_port(listener->id));
}

/*
 * Requests that nobody looked at go with the id. Who was admitted was announced as connected at once, so
 * it is the target's to keep or to fence, also while its confirmation is still under way.
 */
void
uc_verbs_listener_close(struct uc_fabric_listener *listener)
{
    if (listener == NULL) {
        return;
    }

    (void)rdma_destroy_id(listener->id);
    uc_list_remove(&listener->node);
    free(listener);
}
