/* SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

enum {
    ROUTE_TIMEOUT_MS = 2000,
    NAMES_BYTES = 256,
};

static const uint32_t message_bytes_max = UINT32_C(1) << 30;

/* Which device, and which of its ports (0 = any). */
struct choice {
    char name[IBV_SYSFS_NAME_MAX];
    uint8_t port;
};

static int
look_up(const char *name, int flags, struct sockaddr_storage *address_out)
{
    struct addrinfo hints = {
            .ai_family = AF_UNSPEC,
            .ai_socktype = SOCK_STREAM,
            .ai_flags = flags,
    };
    struct addrinfo *found = NULL;
    int error = getaddrinfo(name, NULL, &hints, &found);

    if (error == 0) {
        memset(address_out, 0, sizeof(*address_out));
        memcpy(address_out, found->ai_addr, found->ai_addrlen);
        freeaddrinfo(found);
    }
    return error;
}

enum uc_status
uc_verbs_address_resolve(const struct uc_fabric *fabric, const char *address, uint16_t port,
        struct sockaddr_storage *address_out)
{
    if (address == NULL) {
        address = "0.0.0.0";
    }
    if (fabric->name != NULL && strcmp(address, fabric->name) == 0) {
        *address_out = fabric->address;
    } else {
        int error = look_up(address, AI_NUMERICHOST, address_out);

        if (error != 0) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "verbs: address %s: %s; only the name the fabric was opened with is looked up, "
                    "others must be numeric",
                    address, gai_strerror(error));
        }
    }

    if (address_out->ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)address_out)->sin6_port = htons(port);
    } else {
        ((struct sockaddr_in *)address_out)->sin_port = htons(port);
    }
    return UC_OK;
}

/* The only look-up of a name, since it may wait for a name server. */
static enum uc_status
remember_address(struct uc_fabric *fabric, const char *name)
{
    int error;

    if (name == NULL) {
        return UC_OK;
    }

    error = look_up(name, 0, &fabric->address);
    if (error != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "verbs: address %s: %s; give a numeric address or a name that resolves here", name,
                gai_strerror(error));
    }
    fabric->name = strdup(name);
    if (fabric->name == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "verbs: no memory for a name");
    }
    return UC_OK;
}

static enum uc_status
choose_by_name(const char *text, struct choice *choice_out)
{
    const char *colon = strchr(text, ':');
    size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    struct choice choice = {.port = 0};

    if (length == 0 || length >= sizeof(choice.name)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "verbs: device %s: write it as \"name\" or \"name:port\"", text);
    }
    memcpy(choice.name, text, length);
    if (colon != NULL) {
        char *end = NULL;
        unsigned long port = strtoul(colon + 1, &end, 10);

        if (colon[1] < '1' || colon[1] > '9' || *end != '\0' || port > UINT8_MAX) {
            return uc_error(
                    UC_ERR_INVALID_PARAM, "verbs: device %s: no port number after the colon", text);
        }
        choice.port = (uint8_t)port;
    }

    *choice_out = choice;
    return UC_OK;
}

/* Binds or resolves with an id of its own, which waits. */
static int
route_find(struct rdma_cm_id *id, struct sockaddr_storage *address, bool is_peer)
{
    if (!is_peer) {
        return rdma_bind_addr(id, (struct sockaddr *)address);
    }
    if (rdma_resolve_addr(id, NULL, (struct sockaddr *)address, ROUTE_TIMEOUT_MS) != 0) {
        return -1;
    }
    /* Some addresses resolve and still have no route, loopback on RoCE for one. */
    return rdma_resolve_route(id, ROUTE_TIMEOUT_MS);
}

/* Leaves the name empty when any device will do: no address, or the wildcard. */
static enum uc_status
choose_by_route(const struct uc_fabric *fabric, const struct uc_fabric_config *config,
        struct choice *choice_out)
{
    struct sockaddr_storage address;
    struct rdma_cm_id *id = NULL;
    enum uc_status status;

    status = uc_verbs_address_resolve(fabric, config->address, config->port, &address);
    if (status != UC_OK) {
        return status;
    }
    if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "verbs: rdma_create_id: %s; is the module rdma_ucm loaded?", strerror(errno));
    }

    if (route_find(id, &address, config->port != 0) != 0) {
        status = uc_error(UC_ERR_UNSUPPORTED,
                "verbs: no RDMA device %s %s: %s; use an address of an RDMA interface",
                config->port != 0 ? "reaches" : "has", config->address, strerror(errno));
    } else if (id->verbs != NULL) {
        (void)snprintf(choice_out->name, sizeof(choice_out->name), "%s",
                ibv_get_device_name(id->verbs->device));
        choice_out->port = id->port_num;
    }

    (void)rdma_destroy_id(id);
    return status;
}

/* Takes the first active port; choice->port narrows the search. */
static bool
find_active_port(struct ibv_context *device, uint8_t port_count, uint8_t wanted,
        struct ibv_port_attr *attr_out)
{
    for (unsigned port = 1; port <= port_count; port++) {
        if ((wanted == 0 || wanted == port) &&
                ibv_query_port(device, (uint8_t)port, attr_out) == 0 &&
                attr_out->state == IBV_PORT_ACTIVE) {
            return true;
        }
    }
    return false;
}

/* Opens the device if it is usable; the reason is in the thread's error text. */
static enum uc_status
try_open(struct ibv_device *candidate, uint8_t port, struct uc_fabric *fabric)
{
    const char *name = ibv_get_device_name(candidate);
    struct ibv_port_attr port_attr;
    struct ibv_context *device;

    if (candidate->transport_type != IBV_TRANSPORT_IB) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "verbs: device %s is neither InfiniBand nor RoCE; use the tcp fabric", name);
    }
    device = ibv_open_device(candidate);
    if (device == NULL) {
        return uc_error(
                UC_ERR_UNSUPPORTED, "verbs: device %s: ibv_open_device: %s", name, strerror(errno));
    }
    if (ibv_query_device(device, &fabric->attr) != 0) {
        (void)ibv_close_device(device);
        return uc_error(UC_ERR_UNSUPPORTED, "verbs: device %s: ibv_query_device failed", name);
    }
    if (!find_active_port(device, fabric->attr.phys_port_cnt, port, &port_attr)) {
        (void)ibv_close_device(device);
        return uc_error(UC_ERR_UNSUPPORTED,
                "verbs: device %s has no active port; check the link with `rdma link`", name);
    }

    fabric->device = device;
    fabric->mtu = port_attr.active_mtu;
    fabric->max_message_bytes =
            port_attr.max_msg_sz == 0 || port_attr.max_msg_sz > message_bytes_max
                    ? message_bytes_max
                    : port_attr.max_msg_sz;
    (void)snprintf(fabric->device_name, sizeof(fabric->device_name), "%s", name);
    return UC_OK;
}

static void
append_name(char *names, size_t names_bytes, const char *name)
{
    size_t used = strlen(names);

    (void)snprintf(names + used, names_bytes - used, "%s%s", used == 0 ? "" : ", ", name);
}

static enum uc_status
open_choice(struct ibv_device **devices, const struct choice *choice, struct uc_fabric *fabric)
{
    enum uc_status status = UC_ERR_UNSUPPORTED;
    char names[NAMES_BYTES] = "";
    bool tried = false;

    for (size_t idx = 0; devices[idx] != NULL; idx++) {
        const char *name = ibv_get_device_name(devices[idx]);

        append_name(names, sizeof(names), name);
        if (choice->name[0] != '\0' && strcmp(choice->name, name) != 0) {
            continue;
        }
        tried = true;
        status = try_open(devices[idx], choice->port, fabric);
        if (status == UC_OK) {
            return UC_OK;
        }
    }

    if (!tried) {
        return uc_error(UC_ERR_UNSUPPORTED, "verbs: no RDMA device %s; this machine has %s",
                choice->name, names[0] == '\0' ? "none" : names);
    }
    return status;
}

enum uc_status
uc_verbs_device_open(const struct uc_fabric_config *config, struct uc_fabric *fabric)
{
    struct choice choice = {.port = 0};
    struct ibv_device **devices;
    enum uc_status status = UC_OK;
    int count = 0;

    devices = ibv_get_device_list(&count);
    if (devices == NULL || count == 0) {
        status = uc_error(UC_ERR_UNSUPPORTED, "verbs: this machine has no RDMA device%s%s",
                devices == NULL ? ": " : "", devices == NULL ? strerror(errno) : "");
        goto out;
    }

    status = remember_address(fabric, config->address);
    if (status != UC_OK) {
        goto out;
    }
    if (config->device != NULL) {
        status = choose_by_name(config->device, &choice);
    } else if (config->address != NULL) {
        status = choose_by_route(fabric, config, &choice);
    }
    if (status == UC_OK) {
        status = open_choice(devices, &choice, fabric);
    }

out:
    if (devices != NULL) {
        ibv_free_device_list(devices);
    }
    return status;
}
