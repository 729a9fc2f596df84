/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/file_reserve.h"

#ifndef F_SEAL_FUTURE_WRITE
#    define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum {
    STAT_BLOCK_BYTES = 512, /* unit of st_blocks */
};

enum uc_status
uc_shm_pages_create(const char *name, size_t length_bytes, int *fd_out, void **pages_out)
{
    enum uc_status status;
    void *pages;
    int error;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0) {
        return uc_log_errno(errno, "shm: memfd_create");
    }
    error = uc_file_reserve(fd, 0, length_bytes);
    if (error != 0) {
        status = uc_log_errno(error, "shm: %zu bytes for %s", length_bytes, name);
        goto err_close;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        status = uc_log_errno(errno, "shm: sealing %s", name);
        goto err_close;
    }
    pages = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pages == MAP_FAILED) {
        status = uc_log_errno(errno, "shm: mmap of %s", name);
        goto err_close;
    }

    /* Our mapping stays writable, new ones are not. Kernels before 5.1 do not know it: there the owner of
       the process could still open the file for writing, as he could write to the process itself. */
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    *fd_out = fd;
    *pages_out = pages;
    return UC_OK;

err_close:
    (void)close(fd);
    return status;
}

void
uc_shm_pages_destroy(void *pages, size_t length_bytes)
{
    if (pages != NULL) {
        (void)munmap(pages, length_bytes);
    }
}

enum uc_status
uc_shm_reopen(int fd, int *fd_out)
{
    char path[32];
    int reading;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    reading = open(path, O_RDONLY | O_CLOEXEC);
    if (reading < 0) {
        return uc_log_errno(errno, "shm: open %s for reading; is /proc mounted?", path);
    }

    *fd_out = reading;
    return UC_OK;
}

enum uc_status
uc_shm_file_check(int fd, uint64_t offset_bytes, uint64_t length_bytes, bool is_reserved)
{
    struct stat status;
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "shm: the file is %s; use a memfd with F_SEAL_SHRINK",
                seals < 0 ? "no memory file" : "not sealed against shrinking");
    }
    if (fstat(fd, &status) != 0 || fstatfs(fd, &system) != 0 || status.st_size < 0) {
        return uc_error(UC_ERR_OS_API, "shm: fstat: %s", strerror(errno));
    }
    if (length_bytes == 0 || offset_bytes > (uint64_t)status.st_size ||
            length_bytes > (uint64_t)status.st_size - offset_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "shm: %" PRIu64 " bytes at %" PRIu64 " are not inside a file of %" PRIu64,
                length_bytes, offset_bytes, (uint64_t)status.st_size);
    }
    /* A page that huge page files have not got kills its reader; ordinary ones get it then. */
    if (is_reserved && (system.f_type != TMPFS_MAGIC ||
                               (uint64_t)status.st_blocks * STAT_BLOCK_BYTES < length_bytes)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "shm: the file has holes or huge pages of its own; reserve it with fallocate");
    }

    return UC_OK;
}

uint64_t
uc_shm_file_bytes(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_size > 0 ? (uint64_t)status.st_size : 0;
}

enum uc_status
uc_shm_map(int fd, uint64_t offset_bytes, uint64_t length_bytes, struct uc_shm_mapping *mapping_out)
{
    uint64_t skip_bytes = offset_bytes % (uint64_t)sysconf(_SC_PAGESIZE);
    struct uc_shm_mapping mapping = {.length_bytes = length_bytes};

    if (length_bytes > SIZE_MAX - skip_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM, "shm: %" PRIu64 " bytes exceed the address space",
                length_bytes);
    }

    mapping.mapped_bytes = (size_t)(length_bytes + skip_bytes);
    mapping.base = mmap(NULL, mapping.mapped_bytes, PROT_READ, MAP_SHARED, fd,
            (off_t)(offset_bytes - skip_bytes));
    if (mapping.base == MAP_FAILED) {
        /* Not logged: a peer could fill the log with files that cannot be mapped. */
        return uc_error(
                UC_ERR_OS_API, "shm: mmap of %" PRIu64 " bytes: %s", length_bytes, strerror(errno));
    }

    mapping.bytes = (const uint8_t *)mapping.base + skip_bytes;
    *mapping_out = mapping;
    return UC_OK;
}

void
uc_shm_unmap(struct uc_shm_mapping *mapping)
{
    if (mapping->base != NULL) {
        (void)munmap(mapping->base, mapping->mapped_bytes);
    }
    *mapping = (struct uc_shm_mapping){.base = NULL};
}
