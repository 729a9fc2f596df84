/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

enum uc_status
uc_verbs_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out)
{
    struct uc_fabric_domain *domain = calloc(1, sizeof(*domain));
    enum uc_status status;

    if (domain == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "verbs %s: no memory for a domain", fabric->device_name);
    }

    domain->pd = ibv_alloc_pd(fabric->device);
    if (domain->pd == NULL) {
        status = uc_log_errno(errno, "verbs %s: ibv_alloc_pd, the device has %d of them",
                fabric->device_name, fabric->attr.max_pd);
        goto err_free;
    }

    domain->scratch_mr = ibv_reg_mr(
            domain->pd, &domain->scratch, sizeof(domain->scratch), IBV_ACCESS_LOCAL_WRITE);
    if (domain->scratch_mr == NULL) {
        status = uc_log_errno(errno,
                "verbs %s: ibv_reg_mr of 8 bytes; raise the memlock limit (ulimit -l unlimited)",
                fabric->device_name);
        goto err_dealloc_pd;
    }

    domain->fabric = fabric;
    fabric->domain_count++;
    *domain_out = domain;
    return UC_OK;

err_dealloc_pd:
    (void)ibv_dealloc_pd(domain->pd);
err_free:
    free(domain);
    return status;
}

void
uc_verbs_domain_close(struct uc_fabric_domain *domain)
{
    if (domain == NULL) {
        return;
    }

    assert(domain->region_count == 0);
    assert(domain->endpoint_count == 0);
    (void)ibv_dereg_mr(domain->scratch_mr);
    (void)ibv_dealloc_pd(domain->pd);
    domain->fabric->domain_count--;
    free(domain);
}
