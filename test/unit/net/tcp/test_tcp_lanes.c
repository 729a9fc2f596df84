/* SPDX-License-Identifier: Apache-2.0 */

/* An initiator with several streams, against servers that answer them in an order of their own. */

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tcp/tcp_fabric.h"
#include "net/tcp/tcp_wire.h"
#include "test/unit/net/tcp/rig.h"

enum {
    STREAM_COUNT = 3,
    OP_COUNT = 4,
    MEMORY_BYTES = 1 << 20,
};

struct test_op {
    struct uc_fabric_op op;
    struct uc_fabric_piece piece;
    int done_count;
    enum uc_status status;
    int order;
    size_t told_bytes;
};

static int listen_fd;
static uint16_t port;
static struct uc_fabric_endpoint *endpoint;
static int streams[STREAM_COUNT];
static int ok_count;
static int failure_count;
static enum uc_status failure;
static int completion_count;
static uint8_t memory[MEMORY_BYTES];
static struct test_op ops[OP_COUNT];

static void
on_state(void *context, struct uc_fabric_endpoint *about, enum uc_status status)
{
    (void)context;
    ck_assert_ptr_eq(about, endpoint);
    ok_count += status == UC_OK;
    failure_count += status != UC_OK;
    failure = status;
}

static void
start(void)
{
    static const uint8_t nonce[UC_FABRIC_NONCE_BYTES] = {9};
    struct uc_fabric_region_key key = {.length_bytes = sizeof(memory)};
    struct uc_fabric_connect params = {.address = "127.0.0.1",
            .port = port,
            .nonce = nonce,
            .regions = &key,
            .region_count = 1,
            .timeout_ms = 3000,
            .on_state = on_state};

    ck_assert_int_eq(rig.ops->connect(rig.domain, &params, &endpoint), UC_OK);
}

/* Accept the next stream. *hello_out is what it says. */
static int
accept_stream(struct uc_tcp_hello *hello_out)
{
    struct pollfd event = {.fd = listen_fd, .events = POLLIN};
    uint8_t bytes[UC_TCP_HELLO_BYTES];
    int fd;

    rig_until(poll(&event, 1, 0) == 1);
    fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert(peer_receive(fd, bytes, sizeof(bytes)));
    ck_assert_int_eq(uc_tcp_hello_get(bytes, hello_out), UC_OK);
    ck_assert_uint_eq(hello_out->lane_count, STREAM_COUNT);
    ck_assert_uint_eq(hello_out->nonce[0], 9);
    return fd;
}

static void
answer(int fd, enum uc_status status)
{
    uint8_t bytes[UC_TCP_ANSWER_BYTES];

    uc_tcp_answer_put(bytes, status);
    peer_send(fd, bytes, sizeof(bytes));
}

static void
serve(void)
{
    struct uc_tcp_hello hello = {.lane_idx = 0};

    start();
    streams[0] = accept_stream(&hello);
    ck_assert_uint_eq(hello.lane_idx, 0);
    answer(streams[0], UC_OK);
    for (size_t count = 1; count < STREAM_COUNT; count++) {
        int fd = accept_stream(&hello);

        ck_assert_int_eq(ok_count, 0); /* ready only when all are */
        streams[hello.lane_idx] = fd;
        answer(fd, UC_OK);
    }
    rig_until(ok_count == 1);
}

static void
open_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);

    rig_open();
    rig.fabric->lane_count = STREAM_COUNT;
    ok_count = 0;
    failure_count = 0;
    completion_count = 0;
    endpoint = NULL;
    memset(memory, 0x11, sizeof(memory));
    memset(streams, -1, sizeof(streams));
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
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        if (streams[idx] >= 0) {
            (void)close(streams[idx]);
        }
    }
    rig.ops->disconnect(endpoint);
    (void)close(listen_fd);
    rig_close();
}

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct test_op *self = (struct test_op *)op;

    self->done_count++;
    self->status = status;
    self->order = completion_count++;
}

static void
on_bytes(struct uc_fabric_op *op, const void *bytes, size_t length_bytes)
{
    struct test_op *self = (struct test_op *)op;

    ck_assert_ptr_eq(bytes, (uint8_t *)self->piece.address + self->told_bytes);
    ck_assert_int_eq(self->done_count, 0);
    self->told_bytes += length_bytes;
}

static void
post(size_t idx, enum uc_fabric_opcode opcode, uint64_t length)
{
    struct test_op *op = &ops[idx];

    memset(op, 0, sizeof(*op));
    op->piece = (struct uc_fabric_piece){.address = memory + idx * 65536, .length_bytes = length};
    op->op = (struct uc_fabric_op){.opcode = opcode,
            .pieces = &op->piece,
            .piece_count = opcode == UC_FABRIC_FLUSH ? 0 : 1,
            .on_done = on_done,
            .on_bytes = on_bytes};
    ck_assert_int_eq(rig.ops->post(endpoint, &op->op), UC_OK);
}

/* Read the next request of a stream, and a WRITE's data. */
static struct uc_tcp_request
take_request(size_t stream)
{
    struct uc_tcp_request request = {.sequence = UINT64_MAX};
    uint8_t bytes[UC_TCP_REQUEST_BYTES];
    static uint8_t data[65536];

    ck_assert(peer_receive(streams[stream], bytes, sizeof(bytes)));
    ck_assert_int_eq(uc_tcp_request_get(bytes, &request), UC_OK);
    if (request.opcode == UC_FABRIC_WRITE) {
        ck_assert_uint_le(request.length_bytes, sizeof(data));
        ck_assert(peer_receive(streams[stream], data, request.length_bytes));
    }
    return request;
}

static void
respond(size_t stream, const struct uc_tcp_request *request, enum uc_status status)
{
    struct uc_tcp_response response = {.status = status, .sequence = request->sequence};
    uint8_t bytes[UC_TCP_RESPONSE_BYTES];
    static uint8_t data[65536];

    if (status == UC_OK && request->opcode == UC_FABRIC_READ) {
        response.length_bytes = request->length_bytes;
    }
    uc_tcp_response_put(bytes, &response);
    peer_send(streams[stream], bytes, sizeof(bytes));
    peer_send(streams[stream], data, response.length_bytes);
    rig_settle();
}

START_TEST(operations_go_where_fewest_bytes_wait)
{
    serve();
    post(0, UC_FABRIC_WRITE, 60000);
    post(1, UC_FABRIC_READ, 50000);
    post(2, UC_FABRIC_READ, 100);
    post(3, UC_FABRIC_READ, 200); /* behind the small one */
    ck_assert_uint_eq(take_request(0).sequence, 0);
    ck_assert_uint_eq(take_request(1).sequence, 1);
    ck_assert_uint_eq(take_request(2).sequence, 2);
    ck_assert_uint_eq(take_request(2).sequence, 3);
}
END_TEST

/* net/fabric.h: READs complete in the order posted. */
START_TEST(reads_complete_in_the_order_posted)
{
    struct uc_tcp_request requests[STREAM_COUNT];

    serve();
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        post(idx, UC_FABRIC_READ, 1000);
    }
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        requests[idx] = take_request(idx);
    }
    for (size_t idx = STREAM_COUNT; idx-- > 0;) {
        ck_assert_int_eq(completion_count, 0);
        respond(idx, &requests[idx], idx == 1 ? UC_ERR_NOT_FOUND : UC_OK);
    }
    rig_until(completion_count == STREAM_COUNT);
    for (int idx = 0; idx < STREAM_COUNT; idx++) {
        ck_assert_int_eq(ops[idx].order, idx);
        ck_assert_int_eq(ops[idx].status, idx == 1 ? UC_ERR_NOT_FOUND : UC_OK);
        ck_assert_uint_eq(ops[idx].told_bytes, idx == 1 ? 0 : 1000);
    }
    ck_assert_int_eq(memory[0], 0);
    ck_assert_int_eq(memory[65536], 0x11);
}
END_TEST

/* net/fabric.h: a FLUSH completes after every WRITE posted before it, whichever stream it took. */
START_TEST(flush_waits_for_writes_of_other_streams)
{
    struct uc_tcp_request write;
    struct uc_tcp_request flush;

    serve();
    post(0, UC_FABRIC_WRITE, 1000);
    post(1, UC_FABRIC_FLUSH, 0);
    write = take_request(0);
    flush = take_request(1);
    ck_assert_int_eq(flush.opcode, UC_FABRIC_FLUSH);
    respond(1, &flush, UC_OK);
    ck_assert_int_eq(completion_count, 0);
    respond(0, &write, UC_OK);
    rig_until(completion_count == 2);
    ck_assert_int_eq(ops[0].order, 0);
    ck_assert_int_eq(ops[1].order, 1);
}
END_TEST

START_TEST(budget_counts_completions_that_one_answer_frees)
{
    struct uc_tcp_request requests[STREAM_COUNT];

    serve();
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        post(idx, UC_FABRIC_READ, 10);
    }
    for (size_t idx = 0; idx < STREAM_COUNT; idx++) {
        requests[idx] = take_request(idx);
    }
    respond(2, &requests[2], UC_OK);
    respond(1, &requests[1], UC_OK);
    ck_assert_int_eq(completion_count, 0);

    /* The one that the others wait for, not polled by peer_send(): its socket is written to here. */
    {
        struct uc_tcp_response response = {.sequence = requests[0].sequence, .length_bytes = 10};
        uint8_t bytes[UC_TCP_RESPONSE_BYTES + 10] = {0};

        uc_tcp_response_put(bytes, &response);
        ck_assert_int_eq(send(streams[0], bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
    }
    for (int want = 1; want <= STREAM_COUNT; want++) {
        while (completion_count < want) {
            ck_assert_uint_le(rig.ops->poll(rig.fabric, 1), 1);
        }
        ck_assert_int_eq(completion_count, want);
        ck_assert(want == STREAM_COUNT || !rig.ops->arm(rig.fabric)); /* the rest is work */
    }
}
END_TEST

START_TEST(lost_stream_flushes_every_operation_once_and_in_order)
{
    serve();
    for (size_t idx = 0; idx < OP_COUNT; idx++) {
        post(idx, UC_FABRIC_READ, 1000);
    }
    rig_settle();
    (void)close(streams[2]);
    streams[2] = -1;
    rig_until(failure_count == 1);
    ck_assert_int_eq(failure, UC_ERR_UNHEALTHY);
    for (int idx = 0; idx < OP_COUNT; idx++) {
        ck_assert_int_eq(ops[idx].done_count, 1);
        ck_assert_int_eq(ops[idx].status, UC_ERR_UNHEALTHY);
        ck_assert_int_eq(ops[idx].order, idx);
    }
    rig_until(peer_is_closed(streams[0]));
    rig_until(peer_is_closed(streams[1]));
    ck_assert_int_eq(rig.ops->post(endpoint, &ops[0].op), UC_ERR_UNHEALTHY);
}
END_TEST

/* A completed operation that waits for one before it is flushed with it. */
START_TEST(fence_flushes_what_waits_for_its_turn)
{
    struct uc_tcp_request request;

    serve();
    post(0, UC_FABRIC_READ, 1000);
    post(1, UC_FABRIC_READ, 1000);
    request = take_request(1);
    respond(1, &request, UC_OK);
    ck_assert_int_eq(completion_count, 0);
    rig.ops->fence(endpoint);
    ck_assert_int_eq(completion_count, 2);
    ck_assert_int_eq(ops[0].order, 0);
    ck_assert_int_eq(failure_count, 0);
}
END_TEST

START_TEST(refused_stream_fails_the_endpoint)
{
    struct uc_tcp_hello hello = {.lane_idx = 0};
    int fd;

    start();
    streams[0] = accept_stream(&hello);
    answer(streams[0], UC_OK);
    fd = accept_stream(&hello);
    streams[hello.lane_idx] = fd;
    answer(fd, UC_ERR_PERMISSION_DENIED);
    rig_until(failure_count == 1);
    ck_assert_int_eq(failure, UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(ok_count, 0);
    rig_until(peer_is_closed(streams[0]));
}
END_TEST

START_TEST(stream_that_is_not_answered_times_out)
{
    struct uc_tcp_hello hello = {.lane_idx = 0};

    start();
    streams[0] = accept_stream(&hello);
    answer(streams[0], UC_OK);
    streams[1] = accept_stream(&hello);
    rig.now_ms += 3000;
    rig_settle();
    ck_assert_int_eq(failure_count, 1);
    ck_assert_int_eq(failure, UC_ERR_TIMEOUT);
}
END_TEST

START_TEST(open_refuses_more_streams_than_there_may_be)
{
    struct uc_fabric_config config = {.connections = UC_TCP_LANES_MAX + 1};
    struct uc_fabric *fabric = NULL;

    ck_assert_int_eq(uc_tcp_fabric_ops()->open(&config, &fabric), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(fabric);
    config.connections = UC_TCP_LANES_MAX;
    ck_assert_int_eq(uc_tcp_fabric_ops()->open(&config, &fabric), UC_OK);
    uc_tcp_fabric_ops()->close(fabric);
}
END_TEST

static Suite *
tcp_lanes_suite(void)
{
    Suite *suite = suite_create("tcp_lanes");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, open_server, close_server);
    tcase_add_test(tcase, operations_go_where_fewest_bytes_wait);
    tcase_add_test(tcase, reads_complete_in_the_order_posted);
    tcase_add_test(tcase, flush_waits_for_writes_of_other_streams);
    tcase_add_test(tcase, budget_counts_completions_that_one_answer_frees);
    tcase_add_test(tcase, lost_stream_flushes_every_operation_once_and_in_order);
    tcase_add_test(tcase, fence_flushes_what_waits_for_its_turn);
    tcase_add_test(tcase, refused_stream_fails_the_endpoint);
    tcase_add_test(tcase, stream_that_is_not_answered_times_out);
    tcase_add_test(tcase, open_refuses_more_streams_than_there_may_be);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(tcp_lanes_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
