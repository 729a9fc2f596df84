/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file lookup.h
 * Questions to the file system, one stat per id: several processes write, so that no index of one could be
 * right. The control thread.
 */

#ifndef UC_POSIX_LOOKUP_H
#define UC_POSIX_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

#include <ucm/block.h>

#include "client/stores/posix/op.h"

/** @return whether there is a file that may be this block; what is in it shows when it is read */
bool uc_posix_lookup(const struct uc_posix_env *env, const struct uc_block_id *id);

/** Make a block the youngest. Never fails. */
void uc_posix_touch(const struct uc_posix_env *env, const struct uc_block_id *id);

#endif /* UC_POSIX_LOOKUP_H */
