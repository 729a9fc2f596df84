/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/attachment_connect.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/cluster/dial.h"
#include "client/stores/remote/plane_internal.h"
#include "core/base/bytes.h"
#include "net/slot_footer.h"

static_assert(UC_FABRICS_MAX <= 32, "failed_offers has a bit for each");

enum {
    ADDRESS_BYTES = 256,
    REGION_KEY_BYTES = 16, /* per region in an attach reply: address, key */
};

static void
on_rpc_closed(void *context, struct uc_rpc_connection *connection, enum uc_status reason)
{
    struct uc_attachment *attachment = context;

    (void)connection;
    (void)reason;
    attachment->rpc_dead = true;
}

static const struct uc_rpc_handler attachment_handler = {.on_closed = on_rpc_closed};

/* The offers of the server that this side could use, in one copy that outlives the message. */
static void
note_fabrics(struct uc_attachment *attachment, const struct uc_attach_reply *reply)
{
    attachment->offer_count = 0;
    for (size_t idx = 0; idx < reply->fabric_count; idx++) {
        const struct uc_attach_fabric *fabric = &reply->fabrics[idx];
        struct uc_attachment_offer *offer = &attachment->offers[attachment->offer_count];

        if (fabric->name.length >= sizeof(offer->name) ||
                fabric->address.length >= sizeof(offer->address)) {
            continue;
        }
        memcpy(offer->name, fabric->name.bytes, fabric->name.length);
        offer->name[fabric->name.length] = '\0';
        memcpy(offer->address, fabric->address.bytes, fabric->address.length);
        offer->address[fabric->address.length] = '\0';
        offer->port = fabric->port;
        offer->keys = malloc(reply->region_count * REGION_KEY_BYTES + 1);
        if (offer->keys == NULL) {
            continue;
        }
        if (reply->region_count > 0) {
            memcpy(offer->keys, fabric->keys, reply->region_count * REGION_KEY_BYTES);
        }
        attachment->offer_count++;
    }
}

static void
drop_offers(struct uc_attachment *attachment)
{
    for (size_t idx = 0; idx < attachment->offer_count; idx++) {
        free(attachment->offers[idx].keys);
    }
    attachment->offer_count = 0;
}

static enum uc_status
check_reply(const struct uc_attachment *attachment, const struct uc_attach_reply *reply)
{
    const struct uc_remote_config *config = attachment->plane->config;

    if (reply->incarnation != attachment->incarnation) {
        return uc_error(UC_ERR_STALE, "server %s: it has been restarted since the token was made",
                attachment->server->name);
    }
    if (reply->lease_ms == 0 || reply->block_bytes == 0 || reply->slot_bytes < reply->block_bytes ||
            reply->slot_bytes - reply->block_bytes < UC_FOOTER_BYTES || reply->region_count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "server %s: attach answered with sizes that make no sense",
                attachment->server->name);
    }
    if (config->servers.count > 1 && reply->block_bytes != attachment->plane->block_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "server %s: its blocks have another size than those of the other servers",
                attachment->server->name);
    }

    return UC_OK;
}

static enum uc_status
accept_reply(struct uc_attachment *attachment, struct uc_rpc_view result)
{
    struct uc_attach_reply reply;
    enum uc_status status = uc_attach_reply_decode(result, &reply);

    if (status == UC_OK) {
        status = check_reply(attachment, &reply);
    }
    if (status != UC_OK) {
        return status;
    }

    free(attachment->regions);
    attachment->region_count = 0;
    attachment->regions = calloc(reply.region_count, sizeof(attachment->regions[0]));
    if (attachment->regions == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "server %s: no memory for %zu regions",
                attachment->server->name, reply.region_count);
    }
    attachment->region_count = reply.region_count;
    for (size_t idx = 0; idx < reply.region_count; idx++) {
        attachment->regions[idx].length_bytes = uc_get_le64(reply.region_lengths + 8 * idx);
    }
    attachment->lease_ms = reply.lease_ms;
    attachment->block_bytes = reply.block_bytes;
    attachment->slot_bytes = reply.slot_bytes;
    attachment->access = reply.access;
    memcpy(attachment->mac_key, reply.mac_key, sizeof(attachment->mac_key));
    memcpy(attachment->nonce, reply.nonce, sizeof(attachment->nonce));
    drop_offers(attachment);
    note_fabrics(attachment, &reply);
    return UC_OK;
}

static void
on_attach_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct uc_attachment *attachment = context;

    if (status == UC_OK) {
        status = accept_reply(attachment, result);
        uc_attachment_answered(attachment, attachment->attach_sent_ms);
    }
    attachment->attach_status = status;
    attachment->attach_done = true;
}

static enum uc_status
send_attach(struct uc_attachment *attachment)
{
    const struct uc_remote_config *config = attachment->plane->config;
    struct uc_rpc_buffer *params = &attachment->plane->params;
    struct uc_attach_request request = {
            .version = UC_PROTOCOL_VERSION,
            .incarnation = attachment->incarnation,
            .client = {.bytes = config->client_name, .length = strlen(config->client_name)},
    };

    memcpy(request.attach_key, attachment->attach_key, sizeof(request.attach_key));
    uc_rpc_buffer_reset(params);
    uc_attach_request_encode(params, &request);
    return uc_rpc_call(attachment->rpc, UC_RPC_ATTACH, params,
            uc_time_add_ms(config->connect_timeout_ms, config->rpc_timeout_ms), on_attach_reply,
            attachment);
}

/* Wrap a connecting socket, watch it, and queue the attach call on it. */
static enum uc_status
take_socket(struct uc_attachment *attachment, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = attachment};
    enum uc_status status = uc_rpc_connection_create(
            fd, &attachment_handler, attachment, UC_RPC_FRAME_BYTES_DEFAULT, &attachment->rpc);

    if (status != UC_OK) {
        (void)close(fd);
        return status;
    }
    attachment->rpc_dead = false;
    attachment->rpc_ready = false;
    attachment->rpc_events = event.events;
    if (epoll_ctl(attachment->plane->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        status = uc_log_errno(errno, "remote store: epoll_ctl");
    } else {
        status = send_attach(attachment);
    }
    if (status != UC_OK) {
        uc_attachment_drop_rpc(attachment);
    }
    return status;
}

enum uc_status
uc_attachment_dial(struct uc_attachment *attachment, uint64_t now_ms)
{
    enum uc_status status;
    int fd = -1;

    attachment->attach_done = false;
    attachment->fabric_noted = false;
    attachment->ping_pending = false;
    attachment->failure = NULL;
    attachment->answered_ms = 0;
    attachment->attach_sent_ms = now_ms;
    attachment->state = UC_ATTACHMENT_ATTACHING;
    for (;;) {
        status = uc_dial_start(
                attachment->server, attachment->address_idx, &fd, &attachment->address_count);
        if (status == UC_OK) {
            status = take_socket(attachment, fd);
        }
        if (status == UC_OK || attachment->address_idx + 1 >= attachment->address_count) {
            return status;
        }
        attachment->address_idx++;
    }
}

void
uc_attachment_drop_rpc(struct uc_attachment *attachment)
{
    if (attachment->rpc != NULL) {
        /* Closing would not do it while a process forked from this one has the socket open as well. */
        (void)epoll_ctl(attachment->plane->epoll_fd, EPOLL_CTL_DEL,
                uc_rpc_connection_fd(attachment->rpc), NULL);
    }
    uc_rpc_connection_destroy(attachment->rpc);
    attachment->rpc = NULL;
    attachment->rpc_dead = false;
    attachment->rpc_ready = false;
    attachment->ping_pending = false;
}

void
uc_attachment_drop_endpoint(struct uc_attachment *attachment)
{
    const struct uc_transport *transport =
            &attachment->plane->transports.items[attachment->transport];

    if (attachment->endpoint != NULL) {
        transport->ops->disconnect(attachment->endpoint);
        attachment->endpoint = NULL;
    }
    attachment->fabric_noted = false;
}

static void
on_fabric_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    struct uc_attachment *attachment = context;

    (void)endpoint;
    attachment->fabric_status = status;
    attachment->fabric_noted = true;
}

static bool
is_avoided(const struct uc_attachment *attachment, size_t id)
{
    return attachment->avoid[id] || uc_transports_has_given_up(&attachment->plane->transports, id);
}

/*
 * The best transport that both sides have, at the first of the server's addresses that has not failed.
 * @return the offer, or NULL
 */
static const struct uc_attachment_offer *
choose_transport(struct uc_attachment *attachment, enum uc_transport_id *id_out)
{
    const struct uc_transports *transports = &attachment->plane->transports;

    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        const struct uc_transport *transport = &transports->items[id];

        if (transport->fabric == NULL || is_avoided(attachment, id)) {
            continue;
        }
        for (size_t idx = 0; idx < attachment->offer_count; idx++) {
            if ((attachment->failed_offers & UINT32_C(1) << idx) == 0 &&
                    strcmp(attachment->offers[idx].name, transport->ops->name) == 0) {
                attachment->offer_idx = idx;
                *id_out = (enum uc_transport_id)id;
                return &attachment->offers[idx];
            }
        }
    }

    return NULL;
}

/* The address that the data connection reached, in digits. */
static void
peer_address(const struct uc_attachment *attachment, char *text, size_t text_bytes)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    int fd = uc_rpc_connection_fd(attachment->rpc);

    if (getpeername(fd, (struct sockaddr *)&address, &length) != 0 ||
            address.ss_family == AF_UNIX ||
            getnameinfo((const struct sockaddr *)&address, length, text, (socklen_t)text_bytes,
                    NULL, 0, NI_NUMERICHOST) != 0) {
        (void)snprintf(text, text_bytes, "127.0.0.1");
    }
}

bool
uc_attachment_skip_offer(struct uc_attachment *attachment)
{
    const char *name = attachment->offers[attachment->offer_idx].name;

    attachment->failed_offers |= UINT32_C(1) << attachment->offer_idx;
    for (size_t idx = 0; idx < attachment->offer_count; idx++) {
        if ((attachment->failed_offers & UINT32_C(1) << idx) == 0 &&
                strcmp(attachment->offers[idx].name, name) == 0) {
            return true;
        }
    }
    attachment->failed_offers = 0;
    return false;
}

static enum uc_status
no_transport(const struct uc_attachment *attachment)
{
    const struct uc_transports *transports = &attachment->plane->transports;
    char names[ADDRESS_BYTES] = "none";
    const char *given_up = "";
    size_t length = 0;

    for (size_t idx = 0; idx < attachment->offer_count && length < sizeof(names); idx++) {
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                idx == 0 ? "" : ", ", attachment->offers[idx].name);
    }
    for (size_t id = 0; id < UC_TRANSPORT_COUNT; id++) {
        if (uc_transports_has_given_up(transports, id)) {
            given_up = ", but a registration of memory failed here, see above";
        }
    }
    return uc_error(UC_ERR_UNSUPPORTED,
            "server %s: no transport in common with `fabric: %s`; the server offers %s%s",
            attachment->server->name, attachment->plane->config->fabric_text, names, given_up);
}

static void
offer_address(const struct uc_attachment *attachment, const struct uc_attachment_offer *offer,
        char *text, size_t text_bytes)
{
    if (offer->address[0] != '\0') {
        (void)snprintf(text, text_bytes, "%s", offer->address);
    } else {
        peer_address(attachment, text, text_bytes);
    }
}

void
uc_attachment_note_transport(const struct uc_attachment *attachment)
{
    const struct uc_attachment_offer *offer = &attachment->offers[attachment->offer_idx];
    const char *name = attachment->plane->transports.items[attachment->transport].ops->name;
    const char *previous =
            atomic_exchange_explicit(&attachment->plane->fabric_name, name, memory_order_relaxed);
    char address[ADDRESS_BYTES];

    if (previous == NULL || strcmp(previous, name) != 0) {
        offer_address(attachment, offer, address, sizeof(address));
        uc_log_info("remote store: server %s: blocks move over %s (%s port %u)",
                attachment->server->name, name, address, (unsigned)offer->port);
    }
}

static enum uc_status
connect_offer(struct uc_attachment *attachment, const struct uc_attachment_offer *offer)
{
    struct uc_data_plane *plane = attachment->plane;
    const struct uc_transport *transport = &plane->transports.items[attachment->transport];
    struct uc_fabric_connect params = {
            .port = offer->port,
            .nonce = attachment->nonce,
            .regions = attachment->regions,
            .region_count = attachment->region_count,
            .timeout_ms = plane->config->connect_timeout_ms,
            .on_state = on_fabric_state,
            .context = attachment,
    };
    char address[ADDRESS_BYTES];
    enum uc_status status;

    for (size_t idx = 0; idx < attachment->region_count; idx++) {
        attachment->regions[idx].address = uc_get_le64(offer->keys + REGION_KEY_BYTES * idx);
        attachment->regions[idx].key = uc_get_le64(offer->keys + REGION_KEY_BYTES * idx + 8);
    }
    offer_address(attachment, offer, address, sizeof(address));
    params.address = address;
    status = transport->ops->connect(transport->domain, &params, &attachment->endpoint);
    if (status == UC_OK) {
        attachment->state = UC_ATTACHMENT_CONNECTING;
    }
    return status;
}

enum uc_status
uc_attachment_connect_fabric(struct uc_attachment *attachment)
{
    const struct uc_transports *transports = &attachment->plane->transports;

    for (;;) {
        const struct uc_attachment_offer *offer =
                choose_transport(attachment, &attachment->transport);
        enum uc_status status;

        if (offer == NULL) {
            return no_transport(attachment);
        }
        status = connect_offer(attachment, offer);
        if (status != UC_ERR_UNSUPPORTED || !transports->is_auto) {
            return status;
        }
        /* An offer that is not for us, such as shared memory of another host. */
        uc_log_debug("server %s: %s", attachment->server->name, uc_last_error());
        attachment->avoid[attachment->transport] = true;
    }
}
