/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/file_yardstick.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucm/log.h>

#include "tools/bench/fio.h"

enum {
    PATH_BYTES = UC_FILE_FOLDER_BYTES + 16
};

enum uc_status
uc_file_yardstick_open(struct uc_file_yardstick *yardstick, const char *tool)
{
    bool is_fio = strcmp(tool, "uring") != 0 && uc_fio_is_there();
    int length = snprintf(yardstick->folder, sizeof(yardstick->folder), "%s/.ucm-bench-XXXXXX",
            yardstick->directory);

    if (strcmp(tool, "fio") == 0 && !is_fio) {
        yardstick->folder[0] = '\0';
        return uc_error(
                UC_ERR_UNSUPPORTED, "fio cannot be started; install it, or let uring measure");
    }
    if (length >= (int)sizeof(yardstick->folder)) {
        yardstick->folder[0] = '\0';
        return uc_error(UC_ERR_OS_API, "%.64s…: the name is too long", yardstick->directory);
    }
    if (mkdtemp(yardstick->folder) == NULL) {
        yardstick->folder[0] = '\0';
        return uc_log_errno(errno, "%s: make a folder", yardstick->directory);
    }

    yardstick->is_fio = is_fio;
    return UC_OK;
}

static void
file_path(const struct uc_file_yardstick *yardstick, char *path)
{
    (void)snprintf(path, PATH_BYTES, "%s/limit", yardstick->folder);
}

/* fio lays the file out before it writes, so the loop does, too. */
static enum uc_status
run_ring(const struct uc_file_yardstick *yardstick, bool write, uint64_t *ns_out)
{
    off_t length = (off_t)(yardstick->blocks * yardstick->block_bytes);
    char path[PATH_BYTES];
    enum uc_status status;
    int fd;

    file_path(yardstick, path);
    fd = open(path, (write ? O_WRONLY | O_CREAT : O_RDONLY) | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return uc_log_errno(errno, "%s: open with O_DIRECT", path);
    }
    if (write && fallocate(fd, 0, 0, length) != 0 && errno != EOPNOTSUPP) {
        status = uc_log_errno(errno, "%s: fallocate", path);
    } else {
        status = uc_file_ring_run(yardstick, fd, write, ns_out);
    }
    (void)close(fd);
    return status;
}

static enum uc_status
run(const struct uc_file_yardstick *yardstick, bool write, uint64_t *ns_out)
{
    struct uc_fio_job job = {.directory = yardstick->folder,
            .block_bytes = yardstick->block_bytes,
            .blocks = yardstick->blocks,
            .depth = yardstick->depth,
            .write = write};

    return yardstick->is_fio ? uc_fio_run(&job, ns_out) : run_ring(yardstick, write, ns_out);
}

static void
remove_file(const struct uc_file_yardstick *yardstick)
{
    char path[PATH_BYTES];

    file_path(yardstick, path);
    (void)unlink(path);
}

enum uc_status
uc_file_yardstick_write(struct uc_file_yardstick *yardstick, uint64_t *ns_out)
{
    return run(yardstick, true, ns_out);
}

enum uc_status
uc_file_yardstick_read(struct uc_file_yardstick *yardstick, uint64_t *ns_out)
{
    enum uc_status status = run(yardstick, false, ns_out);

    remove_file(yardstick);
    return status;
}

void
uc_file_yardstick_close(struct uc_file_yardstick *yardstick)
{
    if (yardstick->folder[0] != '\0') {
        remove_file(yardstick);
        (void)rmdir(yardstick->folder);
        yardstick->folder[0] = '\0';
    }
}
