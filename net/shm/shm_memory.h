/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file shm_memory.h
 * Memory files: making them, giving them away for reading, and accepting those of others. A file that somebody
 * else may shorten kills whoever touches the pages that are gone, so nothing is mapped unless it is sealed against
 * that. Any thread.
 */

#ifndef UC_NET_SHM_MEMORY_H
#define UC_NET_SHM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** A part of a file, mapped read-only. A plain value; zeroed = nothing. */
struct uc_shm_mapping {
    void *base; /* what was mapped: begins at a page */
    size_t mapped_bytes;
    const uint8_t *bytes; /* what was asked for */
    uint64_t length_bytes;
};

/**
 * Make pages of our own that others may read: reserved, sealed, never writable for anybody else.
 *
 * @param[out] fd_out     the caller closes it
 * @param[out] pages_out  unmapped with uc_shm_pages_destroy()
 */
UC_MUST_CHECK enum uc_status uc_shm_pages_create(
        const char *name, size_t length_bytes, int *fd_out, void **pages_out);
/** NULL is allowed. */
void uc_shm_pages_destroy(void *pages, size_t length_bytes);

/** Another descriptor of the same file, for reading only. The caller closes it. */
UC_MUST_CHECK enum uc_status uc_shm_reopen(int fd, int *fd_out);

/**
 * Whether a range of a file can be mapped safely: an ordinary memory file that nobody can shorten, and long
 * enough.
 *
 * @param[in] is_reserved  ask too that it has no holes, which would take pages from whoever reads them
 * @retval UC_ERR_INVALID_PARAM  it cannot; the text says why
 */
UC_MUST_CHECK enum uc_status uc_shm_file_check(
        int fd, uint64_t offset_bytes, uint64_t length_bytes, bool is_reserved);

/** @return length of a file that was checked, 0 if it cannot be told. */
uint64_t uc_shm_file_bytes(int fd);

/** Map a range that was checked. The descriptor is not needed afterwards. */
UC_MUST_CHECK enum uc_status uc_shm_map(
        int fd, uint64_t offset_bytes, uint64_t length_bytes, struct uc_shm_mapping *mapping_out);
/** Zeroes it; zeroed ones are allowed. */
void uc_shm_unmap(struct uc_shm_mapping *mapping);

#endif /* UC_NET_SHM_MEMORY_H */
