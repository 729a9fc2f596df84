/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    ARGUMENT_COUNT = 10,
    ARGUMENT_BYTES = 64,
    REPORT_BYTES_MAX = 1 << 20,
};

/* Run fio in a folder, its report in @p fd. @return whether it ended with 0 */
static bool
run(char *const arguments[], const char *folder, int fd)
{
    posix_spawn_file_actions_t actions;
    int state = 0;
    pid_t child;
    int error = posix_spawn_file_actions_init(&actions);

    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
        if (error == 0) {
            error = posix_spawn_file_actions_addchdir_np(&actions, folder);
        }
        if (error == 0) {
            error = posix_spawnp(&child, "fio", &actions, NULL, arguments, environ);
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    if (error != 0) {
        errno = error;
        return false;
    }

    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    errno = EIO;
    return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

bool
uc_fio_is_there(void)
{
    static char name[] = "fio";
    static char version[] = "--version";
    char *arguments[] = {name, version, NULL};
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool is_there = fd >= 0 && run(arguments, "/", fd);

    if (fd >= 0) {
        (void)close(fd);
    }
    return is_there;
}

enum uc_status
uc_fio_read_report(const char *text, bool write, uint64_t bytes, uint64_t *ns_out)
{
    const char *start = strchr(text, '{');
    json_t *root = start == NULL ? NULL : json_loads(start, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
    json_t *side = json_object_get(job, write ? "write" : "read");
    json_int_t moved = json_integer_value(json_object_get(side, "io_bytes"));
    json_int_t rate = json_integer_value(json_object_get(side, "bw_bytes"));

    json_decref(root);
    if (moved < 0 || (uint64_t)moved != bytes || rate <= 0) {
        return uc_error(UC_ERR_OS_API, "fio reported %lld of %" PRIu64 " bytes at %lld bytes/s",
                (long long)moved, bytes, (long long)rate);
    }

    *ns_out = (uint64_t)((double)bytes / (double)rate * 1e9);
    return UC_OK;
}

/* fio's words are some kilobytes; a report beyond the bound is none. */
static enum uc_status
read_all(int fd, const struct uc_fio_job *job, uint64_t *ns_out)
{
    char *text = malloc(REPORT_BYTES_MAX);
    enum uc_status status;
    ssize_t length;

    if (text == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "fio: no memory for its report");
    }
    length = pread(fd, text, REPORT_BYTES_MAX - 1, 0);
    text[length < 0 ? 0 : length] = '\0';
    status = uc_fio_read_report(text, job->write, job->blocks * job->block_bytes, ns_out);
    free(text);
    return status;
}

enum uc_status
uc_fio_run(const struct uc_fio_job *job, uint64_t *ns_out)
{
    static char name[] = "fio";
    char text[ARGUMENT_COUNT][ARGUMENT_BYTES] = {"--name=limit", "--filename=limit", "--direct=1",
            "--ioengine=io_uring", "--thread", "--output-format=json"};
    char *arguments[ARGUMENT_COUNT + 2] = {name};
    enum uc_status status;
    int fd;

    (void)snprintf(text[6], ARGUMENT_BYTES, "--rw=%s", job->write ? "write" : "read");
    (void)snprintf(text[7], ARGUMENT_BYTES, "--bs=%" PRIu64, job->block_bytes);
    (void)snprintf(text[8], ARGUMENT_BYTES, "--size=%" PRIu64, job->blocks * job->block_bytes);
    (void)snprintf(text[9], ARGUMENT_BYTES, "--iodepth=%" PRIu64, job->depth);
    for (size_t idx = 0; idx < ARGUMENT_COUNT; idx++) {
        arguments[idx + 1] = text[idx];
    }

    fd = memfd_create("fio", MFD_CLOEXEC);
    if (fd < 0) {
        return uc_error(UC_ERR_OS_API, "fio: memfd_create: %s", strerror(errno));
    }
    if (run(arguments, job->directory, fd)) {
        status = read_all(fd, job, ns_out);
    } else {
        status = uc_error(UC_ERR_OS_API, "fio in %s failed: %s", job->directory, strerror(errno));
    }
    (void)close(fd);
    return status;
}
