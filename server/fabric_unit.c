/* SPDX-License-Identifier: Apache-2.0 */

#include "server/fabric_unit.h"

#include <stdlib.h>

#include "core/base/bytes.h"

enum {
    KEY_BYTES = 16
};

static enum uc_status
register_regions(struct uc_fabric_unit *unit, const struct uc_namespace *ns)
{
    unit->regions = calloc(ns->layout.region_count, sizeof(struct uc_fabric_region *));
    unit->keys = calloc(ns->layout.region_count, KEY_BYTES);
    if (unit->regions == NULL || unit->keys == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the region table");
    }

    for (uint32_t idx = 0; idx < ns->layout.region_count; idx++) {
        struct uc_fabric_memory memory = uc_arena_region(ns->arena, idx);
        struct uc_fabric_region_key key;
        enum uc_status status = unit->ops->region_register(
                unit->domain, &memory, idx, UC_FABRIC_READ_WRITE, &unit->regions[idx]);

        if (status != UC_OK) {
            return status;
        }
        unit->region_count = idx + 1;
        unit->ops->region_key(unit->regions[idx], &key);
        uc_put_le64(unit->keys + (size_t)idx * KEY_BYTES, key.address);
        uc_put_le64(unit->keys + (size_t)idx * KEY_BYTES + 8, key.key);
    }
    return UC_OK;
}

static enum uc_status
open_domain(struct uc_fabric_unit *unit, const struct uc_fabric_unit_config *config)
{
    struct uc_fabric_config fabric_config = {
            .address = config->address,
            .port = config->port,
            .device = config->device,
    };
    enum uc_status status;

    status = uc_fabric_find(config->name, &unit->ops);
    if (status != UC_OK) {
        return status;
    }
    status = unit->ops->open(&fabric_config, &unit->fabric);
    if (status != UC_OK) {
        return status;
    }
    return unit->ops->domain_open(unit->fabric, &unit->domain);
}

enum uc_status
uc_fabric_unit_open(const struct uc_fabric_unit_config *config, const struct uc_namespace *ns,
        const struct uc_fabric_target_ops *target, void *context, struct uc_fabric_unit *unit_out)
{
    struct uc_fabric_listen listen = {
            .address = config->address,
            .port = config->port,
            .ops = target,
            .context = context,
    };
    struct uc_fabric_unit unit = {0};
    enum uc_status status;

    status = open_domain(&unit, config);
    if (status == UC_OK) {
        status = register_regions(&unit, ns);
    }
    if (status == UC_OK) {
        status = unit.ops->listen(unit.fabric, &listen, &unit.listener);
    }
    if (status != UC_OK) {
        uc_fabric_unit_close(&unit);
        return status;
    }

    unit.port = unit.ops->listener_port(unit.listener);
    if (unit.ops->listener_address != NULL) {
        unit.address = unit.ops->listener_address(unit.listener);
    }
    *unit_out = unit;
    return UC_OK;
}

void
uc_fabric_unit_stop(struct uc_fabric_unit *unit)
{
    if (unit->listener != NULL) {
        unit->ops->listener_close(unit->listener);
        unit->listener = NULL;
        unit->address = NULL;
    }
}

void
uc_fabric_unit_close(struct uc_fabric_unit *unit)
{
    uc_fabric_unit_stop(unit);
    for (size_t idx = 0; idx < unit->region_count; idx++) {
        unit->ops->region_deregister(unit->regions[idx]);
    }
    if (unit->domain != NULL) {
        unit->ops->domain_close(unit->domain);
    }
    if (unit->fabric != NULL) {
        unit->ops->close(unit->fabric);
    }
    free(unit->regions);
    free(unit->keys);
    *unit = (struct uc_fabric_unit){0};
}
