/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

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
    }
    errno = EINVAL;
    return -1;
}

void
uc_posix_io_run(struct uc_posix_io *io)
{
    int64_t result = call(io);

    io->result = result < 0 ? -errno : result;
}
