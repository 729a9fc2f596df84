/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/tcp/tcp_target.h"

static int
bound_socket(const struct uc_tcp_address *address, bool dual_stack)
{
    const int on = 1;
    const int off = 0;
    int saved_errno;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (dual_stack && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0) {
        goto err_close_fd;
    }
    if (bind(fd, (const struct sockaddr *)&address->storage, address->length_bytes) != 0 ||
            listen(fd, UC_ACCEPTOR_BACKLOG) != 0) {
        goto err_close_fd;
    }

    return fd;

err_close_fd:
    saved_errno = errno;
    (void)close(fd);
    errno = saved_errno;
    return -1;
}

/* Both families where the machine has IPv6, else IPv4 alone. */
static int
any_address_socket(uint16_t port)
{
    struct uc_tcp_address address = {.length_bytes = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address.storage;
    struct sockaddr_in *four = (struct sockaddr_in *)&address.storage;
    int fd;

    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    fd = bound_socket(&address, true);
    if (fd >= 0 || errno == EADDRINUSE || errno == EACCES) {
        return fd;
    }

    memset(&address, 0, sizeof(address));
    address.length_bytes = sizeof(struct sockaddr_in);
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return bound_socket(&address, false);
}

static enum uc_status
open_socket(const struct uc_fabric *fabric, const struct uc_fabric_listen *params, int *fd_out)
{
    const char *text = params->address == NULL ? "any address" : params->address;
    int fd;

    if (params->address == NULL) {
        fd = any_address_socket(params->port);
    } else {
        struct uc_tcp_address addresses[UC_TCP_ADDRESS_COUNT];
        size_t count;
        enum uc_status status =
                uc_tcp_fabric_resolve(fabric, params->address, params->port, addresses, &count);

        if (status != UC_OK) {
            return status;
        }
        fd = bound_socket(&addresses[0], false);
    }
    if (fd < 0) {
        return uc_log_errno(errno,
                "tcp: listen on %s, port %u; choose an address of this host and a free port, or "
                "port 0",
                text, (unsigned)params->port);
    }

    *fd_out = fd;
    return UC_OK;
}

static enum uc_status
socket_port(int fd, uint16_t *port_out)
{
    struct sockaddr_storage storage;
    socklen_t length_bytes = sizeof(storage);

    if (getsockname(fd, (struct sockaddr *)&storage, &length_bytes) != 0) {
        return uc_log_errno(errno, "tcp: getsockname");
    }

    *port_out = ntohs(storage.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&storage)->sin6_port
                                                    : ((struct sockaddr_in *)&storage)->sin_port);
    return UC_OK;
}

static struct uc_fabric *
fabric_of(const struct uc_fabric_listener *listener)
{
    return uc_list_entry(listener->acceptor.source.turns, struct uc_fabric, turns);
}

static enum uc_status
greet(struct uc_acceptor *acceptor, int fd, struct uc_newcomer **newcomer_out,
        struct uc_source **source_out)
{
    struct uc_fabric_listener *listener =
            uc_list_entry(acceptor, struct uc_fabric_listener, acceptor);
    struct uc_tcp_target *target = calloc(1, sizeof(*target));
    enum uc_status status;
    const int on = 1;

    if (target == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "tcp: no memory for a connection; free some");
    }

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    uc_source_init(&target->stream.source.base, acceptor->source.turns, &uc_tcp_target_ops);
    status = uc_tcp_source_watch(&target->stream.source, fd);
    if (status != UC_OK) {
        free(target);
        return status;
    }

    target->state = UC_TCP_GREETING;
    fabric_of(listener)->endpoint_count++;
    *newcomer_out = &target->newcomer;
    *source_out = &target->stream.source.base;
    return UC_OK;
}

static void
drop(struct uc_newcomer *newcomer)
{
    uc_tcp_target_drop(uc_list_entry(newcomer, struct uc_tcp_target, newcomer));
}

static const struct uc_acceptor_ops acceptor_ops = {
        .greet = greet,
        .drop = drop,
};

enum uc_status
uc_tcp_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out)
{
    struct uc_fabric_listener *listener;
    enum uc_status status;
    int fd;

    listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "tcp: no memory for a listener; free some");
    }

    uc_acceptor_init(&listener->acceptor, &fabric->turns, &acceptor_ops);
    listener->ops = params->ops;
    listener->context = params->context;
    status = open_socket(fabric, params, &fd);
    if (status != UC_OK) {
        goto err_free_listener;
    }
    status = socket_port(fd, &listener->port);
    if (status != UC_OK) {
        goto err_close_fd;
    }
    (void)snprintf(listener->acceptor.name, sizeof(listener->acceptor.name), "tcp port %u",
            (unsigned)listener->port);
    status = uc_acceptor_watch(&listener->acceptor, fd);
    if (status != UC_OK) {
        goto err_close_fd;
    }

    fabric->listener_count++;
    *listener_out = listener;
    return UC_OK;

err_close_fd:
    (void)close(fd);
err_free_listener:
    free(listener);
    return status;
}

uint16_t
uc_tcp_listener_port(const struct uc_fabric_listener *listener)
{
    return listener->port;
}

void
uc_tcp_listener_close(struct uc_fabric_listener *listener)
{
    if (listener == NULL) {
        return;
    }

    uc_acceptor_close(&listener->acceptor);
    fabric_of(listener)->listener_count--;
    free(listener);
}
