/* SPDX-License-Identifier: Apache-2.0 */

#include "server/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/rpc/connection.h"
#include "server/config.h"

enum {
    BACKLOG = 512
};

/* "Address already in use" and the like; only called from one thread at start. */
static const char *
errno_text(int error, char *buffer, size_t buffer_bytes)
{
    return strerror_r(error, buffer, buffer_bytes);
}

static int
bind_one(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0) {
        int error = errno;

        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static uint16_t
port_of(const struct sockaddr_storage *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (address->ss_family == AF_INET6) {
        memcpy(&v6, address, sizeof(v6));
        return ntohs(v6.sin6_port);
    }
    memcpy(&v4, address, sizeof(v4));
    return ntohs(v4.sin_port);
}

enum uc_status
uc_listener_bind(
        const char *text, char *host_out, size_t host_bytes, int *fd_out, uint16_t *port_out)
{
    struct addrinfo hints = {
            .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct sockaddr_storage bound = {0};
    socklen_t bound_bytes = sizeof(bound);
    struct addrinfo *found = NULL;
    char service[8];
    char reason[128];
    uint16_t port;
    int error;
    int fd = -1;
    enum uc_status status;

    status = uc_rpc_parse_address(text, UC_SERVER_PORT_DEFAULT, host_out, host_bytes, &port);
    if (status != UC_OK) {
        return status;
    }
    (void)snprintf(service, sizeof(service), "%u", port);
    error = getaddrinfo(host_out, service, &hints, &found);
    if (error != 0) {
        return uc_error(UC_ERR_OS_API, "listen: %s: host '%s' not found: %s", text, host_out,
                gai_strerror(error));
    }
    for (const struct addrinfo *entry = found; entry != NULL && fd < 0; entry = entry->ai_next) {
        fd = bind_one(entry);
    }
    error = errno;
    freeaddrinfo(found);
    if (fd < 0) {
        return uc_error(UC_ERR_OS_API, "listen: cannot use %s: %s; choose another port, or 0", text,
                errno_text(error, reason, sizeof(reason)));
    }
    if (getsockname(fd, (struct sockaddr *)&bound, &bound_bytes) != 0) {
        error = errno;
        (void)close(fd);
        return uc_error(UC_ERR_OS_API, "listen: %s: getsockname: %s", text,
                errno_text(error, reason, sizeof(reason)));
    }

    *port_out = port_of(&bound);
    *fd_out = fd;
    return UC_OK;
}

enum uc_status
uc_listener_start(int fd, const char *text)
{
    char reason[128];

    if (listen(fd, BACKLOG) != 0) {
        return uc_error(UC_ERR_OS_API, "listen: cannot use %s: %s; choose another port, or 0", text,
                errno_text(errno, reason, sizeof(reason)));
    }
    return UC_OK;
}

enum uc_status
uc_listener_accept(int fd, char *address_out, size_t address_bytes, int *peer_fd_out)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);
    char host[INET6_ADDRSTRLEN + 1];
    int peer_fd = accept4(fd, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (peer_fd < 0) {
        bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;

        /* Anything else is the fate of one connection that ended while it was waiting. */
        return exhausted ? UC_ERR_NO_SPACE : UC_ERR_RETRY;
    }

    if (getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), NULL, 0,
                NI_NUMERICHOST) != 0) {
        (void)snprintf(host, sizeof(host), "?");
    }
    (void)snprintf(address_out, address_bytes, "%s:%u", host, port_of(&address));
    *peer_fd_out = peer_fd;
    return UC_OK;
}
