/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/file_reserve.h"

#include <errno.h>
#include <fcntl.h>

enum {
    PIECE_MIN_BYTES = 4096,
    PIECE_MAX_BYTES = 2 << 20, /* a large page */
};

int
uc_file_reserve(int fd, uint64_t offset_bytes, uint64_t length_bytes)
{
    uint64_t piece_bytes = PIECE_MAX_BYTES;

    if (offset_bytes > INT64_MAX || length_bytes > INT64_MAX - offset_bytes) {
        return EFBIG;
    }

    while (length_bytes > 0) {
        uint64_t bytes = length_bytes < piece_bytes ? length_bytes : piece_bytes;

        if (fallocate(fd, 0, (off_t)offset_bytes, (off_t)bytes) == 0) {
            offset_bytes += bytes;
            length_bytes -= bytes;
            piece_bytes = piece_bytes < PIECE_MAX_BYTES ? piece_bytes * 2 : piece_bytes;
        } else if (errno != EINTR) {
            return errno;
        } else if (piece_bytes > PIECE_MIN_BYTES) {
            /* In the end it fits between two signals, however slow this machine is. */
            piece_bytes /= 2;
        }
    }
    return 0;
}
