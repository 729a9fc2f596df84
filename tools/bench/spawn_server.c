/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/spawn_server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

enum {
    READY_TIMEOUT_MS = 60000,
    READY_LINE_BYTES = 1024,
    ARGUMENT_BYTES = 128,
    ARGUMENT_COUNT = 9
};

/* The path of ucm-server beside this executable; false when there is none. */
static bool
sibling_path(char *path, size_t path_bytes)
{
    ssize_t length = readlink("/proc/self/exe", path, path_bytes - 1);
    char *slash;

    if (length <= 0) {
        return false;
    }

    path[length] = '\0';
    slash = strrchr(path, '/');
    if (slash == NULL || (size_t)(slash - path) + sizeof("/ucm-server") > path_bytes) {
        return false;
    }
    strcpy(slash, "/ucm-server");
    return access(path, X_OK) == 0;
}

/* In the child: become the server, with its standard output on @p ready_fd. */
static void
exec_server(const struct uc_spawn_options *options, int ready_fd)
{
    char text[ARGUMENT_COUNT][ARGUMENT_BYTES];
    char *arguments[ARGUMENT_COUNT + 1] = {NULL};
    char path[4096];

    (void)snprintf(text[0], ARGUMENT_BYTES, "ucm-server");
    (void)snprintf(text[1], ARGUMENT_BYTES, "--listen=%s:0", options->address);
    (void)snprintf(text[2], ARGUMENT_BYTES, "--fabric-port=0");
    (void)snprintf(text[3], ARGUMENT_BYTES, "--fabric=%s", options->fabric);
    (void)snprintf(text[4], ARGUMENT_BYTES, "--policy=%s", options->policy);
    (void)snprintf(text[5], ARGUMENT_BYTES, "--block-bytes=%" PRIu64, options->block_bytes);
    (void)snprintf(text[6], ARGUMENT_BYTES, "--capacity-blocks=%" PRIu64, options->capacity_blocks);
    (void)snprintf(text[7], ARGUMENT_BYTES, "--ready-file=-");
    (void)snprintf(text[8], ARGUMENT_BYTES, "--namespace=%s", options->name_space);
    for (size_t idx = 0; idx < ARGUMENT_COUNT; idx++) {
        arguments[idx] = text[idx];
    }

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(ready_fd, STDOUT_FILENO) < 0) {
        _exit(127);
    }
    if (sibling_path(path, sizeof(path))) {
        (void)execv(path, arguments);
    }
    (void)execvp("ucm-server", arguments);
    (void)fprintf(stderr, "cannot start ucm-server: %s; install it beside ucm-bench or in PATH\n",
            strerror(errno));
    _exit(127);
}

/* Read the line that the server writes when it serves. */
static enum uc_status
read_ready_line(int fd, char *line, size_t line_bytes)
{
    uint64_t deadline_ns = uc_clock_now_ns() + (uint64_t)READY_TIMEOUT_MS * 1000000;
    size_t length = 0;

    while (length + 1 < line_bytes && memchr(line, '\n', length) == NULL) {
        struct pollfd pollfd = {.fd = fd, .events = POLLIN};
        uint64_t now_ns = uc_clock_now_ns();
        ssize_t received;

        if (now_ns >= deadline_ns) {
            return uc_error(
                    UC_ERR_TIMEOUT, "ucm-server is not ready after %d ms", READY_TIMEOUT_MS);
        }
        if (poll(&pollfd, 1, (int)((deadline_ns - now_ns) / 1000000) + 1) <= 0) {
            continue;
        }
        received = read(fd, line + length, line_bytes - 1 - length);
        if (received <= 0) {
            return uc_error(UC_ERR_UNHEALTHY, "ucm-server ended before it was ready");
        }
        length += (size_t)received;
    }

    line[length] = '\0';
    return UC_OK;
}

static enum uc_status
parse_ready_line(const char *line, uint16_t *port_out)
{
    json_t *ready = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
    json_int_t port = json_integer_value(json_object_get(ready, "rpc_port"));

    json_decref(ready);
    if (port <= 0 || port > UINT16_MAX) {
        return uc_error(UC_ERR_UNHEALTHY, "ucm-server said no rpc_port: %s", line);
    }

    *port_out = (uint16_t)port;
    return UC_OK;
}

enum uc_status
uc_server_spawn(const struct uc_spawn_options *options, struct uc_spawned_server *server_out)
{
    struct uc_spawned_server server = {0};
    char line[READY_LINE_BYTES];
    enum uc_status status;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return uc_log_errno(errno, "spawn ucm-server: pipe");
    }

    server.pid = fork();
    if (server.pid < 0) {
        status = uc_log_errno(errno, "spawn ucm-server: fork");
        (void)close(ends[0]);
        (void)close(ends[1]);
        return status;
    }
    if (server.pid == 0) {
        exec_server(options, ends[1]);
    }

    (void)close(ends[1]);
    status = read_ready_line(ends[0], line, sizeof(line));
    (void)close(ends[0]);
    if (status == UC_OK) {
        status = parse_ready_line(line, &server.rpc_port);
    }
    if (status != UC_OK) {
        (void)kill(server.pid, SIGKILL);
        (void)waitpid(server.pid, NULL, 0);
        return status;
    }

    *server_out = server;
    return UC_OK;
}

enum uc_status
uc_server_stop(const struct uc_spawned_server *server)
{
    int state = 0;

    (void)kill(server->pid, SIGTERM);
    if (waitpid(server->pid, &state, 0) != server->pid) {
        return uc_log_errno(errno, "stop ucm-server: waitpid");
    }
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        return uc_error(UC_ERR_GENERAL, "ucm-server ended with wait status %d", state);
    }

    return UC_OK;
}

void
uc_server_kill(const struct uc_spawned_server *server)
{
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
}
