/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "net/tcp/tcp_object.h"

enum uc_status
uc_tcp_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out)
{
    struct uc_fabric_domain *domain = calloc(1, sizeof(*domain));
    enum uc_status status;

    if (domain == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "tcp: no memory for a domain; free some");
    }

    status = uc_region_table_create(&domain->regions);
    if (status != UC_OK) {
        goto err_free_domain;
    }

    domain->fabric = fabric;
    fabric->domain_count++;
    *domain_out = domain;
    return UC_OK;

err_free_domain:
    free(domain);
    return status;
}

void
uc_tcp_domain_close(struct uc_fabric_domain *domain)
{
    if (domain == NULL) {
        return;
    }

    assert(domain->endpoint_count == 0);
    assert(domain->region_count == 0);
    domain->fabric->domain_count--;
    uc_region_table_destroy(domain->regions);
    free(domain);
}

enum uc_status
uc_tcp_region_register(struct uc_fabric_domain *domain, const struct uc_fabric_memory *memory,
        uint32_t region_idx, enum uc_fabric_access access, struct uc_fabric_region **region_out)
{
    struct uc_fabric_region *region;
    uint64_t length_bytes = memory->length_bytes;
    void *address = memory->address;

    if (memory->kind != UC_MEMORY_HOST) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "tcp: memory of kind %d cannot be registered; only host memory can",
                (int)memory->kind);
    }
    if (address == NULL || length_bytes == 0 || length_bytes > UINTPTR_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "tcp: %" PRIu64 " bytes at %p are no memory; pass a mapped range", length_bytes,
                address);
    }

    region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "tcp: no memory for a region; free some");
    }

    if (region_idx != UINT32_MAX) {
        struct uc_region entry = {
                .address = address, .length_bytes = length_bytes, .access = access};
        enum uc_status status = uc_region_table_add(domain->regions, region_idx, &entry);

        if (status != UC_OK) {
            free(region);
            return status;
        }
    }

    region->span.domain = domain;
    region->span.address = address;
    region->span.length_bytes = length_bytes;
    region->region_idx = region_idx;
    domain->region_count++;
    *region_out = region;
    return UC_OK;
}

void
uc_tcp_region_deregister(struct uc_fabric_region *region)
{
    if (region == NULL) {
        return;
    }

    if (region->region_idx != UINT32_MAX) {
        uc_region_table_remove(region->span.domain->regions, region->region_idx);
    }
    region->span.domain->region_count--;
    free(region);
}

void
uc_tcp_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out)
{
    *key_out = (struct uc_fabric_region_key){.length_bytes = region->span.length_bytes};
}
