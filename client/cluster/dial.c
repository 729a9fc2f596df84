/* SPDX-License-Identifier: Apache-2.0 */

#include "client/cluster/dial.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static enum uc_status
connect_start(const struct uc_server_address *server, int family, const struct sockaddr *address,
        socklen_t length, int *fd_out)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0) {
        return uc_error(UC_ERR_UNHEALTHY, "server %s: socket: %s", server->name, strerror(errno));
    }
    if (connect(fd, address, length) != 0 && errno != EINPROGRESS) {
        error = errno;
        (void)close(fd);
        return uc_error(UC_ERR_UNHEALTHY, "server %s: connect: %s", server->name, strerror(error));
    }

    *fd_out = fd;
    return UC_OK;
}

static enum uc_status
start_unix(const struct uc_server_address *server, int *fd_out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(server->host);

    if (length >= sizeof(address.sun_path)) {
        return uc_error(UC_ERR_UNHEALTHY, "server %s: the socket's path is longer than %zu bytes",
                server->name, sizeof(address.sun_path) - 1);
    }

    memcpy(address.sun_path, server->host, length + 1);
    return connect_start(
            server, AF_UNIX, (const struct sockaddr *)&address, sizeof(address), fd_out);
}

enum uc_status
uc_dial_start(const struct uc_server_address *server, size_t address_idx, int *fd_out,
        size_t *address_count_out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct addrinfo *chosen;
    size_t count = 0;
    enum uc_status status;
    char service[8];
    int error;

    if (server->host[0] == '/') {
        *address_count_out = 1;
        return start_unix(server, fd_out);
    }

    (void)snprintf(service, sizeof(service), "%u", (unsigned)server->port);
    error = getaddrinfo(server->host, service, &hints, &found);
    if (error != 0 || found == NULL) {
        return uc_error(UC_ERR_UNHEALTHY, "server %s: cannot resolve the host: %s", server->name,
                gai_strerror(error));
    }

    chosen = found;
    for (struct addrinfo *entry = found; entry != NULL; entry = entry->ai_next) {
        if (count == address_idx) {
            chosen = entry;
        }
        count++;
    }
    *address_count_out = count;
    status = connect_start(server, chosen->ai_family, chosen->ai_addr, chosen->ai_addrlen, fd_out);
    freeaddrinfo(found);
    return status;
}
