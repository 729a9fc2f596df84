/* SPDX-License-Identifier: Apache-2.0 */

/* The bare loop: every completion starts the next block, nothing else happens. */

#include "tools/bench/file_yardstick.h"

#ifdef UC_BENCH_WITH_URING

#    include <errno.h>
#    include <fcntl.h>
#    include <inttypes.h>
#    include <liburing.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <unistd.h>

#    include <ucm/clock.h>

enum {
    NAME_BYTES = 32
};

struct loop {
    const struct uc_file_yardstick *yardstick;
    enum uc_file_yardstick_kind kind;
    struct io_uring ring;
    int fd;   /* file, or folder of new files */
    int *fds; /* of each block while it is in flight; new files only */
};

/* @return 0 or errno */
static int
open_block(struct loop *loop, uint64_t block)
{
    char name[NAME_BYTES];

    if (loop->kind != UC_FILE_NEW_FILES) {
        return 0;
    }
    (void)snprintf(name, sizeof(name), "limit.0.%" PRIu64, block);
    loop->fds[block] =
            openat(loop->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
    return loop->fds[block] < 0 ? errno : 0;
}

static void
close_block(struct loop *loop, uint64_t block)
{
    if (loop->kind == UC_FILE_NEW_FILES) {
        (void)close(loop->fds[block]);
    }
}

static void
prepare(struct loop *loop, uint64_t block)
{
    const struct uc_file_yardstick *yardstick = loop->yardstick;
    struct io_uring_sqe *sqe =
            io_uring_get_sqe(&loop->ring); /* one for each in flight: never full */
    uint64_t offset = block * yardstick->block_bytes;
    unsigned bytes = (unsigned)yardstick->block_bytes;

    if (loop->kind == UC_FILE_READ) {
        io_uring_prep_read(sqe, loop->fd, yardstick->target + offset, bytes, offset);
    } else if (loop->kind == UC_FILE_NEW_FILES) {
        io_uring_prep_write(sqe, loop->fds[block], yardstick->source + offset, bytes, 0);
    } else {
        io_uring_prep_write(sqe, loop->fd, yardstick->source + offset, bytes, offset);
    }
    io_uring_sqe_set_data64(sqe, block);
}

/* @return errno of the first transfer that failed, 0 = none. Nothing is in flight afterwards. */
static int
move_all(struct loop *loop)
{
    const struct uc_file_yardstick *yardstick = loop->yardstick;
    uint64_t started = 0;
    uint64_t ended = 0;
    int error = 0;

    while (ended < started || (started < yardstick->blocks && error == 0)) {
        struct io_uring_cqe *cqe;
        int result;

        while (started < yardstick->blocks && error == 0 && started - ended < yardstick->depth) {
            error = open_block(loop, started);
            if (error == 0) {
                prepare(loop, started++);
            }
        }
        if (ended == started) {
            break;
        }
        result = io_uring_submit_and_wait(&loop->ring, 1);
        if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
            return -result;
        }
        while (io_uring_peek_cqe(&loop->ring, &cqe) == 0) {
            if (error == 0 && cqe->res != (int)yardstick->block_bytes) {
                error = cqe->res < 0 ? -cqe->res : EIO;
            }
            close_block(loop, io_uring_cqe_get_data64(cqe));
            io_uring_cqe_seen(&loop->ring, cqe);
            ended++;
        }
    }
    return error;
}

enum uc_status
uc_file_ring_run(const struct uc_file_yardstick *yardstick, enum uc_file_yardstick_kind kind,
        int fd, uint64_t *ns_out)
{
    struct loop loop = {.yardstick = yardstick, .kind = kind, .fd = fd};
    uint64_t elapsed_ns;
    uint64_t start_ns;
    int error = -io_uring_queue_init((unsigned)yardstick->depth, &loop.ring, 0);

    if (error != 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "io_uring is not permitted here: %s", strerror(error));
    }
    loop.fds = calloc(yardstick->blocks, sizeof(loop.fds[0]));
    if (loop.fds == NULL) {
        io_uring_queue_exit(&loop.ring);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the descriptors of the files");
    }
    start_ns = uc_clock_now_ns();
    error = move_all(&loop);
    elapsed_ns = uc_clock_now_ns() - start_ns;
    io_uring_queue_exit(&loop.ring);
    free(loop.fds);
    if (error != 0) {
        return uc_error(UC_ERR_OS_API, "%s: %s with O_DIRECT: %s", yardstick->directory,
                kind == UC_FILE_READ ? "read" : "write", strerror(error));
    }

    *ns_out = elapsed_ns;
    return UC_OK;
}

#else /* built without liburing */

enum uc_status
uc_file_ring_run(const struct uc_file_yardstick *yardstick, enum uc_file_yardstick_kind kind,
        int fd, uint64_t *ns_out)
{
    (void)yardstick;
    (void)fd;
    (void)kind;
    (void)ns_out;
    return uc_error(
            UC_ERR_UNSUPPORTED, "fio is not installed, and this was built without liburing");
}

#endif
