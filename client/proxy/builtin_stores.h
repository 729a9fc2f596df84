/* SPDX-License-Identifier: Apache-2.0 */

/** @file builtin_stores.h The table of built-in stores, which the build generates. */

#ifndef UC_PROXY_BUILTIN_STORES_H
#define UC_PROXY_BUILTIN_STORES_H

/** Names as in ucm_add_store(), NULL-terminated. */
extern const char *const uc_builtin_store_names[];

#endif /* UC_PROXY_BUILTIN_STORES_H */
