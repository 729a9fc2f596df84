/* SPDX-License-Identifier: Apache-2.0 */

/* Regions: passed on to the provider, which can touch no memory of a device and is given where its bytes are. */

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <check.h>

#include "test/fake/fault_fabric_internal.h"

/* What uc_fault_reach_devices() was told; guarded by the lock. */
static struct {
    pthread_mutex_t lock;
    bool by_file;
    uint8_t *(*bytes_of)(const void *address);
} reached = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
uc_fault_reach_devices(bool by_file, uint8_t *(*bytes_of)(const void *address))
{
    (void)pthread_mutex_lock(&reached.lock);
    reached.by_file = by_file;
    reached.bytes_of = bytes_of;
    (void)pthread_mutex_unlock(&reached.lock);
}

/* Find where memory of a device can be touched. */
static bool
reach(const struct uc_fabric_memory *memory, struct uc_fabric_region *region)
{
    (void)pthread_mutex_lock(&reached.lock);
    if (memory->fd >= 0 && reached.by_file) {
        region->mapping_bytes = (size_t)(memory->fd_offset_bytes + memory->length_bytes);
        region->mapping = mmap(
                NULL, region->mapping_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
        ck_assert_ptr_ne(region->mapping, MAP_FAILED);
        region->bytes = (uint8_t *)region->mapping + memory->fd_offset_bytes;
    } else if (memory->fd < 0 && reached.bytes_of != NULL) {
        region->bytes = reached.bytes_of(memory->address);
    }
    (void)pthread_mutex_unlock(&reached.lock);
    return region->bytes != NULL;
}

enum uc_status
fault_region_register(struct uc_fabric_domain *domain, const struct uc_fabric_memory *memory,
        uint32_t region_idx, enum uc_fabric_access access, struct uc_fabric_region **region_out)
{
    enum uc_status status = fault_take_registration();
    struct uc_fabric_memory inner = *memory;
    struct uc_fabric_region *region;

    if (status != UC_OK) {
        return status;
    }
    region = calloc(1, sizeof(*region));
    ck_assert_ptr_nonnull(region);
    region->domain = domain;
    region->address = memory->address;
    region->bytes = memory->kind == UC_MEMORY_HOST ? memory->address : NULL;
    if (memory->kind != UC_MEMORY_HOST && reach(memory, region)) {
        inner = uc_fabric_host_memory(region->bytes, memory->length_bytes);
    }
    status = domain->fabric->ops->region_register(
            domain->inner, &inner, region_idx, access, &region->inner);
    if (status != UC_OK) {
        free(region);
        return status;
    }

    fault_count(&(struct uc_fault_counts){.registrations = 1});
    *region_out = region;
    return UC_OK;
}

void
fault_region_deregister(struct uc_fabric_region *region)
{
    region->domain->fabric->ops->region_deregister(region->inner);
    fault_count(&(struct uc_fault_counts){.registrations = UINT32_MAX}); /* one less */
    if (region->mapping != NULL) {
        (void)munmap(region->mapping, region->mapping_bytes);
    }
    free(region);
}

void
fault_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out)
{
    region->domain->fabric->ops->region_key(region->inner, key_out);
}
