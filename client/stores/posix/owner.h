/* SPDX-License-Identifier: Apache-2.0 */

/** @file owner.h Folders of temporary files and the locks that say whether their owners live; see roots.h. */

#ifndef UC_POSIX_OWNER_H
#define UC_POSIX_OWNER_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/roots.h"

/** Make a folder for this instance and lock it; fills owner, owner_fd and lock_fd of @p root. */
UC_MUST_CHECK enum uc_status uc_posix_owner_open(struct uc_posix_root *root);

/** Remove the folder and what is in it, then drop the lock. */
void uc_posix_owner_close(struct uc_posix_root *root);

/** Remove the folders of dead owners. @return files removed */
uint64_t uc_posix_owner_clean(const struct uc_posix_root *root);

#endif /* UC_POSIX_OWNER_H */
