/* SPDX-License-Identifier: Apache-2.0 */

/* A target against peers that are slow, wrong or hostile; the peers are bare sockets. */

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/tcp/tcp_wire.h"
#include "test/fake/fake_alloc.h"
#include "test/unit/net/tcp/rig.h"

static uint8_t buffer[RIG_REGION_BYTES];

START_TEST(silent_peer_is_dropped_after_five_seconds)
{
    int fd = peer_connect();

    ck_assert_uint_eq(rig.fabric->endpoint_count, 1);
    ck_assert_uint_eq(rig.ops->next_deadline_ms(rig.fabric), rig.now_ms + UC_ACCEPTOR_NEWCOMER_MS);
    rig.now_ms += UC_ACCEPTOR_NEWCOMER_MS - 1;
    rig_settle();
    ck_assert(!peer_is_closed(fd));
    rig.now_ms += 1;
    rig_until(peer_is_closed(fd));
    ck_assert_uint_eq(rig.fabric->endpoint_count, 0);
    ck_assert_uint_eq(rig.ops->next_deadline_ms(rig.fabric), UC_TIME_NEVER_MS);
    ck_assert_int_eq(rig.gone_count, 0); /* never admitted */
    (void)close(fd);
}
END_TEST

START_TEST(silent_peers_are_limited_and_the_oldest_goes)
{
    int fds[UC_ACCEPTOR_NEWCOMER_COUNT + 10];
    size_t count = sizeof(fds) / sizeof(fds[0]);
    int good;

    for (size_t idx = 0; idx < count; idx++) {
        fds[idx] = peer_connect();
    }
    ck_assert_uint_eq(rig.fabric->endpoint_count, UC_ACCEPTOR_NEWCOMER_COUNT);
    rig_until(peer_is_closed(fds[0]));
    rig_until(peer_is_closed(fds[9]));
    ck_assert(!peer_is_closed(fds[10]));
    good = peer_admitted();
    (void)close(good);
    for (size_t idx = 0; idx < count; idx++) {
        (void)close(fds[idx]);
    }
}
END_TEST

START_TEST(admitted_peer_has_no_deadline)
{
    int fd = peer_admitted();

    ck_assert_uint_eq(rig.ops->next_deadline_ms(rig.fabric), UC_TIME_NEVER_MS);
    rig.now_ms += UINT64_C(1) << 40;
    rig_settle();
    ck_assert(!peer_is_closed(fd));
    (void)close(fd);
    rig_until(rig.gone_count == 1);
}
END_TEST

static void
expect_refusal(const uint8_t *hello, enum uc_status want)
{
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    enum uc_status status;
    int fd = peer_connect();

    peer_send(fd, hello, UC_TCP_HELLO_BYTES);
    ck_assert(peer_receive(fd, answer, sizeof(answer)));
    ck_assert_int_eq(uc_tcp_answer_get(answer, &status), UC_OK);
    ck_assert_int_eq(status, want);
    rig_until(peer_is_closed(fd));
    ck_assert_int_eq(rig.connected_count, 0);
    ck_assert_int_eq(rig.gone_count, 0);
    (void)close(fd);
}

START_TEST(refused_hello_is_answered_with_the_reason)
{
    uint8_t hello[UC_TCP_HELLO_BYTES];

    uc_tcp_hello_put(hello, &(struct uc_tcp_hello){.lane_count = 1});
    rig.admit_status = UC_ERR_PERMISSION_DENIED;
    expect_refusal(hello, UC_ERR_PERMISSION_DENIED);
    rig.admit_status = UC_OK;
    hello[4] = 2;
    expect_refusal(hello, UC_ERR_UNSUPPORTED);
    memset(hello, 'x', sizeof(hello));
    expect_refusal(hello, UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(rig.admit_count, 1); /* only the well-formed one got so far */
}
END_TEST

START_TEST(malformed_request_closes_that_connection_only)
{
    uint8_t bytes[UC_TCP_REQUEST_BYTES];
    int good = peer_admitted();
    int bad = peer_admitted();

    memset(bytes, _i, sizeof(bytes));
    peer_send(bad, bytes, sizeof(bytes));
    rig_until(peer_is_closed(bad));
    ck_assert_int_eq(rig.gone_count, 1);
    peer_send_request(good, UC_FABRIC_READ, 0, 0, 10, 1);
    peer_expect(good, 1, UC_OK, 10);
    (void)close(bad);
    (void)close(good);
}
END_TEST

/* The data of a refused WRITE must not be taken for requests (the stream stays in step). */
START_TEST(refused_write_is_discarded_and_the_stream_goes_on)
{
    static const struct {
        uint32_t region_idx;
        uint64_t offset;
        uint64_t length;
        enum uc_fabric_access access;
        enum uc_status hold_status;
        enum uc_status want;
    } rows[] = {
            {1, 0, 100, UC_FABRIC_READ_WRITE, UC_OK, UC_ERR_INVALID_PARAM},
            {UINT32_MAX, 0, 100, UC_FABRIC_READ_WRITE, UC_OK, UC_ERR_INVALID_PARAM},
            {0, RIG_REGION_BYTES, 1, UC_FABRIC_READ_WRITE, UC_OK, UC_ERR_INVALID_PARAM},
            {0, UINT64_MAX, 2, UC_FABRIC_READ_WRITE, UC_OK, UC_ERR_INVALID_PARAM},
            {0, 1, RIG_REGION_BYTES, UC_FABRIC_READ_WRITE, UC_OK, UC_ERR_INVALID_PARAM},
            {0, 0, 100000, UC_FABRIC_READ_ONLY, UC_OK, UC_ERR_PERMISSION_DENIED},
            {0, 0, 300000, UC_FABRIC_READ_WRITE, UC_ERR_NOT_FOUND, UC_ERR_NOT_FOUND},
    };
    int fd;

    rig.access = rows[_i].access;
    rig.hold_status = rows[_i].hold_status;
    fd = peer_admitted();
    memset(buffer, 'Q', sizeof(buffer));
    peer_send_request(
            fd, UC_FABRIC_WRITE, rows[_i].region_idx, rows[_i].offset, rows[_i].length, 1);
    peer_send(fd, buffer, rows[_i].length);
    rig.hold_status = UC_OK;
    peer_send_request(fd, UC_FABRIC_READ, 0, 0, 64, 2);
    peer_expect(fd, 1, rows[_i].want, 0);
    peer_expect(fd, 2, UC_OK, 64);
    ck_assert(peer_receive(fd, buffer, 64));
    ck_assert_int_eq(buffer[0], 0);
    for (size_t idx = 0; idx < RIG_REGION_BYTES; idx++) {
        if (rig.memory[idx] != 0) {
            ck_abort_msg("byte %zu was written", idx);
        }
    }
    (void)close(fd);
}
END_TEST

/* A hostile range never gets past the check, whatever its form. */
START_TEST(read_outside_a_region_is_refused)
{
    static const struct {
        uint32_t region_idx;
        uint64_t offset;
        uint64_t length;
    } rows[] = {{1, 0, 1}, {65535, 0, 1}, {65536, 0, 1}, {UINT32_MAX, 0, 1},
            {0, RIG_REGION_BYTES, 1}, {0, RIG_REGION_BYTES - 1, 2}, {0, UINT64_MAX, 1},
            {0, UINT64_MAX - 9, 11}, {0, 0, RIG_REGION_BYTES + 1}, {0, 0, UC_TCP_MAX_OP_BYTES}};
    int fd = peer_admitted();

    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]); idx++) {
        peer_send_request(
                fd, UC_FABRIC_READ, rows[idx].region_idx, rows[idx].offset, rows[idx].length, idx);
        peer_expect(fd, idx, UC_ERR_INVALID_PARAM, 0);
    }
    ck_assert_int_eq(rig.hold_count, 0);
    (void)close(fd);
}
END_TEST

START_TEST(stream_may_be_cut_anywhere)
{
    uint8_t bytes[UC_TCP_HELLO_BYTES + 2 * UC_TCP_REQUEST_BYTES + 5];
    struct uc_tcp_request write = {.opcode = UC_FABRIC_WRITE, .length_bytes = 5, .sequence = 1};
    struct uc_tcp_request flush = {.opcode = UC_FABRIC_FLUSH, .sequence = 2};
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    int fd = peer_connect();

    uc_tcp_hello_put(bytes, &(struct uc_tcp_hello){.lane_count = 1});
    uc_tcp_request_put(bytes + UC_TCP_HELLO_BYTES, &write);
    memcpy(bytes + UC_TCP_HELLO_BYTES + UC_TCP_REQUEST_BYTES, "hello", 5);
    uc_tcp_request_put(bytes + UC_TCP_HELLO_BYTES + UC_TCP_REQUEST_BYTES + 5, &flush);
    for (size_t idx = 0; idx < sizeof(bytes); idx++) {
        peer_send(fd, &bytes[idx], 1);
    }
    ck_assert(peer_receive(fd, answer, sizeof(answer)));
    peer_expect(fd, 1, UC_OK, 0);
    peer_expect(fd, 2, UC_OK, 0);
    ck_assert_mem_eq(rig.memory, "hello", 5);
    (void)close(fd);

    /* … and all at once, before any answer */
    memset(rig.memory, 0, 5);
    fd = peer_connect();
    peer_send(fd, bytes, sizeof(bytes));
    ck_assert(peer_receive(fd, answer, sizeof(answer)));
    peer_expect(fd, 1, UC_OK, 0);
    peer_expect(fd, 2, UC_OK, 0);
    ck_assert_mem_eq(rig.memory, "hello", 5);
    (void)close(fd);
}
END_TEST

/* The peer asks and does not listen: it stops itself, and holds one slot at most. */
START_TEST(peer_that_takes_no_replies_holds_one_slot)
{
    uint8_t bytes[UC_TCP_REQUEST_BYTES];
    struct uc_tcp_request request = {.opcode = UC_FABRIC_READ, .length_bytes = 256 << 10};
    int fd = peer_admitted();
    int good;

    for (uint64_t idx = 0; idx < 20000; idx++) {
        request.sequence = idx;
        uc_tcp_request_put(bytes, &request);
        if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes)) {
            break;
        }
        rig_settle();
    }
    ck_assert_int_le(rig.hold_count - rig.release_count, 1);
    good = peer_admitted(); /* nobody else waits for it */
    peer_send_request(good, UC_FABRIC_READ, 0, 0, 8, 1);
    peer_expect(good, 1, UC_OK, 8);
    (void)close(good);
    (void)close(fd);
    rig_until(rig.gone_count == 2);
    ck_assert_int_eq(rig.hold_count, rig.release_count);
}
END_TEST

START_TEST(broken_write_ends_its_hold_once)
{
    int fd = peer_admitted();

    peer_send_request(fd, UC_FABRIC_WRITE, 0, 0, 1000, 1);
    peer_send(fd, buffer, 500);
    rig_until(rig.hold_count == 1);
    ck_assert_int_eq(rig.release_count, 0); /* bytes are arriving */
    (void)close(fd);
    rig_until(rig.gone_count == 1);
    ck_assert_int_eq(rig.release_count, 1);
}
END_TEST

START_TEST(fence_ends_holds_and_nothing_lands_afterwards)
{
    int fd = peer_admitted();

    memset(buffer, 'z', 1000);
    peer_send_request(fd, UC_FABRIC_WRITE, 0, 0, 1000, 1);
    peer_send(fd, buffer, 500);
    rig_until(rig.memory[499] == 'z');
    ck_assert_int_eq(send(fd, buffer, 500, MSG_NOSIGNAL), 500); /* in the socket, not polled */
    rig.ops->fence(rig.last);
    ck_assert_int_eq(rig.release_count, 1);
    rig_until(peer_is_closed(fd));
    ck_assert_int_eq(rig.memory[500], 0);
    ck_assert_int_eq(rig.gone_count, 0); /* the target did it */
    rig.ops->disconnect(rig.last);
    (void)close(fd);
}
END_TEST

/*
 * A process forked from the target's has every socket open as well. The peer sees the end all the same, and
 * its own end afterwards is no event of an endpoint that was freed.
 */
START_TEST(fence_ends_a_socket_that_a_forked_process_has_open)
{
    int fd = peer_admitted();
    pid_t child = fork();

    if (child == 0) {
        (void)close(fd);
        (void)pause();
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    rig.ops->disconnect(rig.last);
    rig_until(peer_is_closed(fd));
    (void)close(fd);
    rig_settle();
    ck_assert_int_eq(rig.gone_count, 0);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

static uint64_t
next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 24;
}

/* Every byte random, or a request whose fields are random but plausible. */
static size_t
random_frame(uint64_t *state, uint8_t *bytes, size_t capacity)
{
    size_t length = 1 + next_random(state) % capacity;

    for (size_t idx = 0; idx < length; idx++) {
        bytes[idx] = (uint8_t)next_random(state);
    }
    if (next_random(state) % 2 == 0) {
        struct uc_tcp_request request = {
                .opcode = (enum uc_fabric_opcode)(next_random(state) % 3),
                .region_idx = (uint32_t)(next_random(state) % 3),
                .offset_bytes = next_random(state) % (2 * RIG_REGION_BYTES),
                .length_bytes = next_random(state) % 2000,
        };

        uc_tcp_request_put(bytes, &request);
        if (next_random(state) % 4 == 0) {
            bytes[next_random(state) % UC_TCP_REQUEST_BYTES] ^= (uint8_t)next_random(state);
        }
    }
    return length;
}

START_TEST(ten_thousand_random_frames_do_no_harm)
{
    uint8_t bytes[300];
    uint64_t state = 20240607;
    int before = fd_count();
    int good = peer_admitted();
    int fd = -1;

    for (int count = 0; count < 10000; count++) {
        size_t length;

        if (fd < 0) {
            fd = next_random(&state) % 4 == 0 ? peer_connect() : peer_admitted();
        }
        length = random_frame(&state, bytes, sizeof(bytes));
        peer_send(fd, bytes, length < UC_TCP_REQUEST_BYTES ? UC_TCP_REQUEST_BYTES : length);
        rig_settle();
        if (peer_is_closed(fd) || next_random(&state) % 50 == 0) {
            (void)close(fd);
            fd = -1;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }

    peer_send_request(good, UC_FABRIC_READ, 0, 7, 100, 1);
    peer_expect(good, 1, UC_OK, 100);
    ck_assert(peer_receive(good, bytes, 100));
    ck_assert_mem_eq(bytes, rig.memory + 7, 100);
    (void)close(good);
    rig_until(rig.fabric->endpoint_count == 0);
    ck_assert_int_eq(fd_count(), before);
    ck_assert_int_eq(rig.hold_count, rig.release_count);
    ck_assert_int_eq(rig.connected_count, rig.gone_count);
}
END_TEST

START_TEST(accept_pauses_when_descriptors_run_out)
{
    struct rlimit limit;
    struct rlimit low;
    int spare = dup(0);
    int fd;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)spare + 1; /* room for the peer's socket, not for its other end */
    (void)close(spare);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    fd = peer_knock();
    rig_until(rig.ops->next_deadline_ms(rig.fabric) == rig.now_ms + UC_ACCEPTOR_RETRY_MS);
    ck_assert_uint_eq(rig.fabric->endpoint_count, 0);

    rig.now_ms += UC_ACCEPTOR_RETRY_MS; /* still none: it pauses again, and does not spin */
    rig_settle();
    ck_assert_uint_eq(rig.ops->next_deadline_ms(rig.fabric), rig.now_ms + UC_ACCEPTOR_RETRY_MS);

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    rig.now_ms += UC_ACCEPTOR_RETRY_MS;
    rig_settle();
    ck_assert_uint_eq(rig.fabric->endpoint_count, 1);
    (void)close(fd);
}
END_TEST

START_TEST(accept_pauses_when_memory_runs_out)
{
    struct pollfd event = {.fd = rig.ops->event_fd(rig.fabric), .events = POLLIN};
    int fd = peer_knock();

    ck_assert_int_eq(poll(&event, 1, 10000), 1);
    uc_fake_alloc_fail_after(0); /* not while Check allocates */
    (void)rig.ops->poll(rig.fabric, 64);
    uc_fake_alloc_reset();
    ck_assert_uint_eq(rig.fabric->endpoint_count, 0);
    rig_until(peer_is_closed(fd));
    (void)close(fd);
    rig.now_ms += UC_ACCEPTOR_RETRY_MS;
    fd = peer_admitted();
    (void)close(fd);
}
END_TEST

START_TEST(closed_listener_drops_peers_that_are_not_admitted)
{
    int silent = peer_connect();
    int admitted = peer_admitted();

    rig.ops->listener_close(rig.listener);
    rig.listener = NULL;
    rig_until(peer_is_closed(silent));
    peer_send_request(admitted, UC_FABRIC_READ, 0, 0, 8, 1);
    peer_expect(admitted, 1, UC_OK, 8);
    (void)close(silent);
    (void)close(admitted);
}
END_TEST

/* What lies in the send buffer between two processes of a host should fit in a core's cache. */
START_TEST(send_buffer_on_one_host_is_small)
{
    int fd = peer_admitted();
    const struct uc_tcp_group *group = (const struct uc_tcp_group *)(const void *)rig.last;
    socklen_t length = sizeof(int);
    int bytes = 0;

    ck_assert_int_eq(getsockopt(group->lanes[0]->stream.source.base.fd, SOL_SOCKET, SO_SNDBUF,
                             &bytes, &length),
            0);
    ck_assert_int_le(bytes, 2 * UC_TCP_LOCAL_SEND_BYTES); /* as the kernel counts */
    (void)close(fd);
}
END_TEST

static Suite *
tcp_target_suite(void)
{
    Suite *suite = suite_create("tcp_target");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, rig_open, rig_close);
    tcase_add_test(tcase, silent_peer_is_dropped_after_five_seconds);
    tcase_add_test(tcase, silent_peers_are_limited_and_the_oldest_goes);
    tcase_add_test(tcase, admitted_peer_has_no_deadline);
    tcase_add_test(tcase, refused_hello_is_answered_with_the_reason);
    tcase_add_loop_test(tcase, malformed_request_closes_that_connection_only, 0, 3);
    tcase_add_loop_test(tcase, refused_write_is_discarded_and_the_stream_goes_on, 0, 7);
    tcase_add_test(tcase, read_outside_a_region_is_refused);
    tcase_add_test(tcase, stream_may_be_cut_anywhere);
    tcase_add_test(tcase, peer_that_takes_no_replies_holds_one_slot);
    tcase_add_test(tcase, broken_write_ends_its_hold_once);
    tcase_add_test(tcase, fence_ends_holds_and_nothing_lands_afterwards);
    tcase_add_test(tcase, fence_ends_a_socket_that_a_forked_process_has_open);
    tcase_add_test(tcase, ten_thousand_random_frames_do_no_harm);
    tcase_add_test(tcase, accept_pauses_when_descriptors_run_out);
    tcase_add_test(tcase, accept_pauses_when_memory_runs_out);
    tcase_add_test(tcase, closed_listener_drops_peers_that_are_not_admitted);
    tcase_add_test(tcase, send_buffer_on_one_host_is_small);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(tcp_target_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
