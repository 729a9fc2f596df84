/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/tcp/tcp_object.h"

/* @return 0 when the attempt is under way, else errno; CONNECTING ends with an event. */
static int
start_connecting(struct uc_tcp_client *client)
{
    const struct uc_tcp_address *address = &client->addresses[client->address_idx];
    struct uc_tcp_source *source = &client->base.source;
    const int on = 1;
    int error;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return errno;
    }

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (const struct sockaddr *)&address->storage, address->length_bytes) != 0 &&
            errno != EINPROGRESS) {
        error = errno;
        (void)close(fd);
        return error;
    }
    if (uc_tcp_source_watch(source, fd) != UC_OK) {
        (void)close(fd);
        return ENOMEM;
    }

    return 0;
}

static enum uc_status
connect_error(int error)
{
    if (error == EMFILE || error == ENFILE) {
        return uc_error(UC_ERR_OS_API,
                "tcp: connect: %s; raise the limit of open files (ulimit -n)", strerror(error));
    }

    return uc_error(UC_ERR_UNHEALTHY,
            "tcp: connect: %s; is the server up, and the port reachable from here?",
            strerror(error));
}

/* Try addresses from the current one on. @return UC_OK when an attempt is under way */
static enum uc_status
try_addresses(struct uc_tcp_client *client)
{
    int error = ECONNREFUSED;

    while (client->address_idx < client->address_count) {
        error = start_connecting(client);
        if (error == 0) {
            return UC_OK;
        }
        client->address_idx++;
    }

    return connect_error(error);
}

static struct uc_tcp_client *
client_create(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params)
{
    struct uc_tcp_client *client = NULL;
    size_t key_bytes = sizeof(struct uc_fabric_region_key);

    if (params->region_count <= UC_REGION_LIMIT) {
        client = calloc(1, sizeof(*client) + params->region_count * key_bytes);
    }
    if (client == NULL) {
        return NULL;
    }

    uc_tcp_source_init(&client->base.source, domain->fabric, UC_TCP_CLIENT);
    client->base.domain = domain;
    client->base.state = UC_TCP_CONNECTING;
    client->on_state = params->on_state;
    client->context = params->context;
    client->regions = (struct uc_fabric_region_key *)(client + 1);
    client->region_count = params->region_count;
    if (params->region_count > 0) {
        memcpy(client->regions, params->regions, params->region_count * key_bytes);
    }
    memcpy(client->nonce, params->nonce, sizeof(client->nonce));
    return client;
}

enum uc_status
uc_tcp_connect(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params,
        struct uc_fabric_endpoint **endpoint_out)
{
    struct uc_fabric *fabric = domain->fabric;
    struct uc_tcp_client *client;
    enum uc_status status;

    if (params->address == NULL || params->nonce == NULL || params->port == 0 ||
            params->on_state == NULL || (params->regions == NULL && params->region_count > 0)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "tcp: connect needs an address, a port, a nonce, regions and a state callback");
    }

    client = client_create(domain, params);
    if (client == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY,
                "tcp: no memory for a connection with %zu regions; free some",
                params->region_count);
    }

    status = uc_tcp_fabric_resolve(
            fabric, params->address, params->port, client->addresses, &client->address_count);
    if (status != UC_OK) {
        free(client);
        return status;
    }

    /* A failure that is known at once is told by the first turn, like every other. */
    client->early_status = try_addresses(client);
    if (client->early_status != UC_OK) {
        uc_tcp_source_wake(&client->base.source);
    }
    uc_tcp_source_set_deadline(&client->base.source,
            uc_time_add_ms(uc_clock_now_ms(&fabric->clock), params->timeout_ms));
    domain->endpoint_count++;
    fabric->endpoint_count++;
    *endpoint_out = &client->base;
    return UC_OK;
}

static enum uc_status
check_pieces(const struct uc_tcp_client *client, const struct uc_fabric_op *op)
{
    for (size_t idx = 0; idx < op->piece_count; idx++) {
        const struct uc_fabric_region *region = op->pieces[idx].region;

        if (region == NULL) {
            continue;
        }
        if (region->domain != client->base.domain ||
                !uc_region_covers_piece(region->address, region->length_bytes, &op->pieces[idx])) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "fabric post: piece %zu of %zu is not inside its region", idx, op->piece_count);
        }
    }
    return UC_OK;
}

enum uc_status
uc_tcp_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list)
{
    struct uc_tcp_client *client = (struct uc_tcp_client *)endpoint;
    struct uc_fabric_op *last = NULL;

    if (endpoint->source.kind != UC_TCP_CLIENT) {
        return uc_error(UC_ERR_INVALID_PARAM, "fabric post: only the initiator posts");
    }
    if (endpoint->state == UC_TCP_CLOSED) {
        return uc_error(UC_ERR_UNHEALTHY, "fabric post: the connection is gone; connect again");
    }

    /* All or nothing: everything that can be refused is looked at before anything changes. */
    for (struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        enum uc_status status = uc_fabric_op_check(
                op, client->regions, client->region_count, &uc_tcp_caps, &op->provider_data[1]);

        if (status == UC_OK) {
            status = check_pieces(client, op);
        }
        if (status != UC_OK) {
            return status;
        }
        last = op;
    }
    if (last == NULL) {
        return UC_OK;
    }

    for (struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        op->provider_data[0] = client->next_sequence++;
        if (op->opcode == UC_FABRIC_FLUSH) {
            op->provider_data[1] = 0;
        }
    }
    if (client->first == NULL) {
        client->first = list;
    } else {
        client->last->next = list;
    }
    client->last = last;
    if (client->unsent == NULL) {
        client->unsent = list;
        client->sent_bytes = 0;
        client->source_cursor = (struct uc_tcp_cursor){.piece = list->pieces};
    }
    uc_tcp_source_wake(&endpoint->source);
    return UC_OK;
}

void
uc_tcp_client_close(struct uc_tcp_client *client)
{
    struct uc_fabric_op *op = client->first;

    client->base.state = UC_TCP_CLOSED;
    uc_tcp_source_close(&client->base.source, true);
    client->first = NULL;
    client->last = NULL;
    client->unsent = NULL;
    client->rx_left_bytes = 0;
    while (op != NULL) {
        struct uc_fabric_op *next = op->next;

        op->on_done(op, UC_ERR_UNHEALTHY);
        op = next;
    }
}

void
uc_tcp_client_fail(struct uc_tcp_client *client, enum uc_status status)
{
    uc_tcp_client_close(client);
    client->on_state(client->context, &client->base, status);
}

void
uc_tcp_client_expire(struct uc_tcp_client *client)
{
    (void)uc_error(UC_ERR_TIMEOUT,
            "tcp: connect: no answer in time; is the server up, and the port reachable from here?");
    uc_tcp_client_fail(client, UC_ERR_TIMEOUT);
}

/* The handshake ended, well or not. @return whether the hello is on its way */
static bool
finish_connecting(struct uc_tcp_client *client)
{
    struct uc_tcp_source *source = &client->base.source;
    uint8_t hello[UC_TCP_HELLO_BYTES];
    struct iovec iov = {.iov_base = hello, .iov_len = sizeof(hello)};
    size_t done_bytes = 0;
    socklen_t length_bytes = sizeof(int);
    enum uc_status status;
    int error = 0;

    if (!source->writable) {
        return false;
    }

    if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &length_bytes) != 0) {
        error = errno;
    }
    if (error == 0) {
        uc_tcp_hello_put(hello, client->nonce);
        if (uc_tcp_source_send(source, &iov, 1, sizeof(hello), &done_bytes) == UC_TCP_MOVED &&
                done_bytes == sizeof(hello)) {
            client->base.state = UC_TCP_GREETING;
            return true;
        }
        error = source->lost_errno == 0 ? EPIPE : source->lost_errno;
    }

    (void)close(source->fd);
    source->fd = -1;
    client->address_idx++;
    if (client->address_idx >= client->address_count) {
        uc_tcp_client_fail(client, connect_error(error));
        return false;
    }

    status = try_addresses(client);
    if (status != UC_OK) {
        uc_tcp_client_fail(client, status);
    }
    return false;
}

static void
answered(struct uc_tcp_client *client, const uint8_t *bytes)
{
    enum uc_status status;

    if (uc_tcp_answer_get(bytes, &status) != UC_OK) {
        (void)uc_error(UC_ERR_UNHEALTHY,
                "tcp: connect: the peer is no ucm server; check the address and the fabric port");
        uc_tcp_client_fail(client, UC_ERR_UNHEALTHY);
        return;
    }
    if (status != UC_OK) {
        (void)uc_error(status, "tcp: connect: refused by the server (%s)%s", uc_status_name(status),
                status == UC_ERR_UNSUPPORTED ? "; use the same release on both sides"
                                             : "; attach again for a fresh nonce");
        uc_tcp_client_fail(client, status);
        return;
    }

    uc_list_remove(&client->base.source.timed_node);
    client->base.state = UC_TCP_READY;
    client->on_state(client->context, &client->base, UC_OK);
}

static void
receive_answer(struct uc_tcp_client *client)
{
    struct uc_fabric_endpoint *endpoint = &client->base;
    const uint8_t *bytes;

    while ((bytes = uc_tcp_endpoint_take(endpoint, UC_TCP_ANSWER_BYTES)) == NULL) {
        struct iovec iov = uc_tcp_endpoint_rx_room(endpoint);
        size_t done_bytes;

        switch (uc_tcp_source_receive(&endpoint->source, &iov, 1, iov.iov_len, &done_bytes)) {
        case UC_TCP_MOVED:
            endpoint->rx_end += done_bytes;
            break;
        case UC_TCP_BLOCKED:
            return;
        case UC_TCP_LOST:
            (void)uc_error(UC_ERR_UNHEALTHY,
                    "tcp: connect: the server closed the connection before it answered (%s)",
                    endpoint->source.lost_errno == 0 ? "end of stream"
                                                     : strerror(endpoint->source.lost_errno));
            uc_tcp_client_fail(client, UC_ERR_UNHEALTHY);
            return;
        }
    }

    answered(client, bytes);
}

bool
uc_tcp_client_turn(struct uc_tcp_client *client, size_t *budget)
{
    enum uc_tcp_state before = client->base.state;

    if (client->early_status != UC_OK && before == UC_TCP_CONNECTING) {
        *budget -= 1;
        uc_tcp_client_fail(client, client->early_status);
        return false;
    }
    if (client->base.state == UC_TCP_CONNECTING && !finish_connecting(client)) {
        *budget -= client->base.state == UC_TCP_CLOSED ? 1 : 0;
        return false;
    }
    if (client->base.state == UC_TCP_GREETING) {
        receive_answer(client);
        *budget -= client->base.state != UC_TCP_GREETING ? 1 : 0;
    }
    if (client->base.state != UC_TCP_READY) {
        return false;
    }
    if (*budget == 0) {
        return true;
    }

    return uc_tcp_client_transfer(client, budget);
}
