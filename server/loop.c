/* SPDX-License-Identifier: Apache-2.0 */

#include "server/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ucm/log.h>

#include "server/listener.h"
#include "server/peer.h"
#include "server/session.h"
#include "server/state.h"

enum {
    EVENTS_PER_TURN = 64,
    ACCEPTS_PER_TURN = 16,
    DRAIN_ROUNDS = 64, /* a peer that sends without end must not keep us from the leases */
    ACCEPT_PAUSE_MS = 200,
    ACCEPT_WARN_MS = 10000,
    DRAIN_MS = 2000, /* of open writes at the end */
    CLOSE_MS = 5000, /* of fences at the end; after that the fabric ends them itself */
};

/* Deadlines of our own end are in real time, whatever clock the leases run on. */
static uint64_t
real_ms(void)
{
    return uc_clock_now_ns() / 1000000;
}

static enum uc_status
watch(struct uc_server *server, int fd, void *marker)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = marker};

    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return uc_log_errno(errno, "server: epoll_ctl of descriptor %d", fd);
    }
    return UC_OK;
}

static void
unwatch(struct uc_server *server, int fd)
{
    (void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

enum uc_status
uc_loop_init(struct uc_server *server)
{
    enum uc_status status;

    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll_fd < 0) {
        return uc_log_errno(errno, "server: epoll_create1");
    }

    status = watch(server, server->listen_fd, &server->listen_fd);
    if (status == UC_OK) {
        server->accepting = true;
        status = watch(server, uc_fabric_thread_fd(server->fabrics), &server->fabrics);
    }
    return status;
}

/* Whoever connects again and again must not fill the disk. */
static bool
may_warn(struct uc_server *server)
{
    return uc_warn_gate_pass(&server->accept_gate, real_ms(), ACCEPT_WARN_MS);
}

static void
pause_accepting(struct uc_server *server)
{
    if (may_warn(server)) {
        uc_log_warn("server: no descriptors or memory for another connection (RLIMIT_NOFILE); new "
                    "ones wait until some close");
    }
    unwatch(server, server->listen_fd);
    server->accepting = false;
    server->accept_after_ms = real_ms() + ACCEPT_PAUSE_MS;
}

static void
resume_accepting(struct uc_server *server)
{
    if (server->accepting || server->listen_fd < 0 || real_ms() < server->accept_after_ms) {
        return;
    }

    if (watch(server, server->listen_fd, &server->listen_fd) == UC_OK) {
        server->accepting = true;
    }
}

static void
accept_some(struct uc_server *server)
{
    for (int count = 0; count < ACCEPTS_PER_TURN && server->listen_fd >= 0; count++) {
        char address[UC_PEER_ADDRESS_BYTES];
        int fd;
        enum uc_status status =
                uc_listener_accept(server->listen_fd, address, sizeof(address), &fd);

        if (status == UC_ERR_NO_SPACE) {
            pause_accepting(server);
            return;
        }
        if (status != UC_OK) {
            return;
        }
        if (server->peer_count >= server->peer_limit) {
            if (may_warn(server)) {
                uc_log_warn("peer %s: refused: %zu connections are the most (RLIMIT_NOFILE)",
                        address, server->peer_limit);
            }
            (void)close(fd);
            continue;
        }
        uc_peer_accept(server, fd, address);
    }
}

static void
stop_accepting(struct uc_server *server)
{
    if (server->listen_fd >= 0) {
        unwatch(server, server->listen_fd);
        (void)close(server->listen_fd);
        server->listen_fd = -1;
        server->accepting = false;
    }
}

/* @return whether @p stop_marker was among the events */
static bool
handle_events(struct uc_server *server, const struct epoll_event *events, int count,
        const void *stop_marker)
{
    bool stop = false;

    for (int idx = 0; idx < count; idx++) {
        void *marker = events[idx].data.ptr;

        if (marker == stop_marker) {
            stop = true;
        } else if (marker == &server->listen_fd) {
            accept_some(server);
        } else if (marker == &server->fabrics) {
            uc_fabric_thread_collect(server->fabrics);
        } else {
            uc_peer_progress(marker); /* closed ones live until the end of the turn */
        }
    }
    return stop;
}

/* Hear what has arrived while we did not run, before anybody is judged silent. */
static bool
drain_sockets(struct uc_server *server, const void *stop_marker)
{
    struct epoll_event events[EVENTS_PER_TURN];
    bool stop = false;

    for (int round = 0; round < DRAIN_ROUNDS; round++) {
        int count = epoll_wait(server->epoll_fd, events, EVENTS_PER_TURN, 0);

        if (count <= 0) {
            break;
        }
        stop = handle_events(server, events, count, stop_marker) || stop;
        uc_peer_reap(server); /* or the dead would be reported round after round */
    }
    return stop;
}

/* One turn. @return whether stopping was asked for */
static bool
turn(struct uc_server *server, const void *stop_marker)
{
    struct epoll_event events[EVENTS_PER_TURN];
    uint64_t delay_ms;
    bool stop;
    int count;

    count = epoll_wait(server->epoll_fd, events, EVENTS_PER_TURN, (int)uc_lease_period_ms(server));
    server->now_ms = uc_clock_now_ms(&server->clock);
    delay_ms = uc_lease_delay_ms(server);
    stop = handle_events(server, events, count, stop_marker);
    uc_peer_reap(server);
    if (delay_ms > 0) {
        stop = drain_sockets(server, stop_marker) || stop;
        uc_lease_extend(server, delay_ms);
    }
    uc_lease_check(server);
    uc_peer_reap(server);
    resume_accepting(server);
    server->turn_ms = server->now_ms;
    return stop;
}

void
uc_loop_close_all(struct uc_server *server)
{
    while (!uc_list_is_empty(&server->peers)) {
        uc_peer_close(uc_list_entry(server->peers.next, struct uc_peer, node));
    }
    uc_peer_reap(server);
}

static void
drain(struct uc_server *server, const void *stop_marker)
{
    uint64_t deadline_ms = real_ms() + DRAIN_MS;

    server->phase = UC_SERVER_DRAINING;
    stop_accepting(server);
    uc_log_info("server: stops; %llu open writes may end",
            (unsigned long long)server->counters.open_brackets);
    while (server->counters.open_brackets > 0 && real_ms() < deadline_ms) {
        (void)turn(server, stop_marker);
    }
}

enum uc_status
uc_server_run(struct uc_server *server, int stop_fd)
{
    int stop_marker = stop_fd; /* its address is the marker */
    uint64_t deadline_ms;
    enum uc_status status = watch(server, stop_fd, &stop_marker);

    if (status != UC_OK) {
        return status;
    }
    while (!turn(server, &stop_marker)) {
    }
    /* The descriptor stays readable: watching it on would spin. */
    unwatch(server, stop_fd);

    drain(server, &stop_marker);
    server->phase = UC_SERVER_CLOSING;
    uc_loop_close_all(server);
    deadline_ms = real_ms() + CLOSE_MS;
    while (!uc_list_is_empty(&server->sessions) && real_ms() < deadline_ms) {
        (void)turn(server, &stop_marker);
    }
    uc_log_info("server: stopped");
    return UC_OK;
}
