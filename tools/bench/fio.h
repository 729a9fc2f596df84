/* SPDX-License-Identifier: Apache-2.0 */

/** @file fio.h fio(1) as a yardstick of a medium: started as a program, its report read. One thread. */

#ifndef UC_BENCH_FIO_H
#define UC_BENCH_FIO_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** One job: so many blocks in order, by io_uring with O_DIRECT. */
struct uc_fio_job {
    const char *directory; /* of the files: `limit`, or `limit.0.N` for each block */
    uint64_t block_bytes;
    uint64_t blocks;
    uint64_t depth;
    bool write;
    bool huge_pages; /* ask for them, for the blocks in memory */
    bool new_files; /* each block makes and writes a file of its own; otherwise one file, laid out before */
};

/** @return whether fio can be started. */
bool uc_fio_is_there(void);

/**
 * Run it.
 *
 * @param[out] ns_out  what fio took for the transfers, without its start
 * @retval UC_ERR_OS_API  it could not be started or failed; what it said is on standard error
 */
UC_MUST_CHECK enum uc_status uc_fio_run(const struct uc_fio_job *job, uint64_t *ns_out);

/**
 * Read the report of one job (`--output-format=json`); words before the first brace are skipped.
 *
 * @retval UC_ERR_OS_API  no such report, or it moved other than @p bytes
 */
UC_MUST_CHECK enum uc_status uc_fio_read_report(
        const char *text, bool write, uint64_t bytes, uint64_t *ns_out);

#endif /* UC_BENCH_FIO_H */
