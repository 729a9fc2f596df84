/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file store.h
 * The remote store: TokenAddressed, blocks in the memory of a ucm-server. Threads as <ucm/store.h> says.
 */

#ifndef UC_REMOTE_STORE_H
#define UC_REMOTE_STORE_H

#include <ucm/store.h>

/** @return a new, unconfigured instance, or NULL without memory */
struct uc_store *uc_remote_store_create(void);

/** NULL is allowed. Jobs in flight are fenced. */
void uc_remote_store_destroy(struct uc_store *store);

#endif /* UC_REMOTE_STORE_H */
