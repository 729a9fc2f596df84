/* SPDX-License-Identifier: Apache-2.0 */

/* `fabric: auto` from the store to a real server: the best transport that works, and the log and describe say which. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include <ucm/log.h>

#include "client/stores/remote/store.h"
#include "test/fake/fault_fabric.h"
#include "test/unit/client/remote/remote_env.h"

enum {
    COUNT = 4,
    LOG_BYTES = 1 << 16,
};

static struct env_server server;
static struct uc_store *store;
static FILE *log_file;
static int log_fd; /* where the log goes otherwise */
static char log_text[LOG_BYTES];

static void
setup(void)
{
    uc_fault_fabric_use("shm", "shm", false);
    store = NULL;
    log_file = tmpfile();
    ck_assert_ptr_nonnull(log_file);
    log_fd = dup(STDERR_FILENO);
    ck_assert_int_ge(log_fd, 0);
    ck_assert_int_eq(dup2(fileno(log_file), STDERR_FILENO), STDERR_FILENO);
}

static void
teardown(void)
{
    env_store_destroy(store);
    env_server_stop(&server, SIGKILL);
    (void)dup2(log_fd, STDERR_FILENO);
    (void)close(log_fd);
    (void)fclose(log_file);
    ck_assert_uint_eq(uc_fault_counts().endpoints, 0);
    uc_fault_reset();
}

static const char *
read_log(void)
{
    ssize_t length = pread(fileno(log_file), log_text, sizeof(log_text) - 1, 0);

    ck_assert_int_ge(length, 0);
    log_text[length] = '\0';
    return log_text;
}

static void
start(const char *server_fabric)
{
    char option[32];
    const char *extra[] = {option, NULL};
    struct uc_dict *config;

    (void)snprintf(option, sizeof(option), "--fabric=%s", server_fabric);
    server = env_server_start(0, extra);
    config = env_config(&server, "both");
    ck_assert_int_eq(uc_dict_set_string(config, "fabric", "auto"), UC_OK);
    store = uc_remote_store_create();
    ck_assert_msg(uc_store_setup(store, config) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
}

static void
expect_blocks_over(const char *fabric, const char *other)
{
    struct uc_dict *description = NULL;
    const char *name = "";
    char line[64];

    env_put(store, 1, COUNT);
    ck_assert_int_eq(env_get(store, 1, COUNT), UC_OK);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(store, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "fabric", &name), UC_OK);
    ck_assert_str_eq(name, fabric);
    uc_dict_destroy(description);
    (void)snprintf(line, sizeof(line), "blocks move over %s (", fabric);
    ck_assert_msg(strstr(read_log(), line) != NULL, "%s", log_text);
    (void)snprintf(line, sizeof(line), "blocks move over %s (", other);
    ck_assert_msg(strstr(log_text, line) == NULL, "%s", log_text);
}

START_TEST(same_host_is_shm)
{
    start("auto");
    expect_blocks_over("shm", "tcp");
    ck_assert_uint_ge(uc_fault_counts().completed, 2 * COUNT);
}
END_TEST

START_TEST(server_without_shm_is_tcp)
{
    start("tcp");
    expect_blocks_over("tcp", "shm");
}
END_TEST

START_TEST(client_without_shm_is_tcp)
{
    uc_fault_fabric_hide("shm");
    start("auto");
    expect_blocks_over("tcp", "shm");
}
END_TEST

/* An offer that is not for us: nothing to worry about. */
START_TEST(shm_of_another_host_is_passed_over_quietly)
{
    start("auto");
    uc_fault_fail_connects(UINT32_MAX, UC_FAULT_CONNECT_ERROR, UC_ERR_UNSUPPORTED);
    expect_blocks_over("tcp", "shm");
    ck_assert_msg(strstr(log_text, "warn") == NULL, "%s", log_text);
}
END_TEST

/* One that should work and does not: the log says what is lost, and nothing claims to move over it. */
START_TEST(shm_that_does_not_connect_is_passed_over_with_a_warning)
{
    start("auto");
    uc_fault_fail_connects(UINT32_MAX, UC_FAULT_CONNECT_REFUSED, UC_ERR_PERMISSION_DENIED);
    expect_blocks_over("tcp", "shm");
    ck_assert_msg(strstr(log_text, "shm does not connect") != NULL, "%s", log_text);
}
END_TEST

/* One that breaks is made anew, whatever the others could do: it is still the best. */
START_TEST(shm_that_breaks_is_made_anew)
{
    start("auto");
    env_put(store, 100, COUNT);
    uc_fault_cut();
    uc_fault_wait_connects(2);
    env_wait_health(store, UC_OK);
    expect_blocks_over("shm", "tcp");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_auto");
    TCase *cases = tcase_create("auto");
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, same_host_is_shm);
    tcase_add_test(cases, server_without_shm_is_tcp);
    tcase_add_test(cases, client_without_shm_is_tcp);
    tcase_add_test(cases, shm_of_another_host_is_passed_over_quietly);
    tcase_add_test(cases, shm_that_does_not_connect_is_passed_over_with_a_warning);
    tcase_add_test(cases, shm_that_breaks_is_made_anew);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
