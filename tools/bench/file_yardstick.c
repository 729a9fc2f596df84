/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/file_yardstick.h"

#include <dirent.h>
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

/* fio reserves the space of the file before it writes, so the loop does, too. */
static enum uc_status
run_ring_in_file(const struct uc_file_yardstick *yardstick, enum uc_file_yardstick_kind kind,
        uint64_t *ns_out)
{
    off_t length = (off_t)(yardstick->blocks * yardstick->block_bytes);
    bool is_new = kind == UC_FILE_ONE_FILE;
    char path[PATH_BYTES];
    enum uc_status status;
    int flags = kind == UC_FILE_READ ? O_RDONLY : O_WRONLY;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/limit", yardstick->folder);
    fd = open(path, flags | (is_new ? O_CREAT : 0) | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return uc_log_errno(errno, "%s: open with O_DIRECT", path);
    }
    if (is_new && fallocate(fd, 0, 0, length) != 0 && errno != EOPNOTSUPP) {
        status = uc_log_errno(errno, "%s: fallocate", path);
    } else {
        status = uc_file_ring_run(yardstick, kind, fd, ns_out);
    }
    (void)close(fd);
    return status;
}

static int
open_folder(const struct uc_file_yardstick *yardstick)
{
    return open(yardstick->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static enum uc_status
run_ring(const struct uc_file_yardstick *yardstick, enum uc_file_yardstick_kind kind,
        uint64_t *ns_out)
{
    enum uc_status status;
    int fd;

    if (kind != UC_FILE_NEW_FILES) {
        return run_ring_in_file(yardstick, kind, ns_out);
    }
    fd = open_folder(yardstick);
    if (fd < 0) {
        return uc_log_errno(errno, "%s: open", yardstick->folder);
    }
    status = uc_file_ring_run(yardstick, kind, fd, ns_out);
    (void)close(fd);
    return status;
}

enum uc_status
uc_file_yardstick_run(
        struct uc_file_yardstick *yardstick, enum uc_file_yardstick_kind kind, uint64_t *ns_out)
{
    struct uc_fio_job job = {.directory = yardstick->folder,
            .block_bytes = yardstick->block_bytes,
            .blocks = yardstick->blocks,
            .depth = yardstick->depth,
            .write = kind != UC_FILE_READ,
            .new_files = kind == UC_FILE_NEW_FILES,
            .huge_pages = yardstick->huge_pages};

    return yardstick->is_fio ? uc_fio_run(&job, ns_out) : run_ring(yardstick, kind, ns_out);
}

void
uc_file_yardstick_settle(const struct uc_file_yardstick *yardstick)
{
    int fd = yardstick->folder[0] == '\0' ? -1 : open_folder(yardstick);

    if (fd >= 0) {
        (void)syncfs(fd);
        (void)close(fd);
    }
}

void
uc_file_yardstick_clear(const struct uc_file_yardstick *yardstick)
{
    DIR *folder = opendir(yardstick->folder); /* "" is no folder */
    struct dirent *entry;

    if (folder == NULL) {
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    (void)closedir(folder);
}

void
uc_file_yardstick_close(struct uc_file_yardstick *yardstick)
{
    if (yardstick->folder[0] != '\0') {
        uc_file_yardstick_clear(yardstick);
        (void)rmdir(yardstick->folder);
        yardstick->folder[0] = '\0';
    }
}
