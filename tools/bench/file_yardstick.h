/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file file_yardstick.h
 * What a directory's medium can do: O_DIRECT, so many transfers in flight; by fio, or by a bare loop over io_uring
 * where fio is not installed. One thread.
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

/** In the order in which they can be run. */
enum uc_file_yardstick_kind {
    UC_FILE_NEW_FILES, /* write every block to a file of its own, made and closed meanwhile */
    UC_FILE_ONE_FILE,  /* write them to one new file whose space was reserved before */
    UC_FILE_OVERWRITE, /* write them to that file again, in place */
    UC_FILE_READ,      /* read them from it */
};

/** Fill in the first part; addresses and sizes are multiples of 4096. The loop uses the memory, fio its own. */
struct uc_file_yardstick {
    const char *directory;
    uint8_t *source;
    uint8_t *target;
    uint64_t block_bytes;
    uint64_t blocks;
    uint64_t depth;
    bool huge_pages; /* for fio's memory */

    bool is_fio;
    char folder[UC_FILE_FOLDER_BYTES]; /* made for the files; "" = closed */
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

/** Move all blocks, in @p ns_out nanoseconds. @retval UC_ERR_OS_API the text says why */
UC_MUST_CHECK enum uc_status uc_file_yardstick_run(
        struct uc_file_yardstick *yardstick, enum uc_file_yardstick_kind kind, uint64_t *ns_out);

/** Write back what the file system owes, so that nobody pays for who came before. Does nothing if it is closed. */
void uc_file_yardstick_settle(const struct uc_file_yardstick *yardstick);

/** Remove the files. Does nothing if it is closed. */
void uc_file_yardstick_clear(const struct uc_file_yardstick *yardstick);

/** Remove what is left. Does nothing if it is closed. */
void uc_file_yardstick_close(struct uc_file_yardstick *yardstick);

/**
 * The bare loop.
 *
 * @param[in] fd  the folder in which new files are made, otherwise the file, open with O_DIRECT
 *
 * @retval UC_ERR_UNSUPPORTED  built without liburing, or the kernel does not permit it
 * @retval UC_ERR_OS_API       a transfer failed
 */
UC_MUST_CHECK enum uc_status uc_file_ring_run(const struct uc_file_yardstick *yardstick,
        enum uc_file_yardstick_kind kind, int fd, uint64_t *ns_out);

#endif /* UC_BENCH_FILE_YARDSTICK_H */
