/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses as people write them, and sockets connected to them within a time limit. */

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "net/rpc/connection.h"

enum uc_status
uc_rpc_parse_address(const char *text, uint16_t default_port, char *host_out, size_t host_bytes,
        uint16_t *port_out)
{
    const char *host = text;
    const char *colon = strrchr(text, ':');
    size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    unsigned long port = default_port;

    if (text[0] == '/') {
        colon = NULL;
        length = strlen(text); /* a unix socket */
    } else if (text[0] == '[') {
        const char *end = strchr(text, ']');

        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return uc_error(UC_ERR_INVALID_PARAM, "address \"%s\": expected [V6]:PORT", text);
        }
        host = text + 1;
        length = (size_t)(end - host);
        colon = end[1] == ':' ? end + 1 : NULL;
    } else if (colon != NULL && memchr(text, ':', length) != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "address \"%s\": write IPv6 addresses in brackets, [V6]:PORT", text);
    }

    if (colon != NULL) {
        char *end;

        errno = 0;
        port = strtoul(colon + 1, &end, 10);
        /* strtoul takes blanks and signs, a port has none. */
        if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || errno != 0 || port > UINT16_MAX) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "address \"%s\": the port must be a number up to 65535", text);
        }
    }
    if (length == 0 || length >= host_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "address \"%s\": expected HOST:PORT with a host of "
                "less than %zu bytes",
                text, host_bytes);
    }

    memcpy(host_out, host, length);
    host_out[length] = '\0';
    *port_out = (uint16_t)port;
    return UC_OK;
}

static enum uc_status
connect_error(int errno_value, const char *name)
{
    enum uc_status status = UC_ERR_UNHEALTHY;
    const char *remedy = "";
    char text[128];

    if (errno_value == ETIMEDOUT) {
        status = UC_ERR_TIMEOUT;
        remedy = "; is the host up and the port open?";
    } else if (errno_value == ECONNREFUSED || errno_value == ENOENT) {
        remedy = "; is ucm-server running there?";
    } else if (errno_value == EACCES || errno_value == EPERM) {
        status = UC_ERR_PERMISSION_DENIED;
    } else if (errno_value == EMFILE || errno_value == ENFILE) {
        remedy = "; raise the limit of open files (ulimit -n)";
    }
    return uc_error(status, "connect to %s: %s%s", name,
            strerror_r(errno_value, text, sizeof(text)), remedy);
}

/* @return 0 or an errno */
static int
wait_connected(int fd, uint64_t deadline_ms)
{
    struct uc_clock clock = uc_clock_monotonic();
    int error = 0;
    socklen_t error_bytes = sizeof(error);

    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
        uint64_t now_ms = uc_clock_now_ms(&clock);
        uint64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
        int ready = poll(&poll_fd, 1, left_ms > 3600000 ? 3600000 : (int)left_ms);

        if (ready < 0 && errno != EINTR) {
            return errno;
        }
        if (ready > 0) {
            break;
        }
        if (ready == 0 && left_ms == 0) {
            return ETIMEDOUT;
        }
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) < 0) {
        return errno;
    }
    return error;
}

/* @return 0 or an errno */
static int
dial_one(const struct sockaddr *address, socklen_t address_bytes, uint64_t deadline_ms, int *fd_out)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;

    if (fd < 0) {
        return errno;
    }

    if (connect(fd, address, address_bytes) < 0) {
        /* A unix socket whose queue is full says EAGAIN: as good as not listening. */
        error = errno == EINPROGRESS || errno == EINTR ? wait_connected(fd, deadline_ms) : errno;
    }
    if (error != 0) {
        (void)close(fd);
        return error;
    }

    *fd_out = fd;
    return 0;
}

static enum uc_status
dial_unix(const char *path, uint64_t deadline_ms, int *fd_out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    int error;

    if (length >= sizeof(address.sun_path)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "connect to %s: a unix socket's path has at most %zu "
                "bytes",
                path, sizeof(address.sun_path) - 1);
    }

    memcpy(address.sun_path, path, length);
    error = dial_one(
            (const struct sockaddr *)(const void *)&address, sizeof(address), deadline_ms, fd_out);
    return error == 0 ? UC_OK : connect_error(error, path);
}

enum uc_status
uc_rpc_dial(const char *address, uint16_t port, uint64_t timeout_ms, int *fd_out)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t deadline_ms = uc_time_add_ms(uc_clock_now_ms(&clock), timeout_ms);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char service[8];
    char name[300];
    int error;

    if (address[0] == '/') {
        return dial_unix(address, deadline_ms, fd_out);
    }

    (void)snprintf(service, sizeof(service), "%u", (unsigned int)port);
    (void)snprintf(name, sizeof(name), "%s port %s", address, service);
    error = getaddrinfo(address, service, &hints, &found);
    if (error != 0) {
        return uc_error(UC_ERR_UNHEALTHY, "connect to %s: cannot resolve the host: %s", name,
                gai_strerror(error));
    }

    error = EHOSTUNREACH;
    for (struct addrinfo *entry = found; entry != NULL; entry = entry->ai_next) {
        error = dial_one(entry->ai_addr, entry->ai_addrlen, deadline_ms, fd_out);
        if (error == 0 || error == ETIMEDOUT) {
            break;
        }
    }
    freeaddrinfo(found);
    return error == 0 ? UC_OK : connect_error(error, name);
}
