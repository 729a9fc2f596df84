/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ucm/log.h>
#include <ucm/worker.h>

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
 * Shared and backed by a file of its own, so that a server on the same host can be handed the pages
 * instead of a copy. fallocate reserves them first: without it, memory that runs out shows as SIGBUS at
 * the first touch and not as an error here.
 */
static enum uc_status
map_shared(size_t length_bytes, void **memory_out)
{
    enum uc_status status;
    void *memory;
    int fd;

    fd = memfd_create("ucm-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return uc_log_errno(errno, "memory of %zu bytes: memfd_create", length_bytes);
    }
    if (length_bytes > INT64_MAX || fallocate(fd, 0, 0, (off_t)length_bytes) != 0) {
        status = uc_log_errno(length_bytes > INT64_MAX ? ENOMEM : errno,
                "memory of %zu bytes: fallocate", length_bytes);
        goto err_close_fd;
    }
    /* Nobody who gets the descriptor later can pull the pages away from under us. */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        status = uc_log_errno(errno, "memory of %zu bytes: sealing", length_bytes);
        goto err_close_fd;
    }

    memory = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        status = uc_log_errno(errno, "memory of %zu bytes: mmap", length_bytes);
        goto err_close_fd;
    }

    (void)close(fd); /* the mapping keeps the pages */
    *memory_out = memory;
    return UC_OK;

err_close_fd:
    (void)close(fd);
    return status;
}

enum uc_status
uc_memory_alloc(uint64_t length_bytes, void **memory_out)
{
    size_t rounded_bytes = 0;

    if (memory_out == NULL || length_bytes == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "memory_alloc: %s",
                memory_out == NULL ? "memory_out is null" : "0 bytes asked for");
    }
    if (!round_to_pages(length_bytes, &rounded_bytes)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "memory_alloc: %llu bytes exceed the address space",
                (unsigned long long)length_bytes);
    }

    return map_shared(rounded_bytes, memory_out);
}

void
uc_memory_free(void *memory, uint64_t length_bytes)
{
    size_t rounded_bytes = 0;

    if (memory == NULL || !round_to_pages(length_bytes, &rounded_bytes)) {
        return;
    }

    if (munmap(memory, rounded_bytes) != 0) {
        (void)uc_log_errno(errno, "memory %p of %zu bytes: munmap", memory, rounded_bytes);
    }
}
