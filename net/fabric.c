/* SPDX-License-Identifier: Apache-2.0 */

#include "net/fabric.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

#include "net/shm/shm_fabric.h"
#include "net/tcp/tcp_fabric.h"

#define VERBS_MODULE "libucm_fabric_verbs.so"
#define ENTRY_SYMBOL "uc_fabric_module"

typedef const struct uc_fabric_ops *uc_fabric_module_fn(void);

/* Why the loader refused; it keeps one text per thread. */
static const char *
loader_text(void)
{
    const char *text = dlerror();

    return text == NULL ? "no reason given" : text;
}

/*
 * The library stays loaded: endpoints and completions may run its code until the process ends, and
 * loading it again only counts a reference. It is found through our own RUNPATH.
 */
static enum uc_status
load_module(const char *name, const char *file, const struct uc_fabric_ops **ops_out)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const struct uc_fabric_ops *ops;
    uc_fabric_module_fn *entry;
    void *symbol;

    if (library == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "fabric %s: %s; install the package with %s and its libraries (libibverbs1, "
                "librdmacm1), or choose fabric tcp",
                name, loader_text(), file);
    }

    symbol = dlsym(library, ENTRY_SYMBOL);
    if (symbol == NULL) {
        (void)uc_error(UC_ERR_UNSUPPORTED,
                "fabric %s: %s; install a %s of the same release, or choose fabric tcp", name,
                loader_text(), file);
        goto err_unload;
    }

    /* The way POSIX suggests to turn dlsym's pointer into a function's. */
    memcpy(&entry, &symbol, sizeof(entry));
    ops = entry();
    if (ops == NULL || ops->abi_version != UC_FABRIC_ABI_VERSION ||
            ops->struct_size < sizeof(struct uc_fabric_ops)) {
        (void)uc_error(UC_ERR_UNSUPPORTED,
                "fabric %s: %s has interface %" PRIu32 " of %" PRIu32
                " bytes, needed is %d of %zu; install one of the same release",
                name, file, ops == NULL ? 0 : ops->abi_version, ops == NULL ? 0 : ops->struct_size,
                UC_FABRIC_ABI_VERSION, sizeof(struct uc_fabric_ops));
        goto err_unload;
    }

    *ops_out = ops;
    return UC_OK;

err_unload:
    (void)dlclose(library);
    return UC_ERR_UNSUPPORTED;
}

enum uc_status
uc_fabric_find(const char *name, const struct uc_fabric_ops **ops_out)
{
    if (name != NULL && strcmp(name, "tcp") == 0) {
        *ops_out = uc_tcp_fabric_ops();
        return UC_OK;
    }
    if (name != NULL && strcmp(name, "shm") == 0) {
        *ops_out = uc_shm_fabric_ops();
        return UC_OK;
    }
    if (name != NULL && strcmp(name, "verbs") == 0) {
        return load_module(name, VERBS_MODULE, ops_out);
    }

    return uc_error(UC_ERR_INVALID_PARAM, "fabric %.64s: unknown; known are shm, tcp and verbs",
            name == NULL ? "(none)" : name);
}
