/* SPDX-License-Identifier: Apache-2.0 */

#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "net/rpc/connection.h"

static const struct {
    const char *text;
    const char *host; /* NULL = refused */
    uint16_t port;
} address_cases[] = {
        {"mem0:1234", "mem0", 1234},
        {"mem0", "mem0", 7470},
        {"10.0.0.1:0", "10.0.0.1", 0},
        {"[::1]:65535", "::1", 65535},
        {"[fe80::1]", "fe80::1", 7470},
        {"/run/ucm/rpc.sock", "/run/ucm/rpc.sock", 7470},
        {"/run/odd:name", "/run/odd:name", 7470},
        {"", NULL, 0},
        {":7470", NULL, 0},
        {"[]:1", NULL, 0},
        {"::1", NULL, 0},       /* IPv6 without brackets */
        {"[::1", NULL, 0},      /* bracket left open */
        {"[::1]7470", NULL, 0}, /* no colon */
        {"mem0:", NULL, 0},
        {"mem0:65536", NULL, 0},
        {"mem0:-1", NULL, 0},
        {"mem0: 1", NULL, 0},
        {"mem0:12x", NULL, 0},
        {"mem0:99999999999999999999999", NULL, 0},
        {"a-host-name-that-is-longer-than-the-room-for-it", NULL, 0},
};

START_TEST(addresses_are_split_or_refused)
{
    char host[32] = "untouched";
    uint16_t port = 1;
    enum uc_status status =
            uc_rpc_parse_address(address_cases[_i].text, 7470, host, sizeof(host), &port);

    if (address_cases[_i].host == NULL) {
        ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
        ck_assert_str_eq(host, "untouched");
        ck_assert_uint_eq(port, 1);
    } else {
        ck_assert_int_eq(status, UC_OK);
        ck_assert_str_eq(host, address_cases[_i].host);
        ck_assert_uint_eq(port, address_cases[_i].port);
    }
}
END_TEST

static int
listen_tcp(uint16_t *port_out)
{
    struct sockaddr_in address = {
            .sin_family = AF_INET,
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    *port_out = ntohs(address.sin_port);
    return fd;
}

START_TEST(dial_reaches_a_tcp_listener)
{
    uint16_t port;
    int listener = listen_tcp(&port);
    int fd = -1;

    ck_assert_int_eq(uc_rpc_dial("127.0.0.1", port, 5000, &fd), UC_OK);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    (void)close(listener);
}
END_TEST

START_TEST(dial_says_when_nobody_listens)
{
    uint16_t port;
    int listener = listen_tcp(&port);
    int fd = -1;

    (void)close(listener);
    ck_assert_int_eq(uc_rpc_dial("127.0.0.1", port, 5000, &fd), UC_ERR_UNHEALTHY);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "127.0.0.1"));
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "is ucm-server running there?"));
    ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(dial_reaches_a_unix_listener)
{
    char folder[] = "/tmp/ucm-dial-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = -1;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", folder);
    ck_assert_int_eq(uc_rpc_dial(address.sun_path, 0, 1000, &fd), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(uc_rpc_dial(address.sun_path, 0, 1000, &fd), UC_OK);
    (void)close(fd);
    (void)close(listener);
    ck_assert_int_eq(unlink(address.sun_path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(dial_refuses_a_unix_path_that_does_not_fit)
{
    char path[300];
    int fd = -1;

    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(uc_rpc_dial(path, 0, 1000, &fd), UC_ERR_INVALID_PARAM);
}
END_TEST

static Suite *
rpc_dial_suite(void)
{
    Suite *suite = suite_create("rpc_dial");
    TCase *dial = tcase_create("dial");

    tcase_add_loop_test(dial, addresses_are_split_or_refused, 0,
            sizeof(address_cases) / sizeof(address_cases[0]));
    tcase_add_test(dial, dial_reaches_a_tcp_listener);
    tcase_add_test(dial, dial_says_when_nobody_listens);
    tcase_add_test(dial, dial_reaches_a_unix_listener);
    tcase_add_test(dial, dial_refuses_a_unix_path_that_does_not_fit);
    suite_add_tcase(suite, dial);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(rpc_dial_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
