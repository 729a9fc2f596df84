/* SPDX-License-Identifier: Apache-2.0 */

/** @file config.h Keys of the posix store. A plain value that owns its list of roots. */

#ifndef UC_POSIX_CONFIG_H
#define UC_POSIX_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/assembler.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/setup.h>
#include <ucm/status.h>

#include "core/config/fields.h"

enum uc_posix_fsync {
    UC_POSIX_FSYNC_NONE, /* the kernel writes back when it likes */
    UC_POSIX_FSYNC_DATA, /* fdatasync before the rename */
    UC_POSIX_FSYNC_FULL, /* fsync before the rename, the directory after it */
};

enum uc_posix_engine_choice {
    UC_POSIX_ENGINE_AUTO, /* threads */
    UC_POSIX_ENGINE_URING,
    UC_POSIX_ENGINE_THREADS,
};

#define UC_POSIX_BLOCK_BYTES_MAX (1ull << 30) /* one call of the kernel moves a block */

struct uc_posix_config {
    uint64_t block_bytes; /* 0 = a dump payload is the whole block */
    uint64_t timeout_ms;
    uint64_t capacity_bytes;  /* 0 = no limit */
    uint64_t capacity_blocks; /* 0 = no limit */
    uint64_t threads;
    uint64_t io_depth;
    uint64_t shards; /* directories per root: 256 or 65536 */
    char fsync_text[UC_FIELD_STRING_BYTES];
    char io_text[UC_FIELD_STRING_BYTES];
    bool direct_io;
    bool checksum;

    /* Derived, or injected by the assembler. */
    enum uc_posix_fsync fsync;
    enum uc_posix_engine_choice engine;
    enum uc_role role;
    char **roots;
    size_t root_count;
    char node_path[UC_FIELD_STRING_BYTES];
    const struct uc_prerequisite *prerequisite; /* borrowed; NULL = no hook */
};

/**
 * Read and check @p dict. Unknown keys only warn.
 *
 * @param[out] config_out  set on success only; released by uc_posix_config_fini()
 * @retval UC_ERR_INVALID_PARAM  the text names key, value and what is allowed
 * @retval UC_ERR_UNSUPPORTED    a lower tier
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_posix_config_read(
        const struct uc_dict *dict, struct uc_posix_config *config_out);

void uc_posix_config_fini(struct uc_posix_config *config);

#endif /* UC_POSIX_CONFIG_H */
