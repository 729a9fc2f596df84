/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/net/tcp/rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tcp/tcp_fabric.h"
#include "net/tcp/tcp_wire.h"

struct rig rig;

static uint64_t
rig_now_ms(void *context)
{
    (void)context;
    return rig.now_ms;
}

static enum uc_status
admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    (void)context;
    (void)nonce;
    rig.admit_count++;
    if (rig.admit_status != UC_OK) {
        return rig.admit_status;
    }

    admission_out->domain = rig.domain;
    admission_out->access = rig.access;
    admission_out->peer = &rig;
    return UC_OK;
}

static void
connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    ck_assert_ptr_eq(peer, &rig);
    rig.last = endpoint;
    rig.connected_count++;
}

static void
gone(void *context, void *peer)
{
    (void)context;
    (void)peer;
    rig.gone_count++;
}

static enum uc_status
hold(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes, uint64_t length_bytes,
        uint64_t generation, enum uc_fabric_opcode opcode)
{
    (void)context;
    (void)peer;
    (void)generation;
    /* Counted, not asserted: an assertion allocates, and some cases count allocations. */
    if (region_idx != 0 || offset_bytes > RIG_REGION_BYTES ||
            length_bytes > RIG_REGION_BYTES - offset_bytes || opcode == UC_FABRIC_FLUSH) {
        rig.wrong_hold_count++;
    }
    if (rig.hold_status != UC_OK) {
        return rig.hold_status;
    }

    rig.hold_count++;
    return UC_OK;
}

static void
release(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes)
{
    (void)context;
    (void)peer;
    (void)region_idx;
    (void)offset_bytes;
    rig.release_count++;
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = admit, .connected = connected, .gone = gone, .hold = hold, .release = release};

void
rig_open(void)
{
    struct uc_fabric_config config = {.address = "127.0.0.1"};
    struct uc_fabric_listen params = {.address = "127.0.0.1", .ops = &target_ops};
    struct uc_fabric_memory range;

    memset(&rig, 0, sizeof(rig));
    rig.ops = uc_tcp_fabric_ops();
    rig.access = UC_FABRIC_READ_WRITE;
    rig.now_ms = 1000;
    rig.memory = calloc(1, RIG_REGION_BYTES);
    ck_assert_ptr_nonnull(rig.memory);
    range = uc_fabric_host_memory(rig.memory, RIG_REGION_BYTES);
    ck_assert_int_eq(rig.ops->open(&config, &rig.fabric), UC_OK);
    rig.fabric->turns.clock = (struct uc_clock){.now_ms = rig_now_ms};
    ck_assert_int_eq(rig.ops->domain_open(rig.fabric, &rig.domain), UC_OK);
    ck_assert_int_eq(
            rig.ops->region_register(rig.domain, &range, 0, UC_FABRIC_READ_WRITE, &rig.region),
            UC_OK);
    ck_assert_int_eq(rig.ops->listen(rig.fabric, &params, &rig.listener), UC_OK);
}

void
rig_close(void)
{
    rig_settle();
    rig.ops->listener_close(rig.listener);
    rig_until(rig.fabric->endpoint_count == 0);
    ck_assert_int_eq(rig.hold_count, rig.release_count);
    ck_assert_int_eq(rig.wrong_hold_count, 0);
    rig.ops->region_deregister(rig.region);
    rig.ops->domain_close(rig.domain);
    rig.ops->close(rig.fabric);
    free(rig.memory);
}

void
rig_settle(void)
{
    struct pollfd fd = {.fd = rig.ops->event_fd(rig.fabric), .events = POLLIN};

    do {
        while (rig.ops->poll(rig.fabric, 64) > 0 || !rig.ops->arm(rig.fabric)) {
        }
    } while (poll(&fd, 1, 0) > 0);
}

bool
rig_step(int fd, uint64_t start_ns)
{
    struct pollfd fds[] = {
            {.fd = rig.ops->event_fd(rig.fabric), .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    rig_settle();
    (void)poll(fds, 2, 10);
    rig_settle();
    return uc_clock_now_ns() - start_ns < UINT64_C(10000000000);
}

int
peer_knock(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
            .sin_port = htons(rig.ops->listener_port(rig.listener)),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

int
peer_connect(void)
{
    struct pollfd event = {.fd = -1, .events = POLLIN};
    int fd = peer_knock();

    event.fd = rig.listener->acceptor.source.fd;
    while (poll(&event, 1, 0) > 0) { /* it still waits in the backlog */
        rig_settle();
    }
    return fd;
}

int
peer_admitted(void)
{
    uint8_t hello[UC_TCP_HELLO_BYTES];
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    enum uc_status status;
    int fd = peer_connect();

    uc_tcp_hello_put(hello, &(struct uc_tcp_hello){.lane_count = 1});
    peer_send(fd, hello, sizeof(hello));
    ck_assert(peer_receive(fd, answer, sizeof(answer)));
    ck_assert_int_eq(uc_tcp_answer_get(answer, &status), UC_OK);
    ck_assert_int_eq(status, UC_OK);
    return fd;
}

void
peer_send(int fd, const void *bytes, size_t length)
{
    uint64_t start_ns = uc_clock_now_ns();
    const uint8_t *next = bytes;

    while (length > 0) {
        ssize_t done = send(fd, next, length, MSG_NOSIGNAL);

        if (done > 0) {
            next += done;
            length -= (size_t)done;
            rig_settle();
        } else if (errno != EAGAIN || !rig_step(-1, start_ns)) {
            break;
        }
    }
}

bool
peer_receive(int fd, void *bytes, size_t length)
{
    uint64_t start_ns = uc_clock_now_ns();
    uint8_t *next = bytes;

    while (length > 0) {
        ssize_t done;

        rig_settle();
        done = recv(fd, next, length, 0);
        if (done > 0) {
            next += done;
            length -= (size_t)done;
        } else if (done == 0 || errno != EAGAIN || !rig_step(fd, start_ns)) {
            return false;
        }
    }
    return true;
}

bool
peer_is_closed(int fd)
{
    uint8_t bytes[4096];
    ssize_t done;

    do {
        done = recv(fd, bytes, sizeof(bytes), 0);
    } while (done > 0);
    return done == 0 || errno != EAGAIN;
}

void
peer_send_request(int fd, enum uc_fabric_opcode opcode, uint32_t region_idx, uint64_t offset,
        uint64_t length, uint64_t sequence)
{
    uint8_t bytes[UC_TCP_REQUEST_BYTES];
    struct uc_tcp_request request = {.opcode = opcode,
            .region_idx = region_idx,
            .offset_bytes = offset,
            .length_bytes = length,
            .sequence = sequence};

    uc_tcp_request_put(bytes, &request);
    peer_send(fd, bytes, sizeof(bytes));
}

void
peer_expect(int fd, uint64_t sequence, enum uc_status status, uint64_t length)
{
    uint8_t bytes[UC_TCP_RESPONSE_BYTES];
    struct uc_tcp_response response;

    ck_assert(peer_receive(fd, bytes, sizeof(bytes)));
    ck_assert_int_eq(uc_tcp_response_get(bytes, &response), UC_OK);
    ck_assert_uint_eq(response.sequence, sequence);
    ck_assert_int_eq(response.status, status);
    ck_assert_uint_eq(response.length_bytes, length);
}

int
fd_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}
