/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/file_reserve.h"
#include "core/base/list.h"
#include "core/base/mutex.h"

struct allocation {
    struct uc_list node;
    void *address;
    size_t length_bytes;
    int fd;
};

/* Of the process: the public functions have no object that it could belong to. */
static struct uc_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
static struct uc_list allocations = {&allocations, &allocations}; /* guarded by lock */

/* @return whether the rounded length fits a size_t. */
static bool
round_to_pages(uint64_t length_bytes, size_t *rounded_out)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    if (length_bytes > SIZE_MAX - (page_bytes - 1)) {
        return false;
    }

    *rounded_out = ((size_t)length_bytes + page_bytes - 1) & ~(page_bytes - 1);
    return true;
}

/*
 * Shared and backed by a file of its own. Its pages are reserved first: else memory that runs out shows as SIGBUS at
 * the first touch and not as an error here.
 */
static enum uc_status
map_shared(struct allocation *allocation)
{
    size_t length_bytes = allocation->length_bytes;
    enum uc_status status;
    int error;
    int fd;

    fd = memfd_create("ucm-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return uc_log_errno(errno, "memory of %zu bytes: memfd_create", length_bytes);
    }
    error = uc_file_reserve(fd, 0, length_bytes);
    if (error != 0) {
        status = uc_log_errno(
                error == EFBIG ? ENOMEM : error, "memory of %zu bytes: fallocate", length_bytes);
        goto err_close_fd;
    }
    /* Nobody who gets the descriptor later can pull the pages away from under us. */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        status = uc_log_errno(errno, "memory of %zu bytes: sealing", length_bytes);
        goto err_close_fd;
    }

    allocation->address =
            mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (allocation->address == MAP_FAILED) {
        status = uc_log_errno(errno, "memory of %zu bytes: mmap", length_bytes);
        goto err_close_fd;
    }

    allocation->fd = fd;
    return UC_OK;

err_close_fd:
    (void)close(fd);
    return status;
}

enum uc_status
uc_host_memory_alloc(uint64_t length_bytes, void **memory_out)
{
    struct allocation *allocation;
    size_t rounded_bytes = 0;
    enum uc_status status;

    if (memory_out == NULL || length_bytes == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "memory_alloc: %s",
                memory_out == NULL ? "memory_out is null" : "0 bytes asked for");
    }
    if (!round_to_pages(length_bytes, &rounded_bytes)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY,
                "memory_alloc: %" PRIu64 " bytes exceed the address space", length_bytes);
    }

    allocation = malloc(sizeof(*allocation));
    if (allocation == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "memory_alloc: no memory for its record");
    }
    allocation->length_bytes = rounded_bytes;
    status = map_shared(allocation);
    if (status != UC_OK) {
        free(allocation);
        return status;
    }

    uc_mutex_lock(&lock);
    uc_list_add(&allocations, &allocation->node);
    uc_mutex_unlock(&lock);
    *memory_out = allocation->address;
    return UC_OK;
}

/* Take the record of an allocation out. @return NULL if there is none */
static struct allocation *
take_allocation(const void *memory)
{
    struct allocation *found = NULL;

    uc_mutex_lock(&lock);
    uc_list_for_each (node, &allocations) {
        struct allocation *allocation = uc_list_entry(node, struct allocation, node);

        if (allocation->address == memory) {
            found = allocation;
            break;
        }
    }
    if (found != NULL) {
        uc_list_remove(&found->node);
    }
    uc_mutex_unlock(&lock);
    return found;
}

void
uc_host_memory_free(void *memory, uint64_t length_bytes)
{
    struct allocation *allocation;
    size_t rounded_bytes = 0;

    if (memory == NULL || !round_to_pages(length_bytes, &rounded_bytes)) {
        return;
    }

    allocation = take_allocation(memory);
    if (munmap(memory, rounded_bytes) != 0) {
        (void)uc_log_errno(errno, "memory %p of %zu bytes: munmap", memory, rounded_bytes);
    }
    if (allocation != NULL) {
        (void)close(allocation->fd);
        free(allocation);
    }
}

bool
uc_host_memory_find(
        const void *address, uint64_t length_bytes, int *fd_out, uint64_t *offset_bytes_out)
{
    uintptr_t start = (uintptr_t)address;
    bool found = false;

    uc_mutex_lock(&lock);
    uc_list_for_each (node, &allocations) {
        const struct allocation *allocation = uc_list_entry(node, const struct allocation, node);
        uintptr_t first = (uintptr_t)allocation->address;

        if (start >= first && start - first <= allocation->length_bytes &&
                length_bytes <= allocation->length_bytes - (start - first)) {
            *fd_out = allocation->fd;
            *offset_bytes_out = start - first;
            found = true;
            break;
        }
    }
    uc_mutex_unlock(&lock);
    return found;
}
