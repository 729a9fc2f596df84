/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/perftest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

enum {
    ARGUMENT_COUNT = 20,
    ARGUMENT_BYTES = 64,
    OUTPUT_BYTES = 8192,
    COLUMN_BANDWIDTH = 3, /* of a line of figures, from 0 */
    COLUMN_LATENCY = 4,
    ATTEMPTS = 100, /* until the server's side listens */
    PAUSE_NS = 50000000,
    DEPTH_MAX = 1 << 14,
    QUEUE_PAIRS_MAX = 64,
    OPERATIONS_MIN = 5, /* perftest's own bounds */
    OPERATIONS_MAX = 100000000,
};

static const char *const names[UC_PERFTEST_TOOL_COUNT] = {
        [UC_PERFTEST_READ_BW] = "ib_read_bw",
        [UC_PERFTEST_WRITE_BW] = "ib_write_bw",
        [UC_PERFTEST_READ_LAT] = "ib_read_lat",
};

const char *
uc_perftest_name(enum uc_perftest_tool tool)
{
    return names[tool];
}

enum uc_status
uc_perftest_check(enum uc_perftest_tool tool)
{
    const char *folders = getenv("PATH");

    while (folders != NULL && *folders != '\0') {
        int length = (int)strcspn(folders, ":");
        char path[4096];

        (void)snprintf(path, sizeof(path), "%.*s/%s", length, folders, names[tool]);
        if (access(path, X_OK) == 0) {
            return UC_OK;
        }
        folders += folders[length] == ':' ? length + 1 : length;
    }
    return uc_error(UC_ERR_UNSUPPORTED, "%s is not in PATH; install perftest", names[tool]);
}

enum uc_status
uc_perftest_validate(const struct uc_perftest *perftest)
{
    if (perftest->tool >= UC_PERFTEST_TOOL_COUNT || perftest->block_bytes < 2 ||
            perftest->block_bytes > 1u << 30 || perftest->depth < 1 ||
            perftest->depth > DEPTH_MAX || perftest->queue_pairs > QUEUE_PAIRS_MAX ||
            perftest->operations < OPERATIONS_MIN || perftest->operations > OPERATIONS_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "perftest: a number is out of bounds");
    }
    return uc_perftest_check(perftest->tool);
}

/* The command line; both sides must be given the same. */
struct command {
    char text[ARGUMENT_COUNT][ARGUMENT_BYTES];
    char *arguments[ARGUMENT_COUNT + 1];
    size_t count;
};

UC_PRINTF(2, 3)
static void
add_argument(struct command *command, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(command->text[command->count], ARGUMENT_BYTES, format, arguments);
    va_end(arguments);
    command->arguments[command->count] = command->text[command->count];
    command->count++;
}

static void
build_command(const struct uc_perftest *perftest, const char *host, struct command *command)
{
    *command = (struct command){.count = 0};
    add_argument(command, "%s", names[perftest->tool]);
    add_argument(command, "-R");
    add_argument(command, "-F"); /* no complaint about the processor's clock */
    add_argument(command, "-p%u", perftest->port);
    add_argument(command, "-s%" PRIu64, perftest->block_bytes);
    add_argument(command, "-n%" PRIu64, perftest->operations);
    if (perftest->tool != UC_PERFTEST_READ_LAT) {
        add_argument(command, "-t%" PRIu64, perftest->depth);
        add_argument(command, "-q%" PRIu64, perftest->queue_pairs == 0 ? 1 : perftest->queue_pairs);
        add_argument(command, "--report_gbits");
    }
    if (perftest->device != NULL) {
        size_t length = strcspn(perftest->device, ":");

        add_argument(command, "-d%.*s", (int)length, perftest->device);
        if (perftest->device[length] == ':') {
            add_argument(command, "-i%s", perftest->device + length + 1);
        }
    }
    if (host != NULL) {
        add_argument(command, "%s", host);
    }
}

/*
 * Start it with its output on @p output_fd, −1 = nowhere. Not by fork(): that would copy page tables of
 * gigabytes, and put pages that a device knows at risk.
 */
static enum uc_status
spawn(const struct command *command, int output_fd, pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int error = posix_spawn_file_actions_init(&actions);

    if (error != 0) {
        return uc_log_errno(error, "start %s", command->arguments[0]);
    }
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(
                &actions, output_fd < 0 ? STDIN_FILENO : output_fd, STDOUT_FILENO);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
    }
    if (error == 0) {
        error = posix_spawnp(
                &pid, command->arguments[0], &actions, NULL, command->arguments, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        return uc_log_errno(error, "start %s", command->arguments[0]);
    }

    *pid_out = pid;
    return UC_OK;
}

enum uc_status
uc_perftest_start_server(const struct uc_perftest *perftest, pid_t *pid_out)
{
    struct command command;

    build_command(perftest, NULL, &command);
    return spawn(&command, -1, pid_out);
}

/* All that the program prints, until it ends. */
static void
read_output(int fd, char *output, size_t output_bytes)
{
    size_t length = 0;
    ssize_t count;

    do {
        char dropped[256];
        bool full = length + 1 >= output_bytes;

        count = full ? read(fd, dropped, sizeof(dropped))
                     : read(fd, output + length, output_bytes - 1 - length);
        length += count > 0 && !full ? (size_t)count : 0;
    } while (count > 0 || (count < 0 && errno == EINTR));
    output[length] = '\0';
}

/* @return its exit status, or −1 */
static int
run_once(const struct command *command, char *output, size_t output_bytes, double *seconds_out)
{
    uint64_t start_ns = uc_clock_now_ns();
    int ends[2];
    int state = 0;
    pid_t pid = 0;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    if (spawn(command, ends[1], &pid) != UC_OK) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return -1;
    }
    (void)close(ends[1]);
    read_output(ends[0], output, output_bytes);
    (void)close(ends[0]);
    if (waitpid(pid, &state, 0) != pid) {
        return -1;
    }
    *seconds_out = (double)(uc_clock_now_ns() - start_ns) / 1e9;
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

enum uc_status
uc_perftest_run_client(const struct uc_perftest *perftest, const char *host, double *value_out,
        double *seconds_out)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    char output[OUTPUT_BYTES] = "";
    struct command command;
    double figure = 0;

    build_command(perftest, host, &command);
    /* The other side listens a moment after it was started, and does not say when. */
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (run_once(&command, output, sizeof(output), seconds_out) == 0 &&
                uc_perftest_parse(perftest->tool, output, &figure) == UC_OK) {
            *value_out = perftest->tool == UC_PERFTEST_READ_LAT ? figure : figure / 8;
            return UC_OK;
        }
        (void)nanosleep(&pause, NULL);
    }
    return uc_error(UC_ERR_UNHEALTHY, "%s against %s failed; it said: %.200s",
            names[perftest->tool], host, output);
}

/* The number in a column, counted from 0. */
static bool
read_column(const char *line, size_t column, double *value_out)
{
    char *end = NULL;

    for (size_t idx = 0; idx <= column; idx++) {
        *value_out = strtod(line, &end);
        if (end == line) {
            return false;
        }
        line = end;
    }
    return true;
}

/* Figures follow a line of headings that starts with "#bytes". */
enum uc_status
uc_perftest_parse(enum uc_perftest_tool tool, const char *output, double *figure_out)
{
    size_t column = tool == UC_PERFTEST_READ_LAT ? COLUMN_LATENCY : COLUMN_BANDWIDTH;
    const char *headings = strstr(output, "#bytes");
    const char *line = headings == NULL ? NULL : strchr(headings, '\n');
    double figure = 0;

    if (line == NULL || !read_column(line + 1, column, &figure) || !(figure >= 0)) {
        return uc_error(UC_ERR_NOT_FOUND, "%s printed no figures", names[tool]);
    }

    *figure_out = figure;
    return UC_OK;
}
