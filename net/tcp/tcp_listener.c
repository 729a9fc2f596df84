/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/tcp/tcp_target.h"

/* Peers that were admitted but not served yet pile up here; more than that are retried by TCP. */
enum {
    BACKLOG = 1024,
};

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
            listen(fd, BACKLOG) != 0) {
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

    uc_tcp_source_init(&listener->source, fabric, UC_TCP_LISTENER);
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
    status = uc_tcp_source_watch(&listener->source, fd);
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

static struct uc_tcp_target *
target_of(struct uc_tcp_source *source)
{
    return uc_list_entry(source, struct uc_tcp_target, stream.source);
}

/* The peer of this listener that has been silent longest, or NULL. Deadlines are in order of age. */
static struct uc_tcp_target *
oldest_half_open(const struct uc_fabric_listener *listener)
{
    uc_list_for_each (node, &listener->source.fabric->timed) {
        struct uc_tcp_source *source = uc_list_entry(node, struct uc_tcp_source, timed_node);

        if (source->kind == UC_TCP_TARGET && target_of(source)->listener == listener) {
            return target_of(source);
        }
    }
    return NULL;
}

void
uc_tcp_listener_close(struct uc_fabric_listener *listener)
{
    struct uc_tcp_target *target;

    if (listener == NULL) {
        return;
    }

    while ((target = oldest_half_open(listener)) != NULL) {
        uc_tcp_target_drop(target);
    }
    uc_tcp_source_close(&listener->source, true);
    listener->source.fabric->listener_count--;
    free(listener);
}

static enum uc_status
greet(struct uc_fabric_listener *listener, int fd)
{
    struct uc_fabric *fabric = listener->source.fabric;
    struct uc_tcp_target *target;
    enum uc_status status;
    const int on = 1;

    if (listener->half_open_count >= UC_TCP_HALF_OPEN_COUNT) {
        if (uc_tcp_fabric_may_warn(fabric)) {
            uc_log_warn("tcp port %u: %d peers have not said hello, dropping the oldest",
                    (unsigned)listener->port, UC_TCP_HALF_OPEN_COUNT);
        }
        uc_tcp_target_drop(oldest_half_open(listener));
    }

    target = calloc(1, sizeof(*target));
    if (target == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "tcp: no memory for a connection; free some");
    }

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    uc_tcp_source_init(&target->stream.source, fabric, UC_TCP_TARGET);
    status = uc_tcp_source_watch(&target->stream.source, fd);
    if (status != UC_OK) {
        free(target);
        return status;
    }

    target->state = UC_TCP_GREETING;
    target->listener = listener;
    listener->half_open_count++;
    fabric->endpoint_count++;
    uc_tcp_source_set_deadline(&target->stream.source,
            uc_time_add_ms(uc_clock_now_ms(&fabric->clock), UC_TCP_HALF_OPEN_MS));
    return UC_OK;
}

/* Descriptors or memory have run out. Edge-triggered, so nothing spins meanwhile. */
static void
pause_accepting(struct uc_fabric_listener *listener, const char *why, const char *remedy)
{
    struct uc_fabric *fabric = listener->source.fabric;

    if (!listener->is_starved) {
        uc_log_error("tcp port %u: cannot accept: %s; %s; trying again every %d ms",
                (unsigned)listener->port, why, remedy, UC_TCP_ACCEPT_RETRY_MS);
        listener->is_starved = true;
    }
    listener->source.readable = false;
    uc_tcp_source_set_deadline(&listener->source,
            uc_time_add_ms(uc_clock_now_ms(&fabric->clock), UC_TCP_ACCEPT_RETRY_MS));
}

void
uc_tcp_listener_expire(struct uc_fabric_listener *listener)
{
    listener->source.readable = true;
    uc_tcp_source_wake(&listener->source);
}

bool
uc_tcp_listener_turn(struct uc_fabric_listener *listener, size_t *budget)
{
    for (size_t count = 0; count<UC_TCP_ACCEPT_BATCH_COUNT && * budget> 0; count++) {
        int fd;

        if (!listener->source.readable) {
            return false;
        }

        fd = accept4(listener->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            switch (errno) {
            case EAGAIN:
                listener->source.readable = false;
                return false;
            case EMFILE:
            case ENFILE:
            case ENOBUFS:
            case ENOMEM:
                pause_accepting(listener, strerror(errno),
                        "raise the limit of open files (ulimit -n) or free memory");
                return false;
            default: /* a fault of that one connection, or a signal */
                continue;
            }
        }

        *budget -= 1;
        if (greet(listener, fd) != UC_OK) {
            (void)close(fd);
            pause_accepting(listener, uc_last_error(), "the peer was turned away");
            return false;
        }
        listener->is_starved = false;
    }

    return true;
}
