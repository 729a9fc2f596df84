/* SPDX-License-Identifier: Apache-2.0 */

/** @file store.h Constructor and destructor of the posix store, behind the plugin's two entries. */

#ifndef UC_POSIX_STORE_H
#define UC_POSIX_STORE_H

#include <ucm/store.h>

/** @return a new, unconfigured instance, or NULL without memory */
struct uc_store *uc_posix_store_create(void);

/** Undefined while jobs are in flight. NULL is allowed. */
void uc_posix_store_destroy(struct uc_store *store);

#endif /* UC_POSIX_STORE_H */
