/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/shm/shm_object.h"

/* @return 0 when connected, else errno. A unix socket connects at once, or its listener's queue is full. */
static int
start_connecting(struct uc_shm_client *client)
{
    const struct uc_shm_address *address = &client->address;
    int error;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return errno;
    }
    if (connect(fd, (const struct sockaddr *)&address->socket, address->length_bytes) != 0) {
        error = errno;
        (void)close(fd);
        return error;
    }
    if (!uc_shm_peer_is_trusted(fd)) {
        (void)close(fd);
        return EACCES;
    }
    if (uc_shm_endpoint_watch(&client->base, fd) != UC_OK) {
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
                "shm: connect: %s; raise the limit of open files (ulimit -n)", strerror(error));
    }
    if (error == EACCES) {
        return uc_error(UC_ERR_PERMISSION_DENIED,
                "shm: connect: the server runs as another user; use fabric tcp, or run both as the "
                "same one");
    }

    return uc_error(UC_ERR_UNHEALTHY, "shm: connect: %s; is the server up?", strerror(error));
}

static enum uc_status
send_hello(struct uc_shm_client *client)
{
    uint8_t hello[UC_SHM_HELLO_BYTES];
    enum uc_shm_io io;

    uc_shm_hello_put(hello, client->nonce);
    io = uc_shm_send(client->base.source.fd, hello, sizeof(hello), &client->pages_fd, 1);
    (void)close(client->pages_fd);
    client->pages_fd = -1;
    return io == UC_SHM_MOVED ? UC_OK : connect_error(ECONNRESET);
}

/* @return UC_OK when under way, be it that it has to be tried again */
static enum uc_status
attempt(struct uc_shm_client *client)
{
    struct uc_source *source = &client->base.source;
    int error = start_connecting(client);
    enum uc_status status;

    if (error == EAGAIN) {
        uint64_t next_ms = uc_time_add_ms(uc_clock_now_ms(&source->turns->clock), UC_SHM_RETRY_MS);

        uc_source_expire_at(source, next_ms < client->give_up_ms ? next_ms : client->give_up_ms);
        return UC_OK;
    }

    status = error == 0 ? send_hello(client) : connect_error(error);
    if (status == UC_OK) {
        client->base.state = UC_SHM_GREETING;
        uc_source_expire_at(source, client->give_up_ms);
    }
    return status;
}

static void
flush_queue(struct uc_fabric_op *op)
{
    while (op != NULL) {
        struct uc_fabric_op *next = op->next;

        op->on_done(op, UC_ERR_UNHEALTHY);
        op = next;
    }
}

static void
unmap_all(struct uc_shm_client *client)
{
    if (client->pages_fd >= 0) {
        (void)close(client->pages_fd);
        client->pages_fd = -1;
    }
    uc_shm_pages_destroy(client->pages, sizeof(struct uc_shm_client_pages));
    client->pages = NULL;
    uc_shm_unmap(&client->server_page);
    uc_shm_unmap(&client->rows);
    for (size_t idx = 0; idx < client->file_count; idx++) {
        uc_shm_unmap(&client->files[idx]);
    }
    client->file_count = 0;
}

void
uc_shm_client_close(struct uc_shm_client *client)
{
    struct uc_fabric_op *reads = client->reads.first;
    struct uc_fabric_op *writes = client->writes.first;

    client->base.state = UC_SHM_CLOSED;
    uc_source_close(&client->base.source);
    uc_list_remove(&client->waiting_node);
    unmap_all(client);
    client->reads = (struct uc_shm_queue){.first = NULL};
    client->writes = (struct uc_shm_queue){.first = NULL};
    client->unsent = NULL;
    flush_queue(reads);
    flush_queue(writes);
}

void
uc_shm_client_fail(struct uc_shm_client *client, enum uc_status status)
{
    uc_shm_client_close(client);
    client->on_state(client->context, &client->base, status);
}

static struct uc_shm_client *
client_of(struct uc_source *source)
{
    return uc_list_entry(source, struct uc_shm_client, base.source);
}

/* Try again, or not connected in time. */
static void
on_expire(struct uc_source *source)
{
    struct uc_shm_client *client = client_of(source);
    enum uc_status status;

    if (client->base.state == UC_SHM_CONNECTING &&
            uc_clock_now_ms(&client->base.source.turns->clock) < client->give_up_ms) {
        status = attempt(client);
        if (status != UC_OK) {
            uc_shm_client_fail(client, status);
        }
        return;
    }

    (void)uc_error(UC_ERR_TIMEOUT, "shm: connect: no answer in time; is the server up?");
    uc_shm_client_fail(client, UC_ERR_TIMEOUT);
}

/* Map a whole file that the server has shown, if it is fit for that. */
static enum uc_status
map_file(int fd, uint64_t least_bytes, struct uc_shm_mapping *mapping_out)
{
    uint64_t length_bytes = uc_shm_file_bytes(fd);
    enum uc_status status = uc_shm_file_check(
            fd, 0, least_bytes > length_bytes ? least_bytes : length_bytes, false);

    return status != UC_OK ? status : uc_shm_map(fd, 0, length_bytes, mapping_out);
}

static enum uc_status
map_all(struct uc_shm_client *client, const struct uc_shm_fds *fds, size_t file_count)
{
    enum uc_status status =
            map_file(fds->fds[0], sizeof(struct uc_shm_server_page), &client->server_page);

    if (status == UC_OK && fds->count > 1) {
        status = map_file(fds->fds[1], UC_SHM_ROWS_BYTES, &client->rows);
    }
    for (size_t idx = 0; idx < file_count && status == UC_OK; idx++) {
        status = map_file(fds->fds[2 + idx], 1, &client->files[idx]);
        client->file_count += status == UC_OK;
    }
    return status;
}

static void
answered(struct uc_shm_client *client, const uint8_t *bytes, size_t length,
        const struct uc_shm_fds *fds)
{
    struct uc_shm_answer answer;
    enum uc_status status = uc_shm_answer_get(bytes, length, &answer);

    if (status == UC_OK && answer.status != UC_OK) {
        (void)uc_error(answer.status, "shm: connect: refused by the server (%s)%s",
                uc_status_name(answer.status),
                answer.status == UC_ERR_UNSUPPORTED ? "; use the same release on both sides"
                : answer.status == UC_ERR_PERMISSION_DENIED
                        ? "; attach again for a fresh nonce, and run both as the same user"
                        : "");
        uc_shm_client_fail(client, answer.status);
        return;
    }
    if (status != UC_OK || fds->count < 1 ||
            fds->count != 1 + (answer.file_count > 0 ? 1 : 0) + (size_t)answer.file_count) {
        (void)uc_error(UC_ERR_UNHEALTHY, "shm: connect: the peer is no ucm server");
        uc_shm_client_fail(client, UC_ERR_UNHEALTHY);
        return;
    }
    status = map_all(client, fds, answer.file_count);
    if (status != UC_OK) {
        uc_shm_client_fail(client, status);
        return;
    }

    uc_source_never_expire(&client->base.source);
    client->base.state = UC_SHM_READY;
    client->on_state(client->context, &client->base, UC_OK);
}

static void
lost(struct uc_shm_client *client)
{
    (void)uc_error(UC_ERR_UNHEALTHY,
            client->base.state == UC_SHM_GREETING
                    ? "shm: connect: the server closed the connection before it answered"
                    : "shm: the connection to the server is lost");
    uc_shm_client_fail(client, UC_ERR_UNHEALTHY);
}

/* Take what the server has sent. The state tells whether the client goes on. */
static void
receive_packets(struct uc_shm_client *client)
{
    struct uc_source *source = &client->base.source;

    for (size_t count = 0; count < (size_t)UC_SHM_PACKETS_PER_TURN; count++) {
        uint8_t bytes[UC_SHM_PACKET_BYTES];
        struct uc_shm_packet packet;
        struct uc_shm_fds fds;
        size_t length = 0;
        enum uc_shm_io io = uc_shm_receive(source->fd, bytes, &length, &fds);

        if (io == UC_SHM_BLOCKED) {
            source->readable = false;
            return;
        }
        if (io == UC_SHM_LOST) {
            lost(client);
            return;
        }
        if (client->base.state == UC_SHM_GREETING) {
            answered(client, bytes, length, &fds);
        } else if (uc_shm_packet_get(bytes, length, &packet) != UC_OK) {
            (void)uc_error(UC_ERR_UNHEALTHY,
                    "shm: the server sent something malformed; is it of the same release?");
            uc_shm_client_fail(client, UC_ERR_UNHEALTHY);
        } else if (packet.kind == UC_SHM_VERDICT) {
            uc_shm_client_verdict(client, &packet);
        }
        uc_shm_fds_close(&fds);
        if (client->base.state != UC_SHM_READY) {
            return;
        }
    }
}

static bool
transfer(struct uc_shm_client *client, size_t *budget)
{
    size_t left_bytes = UC_SHM_TURN_BYTES;
    bool more;

    uc_shm_client_forget_retired(client);
    more = uc_shm_client_reap(client, budget);
    if (client->base.state == UC_SHM_READY) {
        more = uc_shm_client_send(client, &left_bytes) || more;
        more = uc_shm_client_read(client, &left_bytes, budget) || more;
    }
    if (client->base.state != UC_SHM_READY) {
        return false;
    }

    uc_list_remove(&client->waiting_node);
    if (client->done != client->queued) {
        uc_list_add(&client->base.fabric->waiting, &client->waiting_node);
    }
    return more || client->base.source.readable;
}

static bool
on_turn(struct uc_source *source, size_t *budget)
{
    struct uc_shm_client *client = client_of(source);
    enum uc_shm_state before = client->base.state;

    if (client->early_status != UC_OK && before == UC_SHM_CONNECTING) {
        *budget -= 1;
        uc_shm_client_fail(client, client->early_status);
        return false;
    }
    if (client->base.source.readable) {
        receive_packets(client);
        *budget -= client->base.state != before ? 1 : 0;
    }
    if (client->base.state != UC_SHM_READY) {
        return false;
    }
    if (*budget == 0) {
        return true;
    }

    return transfer(client, budget);
}

static const struct uc_source_ops client_ops = {
        .event = uc_shm_endpoint_event,
        .turn = on_turn,
        .expire = on_expire,
};

static struct uc_shm_client *
client_create(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params)
{
    struct uc_shm_client *client = NULL;
    size_t key_bytes = sizeof(struct uc_fabric_region_key);
    void *pages = NULL;

    if (params->region_count <= UC_REGION_LIMIT) {
        client = calloc(1, sizeof(*client) + params->region_count * key_bytes);
    }
    if (client == NULL) {
        (void)uc_error(UC_ERR_OUT_OF_MEMORY,
                "shm: no memory for a connection with %zu regions; free some",
                params->region_count);
        return NULL;
    }
    if (uc_shm_pages_create("ucm-requests", sizeof(struct uc_shm_client_pages), &client->pages_fd,
                &pages) != UC_OK) {
        free(client);
        return NULL;
    }

    uc_shm_endpoint_init(&client->base, domain->fabric, &client_ops);
    uc_list_init(&client->waiting_node);
    client->base.domain = domain;
    client->base.is_initiator = true;
    client->base.state = UC_SHM_CONNECTING;
    client->pages = pages;
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
uc_shm_connect(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params,
        struct uc_fabric_endpoint **endpoint_out)
{
    struct uc_fabric *fabric = domain->fabric;
    struct uc_shm_client *client;
    struct uc_shm_address address;
    enum uc_status status;

    if (params->address == NULL || params->nonce == NULL || params->on_state == NULL ||
            (params->regions == NULL && params->region_count > 0)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "shm: connect needs an address, a nonce, regions and a state callback");
    }
    status = uc_shm_address_parse(params->address, &address);
    if (status != UC_OK) {
        return status;
    }
    client = client_create(domain, params);
    if (client == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    client->address = address;
    client->give_up_ms = uc_time_add_ms(uc_clock_now_ms(&fabric->turns.clock), params->timeout_ms);
    /* A failure that is known at once is told by the first turn, like every other. */
    client->early_status = attempt(client);
    if (client->early_status != UC_OK) {
        uc_source_wake(&client->base.source);
    }
    domain->endpoint_count++;
    fabric->endpoint_count++;
    *endpoint_out = &client->base;
    return UC_OK;
}
