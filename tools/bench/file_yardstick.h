/* SPDX-License-Identifier: Apache-2.0 */

/** @file file_yardstick.h What a directory's medium can do at best: one file, O_DIRECT, several threads. */

#ifndef UC_BENCH_FILE_YARDSTICK_H
#define UC_BENCH_FILE_YARDSTICK_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** What is written and read. Addresses and sizes are multiples of 4096. */
struct uc_file_yardstick {
    const char *directory;
    const uint8_t *source;
    uint8_t *target;
    uint64_t block_bytes;
    uint64_t blocks;
    size_t threads;
};

/**
 * Write all blocks of the source, then read them into the target; the file is gone afterwards.
 *
 * @retval UC_ERR_OS_API  the directory takes no such file; the text says why
 */
UC_MUST_CHECK enum uc_status uc_file_yardstick_run(
        const struct uc_file_yardstick *yardstick, uint64_t *write_ns_out, uint64_t *read_ns_out);

#endif /* UC_BENCH_FILE_YARDSTICK_H */
