/* SPDX-License-Identifier: Apache-2.0 */

/* An initiator against servers that are wrong, silent or gone; the server is a bare socket. */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/tcp/tcp_wire.h"
#include "test/fake/fake_alloc.h"
#include "test/unit/net/tcp/rig.h"

static int listen_fd;
static uint16_t port;
static struct uc_fabric_endpoint *endpoint;
static int ok_count;
static int failure_count;
static enum uc_status failure;
static uint8_t memory[4096];

struct test_op {
    struct uc_fabric_op op;
    struct uc_fabric_piece piece;
    int done_count;
    enum uc_status status;
};

static struct test_op ops[4];

static void
open_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);

    rig_open();
    ok_count = 0;
    failure_count = 0;
    endpoint = NULL;
    memset(memory, 0x11, sizeof(memory));
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(listen_fd, 0);
    ck_assert_int_eq(bind(listen_fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listen_fd, 8), 0);
    ck_assert_int_eq(getsockname(listen_fd, (struct sockaddr *)&address, &length), 0);
    port = ntohs(address.sin_port);
}

static void
close_server(void)
{
    rig.ops->disconnect(endpoint);
    (void)close(listen_fd);
    rig_close();
}

static void
on_state(void *context, struct uc_fabric_endpoint *about, enum uc_status status)
{
    ck_assert_ptr_eq(context, memory);
    ck_assert_ptr_eq(about, endpoint);
    if (status == UC_OK) {
        ok_count++;
    } else {
        failure_count++;
        failure = status;
    }
}

static enum uc_status
start_at(const char *address, uint16_t at_port)
{
    static const uint8_t nonce[UC_FABRIC_NONCE_BYTES] = {1};
    struct uc_fabric_region_key key = {.length_bytes = sizeof(memory)};
    struct uc_fabric_connect params = {.address = address,
            .port = at_port,
            .nonce = nonce,
            .regions = &key,
            .region_count = 1,
            .timeout_ms = 3000,
            .on_state = on_state,
            .context = memory};

    return rig.ops->connect(rig.domain, &params, &endpoint);
}

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct test_op *self = (struct test_op *)op;

    self->done_count++;
    self->status = status;
}

static void
post(size_t idx, enum uc_fabric_opcode opcode, uint64_t length)
{
    struct test_op *op = &ops[idx];

    memset(op, 0, sizeof(*op));
    op->piece = (struct uc_fabric_piece){.address = memory, .length_bytes = length};
    op->op = (struct uc_fabric_op){.opcode = opcode,
            .pieces = &op->piece,
            .piece_count = opcode == UC_FABRIC_FLUSH ? 0 : 1,
            .on_done = on_done};
    ck_assert_int_eq(rig.ops->post(endpoint, &op->op), UC_OK);
}

/* Accept the client and read its hello. */
static int
serve_hello(void)
{
    struct pollfd event = {.fd = listen_fd, .events = POLLIN};
    uint8_t hello[UC_TCP_HELLO_BYTES];
    int fd;

    ck_assert_int_eq(start_at("127.0.0.1", port), UC_OK);
    ck_assert_int_eq(poll(&event, 1, 10000), 1);
    fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert(peer_receive(fd, hello, sizeof(hello)));
    ck_assert_mem_eq(hello, "UCTH", 4);
    return fd;
}

static int
serve(void)
{
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    int fd = serve_hello();

    uc_tcp_answer_put(answer, UC_OK);
    peer_send(fd, answer, sizeof(answer));
    rig_until(ok_count == 1);
    return fd;
}

static void
respond(int fd, enum uc_status status, uint64_t sequence, uint64_t length)
{
    struct uc_tcp_response response = {
            .status = status, .sequence = sequence, .length_bytes = length};
    uint8_t bytes[UC_TCP_RESPONSE_BYTES];

    uc_tcp_response_put(bytes, &response);
    peer_send(fd, bytes, sizeof(bytes));
}

START_TEST(statuses_of_the_target_reach_the_operations)
{
    static const enum uc_status statuses[] = {
            UC_ERR_NOT_FOUND, UC_ERR_INVALID_PARAM, UC_ERR_PERMISSION_DENIED};
    int fd = serve();

    for (size_t idx = 0; idx < 3; idx++) {
        post(idx, UC_FABRIC_READ, 10);
    }
    rig_settle();
    for (size_t idx = 0; idx < 3; idx++) {
        respond(fd, statuses[idx], idx, 0);
    }
    rig_until(ops[2].done_count == 1);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_int_eq(ops[idx].done_count, 1);
        ck_assert_int_eq(ops[idx].status, statuses[idx]);
    }
    ck_assert_int_eq(failure_count, 0); /* such refusals do not break the endpoint */
    ck_assert_int_eq(memory[0], 0x11);
    (void)close(fd);
}
END_TEST

/* The first operation is a READ of 100 bytes with sequence 0, the second a WRITE. */
static const struct {
    enum uc_status status;
    uint64_t sequence;
    uint64_t length;
} wrong_responses[] = {
        {UC_OK, 1, 100},            /* of the second operation */
        {UC_OK, UINT64_MAX, 100},   /* of none */
        {UC_OK, 0, 99},             /* too little data */
        {UC_OK, 0, 101},            /* more than asked for */
        {UC_OK, 0, 0},              /* none */
        {UC_OK, 0, UINT64_MAX},     /* absurd */
        {UC_ERR_NOT_FOUND, 0, 100}, /* a failure with data */
        {(enum uc_status)12345, 0, 100},
};

START_TEST(wrong_response_breaks_the_endpoint_and_touches_nothing)
{
    int fd = serve();

    post(0, UC_FABRIC_READ, 100);
    post(1, UC_FABRIC_WRITE, 100);
    rig_settle();
    respond(fd, wrong_responses[_i].status, wrong_responses[_i].sequence,
            wrong_responses[_i].length);
    rig_until(failure_count == 1);
    ck_assert_int_eq(failure, UC_ERR_UNHEALTHY);
    for (size_t idx = 0; idx < 2; idx++) {
        ck_assert_int_eq(ops[idx].done_count, 1);
        ck_assert_int_eq(ops[idx].status, UC_ERR_UNHEALTHY);
    }
    ck_assert_int_eq(memory[0], 0x11);
    ck_assert_int_eq(rig.ops->post(endpoint, &ops[0].op), UC_ERR_UNHEALTHY);
    (void)close(fd);
}
END_TEST

START_TEST(response_that_nobody_asked_for_breaks_the_endpoint)
{
    int fd = serve();

    respond(fd, UC_OK, 0, 0);
    rig_until(failure_count == 1);
    (void)close(fd);
}
END_TEST

START_TEST(response_before_the_request_was_sent_breaks_the_endpoint)
{
    static uint8_t large[16 << 20];
    static struct uc_fabric_region_key key = {.length_bytes = sizeof(large)};
    int fd = serve();

    /* More than the sockets hold, so that it is still being sent when the answer comes. */
    ((struct uc_tcp_client *)endpoint)->regions[0] = key;
    post(0, UC_FABRIC_FLUSH, 0);
    ops[1].piece = (struct uc_fabric_piece){.address = large, .length_bytes = sizeof(large)};
    ops[1].op = (struct uc_fabric_op){.opcode = UC_FABRIC_WRITE,
            .pieces = &ops[1].piece,
            .piece_count = 1,
            .on_done = on_done};
    ops[1].done_count = 0;
    ck_assert_int_eq(rig.ops->post(endpoint, &ops[1].op), UC_OK);
    rig_settle();
    respond(fd, UC_OK, 0, 0);
    respond(fd, UC_OK, 1, 0);
    rig_until(failure_count == 1);
    ck_assert_int_eq(ops[0].status, UC_OK);
    ck_assert_int_eq(ops[1].done_count, 1);
    ck_assert_int_eq(ops[1].status, UC_ERR_UNHEALTHY);
    (void)close(fd);
}
END_TEST

START_TEST(read_that_stops_halfway_is_flushed_once)
{
    uint8_t data[50] = {0};
    int fd = serve();

    post(0, UC_FABRIC_READ, 100);
    post(1, UC_FABRIC_FLUSH, 0);
    rig_settle();
    respond(fd, UC_OK, 0, 100);
    peer_send(fd, data, sizeof(data));
    rig_until(memory[49] == 0);
    ck_assert_int_eq(ops[0].done_count, 0);
    if (_i == 0) {
        (void)close(fd);
        rig_until(failure_count == 1);
    } else {
        rig.ops->fence(endpoint);
        ck_assert_int_eq(failure_count, 0);
        memset(memory, 0x22, sizeof(memory));
        (void)send(fd, data, sizeof(data), MSG_NOSIGNAL);
        rig_until(peer_is_closed(fd));
        ck_assert_int_eq(memory[50], 0x22);
        (void)close(fd);
    }
    for (size_t idx = 0; idx < 2; idx++) {
        ck_assert_int_eq(ops[idx].done_count, 1);
        ck_assert_int_eq(ops[idx].status, UC_ERR_UNHEALTHY);
    }
}
END_TEST

/* Bytes that the peer has not got yet are thrown away, not delivered after the fence. */
START_TEST(fence_resets_the_connection)
{
    uint8_t bytes[UC_TCP_REQUEST_BYTES];
    ssize_t done;
    int error;
    int fd = serve();

    post(0, UC_FABRIC_READ, 100);
    rig_settle();
    ck_assert(peer_receive(fd, bytes, sizeof(bytes)));
    rig.ops->fence(endpoint);
    rig_until((done = recv(fd, bytes, sizeof(bytes), 0), error = errno, done == 0) ||
              error != EAGAIN);
    ck_assert_int_eq(done, -1);
    ck_assert_int_eq(error, ECONNRESET);
    (void)close(fd);
}
END_TEST

/* A process forked from this one does not keep the connection alive: the server sees the end at once. */
START_TEST(fence_resets_a_connection_that_a_forked_process_has_open)
{
    uint8_t byte;
    ssize_t done;
    int error;
    int fd = serve();
    pid_t child = fork();

    if (child == 0) {
        (void)close(fd);
        (void)pause();
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    post(0, UC_FABRIC_READ, 100);
    rig.ops->fence(endpoint);
    ck_assert_int_eq(ops[0].done_count, 1);
    rig_until((done = recv(fd, &byte, 1, 0), error = errno, done <= 0) && error != EAGAIN);
    respond(fd, UC_OK, 0, 0); /* nobody reads it, and nothing comes of it */
    (void)close(fd);
    rig_settle();
    ck_assert_int_eq(memory[0], 0x11);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

START_TEST(server_that_does_not_answer_times_out)
{
    int fd = serve_hello();

    post(0, UC_FABRIC_READ, 100);
    ck_assert_uint_eq(rig.ops->next_deadline_ms(rig.fabric), rig.now_ms + 3000);
    rig.now_ms += 3000;
    rig_settle();
    ck_assert_int_eq(failure_count, 1);
    ck_assert_int_eq(failure, UC_ERR_TIMEOUT);
    ck_assert_int_eq(ops[0].status, UC_ERR_UNHEALTHY);
    (void)close(fd);
}
END_TEST

START_TEST(strange_answer_fails_the_connection)
{
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    int fd = serve_hello();

    memset(answer, _i == 0 ? 'H' : 0, sizeof(answer));
    peer_send(fd, answer, _i == 2 ? 3 : sizeof(answer));
    (void)close(fd);
    rig_until(failure_count == 1);
    ck_assert_int_eq(failure, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ok_count, 0);
}
END_TEST

START_TEST(refusal_is_handed_to_the_caller)
{
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    int fd = serve_hello();

    uc_tcp_answer_put(answer, UC_ERR_DRAINING);
    peer_send(fd, answer, sizeof(answer));
    rig_until(failure_count == 1);
    ck_assert_int_eq(failure, UC_ERR_DRAINING);
    (void)close(fd);
}
END_TEST

START_TEST(only_the_configured_name_is_looked_up)
{
    ck_assert_int_eq(start_at("no-such-name.invalid", port), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(start_at("", port), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(start_at(NULL, port), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(start_at("127.0.0.1", 0), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(endpoint);
    ck_assert_uint_eq(rig.fabric->endpoint_count, 0);
}
END_TEST

START_TEST(connect_undoes_everything_when_an_allocation_fails)
{
    enum uc_status status;

    uc_fake_alloc_fail_after(0);
    status = start_at("127.0.0.1", port);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_uint_eq(rig.fabric->endpoint_count, 0);
}
END_TEST

START_TEST(many_small_reads_come_in_one_stream)
{
    uint8_t data[UC_TCP_RX_BYTES * 2];
    size_t used = 0;
    int fd = serve();

    /* Responses in pieces that never match a frame: everything is read ahead at some point. */
    for (size_t idx = 0; idx < 4; idx++) {
        post(idx, UC_FABRIC_READ, 1000 + idx);
    }
    rig_settle();
    for (size_t idx = 0; idx < 4; idx++) {
        struct uc_tcp_response response = {.sequence = idx, .length_bytes = 1000 + idx};

        uc_tcp_response_put(data + used, &response);
        used += UC_TCP_RESPONSE_BYTES;
        memset(data + used, 'a' + (int)idx, 1000 + idx);
        used += 1000 + idx;
    }
    for (size_t sent = 0; sent < used;) {
        size_t step = used - sent < 700 ? used - sent : 700;

        peer_send(fd, data + sent, step);
        sent += step;
    }
    rig_until(ops[3].done_count == 1);
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_int_eq(ops[idx].status, UC_OK);
    }
    ck_assert_int_eq(memory[1002], 'd');
    ck_assert_int_eq(memory[1003], 0x11);
    (void)close(fd);
}
END_TEST

static Suite *
tcp_client_suite(void)
{
    Suite *suite = suite_create("tcp_client");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, open_server, close_server);
    tcase_add_test(tcase, statuses_of_the_target_reach_the_operations);
    tcase_add_loop_test(tcase, wrong_response_breaks_the_endpoint_and_touches_nothing, 0,
            sizeof(wrong_responses) / sizeof(wrong_responses[0]));
    tcase_add_test(tcase, response_that_nobody_asked_for_breaks_the_endpoint);
    tcase_add_test(tcase, response_before_the_request_was_sent_breaks_the_endpoint);
    tcase_add_loop_test(tcase, read_that_stops_halfway_is_flushed_once, 0, 2);
    tcase_add_test(tcase, fence_resets_the_connection);
    tcase_add_test(tcase, fence_resets_a_connection_that_a_forked_process_has_open);
    tcase_add_test(tcase, server_that_does_not_answer_times_out);
    tcase_add_loop_test(tcase, strange_answer_fails_the_connection, 0, 3);
    tcase_add_test(tcase, refusal_is_handed_to_the_caller);
    tcase_add_test(tcase, only_the_configured_name_is_looked_up);
    tcase_add_test(tcase, connect_undoes_everything_when_an_allocation_fails);
    tcase_add_test(tcase, many_small_reads_come_in_one_stream);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(tcp_client_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
