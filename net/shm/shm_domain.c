/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/shm/shm_object.h"

enum {
    FILE_BITS = 8, /* of a row's state */
};

static_assert(UC_SHM_FILE_COUNT < 1 << FILE_BITS, "file index in a row's state");

enum uc_status
uc_shm_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out)
{
    struct uc_fabric_domain *domain = calloc(1, sizeof(*domain));
    enum uc_status status;

    if (domain == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "shm: no memory for a domain; free some");
    }

    status = uc_region_table_create(&domain->regions);
    if (status != UC_OK) {
        goto err_free_domain;
    }

    uc_mutex_init(&domain->lock);
    domain->fabric = fabric;
    domain->rows_fd = -1;
    fabric->domain_count++;
    *domain_out = domain;
    return UC_OK;

err_free_domain:
    free(domain);
    return status;
}

void
uc_shm_domain_close(struct uc_fabric_domain *domain)
{
    if (domain == NULL) {
        return;
    }

    assert(domain->endpoint_count == 0);
    assert(domain->region_count == 0);
    domain->fabric->domain_count--;
    for (size_t idx = 0; idx < domain->file_count; idx++) {
        (void)close(domain->files[idx].fd);
    }
    if (domain->rows_fd >= 0) {
        (void)close(domain->rows_fd);
    }
    uc_shm_pages_destroy(domain->rows, UC_SHM_ROWS_BYTES);
    uc_region_table_destroy(domain->regions);
    uc_mutex_fini(&domain->lock);
    free(domain);
}

/* Find or add the file behind memory for peers. */
static enum uc_status
obtain_file(struct uc_fabric_domain *domain, int fd, size_t *file_idx_out)
{
    struct stat identity;
    enum uc_status status = UC_ERR_NO_SPACE;
    size_t idx;

    if (fstat(fd, &identity) != 0) {
        return uc_log_errno(errno, "shm: fstat");
    }

    for (idx = 0; idx < domain->file_count; idx++) {
        if (domain->files[idx].device == identity.st_dev &&
                domain->files[idx].inode == identity.st_ino) {
            *file_idx_out = idx;
            return UC_OK;
        }
    }
    if (idx == UC_SHM_FILE_COUNT) {
        return uc_error(status, "shm: the memory lies in more than %d files; use larger ones",
                UC_SHM_FILE_COUNT);
    }

    status = uc_shm_reopen(fd, &domain->files[idx].fd);
    if (status == UC_OK) {
        domain->files[idx].device = identity.st_dev;
        domain->files[idx].inode = identity.st_ino;
        domain->file_count++;
        *file_idx_out = idx;
    }
    return status;
}

static enum uc_status
obtain_rows(struct uc_fabric_domain *domain)
{
    enum uc_status status;
    void *rows = NULL;
    int fd = -1;

    if (domain->rows != NULL) {
        return UC_OK;
    }

    status = uc_shm_pages_create("ucm-regions", UC_SHM_ROWS_BYTES, &fd, &rows);
    if (status != UC_OK) {
        return status;
    }
    status = uc_shm_reopen(fd, &domain->rows_fd);
    (void)close(fd);
    if (status != UC_OK) {
        uc_shm_pages_destroy(rows, UC_SHM_ROWS_BYTES);
        return status;
    }

    domain->rows = rows;
    return UC_OK;
}

/* The state last and with release: whoever sees it sees the rest (shm_read.c). */
static void
put_row(struct uc_fabric_domain *domain, const struct uc_fabric_region *region, size_t file_idx,
        enum uc_fabric_access access)
{
    struct uc_shm_region_row *row = &domain->rows[region->region_idx];
    uint64_t serial = ++domain->last_serial;

    atomic_store_explicit(&row->offset_bytes, region->fd_offset_bytes, memory_order_release);
    atomic_store_explicit(&row->length_bytes, region->span.length_bytes, memory_order_release);
    atomic_store_explicit(&row->access, (uint64_t)access, memory_order_release);
    atomic_store_explicit(&row->state, serial << FILE_BITS | (file_idx + 1), memory_order_release);
}

static enum uc_status
add_for_peers(struct uc_fabric_region *region, enum uc_fabric_access access)
{
    struct uc_fabric_domain *domain = region->span.domain;
    struct uc_region entry = {.address = region->span.address,
            .length_bytes = region->span.length_bytes,
            .access = access};
    size_t file_idx = 0;
    enum uc_status status;

    if (region->fd < 0) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "shm: region %" PRIu32 " is in no memory file that peers could map",
                region->region_idx);
    }
    status = uc_shm_file_check(
            region->fd, region->fd_offset_bytes, region->span.length_bytes, false);
    if (status == UC_OK) {
        status = uc_region_table_add(domain->regions, region->region_idx, &entry);
    }
    if (status != UC_OK) {
        return status;
    }

    uc_mutex_lock(&domain->lock);
    status = obtain_rows(domain);
    if (status == UC_OK) {
        status = obtain_file(domain, region->fd, &file_idx);
    }
    if (status == UC_OK) {
        put_row(domain, region, file_idx, access);
    }
    uc_mutex_unlock(&domain->lock);
    if (status != UC_OK) {
        uc_region_table_remove(domain->regions, region->region_idx);
    }
    return status;
}

/* Give it a slot if a server could map it and one is free. Without one its bytes are staged. */
static void
add_local(struct uc_fabric_region *region)
{
    struct uc_fabric_domain *domain = region->span.domain;

    if (region->fd < 0 || uc_shm_file_check(region->fd, region->fd_offset_bytes,
                                  region->span.length_bytes, true) != UC_OK) {
        return;
    }

    uc_mutex_lock(&domain->lock);
    for (uint32_t slot = 0; slot < UC_SHM_SLOT_COUNT; slot++) {
        if (domain->serials[slot] == 0) {
            domain->serials[slot] = ++domain->last_serial;
            region->serial = domain->last_serial;
            region->slot = slot;
            break;
        }
    }
    uc_mutex_unlock(&domain->lock);
}

enum uc_status
uc_shm_region_register(struct uc_fabric_domain *domain, const struct uc_fabric_memory *memory,
        uint32_t region_idx, enum uc_fabric_access access, struct uc_fabric_region **region_out)
{
    struct uc_fabric_region *region;

    if (memory->kind != UC_MEMORY_HOST) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "shm: memory of kind %d cannot be registered; only host memory can",
                (int)memory->kind);
    }
    if (memory->address == NULL || memory->length_bytes == 0 ||
            memory->length_bytes > UINTPTR_MAX - (uintptr_t)memory->address) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "shm: %" PRIu64 " bytes at %p are no memory; pass a mapped range",
                memory->length_bytes, memory->address);
    }

    region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "shm: no memory for a region; free some");
    }
    region->span.domain = domain;
    region->span.address = memory->address;
    region->span.length_bytes = memory->length_bytes;
    region->region_idx = region_idx;
    region->slot = UC_SHM_NO_SLOT;
    region->fd = memory->fd;
    region->fd_offset_bytes = memory->fd_offset_bytes;
    if (region_idx == UINT32_MAX) {
        add_local(region);
    } else {
        enum uc_status status = add_for_peers(region, access);

        if (status != UC_OK) {
            free(region);
            return status;
        }
    }

    domain->region_count++;
    *region_out = region;
    return UC_OK;
}

void
uc_shm_region_deregister(struct uc_fabric_region *region)
{
    struct uc_fabric_domain *domain;

    if (region == NULL) {
        return;
    }

    domain = region->span.domain;
    if (region->region_idx != UINT32_MAX) {
        atomic_store_explicit(&domain->rows[region->region_idx].state, 0, memory_order_seq_cst);
        uc_region_table_remove(domain->regions, region->region_idx);
    }
    if (region->slot != UC_SHM_NO_SLOT) {
        uc_mutex_lock(&domain->lock);
        domain->serials[region->slot] = 0;
        uc_mutex_unlock(&domain->lock);
        (void)atomic_fetch_add_explicit(&domain->retired_count, 1, memory_order_release);
    }
    domain->region_count--;
    free(region);
}

void
uc_shm_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out)
{
    *key_out = (struct uc_fabric_region_key){.length_bytes = region->span.length_bytes};
}

size_t
uc_shm_domain_fds(struct uc_fabric_domain *domain, int *fds_out)
{
    size_t count = 0;

    uc_mutex_lock(&domain->lock);
    if (domain->file_count > 0) {
        fds_out[count++] = domain->rows_fd;
        for (size_t idx = 0; idx < domain->file_count; idx++) {
            fds_out[count++] = domain->files[idx].fd;
        }
    }
    uc_mutex_unlock(&domain->lock);
    return count;
}
