/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/net/shm/rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/shm/shm_fabric.h"

struct rig rig;

static int fds_before;

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
    admission_out->domain = rig.domain;
    admission_out->access = UC_FABRIC_READ_WRITE;
    admission_out->peer = &rig;
    return UC_OK;
}

static void
connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    (void)peer;
    rig.last = endpoint;
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
    ck_assert_uint_eq(region_idx, 0);
    ck_assert_uint_le(offset_bytes, RIG_REGION_BYTES);
    ck_assert_uint_le(length_bytes, RIG_REGION_BYTES - offset_bytes);
    ck_assert_int_eq(opcode, UC_FABRIC_WRITE);
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
    struct uc_fabric_config config = {.address = NULL};
    struct uc_fabric_listen params = {.ops = &target_ops};
    struct uc_fabric_memory range;

    fds_before = fd_count();
    memset(&rig, 0, sizeof(rig));
    rig.ops = uc_shm_fabric_ops();
    rig.now_ms = 1000;
    rig.memory_fd = file_make(RIG_REGION_BYTES, RIG_REGION_BYTES, F_SEAL_SHRINK);
    rig.memory = mmap(NULL, RIG_REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rig.memory_fd, 0);
    ck_assert_ptr_ne(rig.memory, MAP_FAILED);
    range = uc_fabric_host_memory(rig.memory, RIG_REGION_BYTES);
    range.fd = rig.memory_fd;
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
    ck_assert_uint_eq(rig.fabric->endpoint_count, 0);
    ck_assert_int_eq(rig.hold_count, rig.release_count);
    rig.ops->region_deregister(rig.region);
    rig.ops->domain_close(rig.domain);
    rig.ops->close(rig.fabric);
    (void)munmap(rig.memory, RIG_REGION_BYTES);
    (void)close(rig.memory_fd);
    ck_assert_int_eq(fd_count(), fds_before);
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

int
file_make(size_t length_bytes, size_t reserved_bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)length_bytes), 0);
    if (reserved_bytes > 0) {
        ck_assert_int_eq(fallocate(fd, 0, 0, (off_t)reserved_bytes), 0);
    }
    if (seals != 0) {
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    }
    return fd;
}

void
peer_knock(struct peer *peer)
{
    struct uc_shm_address address;

    *peer = (struct peer){.pages_fd = -1};
    ck_assert_int_eq(
            uc_shm_address_parse(rig.ops->listener_address(rig.listener), &address), UC_OK);
    peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(peer->fd, 0);
    while (connect(peer->fd, (struct sockaddr *)&address.socket, address.length_bytes) != 0) {
        ck_assert_int_eq(errno, EAGAIN);
        rig_settle();
    }
    rig_settle();
}

void
peer_send(struct peer *peer, const void *bytes, size_t length, const int *fds, size_t count)
{
    (void)uc_shm_send(peer->fd, bytes, length, fds, count);
    rig_settle();
}

void
peer_hello(struct peer *peer, int fd)
{
    static const uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    uint8_t bytes[UC_SHM_HELLO_BYTES];

    uc_shm_hello_put(bytes, nonce);
    peer_send(peer, bytes, sizeof(bytes), &fd, fd < 0 ? 0 : 1);
}

void
peer_open(struct peer *peer)
{
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    struct uc_shm_answer answer = {.status = UC_ERR_UNHEALTHY};
    struct uc_shm_fds fds;
    size_t length = 0;
    size_t pages_bytes = sizeof(struct uc_shm_client_pages);

    peer_knock(peer);
    peer->pages_fd = file_make(pages_bytes, pages_bytes, F_SEAL_SHRINK);
    peer->pages = mmap(NULL, pages_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, peer->pages_fd, 0);
    ck_assert_ptr_ne(peer->pages, MAP_FAILED);
    peer_hello(peer, peer->pages_fd);
    ck_assert_int_eq(uc_shm_receive(peer->fd, bytes, &length, &fds), UC_SHM_MOVED);
    ck_assert_int_eq(uc_shm_answer_get(bytes, length, &answer), UC_OK);
    ck_assert_int_eq(answer.status, UC_OK);
    ck_assert_uint_eq(answer.file_count, 1);
    ck_assert_uint_eq(fds.count, 3); /* page, region table, the file */
    ck_assert_int_eq(
            uc_shm_map(fds.fds[0], 0, sizeof(struct uc_shm_server_page), &peer->server_page),
            UC_OK);
    uc_shm_fds_close(&fds);
}

bool
peer_is_closed(struct peer *peer)
{
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    struct uc_shm_fds fds;
    size_t length;
    enum uc_shm_io io;

    rig_settle();
    while ((io = uc_shm_receive(peer->fd, bytes, &length, &fds)) == UC_SHM_MOVED) {
        uc_shm_fds_close(&fds);
    }
    return io == UC_SHM_LOST;
}

void
peer_close(struct peer *peer)
{
    (void)close(peer->fd);
    if (peer->pages != NULL) {
        (void)munmap(peer->pages, sizeof(struct uc_shm_client_pages));
        (void)close(peer->pages_fd);
    }
    uc_shm_unmap(&peer->server_page);
    rig_settle();
}

int32_t
peer_write(struct peer *peer, const struct uc_shm_entry *entry)
{
    static const struct uc_shm_packet wake = {.kind = UC_SHM_WAKE};
    const struct uc_shm_server_page *page =
            (const struct uc_shm_server_page *)(const void *)peer->server_page.bytes;
    uint64_t number = atomic_load(&peer->pages->queued);
    uint8_t bytes[UC_SHM_PACKET_BYTES];

    uc_shm_entry_put(peer->pages, number, entry);
    atomic_store(&peer->pages->queued, number + 1);
    peer_send(peer, bytes, uc_shm_packet_put(bytes, &wake), NULL, 0);
    ck_assert_uint_eq(atomic_load(&page->done), number + 1);
    return atomic_load(&page->statuses[number % UC_SHM_ENTRY_COUNT]);
}

void
assert_target_is_well(void)
{
    struct uc_shm_entry entry = {
            .source = UC_SHM_FROM_STAGING, .offset_bytes = 7, .length_bytes = 9};
    struct peer peer;

    peer_open(&peer);
    memset(peer.pages->staging, 0xa5, 9);
    memset(rig.memory, 0, 32);
    ck_assert_int_eq(peer_write(&peer, &entry), UC_OK);
    ck_assert_uint_eq(rig.memory[6], 0);
    ck_assert_uint_eq(rig.memory[7], 0xa5);
    ck_assert_uint_eq(rig.memory[15], 0xa5);
    ck_assert_uint_eq(rig.memory[16], 0);
    ck_assert(!peer_is_closed(&peer));
    peer_close(&peer);
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
