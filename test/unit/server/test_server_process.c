/* SPDX-License-Identifier: Apache-2.0 */

/* The executable: arguments, exit status, ready file, signals. */

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "net/rpc/connection.h"

enum {
    ARGUMENTS_MAX = 12,
    TEXT_BYTES = 4096,
    DIAL_MS = 5000
};

extern char **environ;

struct process {
    pid_t pid;
    int out; /* its standard output and error */
};

static struct process
start(const char *const *options)
{
    char texts[ARGUMENTS_MAX][128];
    char *arguments[ARGUMENTS_MAX + 1] = {NULL};
    posix_spawn_file_actions_t actions;
    struct process process;
    size_t count = 1;
    int ends[2];

    (void)snprintf(texts[0], sizeof(texts[0]), "ucm-server");
    for (size_t idx = 0; options[idx] != NULL && count < ARGUMENTS_MAX; idx++) {
        (void)snprintf(texts[count++], sizeof(texts[0]), "%s", options[idx]);
    }
    for (size_t idx = 0; idx < count; idx++) {
        arguments[idx] = texts[idx];
    }
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO), 0);
    ck_assert_int_eq(
            posix_spawn(&process.pid, UCM_SERVER_PATH, &actions, NULL, arguments, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    process.out = ends[0];
    return process;
}

/* Read until the text shows up, or to the end. */
static void
read_until(const struct process *process, const char *wanted, char *text)
{
    size_t length = 0;

    text[0] = '\0';
    while (length + 1 < TEXT_BYTES && (wanted == NULL || strstr(text, wanted) == NULL)) {
        ssize_t got = read(process->out, text + length, TEXT_BYTES - 1 - length);

        if (got <= 0) {
            return;
        }
        length += (size_t)got;
        text[length] = '\0';
    }
}

static int
finish(const struct process *process)
{
    int state = 0;

    ck_assert_int_eq(waitpid(process->pid, &state, 0), process->pid);
    (void)close(process->out);
    ck_assert_msg(WIFEXITED(state), "ended with wait status %d", state);
    return WEXITSTATUS(state);
}

static int
run_to_end(const char *const *options, char *text)
{
    struct process process = start(options);

    read_until(&process, NULL, text);
    return finish(&process);
}

START_TEST(help_and_check_config_end_well)
{
    static const char *const help[] = {"--help", NULL};
    static const char *const check[] = {"--check-config", "--capacity=2MiB", NULL};
    char text[TEXT_BYTES];

    ck_assert_int_eq(run_to_end(help, text), 0);
    ck_assert_ptr_nonnull(strstr(text, "--block_bytes"));
    ck_assert_int_eq(run_to_end(check, text), 0);
    ck_assert_ptr_nonnull(strstr(text, "capacity: 2MiB"));
}
END_TEST

START_TEST(wrong_configuration_ends_with_two)
{
    static const char *const unknown[] = {"--capcity=2MiB", NULL};
    static const char *const small[] = {"--capacity=1", NULL};
    char text[TEXT_BYTES];

    ck_assert_int_eq(run_to_end(unknown, text), 2);
    ck_assert_ptr_nonnull(strstr(text, "capacity"));
    ck_assert_int_eq(run_to_end(small, text), 2);
}
END_TEST

/* P49: what is there, what is needed, which key. */
START_TEST(more_memory_than_the_host_has_ends_with_one)
{
    static const char *const huge[] = {"--capacity=60TiB", "--listen=127.0.0.1:0", NULL};
    char text[TEXT_BYTES];

    ck_assert_int_eq(run_to_end(huge, text), 1);
    ck_assert_ptr_nonnull(strstr(text, "namespaces.0.capacity"));
    ck_assert_ptr_nonnull(strstr(text, "are left"));
}
END_TEST

static const char *const small_server[] = {"--listen=127.0.0.1:0", "--fabric-port=0",
        "--fabric=tcp", "--capacity=2MiB", "--block-bytes=4KiB", "--ready-file=-", NULL};

static int
ready_port(const char *text)
{
    const char *found = strstr(text, "\"rpc_port\":");
    int port = 0;

    ck_assert_msg(found != NULL, "no ready line in: %s", text);
    ck_assert_int_eq(sscanf(found, "\"rpc_port\":%d", &port), 1);
    return port;
}

START_TEST(signal_ends_a_ready_server_well)
{
    struct process process = start(small_server);
    char text[TEXT_BYTES];
    int fd;

    read_until(&process, "\"pid\":", text);
    ck_assert_int_eq(uc_rpc_dial("127.0.0.1", (uint16_t)ready_port(text), DIAL_MS, &fd), UC_OK);
    ck_assert_int_eq(kill(process.pid, _i == 0 ? SIGTERM : SIGINT), 0);
    read_until(&process, NULL, text);
    ck_assert_int_eq(finish(&process), 0);
    (void)close(fd);
}
END_TEST

START_TEST(taken_port_is_named_with_its_key)
{
    struct process process = start(small_server);
    char text[TEXT_BYTES];
    char listen[64];
    const char *options[] = {listen, "--fabric-port=0", "--fabric=tcp", "--capacity=2MiB", NULL};

    read_until(&process, "\"pid\":", text);
    (void)snprintf(listen, sizeof(listen), "--listen=127.0.0.1:%d", ready_port(text));
    ck_assert_int_eq(run_to_end(options, text), 1);
    ck_assert_ptr_nonnull(strstr(text, "listen"));
    ck_assert_ptr_nonnull(strstr(text, listen + strlen("--listen=")));
    ck_assert_ptr_nonnull(strstr(text, "in use"));
    ck_assert_int_eq(kill(process.pid, SIGTERM), 0);
    ck_assert_int_eq(finish(&process), 0);
}
END_TEST

START_TEST(ready_file_appears_whole)
{
    char directory[] = "/tmp/test_server_XXXXXX";
    char option[128];
    char path[64];
    char text[TEXT_BYTES] = "";
    const char *options[] = {"--listen=127.0.0.1:0", "--fabric-port=0", "--fabric=tcp",
            "--capacity=2MiB", option, NULL};
    struct process process;
    FILE *file = NULL;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/ready", directory);
    (void)snprintf(option, sizeof(option), "--ready-file=%s", path);
    file = fopen(path, "w"); /* of an earlier run: nobody must trust it */
    ck_assert_ptr_nonnull(file);
    (void)fclose(file);
    process = start(options);
    read_until(&process, "listens on", text);
    do {
        file = fopen(path, "r");
    } while (file == NULL);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
    ck_assert_int_gt(ready_port(text), 0);
    (void)fclose(file);
    ck_assert_int_eq(kill(process.pid, SIGTERM), 0);
    ck_assert_int_eq(finish(&process), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("server/process");
    TCase *tcase = tcase_create("process");
    SRunner *runner;
    int failed_count;

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, help_and_check_config_end_well);
    tcase_add_test(tcase, wrong_configuration_ends_with_two);
    tcase_add_test(tcase, more_memory_than_the_host_has_ends_with_one);
    tcase_add_loop_test(tcase, signal_ends_a_ready_server_well, 0, 2);
    tcase_add_test(tcase, taken_port_is_named_with_its_key);
    tcase_add_test(tcase, ready_file_appears_whole);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
