/* SPDX-License-Identifier: Apache-2.0 */

/* The bare loop: every completion starts the next block, nothing else happens. */

#include "tools/bench/file_yardstick.h"

#ifdef UC_BENCH_WITH_URING

#    include <errno.h>
#    include <liburing.h>
#    include <string.h>

#    include <ucm/clock.h>

static void
prepare(const struct uc_file_yardstick *yardstick, struct io_uring *ring, int fd, uint64_t block,
        bool write)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring); /* as many as are in flight: never full */
    uint64_t offset = block * yardstick->block_bytes;

    if (write) {
        io_uring_prep_write(
                sqe, fd, yardstick->source + offset, (unsigned)yardstick->block_bytes, offset);
    } else {
        io_uring_prep_read(
                sqe, fd, yardstick->target + offset, (unsigned)yardstick->block_bytes, offset);
    }
}

/* @return errno of the first transfer that failed, 0 = none. Nothing is in flight afterwards. */
static int
move_all(const struct uc_file_yardstick *yardstick, struct io_uring *ring, int fd, bool write)
{
    uint64_t started = 0;
    uint64_t ended = 0;
    int error = 0;

    while (ended < started || (started < yardstick->blocks && error == 0)) {
        struct io_uring_cqe *cqe;
        int result;

        while (started < yardstick->blocks && error == 0 && started - ended < yardstick->depth) {
            prepare(yardstick, ring, fd, started, write);
            started++;
        }
        result = io_uring_submit_and_wait(ring, 1);
        if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
            return -result;
        }
        while (io_uring_peek_cqe(ring, &cqe) == 0) {
            if (error == 0 && cqe->res != (int)yardstick->block_bytes) {
                error = cqe->res < 0 ? -cqe->res : EIO;
            }
            io_uring_cqe_seen(ring, cqe);
            ended++;
        }
    }
    return error;
}

enum uc_status
uc_file_ring_run(const struct uc_file_yardstick *yardstick, int fd, bool write, uint64_t *ns_out)
{
    struct io_uring ring;
    uint64_t elapsed_ns;
    uint64_t start_ns;
    int error = -io_uring_queue_init((unsigned)yardstick->depth, &ring, 0);

    if (error != 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "io_uring is not permitted here: %s", strerror(error));
    }
    start_ns = uc_clock_now_ns();
    error = move_all(yardstick, &ring, fd, write);
    elapsed_ns = uc_clock_now_ns() - start_ns;
    io_uring_queue_exit(&ring);
    if (error != 0) {
        return uc_error(UC_ERR_OS_API, "%s: %s with O_DIRECT: %s", yardstick->directory,
                write ? "write" : "read", strerror(error));
    }

    *ns_out = elapsed_ns;
    return UC_OK;
}

#else /* built without liburing */

enum uc_status
uc_file_ring_run(const struct uc_file_yardstick *yardstick, int fd, bool write, uint64_t *ns_out)
{
    (void)yardstick;
    (void)fd;
    (void)write;
    (void)ns_out;
    return uc_error(
            UC_ERR_UNSUPPORTED, "fio is not installed, and this was built without liburing");
}

#endif
