/* SPDX-License-Identifier: Apache-2.0 */

#include "server/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/file_reserve.h"
#include "server/memory_limit.h"

#ifndef F_SEAL_FUTURE_WRITE
#    define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_WRITE 23
#endif

enum {
    PAGE_BYTES = 4096,
    MEMFD_MODE = 0600,
    POPULATE_CHUNK_BYTES = 64 << 20,
    /* Kept free for the rest of the host: what else it runs must not be killed by our pages. */
    HEADROOM_BYTES = 32 << 20,
    INDEX_BYTES_PER_BLOCK = 160,
};

static const uint64_t progress_bytes = (uint64_t)4 << 30;

struct uc_arena {
    struct uc_arena_layout layout;
    uint8_t *base;
    int fd;
};

enum uc_status
uc_arena_check(const struct uc_arena_layout *layout, const struct uc_namespace_config *config)
{
    struct uc_memory_limit limit = uc_memory_limit_read("");
    const char *key = config->capacity_blocks > 0 ? "capacity_blocks" : "capacity";
    uint64_t required_bytes = layout->total_bytes +
                              (uint64_t)layout->slot_count * INDEX_BYTES_PER_BLOCK + HEADROOM_BYTES;
    struct rlimit file_limit;

    if (required_bytes > limit.available_bytes) {
        return uc_error(UC_ERR_NO_SPACE,
                "namespaces.0.%s needs %" PRIu64 " MiB of memory (%" PRIu32 " blocks of %" PRIu64
                " bytes, footers and index), but only %" PRIu64 " MiB are left by %s; lower %s",
                key, (required_bytes + (1 << 20) - 1) >> 20, layout->slot_count,
                layout->block_bytes, limit.available_bytes >> 20, limit.source, key);
    }
    if (getrlimit(RLIMIT_FSIZE, &file_limit) == 0 && file_limit.rlim_cur != RLIM_INFINITY &&
            file_limit.rlim_cur < layout->total_bytes) {
        return uc_error(UC_ERR_NO_SPACE,
                "namespaces.0.%s needs a memory file of %" PRIu64 " bytes, but RLIMIT_FSIZE is "
                "%" PRIu64 "; raise it (ulimit -f) or lower %s",
                key, layout->total_bytes, (uint64_t)file_limit.rlim_cur, key);
    }

    return UC_OK;
}

/* Fault one piece in, so that running out of memory is an error now and not a signal later. */
static enum uc_status
populate_piece(const struct uc_arena *arena, uint64_t offset, uint64_t length)
{
    int error;

    if (madvise(arena->base + offset, length, MADV_POPULATE_WRITE) == 0) {
        return UC_OK;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return uc_log_errno(errno, "arena: populate %" PRIu64 " bytes at %" PRIu64, length, offset);
    }

    /* A kernel before 5.14: reserve the pages first, then touch them. */
    error = uc_file_reserve(arena->fd, offset, length);
    if (error != 0) {
        return uc_log_errno(
                error, "arena: fallocate %" PRIu64 " bytes at %" PRIu64, length, offset);
    }
    for (uint64_t page = 0; page < length; page += PAGE_BYTES) {
        *(volatile uint8_t *)(arena->base + offset + page) = 0;
    }
    return UC_OK;
}

static enum uc_status
populate(const struct uc_arena *arena)
{
    uint64_t total_bytes = arena->layout.total_bytes;
    uint64_t next_report = progress_bytes;

    for (uint64_t offset = 0; offset < total_bytes; offset += POPULATE_CHUNK_BYTES) {
        uint64_t left = total_bytes - offset;
        enum uc_status status = populate_piece(
                arena, offset, left < POPULATE_CHUNK_BYTES ? left : POPULATE_CHUNK_BYTES);

        if (status != UC_OK) {
            return status;
        }
        if (offset >= next_report) {
            uc_log_info(
                    "arena: %" PRIu64 " of %" PRIu64 " GiB ready", offset >> 30, total_bytes >> 30);
            next_report += progress_bytes;
        }
    }
    return UC_OK;
}

/*
 * Peers on this host map the file (net/shm): none of them may shorten it, nor write to it but through us. The
 * mapping that exists stays writable. Kernels before 5.1 lack the second seal: there a process of the same user
 * could still open the file for writing.
 */
static enum uc_status
seal(const struct uc_arena *arena)
{
    if (fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        return uc_log_errno(errno, "arena: sealing the memory file");
    }

    (void)fcntl(arena->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    return UC_OK;
}

/* Memory that is swapped out breaks the latency, not the result: said once, and go on. */
static void
lock_pages(const struct uc_arena *arena)
{
    struct rlimit limit = {0};

    if (mlock(arena->base, arena->layout.total_bytes) == 0) {
        return;
    }

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    uc_log_info("arena: memory is not locked (RLIMIT_MEMLOCK is %" PRIu64 " KiB, %" PRIu64
                " KiB are needed): it may be swapped out; raise the limit to avoid that",
            (uint64_t)limit.rlim_cur >> 10, arena->layout.total_bytes >> 10);
}

static enum uc_status
map_memory(struct uc_arena *arena, const char *name)
{
    char file_name[128];
    uint64_t total_bytes = arena->layout.total_bytes;
    enum uc_status status;

    (void)snprintf(file_name, sizeof(file_name), "ucm-%.64s", name);
    arena->fd = memfd_create(file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (arena->fd < 0) {
        return uc_log_errno(errno, "arena: memfd_create");
    }
    if (fchmod(arena->fd, MEMFD_MODE) != 0) {
        status = uc_log_errno(errno, "arena: fchmod");
        goto err_close;
    }
    if (ftruncate(arena->fd, (off_t)total_bytes) != 0) {
        status = uc_log_errno(errno, "arena: ftruncate to %" PRIu64 " bytes", total_bytes);
        goto err_close;
    }
    arena->base = mmap(NULL, total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
    if (arena->base == MAP_FAILED) {
        status = uc_log_errno(errno, "arena: mmap of %" PRIu64 " bytes", total_bytes);
        goto err_close;
    }

    /* Advice only; a kernel without transparent huge pages for shared memory refuses it. */
    (void)madvise(arena->base, total_bytes, MADV_HUGEPAGE);
    (void)madvise(arena->base, total_bytes, MADV_DONTDUMP);
    return UC_OK;

err_close:
    (void)close(arena->fd);
    return status;
}

enum uc_status
uc_arena_create(const struct uc_arena_layout *layout, const struct uc_namespace_config *config,
        struct uc_arena **arena_out)
{
    struct uc_arena *arena;
    enum uc_status status;

    arena = calloc(1, sizeof(*arena));
    if (arena == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the arena");
    }
    arena->layout = *layout;
    status = map_memory(arena, config->name);
    if (status != UC_OK) {
        goto err_free;
    }
    status = populate(arena);
    if (status == UC_OK) {
        status = seal(arena);
    }
    if (status != UC_OK) {
        goto err_unmap;
    }

    lock_pages(arena);
    *arena_out = arena;
    return UC_OK;

err_unmap:
    (void)munmap(arena->base, layout->total_bytes);
    (void)close(arena->fd);
err_free:
    free(arena);
    return status;
}

void
uc_arena_destroy(struct uc_arena *arena)
{
    if (arena == NULL) {
        return;
    }

    (void)munmap(arena->base, arena->layout.total_bytes);
    (void)close(arena->fd);
    free(arena);
}

struct uc_fabric_memory
uc_arena_region(const struct uc_arena *arena, uint32_t region_idx)
{
    uint64_t start = region_idx * arena->layout.region_span;

    return (struct uc_fabric_memory){
            .address = arena->base + start,
            .length_bytes = uc_arena_layout_region_bytes(&arena->layout, region_idx),
            .kind = UC_MEMORY_HOST,
            .fd = arena->fd,
            .fd_offset_bytes = start,
    };
}

uint8_t *
uc_arena_slot(const struct uc_arena *arena, uint32_t slot)
{
    uint32_t region_idx;
    uint64_t offset;

    uc_arena_layout_address(&arena->layout, slot, &region_idx, &offset);
    return arena->base + region_idx * arena->layout.region_span + offset;
}
