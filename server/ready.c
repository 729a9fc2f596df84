/* SPDX-License-Identifier: Apache-2.0 */

#include "server/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ucm/log.h>

enum {
    LINE_BYTES = 128,
    PATH_BYTES = 512,
    FILE_MODE = 0644
};

static bool
write_all(int fd, const char *line)
{
    size_t length = strlen(line);

    while (length > 0) {
        ssize_t written = write(fd, line, length);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        line += written;
        length -= (size_t)written;
    }
    return true;
}

static enum uc_status
write_file(const char *path, const char *line)
{
    char temporary[PATH_BYTES];
    int length = snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid());
    bool written;
    int fd;

    if (length < 0 || (size_t)length >= sizeof(temporary)) {
        return uc_error(UC_ERR_INVALID_PARAM, "ready_file: the path is too long");
    }
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (fd < 0) {
        return uc_log_errno(errno, "ready_file: cannot create %s", temporary);
    }
    written = write_all(fd, line);
    if (close(fd) != 0 || !written || rename(temporary, path) != 0) {
        enum uc_status status = uc_log_errno(errno, "ready_file: cannot write %s", path);

        (void)unlink(temporary);
        return status;
    }
    return UC_OK;
}

enum uc_status
uc_ready_write(const char *path, const struct uc_server *server)
{
    char line[LINE_BYTES];

    (void)snprintf(line, sizeof(line), "{\"rpc_port\":%u,\"fabric_port\":%u,\"pid\":%d}\n",
            uc_server_rpc_port(server), uc_server_fabric_port(server), (int)getpid());
    if (path[0] == '\0') {
        return UC_OK;
    }
    if (strcmp(path, "-") == 0) {
        return write_all(STDOUT_FILENO, line)
                       ? UC_OK
                       : uc_log_errno(errno, "ready_file: cannot write to standard output");
    }
    return write_file(path, line);
}

enum uc_status
uc_ready_clear(const char *path)
{
    struct stat found;

    if (path[0] == '\0' || strcmp(path, "-") == 0 || lstat(path, &found) != 0) {
        return UC_OK;
    }
    if (!S_ISREG(found.st_mode)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "ready_file: %s is there and is no regular file; name another path, or - for standard "
                "output",
                path);
    }

    (void)unlink(path);
    return UC_OK;
}
