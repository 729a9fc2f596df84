/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fabric_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/rpc/connection.h"

enum {
    CONNECT_MS = 10000,
    STALLED_S = 60,
    SPINS_MAX = 1 << 20,
    SERVICE_BYTES = 8,
};

/* What one connection moves in one call. */
struct share {
    const struct uc_fabric_streams *streams;
    int fd;
    uint64_t first;
    uint64_t step;
    uint64_t end;
    uint64_t block_count; /* a multiple of step: no two connections ever meet in a block */
    bool send;
    bool spins;
    bool ok;
};

enum uc_status
uc_fabric_streams_listen(
        const char *host, uint16_t wanted_port, int *listener_fd_out, uint16_t *port_out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    struct sockaddr_storage bound;
    socklen_t length = sizeof(bound);
    char service[SERVICE_BYTES];
    int fd = -1;

    (void)snprintf(service, sizeof(service), "%u", wanted_port);
    if (getaddrinfo(host, service, &hints, &found) != 0 || found == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: no address to listen on", host);
    }
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
            listen(fd, UC_FABRIC_BENCH_CONNECTIONS_MAX) != 0 ||
            getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
        enum uc_status status = uc_log_errno(errno, "fabric: listen on %s", host);

        freeaddrinfo(found);
        if (fd >= 0) {
            (void)close(fd);
        }
        return status;
    }
    freeaddrinfo(found);

    (void)getnameinfo(
            (struct sockaddr *)&bound, length, NULL, 0, service, sizeof(service), NI_NUMERICSERV);
    *port_out = (uint16_t)strtoul(service, NULL, 10);
    *listener_fd_out = fd;
    return UC_OK;
}

static void
add_stream(struct uc_fabric_streams *streams, int fd)
{
    struct timeval stalled = {.tv_sec = STALLED_S};
    int flags = fcntl(fd, F_GETFL);
    int one = 1;

    (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stalled, sizeof(stalled));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stalled, sizeof(stalled));
    streams->fds[streams->count++] = fd;
}

enum uc_status
uc_fabric_streams_accept(struct uc_fabric_streams *streams, int listener_fd, size_t count)
{
    while (streams->count < count && streams->count < UC_FABRIC_BENCH_CONNECTIONS_MAX) {
        struct pollfd pollfd = {.fd = listener_fd, .events = POLLIN};
        int fd;

        if (poll(&pollfd, 1, CONNECT_MS) <= 0) {
            return uc_error(UC_ERR_TIMEOUT, "the bare streams did not connect");
        }
        fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            return uc_log_errno(errno, "fabric: accept");
        }
        add_stream(streams, fd);
    }
    return UC_OK;
}

enum uc_status
uc_fabric_streams_connect(
        struct uc_fabric_streams *streams, const char *host, uint16_t port, size_t count)
{
    while (streams->count < count && streams->count < UC_FABRIC_BENCH_CONNECTIONS_MAX) {
        int fd = -1;
        enum uc_status status = uc_rpc_dial(host, port, CONNECT_MS, &fd);

        if (status != UC_OK) {
            return status;
        }
        add_stream(streams, fd);
    }
    return UC_OK;
}

/* Move all of a block. Who spins sleeps only after a long while, which also keeps the socket's time limit. */
static bool
move_block(const struct share *share, uint8_t *block, uint64_t length, bool sending)
{
    unsigned spins = share->spins ? SPINS_MAX : 0;

    while (length > 0) {
        int flags = MSG_NOSIGNAL | (spins > 0 ? MSG_DONTWAIT : 0);
        ssize_t count = sending ? send(share->fd, block, length, flags)
                                : recv(share->fd, block, length, flags);

        if (count < 0 && (errno == EINTR || (errno == EAGAIN && spins > 0))) {
            spins -= spins > 0;
            continue;
        }
        if (count <= 0) {
            return false;
        }
        spins = share->spins ? SPINS_MAX : 0;
        block += count;
        length -= (uint64_t)count;
    }
    return true;
}

static void *
move_share(void *context)
{
    struct share *share = context;
    const struct uc_fabric_streams *streams = share->streams;
    uint8_t confirmation = 1;

    share->ok = true;
    for (uint64_t at = share->first; at < share->end && share->ok; at += share->step) {
        uint8_t *block = streams->base + at % share->block_count * streams->stride;

        share->ok = move_block(share, block, streams->block_bytes, share->send);
    }
    if (share->ok) {
        share->ok = move_block(share, &confirmation, 1, !share->send);
    }
    return NULL;
}

enum uc_status
uc_fabric_streams_move(struct uc_fabric_streams *streams, uint64_t blocks, bool send, bool spin)
{
    struct share shares[UC_FABRIC_BENCH_CONNECTIONS_MAX];
    pthread_t threads[UC_FABRIC_BENCH_CONNECTIONS_MAX];
    uint64_t block_count = streams->block_count - streams->block_count % streams->count;
    size_t started = 1; /* the first runs in this thread */
    bool ok = true;
    int error = 0;

    if (block_count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "there are more streams than blocks");
    }

    for (size_t idx = 0; idx < streams->count; idx++) {
        shares[idx] = (struct share){.streams = streams,
                .fd = streams->fds[idx],
                .first = streams->next_block + idx,
                .step = streams->count,
                .end = streams->next_block + blocks,
                .block_count = block_count,
                .send = send,
                .spins = spin};
    }
    while (started < streams->count && error == 0) {
        error = pthread_create(&threads[started], NULL, move_share, &shares[started]);
        started += error == 0;
    }
    if (error == 0) {
        (void)move_share(&shares[0]);
        ok = shares[0].ok;
    }
    for (size_t idx = 1; idx < started; idx++) {
        (void)pthread_join(threads[idx], NULL);
        ok = ok && shares[idx].ok;
    }
    if (error != 0) {
        return uc_log_errno(error, "fabric: pthread_create");
    }
    streams->next_block += blocks - blocks % streams->count; /* every connection keeps its blocks */
    return ok ? UC_OK : uc_error(UC_ERR_UNHEALTHY, "a bare stream broke or stood still");
}

void
uc_fabric_streams_close(struct uc_fabric_streams *streams)
{
    for (size_t idx = 0; idx < streams->count; idx++) {
        (void)close(streams->fds[idx]);
    }
    *streams = (struct uc_fabric_streams){.count = 0};
}
