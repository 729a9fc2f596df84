/* SPDX-License-Identifier: Apache-2.0 */

/** @file file_reserve.h Storage of a file taken before it is used, in a process that gets signals. Threads: any. */

#ifndef UC_BASE_FILE_RESERVE_H
#define UC_BASE_FILE_RESERVE_H

#include <stdint.h>

#include <ucm/compiler.h>

/**
 * Take the storage behind a range of a file now: running out of it is an error here and a signal later, where the
 * file is mapped. The file grows to the end of the range. A signal interrupts fallocate and undoes it, also a mere
 * stop and continue: so the range is taken in pieces, and a piece that was interrupted again in smaller ones. Blocks.
 *
 * @return 0, or the errno of what failed; what was taken until then stays
 */
UC_PRIVATE_API UC_MUST_CHECK int uc_file_reserve(
        int fd, uint64_t offset_bytes, uint64_t length_bytes);

#endif /* UC_BASE_FILE_RESERVE_H */
