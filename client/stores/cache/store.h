/* SPDX-License-Identifier: Apache-2.0 */

/** @file store.h The cache store as the loader sees it. */

#ifndef UC_CACHE_STORE_STORE_H
#define UC_CACHE_STORE_STORE_H

#include <ucm/store.h>

/** @return a new, unconfigured instance, or NULL without memory */
struct uc_store *uc_cache_store_create(void);
/** NULL is allowed. */
void uc_cache_store_destroy(struct uc_store *store);

#endif /* UC_CACHE_STORE_STORE_H */
