/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file file_yardstick.h
 * What a directory's medium can do at best: one file, O_DIRECT, so many transfers in flight; by fio, or by a bare
 * loop over io_uring where fio is not installed. One thread.
 */

#ifndef UC_BENCH_FILE_YARDSTICK_H
#define UC_BENCH_FILE_YARDSTICK_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_FILE_FOLDER_BYTES = 1100
};

/** Fill in the first part; addresses and sizes are multiples of 4096. The loop uses the memory, fio its own. */
struct uc_file_yardstick {
    const char *directory;
    uint8_t *source;
    uint8_t *target;
    uint64_t block_bytes;
    uint64_t blocks;
    uint64_t depth;

    bool is_fio;
    char folder[UC_FILE_FOLDER_BYTES]; /* made for the file; "" = closed */
};

/**
 * Make a folder in the directory and choose the tool.
 *
 * @param[in] tool  "fio", "uring", or "auto": fio if it is installed
 * @retval UC_ERR_OS_API       the directory takes no folder
 * @retval UC_ERR_UNSUPPORTED  the tool is not there
 */
UC_MUST_CHECK enum uc_status uc_file_yardstick_open(
        struct uc_file_yardstick *yardstick, const char *tool);

/** Write all blocks to a new file, in @p ns_out nanoseconds. @retval UC_ERR_OS_API the text says why */
UC_MUST_CHECK enum uc_status uc_file_yardstick_write(
        struct uc_file_yardstick *yardstick, uint64_t *ns_out);

/** Read them back; the file is gone afterwards. @retval as write */
UC_MUST_CHECK enum uc_status uc_file_yardstick_read(
        struct uc_file_yardstick *yardstick, uint64_t *ns_out);

/** Remove what is left. Does nothing if it is closed. */
void uc_file_yardstick_close(struct uc_file_yardstick *yardstick);

/**
 * The bare loop, over a file that is open with O_DIRECT.
 *
 * @retval UC_ERR_UNSUPPORTED  built without liburing, or the kernel does not permit it
 * @retval UC_ERR_OS_API       a transfer failed
 */
UC_MUST_CHECK enum uc_status uc_file_ring_run(
        const struct uc_file_yardstick *yardstick, int fd, bool write, uint64_t *ns_out);

#endif /* UC_BENCH_FILE_YARDSTICK_H */
