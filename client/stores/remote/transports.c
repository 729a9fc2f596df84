/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/transports.h"

#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "core/base/host_memory.h"

static const char *const transport_names[UC_TRANSPORT_COUNT] = {"shm", "verbs", "tcp"};

static const enum uc_remote_fabric demanded_by[UC_TRANSPORT_COUNT] = {
        UC_REMOTE_FABRIC_SHM, UC_REMOTE_FABRIC_VERBS, UC_REMOTE_FABRIC_TCP};

static enum uc_status
transport_open(const struct uc_remote_config *config, enum uc_transport_id id,
        struct uc_transport *transport_out)
{
    const struct uc_server_address *server = &config->servers.servers[0];
    struct uc_fabric_config fabric_config = {
            .address = server->host[0] == '/' ? "127.0.0.1" : server->host,
            .port = server->port,
            .device = config->device[0] == '\0' ? NULL : config->device,
            .connections = (uint32_t)config->queue_pairs,
    };
    struct uc_transport transport = {.ops = NULL};
    enum uc_status status = uc_fabric_find(transport_names[id], &transport.ops);

    if (status != UC_OK) {
        return status;
    }
    status = transport.ops->open(&fabric_config, &transport.fabric);
    if (status != UC_OK) {
        return status;
    }
    status = transport.ops->domain_open(transport.fabric, &transport.domain);
    if (status != UC_OK) {
        transport.ops->close(transport.fabric);
        return status;
    }

    transport.ops->caps(transport.fabric, &transport.caps);
    *transport_out = transport;
    return UC_OK;
}

static void
note_caps(struct uc_transports *transports, enum uc_transport_id id)
{
    uint32_t count = transports->items[id].caps.max_piece_count;

    if (count < transports->max_piece_count) {
        transports->max_piece_count = count;
    }
}

enum uc_status
uc_transports_open(const struct uc_remote_config *config, struct uc_transports *transports)
{
    enum uc_status status;

    memset(transports, 0, sizeof(*transports));
    uc_mutex_init(&transports->register_lock);
    transports->is_auto = config->fabric == UC_REMOTE_FABRIC_AUTO;
    transports->max_piece_count = UINT32_MAX;

    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        if (!transports->is_auto && config->fabric != demanded_by[id]) {
            continue;
        }
        status = transport_open(config, (enum uc_transport_id)id, &transports->items[id]);
        if (status == UC_OK) {
            note_caps(transports, (enum uc_transport_id)id);
        } else if (!transports->is_auto || id == UC_TRANSPORT_TCP) {
            goto err_fini;
        } else {
            uc_log_debug("remote store: no %s here: %s", transport_names[id], uc_last_error());
        }
    }
    return UC_OK;

err_fini:
    uc_transports_close(transports);
    return status;
}

void
uc_transports_close(struct uc_transports *transports)
{
    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        struct uc_transport *transport = &transports->items[id];

        if (transport->fabric != NULL) {
            transport->ops->domain_close(transport->domain);
            transport->ops->close(transport->fabric);
        }
        memset(transport, 0, sizeof(*transport));
    }
    uc_mutex_fini(&transports->register_lock);
}

/* What is known of the memory: a transport of the same host can use the file behind it. */
static struct uc_fabric_memory
describe_memory(void *address, uint64_t length_bytes)
{
    struct uc_fabric_memory memory = uc_fabric_host_memory(address, length_bytes);

    (void)uc_host_memory_find(address, length_bytes, &memory.fd, &memory.fd_offset_bytes);
    return memory;
}

/*
 * Auto: from now on without the transport that needs what it cannot have. Blocks in this memory could as well go
 * through the bounce buffers, if those are registered, and all others directly; but an engine registers what it
 * moves most, and a copy there, behind the few buffers, costs more than the next transport does.
 */
static void
give_up_transport(struct uc_transports *transports, size_t id)
{
    atomic_store_explicit(&transports->given_up[id], true, memory_order_relaxed);
    uc_log_warn("remote store: %s cannot register memory and is not used from now on: %s",
            transport_names[id], uc_last_error());
}

/* @return whether memory is registered with this transport at all */
static bool
wants_registration(const struct uc_transports *transports, size_t id)
{
    const struct uc_transport *transport = &transports->items[id];

    return transport->fabric != NULL &&
           (transport->caps.needs_registration || transport->caps.uses_registration) &&
           !uc_transports_has_given_up(transports, id);
}

static enum uc_status
register_one(struct uc_transports *transports, size_t id, const struct uc_fabric_memory *memory,
        struct uc_fabric_region **region_out)
{
    const struct uc_transport *transport = &transports->items[id];
    enum uc_status status;

    uc_mutex_lock(&transports->register_lock);
    status = transport->ops->region_register(
            transport->domain, memory, UINT32_MAX, UC_FABRIC_READ_WRITE, region_out);
    uc_mutex_unlock(&transports->register_lock);
    return status;
}

enum uc_status
uc_transports_register(struct uc_transports *transports, void *address, uint64_t length_bytes,
        struct uc_local_memory *local_out)
{
    struct uc_local_memory local = {.regions = {NULL}};
    struct uc_fabric_memory memory = describe_memory(address, length_bytes);

    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        struct uc_transport *transport = &transports->items[id];
        enum uc_status status;

        if (!wants_registration(transports, id)) {
            continue;
        }
        status = register_one(transports, id, &memory, &local.regions[id]);
        if (status == UC_OK) {
            continue;
        }
        local.regions[id] = NULL;
        if (!transport->caps.needs_registration) {
            continue; /* slower, not wrong */
        }
        if (!transports->is_auto) {
            uc_transports_deregister(transports, &local);
            return uc_error(status,
                    "remote store: `fabric: %s` cannot register %llu bytes, and `fabric: auto`, which would "
                    "do without it, is not set: %s",
                    transport_names[id], (unsigned long long)length_bytes, uc_last_error());
        }
        give_up_transport(transports, id);
    }

    *local_out = local;
    return UC_OK;
}

bool
uc_transports_register_device(struct uc_transports *transports,
        const struct uc_fabric_memory *memory, struct uc_local_memory *local_out)
{
    struct uc_local_memory local = {.regions = {NULL}};
    struct uc_fabric_memory by_address = *memory;
    bool reached = true;

    by_address.fd = -1;
    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        const struct uc_transport *transport = &transports->items[id];

        if (transport->fabric == NULL) {
            continue;
        }
        if (!transport->caps.needs_registration) {
            reached = false; /* its bytes go through the processor */
        } else if ((memory->fd < 0 ||
                           register_one(transports, id, memory, &local.regions[id]) != UC_OK) &&
                   register_one(transports, id, &by_address, &local.regions[id]) != UC_OK) {
            reached = false;
            local.regions[id] = NULL;
            uc_log_info("remote store: over %s, blocks of this device go through host memory: %s",
                    transport_names[id], uc_last_error());
        }
    }
    *local_out = local;
    return reached;
}

void
uc_transports_deregister(struct uc_transports *transports, struct uc_local_memory *local)
{
    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        if (local->regions[id] != NULL) {
            uc_mutex_lock(&transports->register_lock);
            transports->items[id].ops->region_deregister(local->regions[id]);
            uc_mutex_unlock(&transports->register_lock);
            local->regions[id] = NULL;
        }
    }
}
