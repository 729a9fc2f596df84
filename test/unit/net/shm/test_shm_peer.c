/* SPDX-License-Identifier: Apache-2.0 */

/* A target and whoever may connect to it: foreign files, packets and entries; and a slot reused in the middle of a
   copy. One thread polls both sides. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "net/fabric.h"
#include "net/shm/shm_address.h"
#include "net/shm/shm_memory.h"
#include "net/shm/shm_ring.h"
#include "net/shm/shm_socket.h"
#include "net/slot_footer.h"

enum {
    REGION_BYTES = 1 << 20,
    BLOCK_BYTES = 256 << 10,
    PAGES_BYTES = sizeof(struct uc_shm_client_pages),
};

static const uint8_t nonce[UC_FABRIC_NONCE_BYTES] = {7, 7, 7};

static const struct uc_fabric_ops *ops;
static struct uc_fabric *fabric;
static struct uc_fabric_domain *domain;
static struct uc_fabric_region *region;
static struct uc_fabric_listener *listener;
static uint8_t *memory;
static int memory_fd;
static int admitted;
static int gone_count;

/* The stranger's end. */
static int peer_fd;
static int pages_fd;
static struct uc_shm_client_pages *pages;
static const struct uc_shm_server_page *page;

static enum uc_status
admit(void *context, const uint8_t seen[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    (void)context;
    if (memcmp(seen, nonce, sizeof(nonce)) != 0) {
        return UC_ERR_PERMISSION_DENIED;
    }
    *admission_out = (struct uc_fabric_admission){
            .domain = domain, .access = UC_FABRIC_READ_WRITE, .peer = &admitted};
    admitted++;
    return UC_OK;
}

static void
connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    (void)peer;
    (void)endpoint;
}

static void
gone(void *context, void *peer)
{
    (void)context;
    (void)peer;
    gone_count++;
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = admit, .connected = connected, .gone = gone};

/* A memory file of our own making. */
static int
file_make(size_t length, int seals, bool reserve)
{
    int fd = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)length), 0);
    if (reserve) {
        ck_assert_int_eq(fallocate(fd, 0, 0, (off_t)length), 0);
    }
    if (seals != 0) {
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    }
    return fd;
}

static void
target_open(void)
{
    struct uc_fabric_listen params = {.ops = &target_ops};
    struct uc_fabric_memory range;

    admitted = 0;
    gone_count = 0;
    peer_fd = -1;
    page = NULL;
    memory_fd = file_make(REGION_BYTES, F_SEAL_SHRINK, true);
    memory = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    range = uc_fabric_host_memory(memory, REGION_BYTES);
    range.fd = memory_fd;
    ck_assert_int_eq(uc_fabric_find("shm", &ops), UC_OK);
    ck_assert_int_eq(ops->open(NULL, &fabric), UC_OK);
    ck_assert_int_eq(ops->domain_open(fabric, &domain), UC_OK);
    ck_assert_int_eq(ops->region_register(domain, &range, 0, UC_FABRIC_READ_WRITE, &region), UC_OK);
    ck_assert_int_eq(ops->listen(fabric, &params, &listener), UC_OK);
    pages_fd = file_make(PAGES_BYTES, F_SEAL_SHRINK, true);
    pages = mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pages_fd, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
}

static void
settle(void)
{
    while (ops->poll(fabric, 64) > 0 || !ops->arm(fabric)) {
    }
}

static void
target_close(void)
{
    if (peer_fd >= 0) {
        (void)close(peer_fd);
    }
    settle();
    ck_assert_int_eq(gone_count, admitted);
    ops->listener_close(listener);
    ops->region_deregister(region);
    ops->domain_close(domain);
    ops->close(fabric);
    (void)munmap(memory, REGION_BYTES);
    (void)close(memory_fd);
    (void)munmap(pages, PAGES_BYTES);
    (void)close(pages_fd);
    if (page != NULL) {
        (void)munmap((void *)(uintptr_t)page, sizeof(*page));
    }
}

static void
dial(void)
{
    struct uc_shm_address address;

    ck_assert_int_eq(uc_shm_address_parse(ops->listener_address(listener), &address), UC_OK);
    peer_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(
            connect(peer_fd, (const struct sockaddr *)&address.socket, address.length_bytes), 0);
}

static void
say_hello(const uint8_t *with, const int *fds, size_t fd_count)
{
    uint8_t bytes[UC_SHM_HELLO_BYTES];

    dial();
    uc_shm_hello_put(bytes, with);
    ck_assert_int_eq(uc_shm_send(peer_fd, bytes, sizeof(bytes), fds, fd_count), UC_SHM_MOVED);
    settle();
}

/* The answer, and on Ok the server's page. */
static enum uc_status
hear_answer(void)
{
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    struct uc_shm_answer answer;
    struct uc_shm_fds fds;
    size_t length;

    ck_assert_int_eq(uc_shm_receive(peer_fd, bytes, &length, &fds), UC_SHM_MOVED);
    ck_assert_int_eq(uc_shm_answer_get(bytes, length, &answer), UC_OK);
    if (answer.status == UC_OK) {
        ck_assert_uint_eq(fds.count, 3);
        page = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, fds.fds[0], 0);
        ck_assert_ptr_ne(page, MAP_FAILED);
        /* Nothing that we were given can be written, be it opened again. */
        for (size_t idx = 0; idx < fds.count; idx++) {
            ck_assert_ptr_eq(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fds.fds[idx], 0), MAP_FAILED);
            ck_assert_int_lt(pwrite(fds.fds[idx], "x", 1, 0), 0);
            ck_assert_int_ne(ftruncate(fds.fds[idx], 0), 0);
        }
    } else {
        ck_assert_uint_eq(fds.count, 0);
    }
    uc_shm_fds_close(&fds);
    return answer.status;
}

static void
enter(void)
{
    say_hello(nonce, &pages_fd, 1);
    ck_assert_int_eq(hear_answer(), UC_OK);
}

/* What the target says of one entry. */
static enum uc_status
ask(const struct uc_shm_entry *entry)
{
    uint64_t number = atomic_load(&pages->queued);
    uint8_t bytes[UC_SHM_WAKE_BYTES];
    struct uc_shm_packet wake = {.kind = UC_SHM_WAKE};

    uc_shm_entry_put(pages, number, entry);
    atomic_store(&pages->queued, number + 1);
    (void)uc_shm_packet_put(bytes, &wake);
    ck_assert_int_eq(uc_shm_send(peer_fd, bytes, sizeof(bytes), NULL, 0), UC_SHM_MOVED);
    settle();
    ck_assert_uint_eq(atomic_load(&page->done), number + 1);
    return (enum uc_status)atomic_load(&page->statuses[number % UC_SHM_ENTRY_COUNT]);
}

static bool
is_cut(void)
{
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    struct uc_shm_fds fds;
    size_t length;
    enum uc_shm_io io;

    do {
        io = uc_shm_receive(peer_fd, bytes, &length, &fds);
        uc_shm_fds_close(&fds);
    } while (io == UC_SHM_MOVED);
    return io == UC_SHM_LOST;
}

START_TEST(unknown_nonce_is_shown_nothing)
{
    static const uint8_t other[UC_FABRIC_NONCE_BYTES] = {7, 7, 8};

    say_hello(other, &pages_fd, 1);
    ck_assert_int_eq(hear_answer(), UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(admitted, 0);
    ck_assert(is_cut());
}
END_TEST

/* Files that a hello may bring, and none of them is fit. */
START_TEST(unfit_pages_are_refused_before_the_nonce_is_looked_at)
{
    int pipes[2];
    int fds[2];
    int fd = -1;

    ck_assert_int_eq(pipe(pipes), 0);
    switch (_i) {
    case 0: /* could be shortened */
        fd = file_make(PAGES_BYTES, 0, true);
        break;
    case 1: /* is too short */
        fd = file_make(PAGES_BYTES - 1, F_SEAL_SHRINK, true);
        break;
    case 2: /* has holes */
        fd = file_make(PAGES_BYTES, F_SEAL_SHRINK, false);
        break;
    case 3: /* is empty */
        fd = file_make(0, F_SEAL_SHRINK, false);
        break;
    case 4: /* no memory file */
        fd = dup(pipes[0]);
        break;
    default: /* none, or two */
        break;
    }
    fds[0] = fd >= 0 ? fd : pages_fd;
    fds[1] = pages_fd;
    say_hello(nonce, fds, _i < 5 ? 1 : _i == 5 ? 0 : 2);
    ck_assert_int_eq(hear_answer(), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(admitted, 0);
    ck_assert(is_cut());
    if (fd >= 0) {
        (void)close(fd);
    }
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}
END_TEST

START_TEST(another_user_is_refused)
{
    pid_t child;
    int state;

    if (geteuid() != 0) {
        return; /* only root can become somebody else */
    }
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        uint8_t bytes[UC_SHM_HELLO_BYTES];
        struct uc_shm_address address;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        uc_shm_hello_put(bytes, nonce);
        if (setuid(65534) != 0 ||
                uc_shm_address_parse(ops->listener_address(listener), &address) != UC_OK ||
                connect(fd, (const struct sockaddr *)&address.socket, address.length_bytes) != 0 ||
                uc_shm_send(fd, bytes, sizeof(bytes), &pages_fd, 1) != UC_SHM_MOVED) {
            _exit(2);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_int_eq(state, 0);
    settle();
    ck_assert_int_eq(admitted, 0);
}
END_TEST

static const struct {
    struct uc_shm_entry entry;
    enum uc_status want;
} entries[] = {
        {{0, UC_SHM_FROM_STAGING, 100, 8, 0, 0}, UC_OK},
        {{0, UC_SHM_FROM_STAGING, REGION_BYTES - 8, 8, 0, UC_SHM_STAGING_BYTES - 8}, UC_OK},
        {{0, UC_SHM_FROM_STAGING, 100, 0, 0, 0}, UC_ERR_INVALID_PARAM},
        {{0, UC_SHM_FROM_STAGING, 0, UC_SHM_ENTRY_MAX_BYTES + 1, 0, 0}, UC_ERR_INVALID_PARAM},
        {{0, UC_SHM_FROM_STAGING, 0, UINT64_MAX, 0, 0}, UC_ERR_INVALID_PARAM},
        {{0, UC_SHM_FROM_STAGING, REGION_BYTES - 7, 8, 0, 0}, UC_ERR_INVALID_PARAM},
        {{0, UC_SHM_FROM_STAGING, UINT64_MAX - 3, 8, 0, 0}, UC_ERR_INVALID_PARAM},
        {{1, UC_SHM_FROM_STAGING, 0, 8, 0, 0}, UC_ERR_INVALID_PARAM},
        {{UINT32_MAX, UC_SHM_FROM_STAGING, 0, 8, 0, 0}, UC_ERR_INVALID_PARAM},
        {{0, UC_SHM_FROM_STAGING, 0, 8, 0, UC_SHM_STAGING_BYTES - 7}, UC_ERR_INVALID_PARAM},
        {{0, UC_SHM_FROM_STAGING, 0, 8, 0, UINT64_MAX - 3}, UC_ERR_INVALID_PARAM},
        {{0, 0, 0, 8, 0, 0}, UC_ERR_INVALID_PARAM}, /* nothing was shown there */
        {{0, UC_SHM_SLOT_COUNT, 0, 8, 0, 0}, UC_ERR_INVALID_PARAM},
        {{0, UC_SHM_FROM_STAGING - 1, 0, 8, 0, 0}, UC_ERR_INVALID_PARAM},
};

START_TEST(entry_moves_what_is_right_and_nothing_else)
{
    enter();
    memset(pages->staging, 0x5a, UC_SHM_STAGING_BYTES);
    for (size_t idx = 0; idx < sizeof(entries) / sizeof(entries[0]); idx++) {
        const struct uc_shm_entry *entry = &entries[idx].entry;

        memset(memory, 0, REGION_BYTES);
        ck_assert_int_eq(ask(entry), entries[idx].want);
        if (entries[idx].want == UC_OK) {
            ck_assert_int_eq(memory[entry->offset_bytes], 0x5a);
            memset(memory + entry->offset_bytes, 0, entry->length_bytes);
        }
        ck_assert_msg(memory[0] == 0 && memcmp(memory, memory + 1, REGION_BYTES - 1) == 0,
                "entry %zu wrote elsewhere", idx);
    }
    ck_assert(!is_cut());
}
END_TEST

START_TEST(ring_that_claims_too_much_ends_the_connection)
{
    struct uc_shm_packet wake = {.kind = UC_SHM_WAKE};
    uint8_t bytes[UC_SHM_WAKE_BYTES];

    enter();
    atomic_store(&pages->queued, _i == 0 ? UC_SHM_ENTRY_COUNT + 1 : UINT64_MAX);
    (void)uc_shm_packet_put(bytes, &wake);
    ck_assert_int_eq(uc_shm_send(peer_fd, bytes, sizeof(bytes), NULL, 0), UC_SHM_MOVED);
    settle();
    ck_assert(is_cut());
    ck_assert_int_eq(gone_count, 1);
    ck_assert_uint_eq(atomic_load(&page->fenced), 1);
}
END_TEST

/* Show a file as a region. @return the verdict */
static enum uc_status
show(int fd, uint64_t offset, uint64_t length)
{
    struct uc_shm_packet packet = {
            .kind = UC_SHM_REGION, .slot = 9, .offset_bytes = offset, .length_bytes = length};
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    size_t size = uc_shm_packet_put(bytes, &packet);
    struct uc_shm_fds fds;

    ck_assert_int_eq(uc_shm_send(peer_fd, bytes, size, &fd, 1), UC_SHM_MOVED);
    settle();
    do { /* wake-ups may come between */
        ck_assert_int_eq(uc_shm_receive(peer_fd, bytes, &size, &fds), UC_SHM_MOVED);
        ck_assert_int_eq(uc_shm_packet_get(bytes, size, &packet), UC_OK);
    } while (packet.kind == UC_SHM_WAKE);
    ck_assert_int_eq(packet.kind, UC_SHM_VERDICT);
    ck_assert_uint_eq(packet.slot, 9);
    return packet.status;
}

START_TEST(region_is_mapped_only_if_it_cannot_hurt)
{
    struct uc_shm_entry entry = {.source = 9, .length_bytes = 4096, .source_offset_bytes = 4096};
    int good = file_make(8192, F_SEAL_SHRINK, true);
    int loose = file_make(8192, 0, true);
    int sparse = file_make(8192, F_SEAL_SHRINK, false);

    enter();
    ck_assert_int_eq(show(loose, 0, 8192), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(show(sparse, 0, 8192), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(show(peer_fd, 0, 8192), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(show(good, 0, 8193), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(show(good, 8192, 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(show(good, UINT64_MAX, 2), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(show(good, 1, UINT64_MAX), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(ask(&entry), UC_ERR_INVALID_PARAM);

    ck_assert_int_eq(show(good, 0, 8192), UC_OK);
    ck_assert_int_eq(pwrite(good, "hello", 5, 4096), 5);
    ck_assert_int_eq(ask(&entry), UC_OK);
    ck_assert_mem_eq(memory, "hello", 5);
    entry.source_offset_bytes = 4097; /* beyond what was shown */
    ck_assert_int_eq(ask(&entry), UC_ERR_INVALID_PARAM);
    entry.source_offset_bytes = UINT64_MAX;
    ck_assert_int_eq(ask(&entry), UC_ERR_INVALID_PARAM);

    /* A refused one takes the place of the one before. */
    ck_assert_int_eq(show(loose, 0, 8192), UC_ERR_INVALID_PARAM);
    entry.source_offset_bytes = 0;
    ck_assert_int_eq(ask(&entry), UC_ERR_INVALID_PARAM);
    (void)close(good);
    (void)close(loose);
    (void)close(sparse);
}
END_TEST

START_TEST(malformed_packet_ends_the_connection)
{
    static const char *const packets[] = {"", "UCMW", "UCMW\1\1\1\1", "UCMR", "UCMX\0\0\0\0",
            "longer than any packet of this protocol may be"};
    size_t length = strlen(packets[_i]);

    enter();
    ck_assert_int_eq(
            uc_shm_send(peer_fd, (const uint8_t *)packets[_i], length, NULL, 0), UC_SHM_MOVED);
    settle();
    ck_assert(is_cut());
    ck_assert_int_eq(gone_count, 1);
}
END_TEST

/* A client of our own, for the copy that is disturbed. */
static struct uc_fabric_endpoint *endpoint;
static enum uc_status read_status;
static int read_count;

static void
on_state(void *context, struct uc_fabric_endpoint *which, enum uc_status status)
{
    (void)context;
    (void)which;
    ck_assert_int_eq(status, UC_OK);
}

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    (void)op;
    read_count++;
    read_status = status;
}

static struct {
    struct uc_fabric_op op; /* first: on_bytes gets its address */
    size_t told;
} reader;

/* In the middle of the copy the slot gets a new owner, as a server does it: footer first, then the bytes. */
static void
reuse_slot(struct uc_fabric_op *op, const void *bytes, size_t length)
{
    static const struct uc_block_id key = {{2}};

    (void)op;
    (void)bytes;
    if (reader.told == 0) {
        uc_slot_footer_put_server(memory + BLOCK_BYTES, UC_FOOTER_RESERVED, 8, &key, true);
        memset(memory, 2, BLOCK_BYTES);
    }
    reader.told += length;
}

START_TEST(slot_reused_in_the_middle_of_a_copy_shows_in_the_footer)
{
    static const struct uc_block_id key = {{1}};
    static uint8_t block[BLOCK_BYTES];
    uint8_t footer_bytes[UC_FOOTER_BYTES];
    struct uc_slot_footer footer;
    struct uc_fabric_piece pieces[] = {{.address = block, .length_bytes = BLOCK_BYTES},
            {.address = footer_bytes, .length_bytes = UC_FOOTER_BYTES}};
    struct uc_fabric_region_key region_key = {.length_bytes = REGION_BYTES};
    struct uc_fabric_connect params = {.address = ops->listener_address(listener),
            .nonce = nonce,
            .regions = &region_key,
            .region_count = 1,
            .timeout_ms = 10000,
            .on_state = on_state};
    bool is_mixed = false;

    memset(memory, 1, BLOCK_BYTES);
    uc_slot_footer_put_server(memory + BLOCK_BYTES, UC_FOOTER_COMMITTED, 7, &key, true);
    memset(&reader, 0, sizeof(reader));
    reader.op = (struct uc_fabric_op){.opcode = UC_FABRIC_READ,
            .generation = 7,
            .pieces = pieces,
            .piece_count = 2,
            .on_done = on_done,
            .on_bytes = _i == 0 ? NULL : reuse_slot};
    read_count = 0;
    ck_assert_int_eq(ops->connect(domain, &params, &endpoint), UC_OK);
    ck_assert_int_eq(ops->post(endpoint, &reader.op), UC_OK);
    settle();
    ck_assert_int_eq(read_count, 1);
    ck_assert_int_eq(read_status, UC_OK);
    ck_assert_int_eq(uc_slot_footer_get(footer_bytes, &footer), UC_OK);
    for (size_t at = 1; at < BLOCK_BYTES; at++) {
        is_mixed = is_mixed || block[at] != block[0];
    }
    if (_i == 0) { /* undisturbed */
        ck_assert(!is_mixed);
        ck_assert_uint_eq(footer.generation, 7);
        ck_assert_uint_eq(footer.state, UC_FOOTER_COMMITTED);
    } else { /* bytes of two owners: the footer, loaded last, does not pass for the first one's */
        ck_assert(is_mixed);
        ck_assert_uint_eq(reader.told, BLOCK_BYTES + UC_FOOTER_BYTES);
        ck_assert_uint_eq(footer.generation, 8);
        ck_assert_uint_eq(footer.state, UC_FOOTER_RESERVED);
    }
    ops->disconnect(endpoint);
    settle();
}
END_TEST

START_TEST(region_without_a_sealed_file_is_no_memory_for_peers)
{
    struct uc_fabric_memory range = uc_fabric_host_memory(memory, REGION_BYTES);
    struct uc_fabric_region *other = NULL;
    int loose = file_make(REGION_BYTES, 0, true);

    ck_assert_int_eq(ops->region_register(domain, &range, 1, UC_FABRIC_READ_WRITE, &other),
            UC_ERR_UNSUPPORTED);
    range.fd = loose;
    ck_assert_int_eq(ops->region_register(domain, &range, 1, UC_FABRIC_READ_WRITE, &other),
            UC_ERR_INVALID_PARAM);
    range.fd = memory_fd;
    range.fd_offset_bytes = 1;
    ck_assert_int_eq(ops->region_register(domain, &range, 1, UC_FABRIC_READ_WRITE, &other),
            UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(other);
    (void)close(loose);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("shm_peer");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, target_open, target_close);
    tcase_add_test(tcase, unknown_nonce_is_shown_nothing);
    tcase_add_loop_test(tcase, unfit_pages_are_refused_before_the_nonce_is_looked_at, 0, 7);
    tcase_add_test(tcase, another_user_is_refused);
    tcase_add_test(tcase, entry_moves_what_is_right_and_nothing_else);
    tcase_add_loop_test(tcase, ring_that_claims_too_much_ends_the_connection, 0, 2);
    tcase_add_test(tcase, region_is_mapped_only_if_it_cannot_hurt);
    tcase_add_loop_test(tcase, malformed_packet_ends_the_connection, 0, 6);
    tcase_add_loop_test(tcase, slot_reused_in_the_middle_of_a_copy_shows_in_the_footer, 0, 2);
    tcase_add_test(tcase, region_without_a_sealed_file_is_no_memory_for_peers);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
