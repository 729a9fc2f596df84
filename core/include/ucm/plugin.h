/* SPDX-License-Identifier: Apache-2.0 */

/** @file plugin.h The two symbols that a store plugin exports (section 8 of core/CONTRACT.md). */

#ifndef UC_PLUGIN_H
#define UC_PLUGIN_H

#include <ucm/compiler.h>
#include <ucm/store.h>

/** @return a new, unconfigured instance, or NULL. May be called many times. */
UC_API struct uc_store *UCCreateStore(void);

/** Destroy an instance made by this plugin. NULL is allowed. */
UC_API void UCDestroyStore(struct uc_store *store);

#endif /* UC_PLUGIN_H */
