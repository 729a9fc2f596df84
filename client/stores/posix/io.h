/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file io.h
 * One call of the kernel as a value: the thread engine runs it, the ring engine hands it to io_uring.
 * Everything it points to stays valid until its result is there.
 */

#ifndef UC_POSIX_IO_H
#define UC_POSIX_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "client/device/device.h"

enum uc_posix_io_kind {
    UC_POSIX_IO_OPEN,
    UC_POSIX_IO_READ,
    UC_POSIX_IO_WRITE,
    UC_POSIX_IO_SYNC,      /* data and length */
    UC_POSIX_IO_SYNC_FULL, /* all of the inode */
    UC_POSIX_IO_RENAME,
    UC_POSIX_IO_CLOSE,
    UC_POSIX_IO_COPY, /* none of the kernel's: wait for copies of a device */
};

struct uc_posix_io {
    enum uc_posix_io_kind kind;
    int fd;            /* all but open and rename */
    int folder_fd;     /* open, rename */
    const char *path;  /* likewise */
    int new_folder_fd; /* rename */
    const char *new_path;
    int flags; /* open */
    const struct iovec *iov;
    unsigned iov_count;
    uint64_t offset;
    const struct uc_device_ops *device_ops; /* copy */
    struct uc_device_ticket *ticket;        /* likewise */
    int64_t result;                         /* ≥ 0, or −errno; of a copy an enum uc_status */
};

/** @return whether the copies of a call of that kind are over; sets the result then. */
static inline bool
uc_posix_io_is_copied(struct uc_posix_io *io)
{
    enum uc_status status = io->device_ops->poll(io->ticket);

    io->result = status;
    return status != UC_ERR_RETRY;
}

/** Run it on this thread; sets the result. */
void uc_posix_io_run(struct uc_posix_io *io);

#endif /* UC_POSIX_IO_H */
