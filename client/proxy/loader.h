/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file loader.h
 * Opens store plugins (section 8 of core/CONTRACT.md); the only place that does.
 *
 * Threads: no shared state; a handle belongs to one thread at a time.
 */

#ifndef UC_PROXY_LOADER_H
#define UC_PROXY_LOADER_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>
#include <ucm/store.h>

typedef void (*uc_store_destroy_fn)(struct uc_store *store);

/** Owns an instance, the entry that destroys it, and the library both come from. */
struct uc_loaded_store {
    struct uc_store *store;      /* NULL once closed */
    uc_store_destroy_fn destroy; /* the plugin's UCDestroyStore */
    void *library;               /* NULL for an adopted instance */
};

/**
 * Make an instance of a plugin: a text with '/' or ending in ".so" is a path, anything else a built-in
 * name whose file lies beside libucm_proxy.so. Runs the plugin's code.
 *
 * @param[out] loaded_out  set on success only; the caller owns it, see uc_loaded_store_close()
 * @retval UC_ERR_INVALID_PARAM  no such built-in name (the text lists them), or a null slot
 * @retval UC_ERR_OS_API         the file cannot be opened as a library
 * @retval UC_ERR_NOT_FOUND      it lacks an entry
 * @retval UC_ERR_GENERAL        the factory returned null, or an instance without table
 * @retval UC_ERR_UNSUPPORTED    another ABI version, or a table that is too short
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_store_loader_load(
        const char *name_or_path, struct uc_loaded_store *loaded_out);

/**
 * Make a handle for an instance that was linked in; @p destroy plays the part of the plugin's entry
 * . The instance stays the caller's on failure, and failures are those of uc_store_check().
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_loaded_store_adopt(
        struct uc_store *store, uc_store_destroy_fn destroy, struct uc_loaded_store *loaded_out);

/** Destroy the instance, then unload. NULL is allowed; a second call changes nothing. */
UC_PRIVATE_API void uc_loaded_store_close(struct uc_loaded_store *loaded);

/** @return name of built-in store @p idx, NULL past the last. Static storage. */
UC_PRIVATE_API const char *uc_store_loader_name_at(size_t idx);

#endif /* UC_PROXY_LOADER_H */
