/* SPDX-License-Identifier: Apache-2.0 */

/* Calls to several servers at once, against servers that answer only when all of them have been asked. */

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "client/cluster/server_set.h"
#include "net/rpc/connection.h"

enum {
    SERVERS = 3,
    FULL = 1, /* the one that refuses */
};

/* A server with one client. */
struct fake {
    int listener;
    uint16_t port;
    uint64_t block_bytes;
    struct uc_rpc_connection *connection;
    uint32_t message_id;
    bool asked;
};

static struct fake fakes[SERVERS];
static int stop_fd;
static pthread_t thread;
static struct uc_server_list list;

static void
answer_hello(const struct fake *fake, struct uc_rpc_connection *connection, uint32_t message_id)
{
    struct uc_hello_reply reply = {
            .incarnation = 1,
            .session = 1,
            .lease_ms = 600000,
            .block_bytes = fake->block_bytes,
            .slot_bytes = fake->block_bytes + 64,
    };
    struct uc_rpc_buffer result = {.length = 0};

    uc_hello_reply_encode(&result, &reply);
    uc_rpc_reply(connection, message_id, &result);
    uc_rpc_buffer_fini(&result);
}

static void
answer_all(void)
{
    static const uint8_t bitmap[1] = {1};
    struct uc_rpc_buffer result = {.length = 0};

    uc_bitmap_reply_encode(&result, bitmap, 1);
    for (size_t idx = 0; idx < SERVERS; idx++) {
        fakes[idx].asked = false;
        if (idx == FULL) {
            uc_rpc_reply_error(
                    fakes[idx].connection, fakes[idx].message_id, UC_ERR_NO_SPACE, "it is full");
        } else {
            uc_rpc_reply(fakes[idx].connection, fakes[idx].message_id, &result);
        }
    }
    uc_rpc_buffer_fini(&result);
}

static void
on_request(void *context, struct uc_rpc_connection *connection, uint32_t message_id,
        enum uc_rpc_method method, struct uc_rpc_view params)
{
    struct fake *fake = context;

    (void)params;
    if (method == UC_RPC_HELLO) {
        answer_hello(fake, connection, message_id);
        return;
    }

    fake->message_id = message_id;
    fake->asked = true;
    if (fakes[0].asked && fakes[1].asked && fakes[2].asked) {
        answer_all();
    }
}

static const struct uc_rpc_handler handler = {.on_request = on_request};

static void
accept_client(struct fake *fake)
{
    int fd = accept(fake->listener, NULL, NULL);

    uc_rpc_connection_destroy(fake->connection);
    fake->connection = NULL;
    (void)!uc_rpc_connection_create(
            fd, &handler, fake, UC_RPC_FRAME_BYTES_DEFAULT, &fake->connection);
}

static void *
serve(void *argument)
{
    struct pollfd fds[2 * SERVERS + 1];

    (void)argument;
    for (;;) {
        fds[2 * SERVERS] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
        for (size_t idx = 0; idx < SERVERS; idx++) {
            struct uc_rpc_connection *connection = fakes[idx].connection;

            fds[idx] = (struct pollfd){.fd = fakes[idx].listener, .events = POLLIN};
            fds[SERVERS + idx] = (struct pollfd){.fd = -1};
            if (connection != NULL) {
                fds[SERVERS + idx].fd = uc_rpc_connection_fd(connection);
                fds[SERVERS + idx].events = uc_rpc_connection_events(connection);
            }
        }
        (void)poll(fds, 2 * SERVERS + 1, -1);
        if (fds[2 * SERVERS].revents != 0) {
            return NULL;
        }
        for (size_t idx = 0; idx < SERVERS; idx++) {
            if (fds[SERVERS + idx].revents != 0) {
                uc_rpc_connection_progress(fakes[idx].connection);
            }
            if ((fds[SERVERS + idx].revents & (POLLHUP | POLLERR)) != 0) {
                uc_rpc_connection_destroy(fakes[idx].connection);
                fakes[idx].connection = NULL;
            }
            if (fds[idx].revents != 0) {
                accept_client(&fakes[idx]);
            }
        }
    }
}

static void
listen_on(struct fake *fake)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);

    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fake->listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fake->listener, 8), 0);
    ck_assert_int_eq(getsockname(fake->listener, (struct sockaddr *)&address, &length), 0);
    fake->port = ntohs(address.sin_port);
    fake->block_bytes = 4096;
}

static void
setup(void)
{
    struct uc_dict *config = NULL;

    memset(fakes, 0, sizeof(fakes));
    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    for (size_t idx = 0; idx < SERVERS; idx++) {
        char address[64];

        listen_on(&fakes[idx]);
        (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)fakes[idx].port);
        ck_assert_int_eq(uc_dict_append_string(config, "servers", address), UC_OK);
    }
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_OK);
    uc_dict_destroy(config);
    stop_fd = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_ge(stop_fd, 0);
}

static void
start_serving(void)
{
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
}

static void
teardown(void)
{
    uint64_t one = 1;

    (void)!write(stop_fd, &one, sizeof(one));
    (void)pthread_join(thread, NULL);
    for (size_t idx = 0; idx < SERVERS; idx++) {
        uc_rpc_connection_destroy(fakes[idx].connection);
        if (fakes[idx].listener >= 0) {
            (void)close(fakes[idx].listener);
        }
    }
    (void)close(stop_fd);
    uc_server_list_fini(&list);
}

static struct uc_session_config
config_of(void)
{
    return (struct uc_session_config){
            .name_space = "default",
            .credential = "",
            .client = "test",
            .access = UC_ACCESS_RW,
            .connect_timeout_ms = 20000,
            .rpc_timeout_ms = 20000,
            .clock = uc_clock_monotonic(),
    };
}

static enum uc_status
count_reply(void *context, const struct uc_session_info *info, struct uc_rpc_view result)
{
    const uint8_t *bitmap;
    size_t *count = context;

    ck_assert_uint_eq(info->epoch, 1);
    ck_assert_int_eq(uc_bitmap_reply_decode(result, 1, &bitmap), UC_OK);
    *count += bitmap[0];
    return UC_OK;
}

/* Called one after the other, the first would wait for an answer that never comes. */
START_TEST(all_calls_go_out_before_an_answer_is_awaited)
{
    struct uc_session_config config = config_of();
    struct uc_block_id key = {.bytes = {1}};
    struct uc_keys_view keys = {.ids = &key, .count = 1};
    struct uc_rpc_buffer params = {.length = 0};
    struct uc_session_call calls[SERVERS];
    struct pollfd fds[SERVERS];
    struct uc_server_set set;
    struct uc_hello_reply hello;
    size_t answers = 0;

    start_serving();
    ck_assert_msg(uc_server_set_open(&list, &config, &set, &hello) == UC_OK, "%s", uc_last_error());
    ck_assert(uc_server_set_is_usable(&set));
    ck_assert_uint_eq(hello.block_bytes, 4096);
    uc_keys_request_encode(&params, keys);
    for (unsigned round = 0; round < 100; round++) {
        for (size_t idx = 0; idx < SERVERS; idx++) {
            calls[idx] = (struct uc_session_call){
                    .session = set.sessions[idx],
                    .method = UC_RPC_LOOKUP,
                    .params = &params,
                    .on_reply = count_reply,
                    .context = &answers,
            };
        }
        uc_session_call_all(calls, fds, SERVERS);
        for (size_t idx = 0; idx < SERVERS; idx++) {
            ck_assert_int_eq(calls[idx].status, idx == FULL ? UC_ERR_NO_SPACE : UC_OK);
        }
        /* The text is of the server that refused, whoever answered later. */
        ck_assert_ptr_nonnull(strstr(calls[FULL].text, "it is full"));
    }
    ck_assert_uint_eq(answers, 200);
    uc_rpc_buffer_fini(&params);
    uc_server_set_close(&set);
}
END_TEST

/* The epoch of another session, and a server that has gone: both fail at once and hinder nobody. */
START_TEST(calls_of_ended_sessions_do_not_go_out)
{
    struct uc_session_config config = config_of();
    struct uc_rpc_buffer params = {.length = 0};
    struct uc_session_call calls[2];
    struct pollfd fds[2];
    struct uc_server_set set;
    struct uc_hello_reply hello;

    start_serving();
    ck_assert_int_eq(uc_server_set_open(&list, &config, &set, &hello), UC_OK);
    uc_empty_request_encode(&params);
    for (size_t idx = 0; idx < 2; idx++) {
        calls[idx] = (struct uc_session_call){
                .session = set.sessions[idx],
                .epoch = 7,
                .method = UC_RPC_PING,
                .params = &params,
        };
    }
    uc_session_call_all(calls, fds, 2);
    ck_assert_int_eq(calls[0].status, UC_ERR_STALE);
    ck_assert_int_eq(calls[1].status, UC_ERR_STALE);
    uc_session_call_all(calls, fds, 0);
    uc_rpc_buffer_fini(&params);
    uc_server_set_close(&set);
}
END_TEST

/* G19 */
START_TEST(set_opens_without_servers_that_are_away)
{
    struct uc_session_config config = config_of();
    struct uc_server_set set;
    struct uc_hello_reply hello;

    (void)close(fakes[0].listener);
    fakes[0].listener = -1;
    start_serving();
    ck_assert_msg(uc_server_set_open(&list, &config, &set, &hello) == UC_OK, "%s", uc_last_error());
    ck_assert(!uc_session_is_usable(set.sessions[0]));
    ck_assert(uc_session_is_usable(set.sessions[1]));
    uc_server_set_close(&set);
}
END_TEST

START_TEST(set_refuses_blocks_of_two_sizes)
{
    struct uc_session_config config = config_of();
    struct uc_server_set set = {.count = 7};
    struct uc_hello_reply hello;

    fakes[2].block_bytes = 8192;
    start_serving();
    ck_assert_int_eq(uc_server_set_open(&list, &config, &set, &hello), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), list.servers[2].name));
    ck_assert_uint_eq(set.count, 7); /* written on success only */
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("session_calls");
    TCase *tcase = tcase_create("several servers");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_calls_go_out_before_an_answer_is_awaited);
    tcase_add_test(tcase, calls_of_ended_sessions_do_not_go_out);
    tcase_add_test(tcase, set_opens_without_servers_that_are_away);
    tcase_add_test(tcase, set_refuses_blocks_of_two_sizes);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
