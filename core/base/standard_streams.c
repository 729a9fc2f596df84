/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum uc_status
uc_standard_streams_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The wrong way round, so that reading and writing fail as they did on the closed one. */
        int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
            continue;
        }
        /* All below are taken: open gives this number. */
        if (open("/dev/null", flags) != fd) {
            return uc_error(UC_ERR_OS_API,
                    "standard streams: descriptor %d is closed and /dev/null does not take its place: "
                    "%s",
                    fd, strerror(errno));
        }
    }
    return UC_OK;
}

enum uc_status
uc_standard_streams_finish(void)
{
    bool failed = ferror(stdout) != 0;

    if (fflush(stdout) != 0 || failed) {
        return uc_error(UC_ERR_OS_API,
                "standard output took not all that was printed; is its disk full, or is it closed?");
    }
    return UC_OK;
}
