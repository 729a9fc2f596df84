/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file assembly.h
 * Blocks that arrive in parts: one temporary file each, written by one transfer at a time, so that parts
 * which overlap never mix; published when every byte is there.
 *
 * The table belongs to the progress thread. An assembly's content belongs to the op that has entered it.
 */

#ifndef UC_POSIX_ASSEMBLY_H
#define UC_POSIX_ASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/roots.h"
#include "core/base/list.h"
#include "core/base/range_set.h"

struct uc_posix_op;

enum {
    UC_POSIX_ASSEMBLY_BUCKETS = 4096,
};

struct uc_posix_assembly {
    struct uc_list link; /* in its bucket */
    struct uc_list waiting;
    struct uc_block_id id;
    struct uc_range_set written;
    char temp[UC_POSIX_TEMP_BYTES];
    uint64_t used_ms;
    bool is_busy;  /* an op has entered */
    bool has_temp; /* the file exists */
};

struct uc_posix_assemblies {
    struct uc_list buckets[UC_POSIX_ASSEMBLY_BUCKETS];
    struct uc_posix_roots *roots;
    size_t count;
};

void uc_posix_assemblies_init(struct uc_posix_assemblies *assemblies, struct uc_posix_roots *roots);

/** Removes the files. Nobody is inside any more. */
void uc_posix_assemblies_fini(struct uc_posix_assemblies *assemblies);

/**
 * Enter the assembly of an op's block, or queue up for it.
 *
 * @param[out] entered_out  false: the op waits, and leave() will hand it out
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_posix_assembly_enter(struct uc_posix_assemblies *assemblies,
        struct uc_posix_op *op, uint64_t now_ms, bool *entered_out);

/** @return the op that has entered now, or NULL */
struct uc_posix_op *uc_posix_assembly_leave(
        struct uc_posix_assemblies *assemblies, struct uc_posix_op *op, uint64_t now_ms);

/** Drop the ones that nobody added to since @p before_ms. */
void uc_posix_assemblies_expire(struct uc_posix_assemblies *assemblies, uint64_t before_ms);

#endif /* UC_POSIX_ASSEMBLY_H */
