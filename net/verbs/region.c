/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

static int
access_flags(uint32_t region_idx, enum uc_fabric_access access)
{
    if (region_idx == UINT32_MAX) {
        return IBV_ACCESS_LOCAL_WRITE;
    }
    if (access == UC_FABRIC_READ_ONLY) {
        return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    }
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
}

/* Says which limit a failed registration met, as far as can be known, and what to do about it. */
static enum uc_status
explain_failure(const struct uc_fabric_domain *domain, uint64_t length_bytes, int error)
{
    const struct uc_fabric *fabric = domain->fabric;
    struct rlimit limit;

    if ((error == ENOMEM || error == EPERM || error == EAGAIN) &&
            getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        return uc_log_errno(error,
                "verbs %s: ibv_reg_mr of %" PRIu64
                " bytes; the memlock limit is %llu bytes for all "
                "of them together, raise it (ulimit -l unlimited, or LimitMEMLOCK=infinity)",
                fabric->device_name, length_bytes, (unsigned long long)limit.rlim_cur);
    }
    if (error == ENOMEM) {
        return uc_log_errno(error,
                "verbs %s: ibv_reg_mr of %" PRIu64 " bytes; the device has max_mr %d and "
                "max_mr_size %" PRIu64 ": register fewer or smaller regions, or free memory",
                fabric->device_name, length_bytes, fabric->attr.max_mr, fabric->attr.max_mr_size);
    }
    return uc_log_errno(error, "verbs %s: ibv_reg_mr of %" PRIu64 " bytes; is it mapped writable?",
            fabric->device_name, length_bytes);
}

/* The same for memory of a device: what reaches it, and what to do without. */
static enum uc_status
explain_device_failure(
        const struct uc_fabric_domain *domain, const struct uc_fabric_memory *memory, int error)
{
    const char *name = domain->fabric->device_name;

    if (error == ENOMEM) {
        return explain_failure(domain, memory->length_bytes, error);
    }
    if (memory->fd >= 0) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "verbs %s: ibv_reg_dmabuf_mr of %" PRIu64 " bytes at offset %" PRIu64
                " of dma-buf %d: %s; the driver of this device must support dma-buf (Linux 5.12, "
                "mlx5), or leave the file out where a peer memory module (nvidia_peermem) is loaded, "
                "or let blocks go through host memory",
                name, memory->length_bytes, memory->fd_offset_bytes, memory->fd, strerror(error));
    }
    return uc_error(UC_ERR_UNSUPPORTED,
            "verbs %s: ibv_reg_mr of %" PRIu64
            " bytes of device memory at %p: %s; without a dma-buf "
            "the kernel needs a peer memory module (modprobe nvidia_peermem): load it, or pass the "
            "memory's dma-buf, or let blocks go through host memory",
            name, memory->length_bytes, memory->address, strerror(error));
}

/* The device's own addresses name dma-buf memory too, so nothing else differs for it. */
static struct ibv_mr *
register_memory(struct ibv_pd *pd, const struct uc_fabric_memory *memory, int flags)
{
    if (memory->kind != UC_MEMORY_HOST && memory->fd >= 0) {
        return ibv_reg_dmabuf_mr(pd, memory->fd_offset_bytes, (size_t)memory->length_bytes,
                (uintptr_t)memory->address, memory->fd, flags);
    }
    return ibv_reg_mr(pd, memory->address, (size_t)memory->length_bytes, flags);
}

enum uc_status
uc_verbs_region_register(struct uc_fabric_domain *domain, const struct uc_fabric_memory *memory,
        uint32_t region_idx, enum uc_fabric_access access, struct uc_fabric_region **region_out)
{
    struct uc_fabric_region *region;
    uint64_t length_bytes = memory->length_bytes;
    void *address = memory->address;
    enum uc_status status;

    if (address == NULL || length_bytes == 0 || length_bytes > SIZE_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "verbs: %" PRIu64 " bytes at %p are no memory; pass a mapped range", length_bytes,
                address);
    }
    if (length_bytes > domain->fabric->attr.max_mr_size) {
        return uc_error(UC_ERR_NO_SPACE,
                "verbs %s: a region of %" PRIu64 " bytes is above the device's max_mr_size %" PRIu64
                "; use smaller regions (region_bytes)",
                domain->fabric->device_name, length_bytes, domain->fabric->attr.max_mr_size);
    }

    region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "verbs: no memory for a region");
    }

    region->mr = register_memory(domain->pd, memory, access_flags(region_idx, access));
    if (region->mr == NULL) {
        status = memory->kind == UC_MEMORY_HOST ? explain_failure(domain, length_bytes, errno)
                                                : explain_device_failure(domain, memory, errno);
        goto err_free;
    }

    region->domain = domain;
    region->address = address;
    region->length_bytes = length_bytes;
    domain->region_count++;
    *region_out = region;
    return UC_OK;

err_free:
    free(region);
    return status;
}

void
uc_verbs_region_deregister(struct uc_fabric_region *region)
{
    int error;

    if (region == NULL) {
        return;
    }

    error = ibv_dereg_mr(region->mr);
    if (error != 0) {
        (void)uc_log_errno(error, "verbs %s: ibv_dereg_mr", region->domain->fabric->device_name);
    }
    region->domain->region_count--;
    free(region);
}

void
uc_verbs_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out)
{
    *key_out = (struct uc_fabric_region_key){
            .address = (uintptr_t)region->address,
            .key = region->mr->rkey,
            .length_bytes = region->length_bytes,
    };
}
