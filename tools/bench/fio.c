/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fio.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    ARGUMENTS_MAX = 16,
    ARGUMENT_BYTES = 64,
    REPORT_BYTES_MAX = 1 << 20,
};

/* The list ends with NULL. */
struct arguments {
    char texts[ARGUMENTS_MAX][ARGUMENT_BYTES];
    char *list[ARGUMENTS_MAX + 1];
    size_t count;
};

/*
 * The environment of fio, to be freed. fio takes huge pages only from a pool that an administrator has filled; malloc,
 * from which its buffers are, asks for them wherever the kernel gives them.
 */
static char **
environment(bool huge_pages)
{
    static char tunables[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
    size_t count = 0;
    size_t used = 0;
    char **list;

    while (environ[count] != NULL) {
        count++;
    }
    list = calloc(count + 2, sizeof(list[0]));
    if (list == NULL) {
        return NULL;
    }
    if (huge_pages) {
        list[used++] = tunables;
    }
    for (size_t idx = 0; idx < count; idx++) {
        if (!huge_pages || strncmp(environ[idx], "GLIBC_TUNABLES=", 15) != 0) {
            list[used++] = environ[idx];
        }
    }
    return list;
}

/* Run fio in a folder, its report in @p fd. @return whether it ended with 0 */
static bool
run(char *const arguments[], bool huge_pages, const char *folder, int fd)
{
    posix_spawn_file_actions_t actions;
    char **variables = environment(huge_pages);
    int state = 0;
    pid_t child;
    int error = variables == NULL ? ENOMEM : posix_spawn_file_actions_init(&actions);

    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
        if (error == 0) {
            error = posix_spawn_file_actions_addchdir_np(&actions, folder);
        }
        if (error == 0) {
            error = posix_spawnp(&child, "fio", &actions, NULL, arguments, variables);
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    free(variables);
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
    bool is_there = fd >= 0 && run(arguments, false, "/", fd);

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

/* Append one argument. */
__attribute__((format(printf, 2, 3))) static void
add(struct arguments *arguments, const char *format, ...)
{
    char *text = arguments->texts[arguments->count];
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, ARGUMENT_BYTES, format, values);
    va_end(values);
    arguments->list[arguments->count++] = text;
}

/*
 * New files: made when the job comes to them, written once, closed; nothing is reserved before, and so many are open as
 * are in flight. One file: if it is not there, fio reserves its space before it measures.
 */
static void
fill_arguments(const struct uc_fio_job *job, struct arguments *arguments)
{
    uint64_t bytes = job->blocks * job->block_bytes;

    add(arguments, "fio");
    add(arguments, "--name=limit");
    add(arguments, "--direct=1");
    add(arguments, "--ioengine=io_uring");
    add(arguments, "--thread");
    add(arguments, "--output-format=json");
    add(arguments, "--rw=%s", job->write ? "write" : "read");
    add(arguments, "--bs=%" PRIu64, job->block_bytes);
    add(arguments, "--size=%" PRIu64, bytes);
    add(arguments, "--iodepth=%" PRIu64, job->depth);
    if (!job->new_files) {
        add(arguments, "--filename=limit");
        add(arguments, "--fallocate=native");
        return;
    }
    add(arguments, "--filesize=%" PRIu64, job->block_bytes);
    add(arguments, "--nrfiles=%" PRIu64, job->blocks);
    add(arguments, "--openfiles=%" PRIu64, job->depth < job->blocks ? job->depth : job->blocks);
    add(arguments, "--create_on_open=1");
    add(arguments, "--fallocate=none");
    add(arguments, "--file_service_type=sequential");
}

enum uc_status
uc_fio_run(const struct uc_fio_job *job, uint64_t *ns_out)
{
    struct arguments arguments = {.count = 0};
    enum uc_status status;
    int fd = memfd_create("fio", MFD_CLOEXEC);

    if (fd < 0) {
        return uc_error(UC_ERR_OS_API, "fio: memfd_create: %s", strerror(errno));
    }
    fill_arguments(job, &arguments);
    if (run(arguments.list, job->huge_pages, job->directory, fd)) {
        status = read_all(fd, job, ns_out);
    } else {
        status = uc_error(UC_ERR_OS_API, "fio in %s failed: %s", job->directory, strerror(errno));
    }
    (void)close(fd);
    return status;
}
