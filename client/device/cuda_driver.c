/* SPDX-License-Identifier: Apache-2.0 */

#include "client/device/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <ucm/log.h>

static const char library_name[] = "libcuda.so.1";

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uc_cuda_driver opened; /* constant once is_open */
static atomic_bool is_open;          /* set with open_lock held; a failure is tried again */

/* @return whether it is there; a function cannot be assigned from what dlsym() returns */
static bool
find_symbol(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);

    memcpy(member, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static const char *
find_symbols(void *library, struct uc_cuda_driver *driver)
{
    const char *missing = NULL;

#define UC_CUDA_FIND_(member, symbol, parameters)         \
    if (!find_symbol(library, symbol, &driver->member)) { \
        missing = symbol;                                 \
    }
    UC_CUDA_OPTIONAL_CALLS(UC_CUDA_FIND_)
    missing = NULL;
    UC_CUDA_CALLS(UC_CUDA_FIND_)
#undef UC_CUDA_FIND_
    return missing;
}

static enum uc_status
open_driver(void)
{
    struct uc_cuda_driver driver = {.init = NULL};
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    const char *missing;
    int error;

    if (library == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "cuda: %s; memory of CUDA devices needs the driver of NVIDIA in this machine or "
                "container",
                dlerror());
    }
    missing = find_symbols(library, &driver);
    if (missing != NULL) {
        (void)dlclose(library);
        return uc_error(UC_ERR_UNSUPPORTED, "cuda: %s has no %s; install a newer driver",
                library_name, missing);
    }
    error = driver.init(0);
    if (error != UC_CUDA_SUCCESS) {
        enum uc_status status = uc_error(UC_ERR_UNSUPPORTED,
                "cuda: cuInit: %s; is there a device that this process may use?",
                uc_cuda_driver_error(&driver, error));

        (void)dlclose(library);
        return status;
    }

    opened = driver;
    atomic_store_explicit(&is_open, true, memory_order_release);
    return UC_OK;
}

enum uc_status
uc_cuda_driver_get(const struct uc_cuda_driver **driver_out)
{
    enum uc_status status = UC_OK;

    if (!atomic_load_explicit(&is_open, memory_order_acquire)) {
        (void)pthread_mutex_lock(&open_lock);
        if (!atomic_load_explicit(&is_open, memory_order_relaxed)) {
            status = open_driver();
        }
        (void)pthread_mutex_unlock(&open_lock);
    }
    if (status == UC_OK) {
        *driver_out = &opened;
    }
    return status;
}

bool
uc_cuda_driver_is_loaded(void)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);

    if (library == NULL) {
        return false;
    }

    (void)dlclose(library);
    return true;
}

const char *
uc_cuda_driver_error(const struct uc_cuda_driver *driver, int error)
{
    const char *name = NULL;

    if (driver->error_name(error, &name) != UC_CUDA_SUCCESS || name == NULL) {
        return "unknown error";
    }
    return name;
}
