/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file roots.h
 * The directories of a store. Below each root:
 *
 *   .ucm-posix            format and number of shards, written once
 *   .collect              locked by the process that removes the oldest blocks
 *   .tmp/OWNER/lock       flock held by the instance OWNER as long as it lives
 *   .tmp/OWNER/N          its temporary files, renamed to their place when complete
 *   a/b/HEX               blocks (ab/cd/HEX with 65536 shards); immutable, replaced as a whole
 *
 * Whose temporary files are leftovers is decided by the lock alone: the kernel drops it with the process,
 * and on network file systems with the node. Whoever opens a root next takes the locks that are free and
 * removes what their owners left.
 *
 * Threads: open and close by one; the rest any.
 */

#ifndef UC_POSIX_ROOTS_H
#define UC_POSIX_ROOTS_H

#include <stdatomic.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/config.h"
#include "client/stores/posix/health.h"

enum {
    UC_POSIX_PATH_BYTES = 48,  /* "ab/cd/" and 32 digits */
    UC_POSIX_TEMP_BYTES = 24,  /* 16 digits */
    UC_POSIX_OWNER_BYTES = 24, /* 16 digits */
};

struct uc_posix_root {
    const char *path; /* of the configuration */
    uint64_t seed;
    int fd;       /* the root */
    int owner_fd; /* .tmp/OWNER */
    int lock_fd;  /* .tmp/OWNER/lock, locked */
    char owner[UC_POSIX_OWNER_BYTES];
};

struct uc_posix_roots {
    struct uc_posix_root *items;
    size_t count;
    uint64_t shards;
    bool sync_names;           /* fsync: full */
    _Atomic uint64_t sequence; /* of temporary files */
    uint64_t generation;       /* of what this instance writes: random, not 0 */
};

/**
 * Open the roots, make what is missing, remove what dead owners left.
 *
 * @param[in] config  borrowed until close
 * @retval UC_ERR_INVALID_PARAM  a root is laid out otherwise
 * @retval UC_ERR_UNSUPPORTED    no O_DIRECT or no locks there
 * @retval UC_ERR_OS_API, UC_ERR_PERMISSION_DENIED, UC_ERR_NO_SPACE, UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_posix_roots_open(const struct uc_posix_config *config,
        struct uc_posix_health *health, struct uc_posix_roots *roots_out);

/** Removes what this instance left, too. Zeroed roots are allowed. */
void uc_posix_roots_close(struct uc_posix_roots *roots);

/** The root of a block: rendezvous hashing over the paths, so that another root moves few blocks. */
const struct uc_posix_root *uc_posix_root_of(
        const struct uc_posix_roots *roots, const struct uc_block_id *id);

/** Write the path of a block, relative to its root. */
void uc_posix_block_path(
        const struct uc_posix_roots *roots, const struct uc_block_id *id, char *path);

/** A name for a temporary file, unique in this instance. */
void uc_posix_temp_name(struct uc_posix_roots *roots, char *name);

/** Make the directories of a block's path. @return 0 or an errno */
int uc_posix_make_shard(
        const struct uc_posix_roots *roots, const struct uc_posix_root *root, const char *path);

/** Write, sync, read and remove a small file in every root. @return UC_OK, or why not */
UC_MUST_CHECK enum uc_status uc_posix_roots_probe(const struct uc_posix_roots *roots);

#endif /* UC_POSIX_ROOTS_H */
