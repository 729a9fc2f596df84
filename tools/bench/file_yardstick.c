/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/file_yardstick.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

enum {
    THREADS_MAX = 64,
    PATH_BYTES = 4096,
};

/* A thread's share: every n-th block. */
struct share {
    const struct uc_file_yardstick *yardstick;
    int fd;
    size_t first;
    bool write;
    int error; /* errno, 0 = done */
};

/* Move one block as a whole. @return errno */
static int
move_block(const struct share *share, uint64_t block)
{
    const struct uc_file_yardstick *yardstick = share->yardstick;
    uint64_t start = block * yardstick->block_bytes;
    uint64_t done = 0;

    while (done < yardstick->block_bytes) {
        size_t left = (size_t)(yardstick->block_bytes - done);
        off_t offset = (off_t)(start + done);
        ssize_t count = share->write
                                ? pwrite(share->fd, yardstick->source + start + done, left, offset)
                                : pread(share->fd, yardstick->target + start + done, left, offset);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return count < 0 ? errno : EIO;
        }
        done += (uint64_t)count;
    }
    return 0;
}

static void *
run_share(void *context)
{
    struct share *share = context;

    for (uint64_t block = share->first; block < share->yardstick->blocks && share->error == 0;
            block += share->yardstick->threads) {
        share->error = move_block(share, block);
    }
    return NULL;
}

static enum uc_status
run_all(const struct uc_file_yardstick *yardstick, int fd, bool write, uint64_t *ns_out)
{
    pthread_t threads[THREADS_MAX];
    struct share shares[THREADS_MAX];
    uint64_t start_ns = uc_clock_now_ns();
    size_t started = 0;
    int error = 0;

    while (started < yardstick->threads && error == 0) {
        shares[started] =
                (struct share){.yardstick = yardstick, .fd = fd, .first = started, .write = write};
        error = pthread_create(&threads[started], NULL, run_share, &shares[started]);
        started += error == 0;
    }
    for (size_t idx = 0; idx < started; idx++) {
        (void)pthread_join(threads[idx], NULL);
        error = error == 0 ? shares[idx].error : error;
    }
    if (error != 0) {
        return uc_log_errno(error, "%s: %s of a file with O_DIRECT", yardstick->directory,
                write ? "write" : "read");
    }

    *ns_out = uc_clock_now_ns() - start_ns;
    return UC_OK;
}

/* A file without a name. @return a descriptor, or −1 */
static int
open_file(const char *directory)
{
    char path[PATH_BYTES];
    int fd;

    if (snprintf(path, sizeof(path), "%s/ucm-bench-XXXXXX", directory) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_DIRECT | O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

enum uc_status
uc_file_yardstick_run(
        const struct uc_file_yardstick *given, uint64_t *write_ns_out, uint64_t *read_ns_out)
{
    struct uc_file_yardstick yardstick = *given;
    uint64_t write_ns = 0;
    uint64_t read_ns = 0;
    enum uc_status status;
    int fd = open_file(given->directory);

    if (fd < 0) {
        return uc_log_errno(errno, "%s: a file with O_DIRECT", given->directory);
    }

    yardstick.threads = given->threads > THREADS_MAX ? THREADS_MAX : given->threads;
    status = run_all(&yardstick, fd, true, &write_ns);
    if (status == UC_OK) {
        status = run_all(&yardstick, fd, false, &read_ns);
    }
    (void)close(fd);
    if (status == UC_OK) {
        *write_ns_out = write_ns;
        *read_ns_out = read_ns;
    }
    return status;
}
