/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/loader.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/proxy/builtin_stores.h"

typedef struct uc_store *(*create_fn)(void);

enum {
    NAME_LIST_BYTES = 256
};

static bool
is_path(const char *text)
{
    size_t length = strlen(text);

    return strchr(text, '/') != NULL || (length >= 3 && strcmp(text + length - 3, ".so") == 0);
}

const char *
uc_store_loader_name_at(size_t idx)
{
    for (size_t at = 0; at <= idx; at++) {
        if (uc_builtin_store_names[at] == NULL) {
            return NULL;
        }
    }

    return uc_builtin_store_names[idx];
}

static bool
is_builtin(const char *name)
{
    for (size_t idx = 0; uc_builtin_store_names[idx] != NULL; idx++) {
        if (strcmp(uc_builtin_store_names[idx], name) == 0) {
            return true;
        }
    }

    return false;
}

static enum uc_status
refuse_name(const char *name)
{
    char names[NAME_LIST_BYTES] = "";
    size_t used = 0;

    for (size_t idx = 0; uc_builtin_store_names[idx] != NULL && used < sizeof(names); idx++) {
        int written = snprintf(names + used, sizeof(names) - used, "%s%s", idx == 0 ? "" : ", ",
                uc_builtin_store_names[idx]);

        used += written < 0 ? 0 : (size_t)written;
    }

    return uc_error(UC_ERR_INVALID_PARAM,
            "store '%.64s' is not built in: known are %s; a plugin of your own is named by its path",
            name, names[0] == '\0' ? "none" : names);
}

/*
 * The file beside this library, by full path: a search through the run path would depend on who calls
 * dlopen, which is not us under a sanitizer, and on LD_LIBRARY_PATH.
 */
static enum uc_status
builtin_path(const char *name, char *path, size_t path_bytes)
{
    const char *end = NULL;
    Dl_info info;
    int written;

    if (dladdr(uc_builtin_store_names, &info) != 0 && info.dli_fname != NULL) {
        end = strrchr(info.dli_fname, '/');
    }
    if (end == NULL) {
        written = snprintf(path, path_bytes, "./libucm_store_%s.so", name);
    } else {
        written = snprintf(path, path_bytes, "%.*s/libucm_store_%s.so", (int)(end - info.dli_fname),
                info.dli_fname, name);
    }
    if (written < 0 || (size_t)written >= path_bytes) {
        return uc_error(UC_ERR_OS_API, "store '%s': the path of its plugin is too long", name);
    }

    return UC_OK;
}

static enum uc_status
resolve_path(const char *name_or_path, char *path, size_t path_bytes)
{
    int written;

    if (name_or_path == NULL || name_or_path[0] == '\0') {
        return uc_error(UC_ERR_INVALID_PARAM, "store: the name is empty");
    }
    if (!is_path(name_or_path)) {
        return is_builtin(name_or_path) ? builtin_path(name_or_path, path, path_bytes)
                                        : refuse_name(name_or_path);
    }

    /* A bare file name is a path as well; dlopen would search the system for it. */
    written = snprintf(
            path, path_bytes, "%s%s", strchr(name_or_path, '/') == NULL ? "./" : "", name_or_path);
    if (written < 0 || (size_t)written >= path_bytes) {
        return uc_error(UC_ERR_OS_API, "store %.64s…: the path is too long", name_or_path);
    }

    return UC_OK;
}

/* ISO C has no conversion between data and function pointers; POSIX promises equal representations. */
static enum uc_status
resolve_entry(void *library, const char *path, const char *name, void *entry, size_t entry_bytes)
{
    void *address = dlsym(library, name);

    if (address == NULL) {
        return uc_error(UC_ERR_NOT_FOUND,
                "store %s: entry %s is missing: this is not a store plugin", path, name);
    }

    memcpy(entry, &address, entry_bytes);
    return UC_OK;
}

static enum uc_status
create_instance(const char *path, void *library, struct uc_loaded_store *loaded_out)
{
    uc_store_destroy_fn destroy = NULL;
    create_fn create = NULL;
    struct uc_store *store;
    enum uc_status status;

    status = resolve_entry(library, path, "UCCreateStore", (void *)&create, sizeof(create));
    if (status != UC_OK) {
        return status;
    }
    status = resolve_entry(library, path, "UCDestroyStore", (void *)&destroy, sizeof(destroy));
    if (status != UC_OK) {
        return status;
    }

    store = create();
    if (store == NULL) {
        return uc_error(UC_ERR_GENERAL, "store %s: its factory returned no instance", path);
    }
    status = uc_store_check(store);
    if (status != UC_OK) {
        destroy(store);
        return status;
    }

    *loaded_out = (struct uc_loaded_store){.store = store, .destroy = destroy, .library = library};
    return UC_OK;
}

enum uc_status
uc_store_loader_load(const char *name_or_path, struct uc_loaded_store *loaded_out)
{
    char path[PATH_MAX];
    enum uc_status status;
    void *library;

    status = resolve_path(name_or_path, path, sizeof(path));
    if (status != UC_OK) {
        return status;
    }

    library = dlopen(path, RTLD_LOCAL | RTLD_NOW);
    if (library == NULL) {
        const char *reason = dlerror();

        return uc_error(UC_ERR_OS_API, "store %s: dlopen: %s", path,
                reason == NULL ? "unknown reason" : reason);
    }
    status = create_instance(path, library, loaded_out);
    if (status != UC_OK) {
        (void)dlclose(library);
    }
    return status;
}

enum uc_status
uc_loaded_store_adopt(
        struct uc_store *store, uc_store_destroy_fn destroy, struct uc_loaded_store *loaded_out)
{
    enum uc_status status;

    if (store == NULL || destroy == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "adopt: %s is null",
                store == NULL ? "store" : "destroy function");
    }
    status = uc_store_check(store);
    if (status != UC_OK) {
        return status;
    }

    *loaded_out = (struct uc_loaded_store){.store = store, .destroy = destroy};
    return UC_OK;
}

void
uc_loaded_store_close(struct uc_loaded_store *loaded)
{
    if (loaded == NULL || loaded->store == NULL) {
        return;
    }

    loaded->destroy(loaded->store);
    if (loaded->library != NULL) {
        (void)dlclose(loaded->library);
    }
    *loaded = (struct uc_loaded_store){0};
}
