/* SPDX-License-Identifier: Apache-2.0 */

/* A target against peers that are wrong, hostile or dying; the peers are bare sockets. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/net/shm/rig.h"

enum {
    PAGES_BYTES = sizeof(struct uc_shm_client_pages),
};

static const struct uc_shm_server_page *
page_of(const struct peer *peer)
{
    return (const struct uc_shm_server_page *)(const void *)peer->server_page.bytes;
}

static int
file_without_seals(void)
{
    return file_make(PAGES_BYTES, PAGES_BYTES, 0);
}

static int
file_that_is_short(void)
{
    return file_make(PAGES_BYTES - 4096, PAGES_BYTES - 4096, F_SEAL_SHRINK);
}

static int
file_with_holes(void)
{
    return file_make(PAGES_BYTES, PAGES_BYTES / 2, F_SEAL_SHRINK);
}

static int
no_memory_file(void)
{
    return open("/dev/zero", O_RDWR | O_CLOEXEC);
}

static int
file_for_writing_only(void)
{
    char path[64];
    int fd = file_make(PAGES_BYTES, PAGES_BYTES, F_SEAL_SHRINK);
    int writing;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    writing = open(path, O_WRONLY | O_CLOEXEC);
    (void)close(fd);
    return writing;
}

static int
no_file(void)
{
    return -1;
}

static int (*const unfit_files[])(void) = {file_without_seals, file_that_is_short, file_with_holes,
        no_memory_file, file_for_writing_only, no_file};

/* Nothing is mapped that could be taken away, and the nonce is not spent by it. */
START_TEST(pages_that_are_not_fit_are_refused)
{
    struct peer peer;
    int fd = unfit_files[_i]();

    peer_knock(&peer);
    peer_hello(&peer, fd);
    ck_assert(peer_is_closed(&peer));
    ck_assert_int_eq(rig.admit_count, 0);
    peer_close(&peer);
    if (fd >= 0) {
        (void)close(fd);
    }
    assert_target_is_well();
}
END_TEST

/* Whatever descriptors come along are closed again: rig_close counts. */
START_TEST(hello_with_many_descriptors_is_refused)
{
    struct peer peer;
    int fds[UC_SHM_FDS_MAX];
    uint8_t bytes[UC_SHM_PACKET_BYTES] = {0};
    int fd = file_make(PAGES_BYTES, PAGES_BYTES, F_SEAL_SHRINK);

    for (size_t idx = 0; idx < (size_t)UC_SHM_FDS_MAX; idx++) {
        fds[idx] = fd;
    }
    for (size_t count = 2; count <= (size_t)UC_SHM_FDS_MAX; count += 32) {
        peer_knock(&peer);
        uc_shm_hello_put(bytes, bytes);
        peer_send(&peer, bytes, UC_SHM_HELLO_BYTES, fds, count);
        ck_assert(peer_is_closed(&peer));
        peer_close(&peer);
    }
    ck_assert_int_eq(rig.admit_count, 0);
    (void)close(fd);
}
END_TEST

START_TEST(random_packets_end_that_connection_only)
{
    uint8_t bytes[64];
    int fd = file_make(4096, 4096, F_SEAL_SHRINK);

    srand(1);
    for (int round = 0; round < 300; round++) {
        struct peer peer;

        if (round % 2 == 0) {
            peer_knock(&peer);
        } else {
            peer_open(&peer);
        }
        for (int packet = 0; packet < 4; packet++) {
            size_t length = (size_t)rand() % sizeof(bytes);

            for (size_t idx = 0; idx < sizeof(bytes); idx++) {
                bytes[idx] = (uint8_t)rand();
            }
            memcpy(bytes, "UCM", 3);
            bytes[3] = (uint8_t) "HARVFW"[rand() % 6];
            peer_send(&peer, bytes, length, &fd, (size_t)rand() % 2);
        }
        peer_close(&peer);
    }
    (void)close(fd);
    assert_target_is_well();
}
END_TEST

START_TEST(count_beyond_the_ring_ends_the_connection)
{
    static const uint64_t counts[] = {UC_SHM_ENTRY_COUNT + 1, UINT64_MAX, UINT64_C(1) << 63};
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    struct uc_shm_packet wake = {.kind = UC_SHM_WAKE};
    struct peer peer;

    peer_open(&peer);
    atomic_store(&peer.pages->queued, counts[_i]);
    peer_send(&peer, bytes, uc_shm_packet_put(bytes, &wake), NULL, 0);
    ck_assert(peer_is_closed(&peer));
    ck_assert_int_eq(rig.gone_count, 1);
    ck_assert_int_eq(rig.hold_count, 0);
    ck_assert_uint_ne(atomic_load(&page_of(&peer)->fenced), 0);
    peer_close(&peer);
    assert_target_is_well();
}
END_TEST

static const struct uc_shm_entry wrong_entries[] = {
        {.source = UC_SHM_FROM_STAGING, .length_bytes = 0},
        {.source = UC_SHM_FROM_STAGING, .length_bytes = UC_SHM_ENTRY_MAX_BYTES + 1},
        {.source = UC_SHM_FROM_STAGING, .length_bytes = UINT64_MAX},
        {.source = UC_SHM_FROM_STAGING, .length_bytes = 2, .source_offset_bytes = UINT64_MAX},
        {.source = UC_SHM_FROM_STAGING,
                .length_bytes = 2,
                .source_offset_bytes = UC_SHM_STAGING_BYTES - 1},
        {.source = UC_SHM_FROM_STAGING, .length_bytes = 2, .offset_bytes = RIG_REGION_BYTES - 1},
        {.source = UC_SHM_FROM_STAGING, .length_bytes = 2, .offset_bytes = UINT64_MAX},
        {.source = UC_SHM_FROM_STAGING, .length_bytes = 2, .region_idx = 1},
        {.source = UC_SHM_FROM_STAGING, .length_bytes = 2, .region_idx = UINT32_MAX},
        {.source = 0, .length_bytes = 2}, /* no memory was shown */
        {.source = UC_SHM_SLOT_COUNT, .length_bytes = 2},
        {.source = UINT32_MAX - 1, .length_bytes = 2},
};

enum {
    WRONG_ENTRY_COUNT = sizeof(wrong_entries) / sizeof(wrong_entries[0]),
};

/* An entry that makes no sense is refused before a slot is held; those behind it are done. */
START_TEST(entry_out_of_bounds_is_refused_and_the_next_one_done)
{
    struct uc_shm_entry good = {.source = UC_SHM_FROM_STAGING, .length_bytes = 8};
    struct peer peer;

    peer_open(&peer);
    for (size_t idx = 0; idx < (size_t)WRONG_ENTRY_COUNT; idx++) {
        ck_assert_int_eq(peer_write(&peer, &wrong_entries[idx]), UC_ERR_INVALID_PARAM);
    }
    ck_assert_int_eq(rig.hold_count, 0);
    ck_assert_int_eq(peer_write(&peer, &good), UC_OK);
    ck_assert_int_eq(rig.hold_count, 1);
    peer_close(&peer);
}
END_TEST

/* What rows of a list in staging a peer may put there. An entry of so many bytes names them. */
static const struct {
    struct uc_shm_part rows[3];
    uint64_t length_bytes;
    enum uc_status want;
} lists[] = {
        {{{0, 4000, 4196}, {0, 1, 0}, {0, 4196, 4000}}, 8197, UC_OK},
        {{{UINT32_MAX, 8, 4096}, {0, 8, 8}}, 16, UC_OK}, /* staging and a slot */
        {{{0, 8, 0}, {0, 8, 8}}, 15, UC_ERR_INVALID_PARAM},
        {{{0, 8, 0}, {0, 0, 8}, {0, 8, 8}}, 16, UC_ERR_INVALID_PARAM},
        {{{0, UINT32_MAX, 0}}, 8, UC_ERR_INVALID_PARAM},
        {{{0, 8, 0}, {0, 8, 8189}}, 16, UC_ERR_INVALID_PARAM},
        {{{0, 8, 0}, {0, 8, UINT64_MAX}}, 16, UC_ERR_INVALID_PARAM},
        {{{0, 8, 0}, {1, 8, 0}}, 16, UC_ERR_INVALID_PARAM}, /* nothing was shown there */
        {{{0, 8, 0}, {UINT32_MAX - 1, 8, 0}}, 16, UC_ERR_INVALID_PARAM},
        {{{0, 8, 0}, {UINT32_MAX, 8, UC_SHM_STAGING_BYTES - 7}}, 16, UC_ERR_INVALID_PARAM},
};

enum {
    LIST_COUNT = sizeof(lists) / sizeof(lists[0]),
    SHOWN_BYTES = 8196,
};

static enum uc_status verdict_on(struct peer *peer, uint64_t offset, uint64_t length, int fd);

static void
fill(uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        bytes[at] = (uint8_t)(at * 7 + at / 251);
    }
}

/* Nothing is moved, and no slot held, unless every row is right. */
START_TEST(list_moves_its_parts_in_order_or_nothing)
{
    static uint8_t shown[SHOWN_BYTES];
    static uint8_t nothing[SHOWN_BYTES + 1];
    int fd = file_make(12288, 12288, F_SEAL_SHRINK);
    uint64_t offset = 100;
    struct uc_shm_entry entry = {.source = UC_SHM_FROM_LIST,
            .offset_bytes = offset,
            .length_bytes = lists[_i].length_bytes,
            .source_offset_bytes = 64};
    struct peer peer;

    peer_open(&peer);
    fill(shown, SHOWN_BYTES);
    ck_assert_int_eq(pwrite(fd, shown, SHOWN_BYTES, 0), SHOWN_BYTES);
    ck_assert_int_eq(verdict_on(&peer, 0, SHOWN_BYTES, fd), UC_OK);
    memcpy(peer.pages->staging + 4096, shown, SHOWN_BYTES);
    for (size_t idx = 0; idx < 3; idx++) {
        uc_shm_part_put(peer.pages, 64, idx, &lists[_i].rows[idx]);
    }
    ck_assert_int_eq(peer_write(&peer, &entry), lists[_i].want);
    ck_assert_int_eq(rig.hold_count, lists[_i].want == UC_OK ? 1 : 0);
    for (size_t idx = 0; lists[_i].want == UC_OK && offset < 100 + lists[_i].length_bytes; idx++) {
        const struct uc_shm_part *row = &lists[_i].rows[idx];
        const uint8_t *from = row->slot == 0 ? shown : shown - 4096;

        ck_assert_mem_eq(rig.memory + offset, from + row->offset_bytes, row->length_bytes);
        offset += row->length_bytes;
    }
    ck_assert_mem_eq(rig.memory + offset, nothing, sizeof(nothing));
    ck_assert_int_eq(rig.memory[99], 0);
    peer_close(&peer);
    (void)close(fd);
}
END_TEST

/* A list begins at a multiple of 8, ends in staging and has 64 rows at most. */
START_TEST(list_that_is_misplaced_or_too_long_is_refused)
{
    struct uc_shm_entry entry = {.source = UC_SHM_FROM_LIST, .length_bytes = UC_SHM_PART_COUNT};
    struct uc_shm_part part = {.slot = UC_SHM_FROM_STAGING, .length_bytes = 1};
    struct peer peer;

    peer_open(&peer);
    for (size_t idx = 0; idx <= (size_t)UC_SHM_PART_COUNT; idx++) {
        uc_shm_part_put(peer.pages, 0, idx, &part);
    }
    ck_assert_int_eq(peer_write(&peer, &entry), UC_OK);
    entry.length_bytes++;
    ck_assert_int_eq(peer_write(&peer, &entry), UC_ERR_INVALID_PARAM);
    entry.length_bytes = 1;
    for (uint64_t offset = 1; offset < 8; offset++) {
        entry.source_offset_bytes = offset;
        ck_assert_int_eq(peer_write(&peer, &entry), UC_ERR_INVALID_PARAM);
    }
    entry.source_offset_bytes = UC_SHM_STAGING_BYTES - UC_SHM_PART_BYTES;
    uc_shm_part_put(peer.pages, entry.source_offset_bytes, 0, &part);
    ck_assert_int_eq(peer_write(&peer, &entry), UC_OK);
    entry.length_bytes = 2; /* the second row would lie behind */
    ck_assert_int_eq(peer_write(&peer, &entry), UC_ERR_INVALID_PARAM);
    entry.source_offset_bytes = UC_SHM_STAGING_BYTES - 8;
    ck_assert_int_eq(peer_write(&peer, &entry), UC_ERR_INVALID_PARAM);
    entry.source_offset_bytes = UINT64_MAX - 7;
    ck_assert_int_eq(peer_write(&peer, &entry), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(rig.hold_count, 2);
    peer_close(&peer);
}
END_TEST

static enum uc_status
verdict_on(struct peer *peer, uint64_t offset, uint64_t length, int fd)
{
    struct uc_shm_packet packet = {
            .kind = UC_SHM_REGION, .offset_bytes = offset, .length_bytes = length};
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    struct uc_shm_fds fds;
    size_t got = 0;

    peer_send(peer, bytes, uc_shm_packet_put(bytes, &packet), &fd, 1);
    do {
        ck_assert_int_eq(uc_shm_receive(peer->fd, bytes, &got, &fds), UC_SHM_MOVED);
        ck_assert_int_eq(uc_shm_packet_get(bytes, got, &packet), UC_OK);
    } while (packet.kind == UC_SHM_WAKE);
    ck_assert_int_eq(packet.kind, UC_SHM_VERDICT);
    return packet.status;
}

/* What is shown instead of a mapped region takes its place, even if it is refused. */
START_TEST(memory_that_is_not_fit_is_not_mapped)
{
    static const uint64_t ranges[][2] = {
            {0, 8193}, {8192, 1}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {4096, UINT64_MAX - 4095}};
    struct uc_shm_entry entry = {.length_bytes = 8};
    int fit = file_make(8192, 8192, F_SEAL_SHRINK);
    int loose = file_make(8192, 8192, 0);
    struct peer peer;

    peer_open(&peer);
    for (size_t idx = 0; idx < sizeof(ranges) / sizeof(ranges[0]); idx++) {
        ck_assert_int_ne(verdict_on(&peer, ranges[idx][0], ranges[idx][1], fit), UC_OK);
    }
    ck_assert_int_eq(verdict_on(&peer, 100, 8000, fit), UC_OK);
    ck_assert_int_eq(peer_write(&peer, &entry), UC_OK);
    entry.source_offset_bytes = 7993;
    ck_assert_int_eq(peer_write(&peer, &entry), UC_ERR_INVALID_PARAM);
    ck_assert_int_ne(verdict_on(&peer, 0, 8192, loose), UC_OK);
    entry.source_offset_bytes = 0;
    ck_assert_int_eq(peer_write(&peer, &entry), UC_ERR_INVALID_PARAM);
    peer_close(&peer);
    (void)close(fit);
    (void)close(loose);
}
END_TEST

/* They are bounded, the oldest goes, and one that speaks is let in all the same. */
START_TEST(thousands_that_never_speak_keep_nobody_out)
{
    struct peer peers[UC_ACCEPTOR_NEWCOMER_COUNT + 20];
    size_t count = sizeof(peers) / sizeof(peers[0]);

    for (int round = 0; round < 8; round++) {
        for (size_t idx = 0; idx < count; idx++) {
            peer_knock(&peers[idx]);
        }
        ck_assert_uint_eq(rig.fabric->endpoint_count, UC_ACCEPTOR_NEWCOMER_COUNT);
        ck_assert(peer_is_closed(&peers[0]));
        ck_assert(!peer_is_closed(&peers[count - 1]));
        assert_target_is_well();
        for (size_t idx = 0; idx < count; idx++) {
            peer_close(&peers[idx]);
        }
        ck_assert_uint_eq(rig.fabric->endpoint_count, 0);
    }
}
END_TEST

START_TEST(silent_peer_is_dropped_after_five_seconds)
{
    struct peer peer;

    peer_knock(&peer);
    rig.now_ms += UC_ACCEPTOR_NEWCOMER_MS - 1;
    ck_assert(!peer_is_closed(&peer));
    rig.now_ms += 1;
    ck_assert(peer_is_closed(&peer));
    ck_assert_int_eq(rig.gone_count, 0); /* never admitted */
    peer_close(&peer);
}
END_TEST

/* A peer that takes nothing cannot make the target wait or grow: what does not fit is not sent. */
START_TEST(peer_that_reads_nothing_costs_nothing)
{
    struct uc_shm_entry entry = {.source = UC_SHM_FROM_STAGING, .length_bytes = 8};
    int fd = file_make(4096, 4096, F_SEAL_SHRINK);
    struct uc_shm_packet region = {.kind = UC_SHM_REGION, .length_bytes = 4096};
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    struct peer peer;

    peer_open(&peer);
    for (uint32_t round = 1; round < 3000; round++) {
        atomic_store(&peer.pages->sleep_epoch, round);
        ck_assert_int_eq(peer_write(&peer, &entry), UC_OK);
        peer_send(&peer, bytes, uc_shm_packet_put(bytes, &region), &fd, 1);
    }
    assert_target_is_well();
    peer_close(&peer);
    (void)close(fd);
}
END_TEST

START_TEST(fence_while_entries_wait_leaves_them_undone)
{
    struct uc_shm_entry entry = {.source = UC_SHM_FROM_STAGING, .length_bytes = 8};
    struct peer peer;

    peer_open(&peer);
    memset(peer.pages->staging, 0xa5, 8);
    for (uint64_t number = 0; number < UC_SHM_ENTRY_COUNT; number++) {
        uc_shm_entry_put(peer.pages, number, &entry);
    }
    atomic_store(&peer.pages->queued, UC_SHM_ENTRY_COUNT);
    rig.ops->disconnect(rig.last);
    ck_assert(peer_is_closed(&peer));
    ck_assert_uint_ne(atomic_load(&page_of(&peer)->fenced), 0);
    ck_assert_uint_eq(rig.memory[0], 0);
    ck_assert_int_eq(rig.gone_count, 0);
    peer_close(&peer);
}
END_TEST

/*
 * A process forked from the target's has every socket open as well. The peer sees the end all the same, and
 * its own end afterwards is no event of an endpoint that was freed.
 */
START_TEST(fence_ends_a_socket_that_a_forked_process_has_open)
{
    struct peer peer;
    pid_t child;

    peer_open(&peer);
    child = fork();
    if (child == 0) {
        (void)close(peer.fd);
        (void)pause();
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    rig.ops->disconnect(rig.last);
    ck_assert(peer_is_closed(&peer));
    peer_close(&peer);
    rig_settle();
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

static Suite *
shm_target_suite(void)
{
    Suite *suite = suite_create("shm_target");
    TCase *tcase = tcase_create("peers");

    tcase_add_checked_fixture(tcase, rig_open, rig_close);
    tcase_add_loop_test(tcase, pages_that_are_not_fit_are_refused, 0,
            (int)(sizeof(unfit_files) / sizeof(unfit_files[0])));
    tcase_add_test(tcase, hello_with_many_descriptors_is_refused);
    tcase_add_test(tcase, random_packets_end_that_connection_only);
    tcase_add_loop_test(tcase, count_beyond_the_ring_ends_the_connection, 0, 3);
    tcase_add_test(tcase, entry_out_of_bounds_is_refused_and_the_next_one_done);
    tcase_add_loop_test(tcase, list_moves_its_parts_in_order_or_nothing, 0, LIST_COUNT);
    tcase_add_test(tcase, list_that_is_misplaced_or_too_long_is_refused);
    tcase_add_test(tcase, memory_that_is_not_fit_is_not_mapped);
    tcase_add_test(tcase, thousands_that_never_speak_keep_nobody_out);
    tcase_add_test(tcase, silent_peer_is_dropped_after_five_seconds);
    tcase_add_test(tcase, peer_that_reads_nothing_costs_nothing);
    tcase_add_test(tcase, fence_while_entries_wait_leaves_them_undone);
    tcase_add_test(tcase, fence_ends_a_socket_that_a_forked_process_has_open);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(shm_target_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
