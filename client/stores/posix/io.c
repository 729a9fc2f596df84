/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    COPY_LOOKS = 64, /* that follow at once; then the thread sleeps between two */
    COPY_PAUSE_NS = 50 * 1000,
};

static int64_t
call(const struct uc_posix_io *io)
{
    switch (io->kind) {
    case UC_POSIX_IO_OPEN:
        return openat(io->folder_fd, io->path, io->flags, 0600);
    case UC_POSIX_IO_READ:
        return preadv(io->fd, io->iov, (int)io->iov_count, (off_t)io->offset);
    case UC_POSIX_IO_WRITE:
        return pwritev(io->fd, io->iov, (int)io->iov_count, (off_t)io->offset);
    case UC_POSIX_IO_SYNC:
        return fdatasync(io->fd);
    case UC_POSIX_IO_SYNC_FULL:
        return fsync(io->fd);
    case UC_POSIX_IO_RENAME:
        return renameat(io->folder_fd, io->path, io->new_folder_fd, io->new_path);
    case UC_POSIX_IO_CLOSE:
        return close(io->fd);
    case UC_POSIX_IO_COPY:
        break;
    }
    errno = EINVAL;
    return -1;
}

static void
wait_for_copy(struct uc_posix_io *io)
{
    static const struct timespec pause = {.tv_nsec = COPY_PAUSE_NS};

    for (unsigned looks = 0; !uc_posix_io_is_copied(io); looks++) {
        if (looks < COPY_LOOKS) {
            (void)sched_yield();
        } else {
            (void)nanosleep(&pause, NULL);
        }
    }
}

void
uc_posix_io_run(struct uc_posix_io *io)
{
    int64_t result;

    if (io->kind == UC_POSIX_IO_COPY) {
        wait_for_copy(io);
        return;
    }

    result = call(io);
    io->result = result < 0 ? -errno : result;
}
