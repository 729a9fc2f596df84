/* SPDX-License-Identifier: Apache-2.0 */

#include "server/fabric_units.h"

#include <stdio.h>
#include <string.h>

#include <ucm/log.h>

static enum uc_status
on_admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    struct uc_fabric_unit_context *unit_context = context;
    struct uc_fabric_peer *peer =
            uc_fabric_peers_admit(unit_context->peers, unit_context->unit, nonce);

    if (peer == NULL) {
        return UC_ERR_PERMISSION_DENIED;
    }

    admission_out->domain = unit_context->unit->domain;
    admission_out->access = peer->access;
    admission_out->peer = peer;
    return UC_OK;
}

static void
on_connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    ((struct uc_fabric_peer *)peer)->endpoint = endpoint;
}

static void
on_gone(void *context, void *peer)
{
    (void)context;
    uc_fabric_peers_drop(peer);
}

static enum uc_status
on_hold(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes,
        uint64_t length_bytes, uint64_t generation, enum uc_fabric_opcode opcode)
{
    const struct uc_fabric_unit_context *unit_context = context;

    return uc_namespace_hold(unit_context->ns, ((struct uc_fabric_peer *)peer)->access, region_idx,
            offset_bytes, length_bytes, generation, opcode);
}

static void
on_release(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes)
{
    const struct uc_fabric_unit_context *unit_context = context;

    (void)peer;
    uc_namespace_release(unit_context->ns, region_idx, offset_bytes);
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = on_admit,
        .connected = on_connected,
        .gone = on_gone,
        .hold = on_hold,
        .release = on_release,
};

/* Each name once, however many units it has. */
static void
note_name(struct uc_fabric_units *units, const char *name)
{
    size_t used = strlen(units->names);

    if (strstr(units->names, name) == NULL) {
        (void)snprintf(units->names + used, sizeof(units->names) - used, "%s%s",
                used == 0 ? "" : "+", name);
    }
}

static enum uc_status
add_unit(struct uc_fabric_units *units, const struct uc_server_config *config,
        const struct uc_fabric_place *place, const char *name)
{
    struct uc_fabric_unit_config unit_config = {
            .name = name,
            .address = place->address,
            .device = place->device[0] == '\0' ? NULL : place->device,
            .port = (uint16_t)config->fabric_port,
    };
    struct uc_fabric_unit *unit = &units->items[units->count];
    struct uc_fabric_unit_context *context = &units->contexts[units->count];
    enum uc_status status;

    *context = (struct uc_fabric_unit_context){
            .ns = units->ns, .peers = units->peers, .unit = unit, .place = place};
    status = uc_fabric_unit_open(&unit_config, units->ns, &target_ops, context, unit);
    if (status != UC_OK) {
        return uc_error(status, "cannot serve on %s port %u (keys fabric_address, fabric_port): %s",
                place->address, unit_config.port, uc_last_error());
    }

    note_name(units, name);
    units->count++;
    if (unit->address == NULL) {
        uc_log_info("fabric %s: serves on %s port %u", name, place->address, unit->port);
    } else {
        uc_log_info("fabric %s: serves this host at %s", name, unit->address);
    }
    return UC_OK;
}

/* In reverse order of preference. What `auto` can do without is left out, and said. */
static const struct fabric_row {
    const char *name;
    bool is_optional;
    bool is_everywhere; /* a unit per place, else one on the first */
} fabric_rows[] = {{"tcp", false, false}, {"verbs", true, true}, {"shm", true, false}};

enum {
    ROW_COUNT = sizeof(fabric_rows) / sizeof(fabric_rows[0]),
};

/* The most preferred place last: see uc_fabric_units_describe(). */
static enum uc_status
add_units(struct uc_fabric_units *units, const struct uc_server_config *config,
        const struct fabric_row *row)
{
    bool may_fail = row->is_optional && strcmp(config->fabric, "auto") == 0;

    for (size_t idx = row->is_everywhere ? units->place_count : 1; idx > 0; idx--) {
        enum uc_status status = add_unit(units, config, &units->places[idx - 1], row->name);

        if (status != UC_OK && !may_fail) {
            return status;
        }
        if (status != UC_OK) {
            uc_log_info("fabric %s: not offered: %s", row->name, uc_last_error());
        }
    }
    return UC_OK;
}

enum uc_status
uc_fabric_units_open(struct uc_fabric_units *units, const struct uc_server_config *config,
        const char *host, struct uc_namespace *ns, struct uc_fabric_peers *peers)
{
    bool is_auto = strcmp(config->fabric, "auto") == 0;
    enum uc_status status;

    units->ns = ns;
    units->peers = peers;
    status = uc_fabric_places_read(config->fabric_address, config->fabric_device, host,
            units->places, &units->place_count);
    for (size_t idx = 0; status == UC_OK && idx < ROW_COUNT; idx++) {
        if (is_auto || strcmp(config->fabric, fabric_rows[idx].name) == 0) {
            status = add_units(units, config, &fabric_rows[idx]);
        }
    }
    return status;
}

void
uc_fabric_units_close(struct uc_fabric_units *units)
{
    for (size_t idx = 0; idx < units->count; idx++) {
        uc_fabric_unit_close(&units->items[idx]);
    }
    units->count = 0;
}

size_t
uc_fabric_units_describe(
        const struct uc_fabric_units *units, struct uc_attach_fabric fabrics_out[UC_FABRICS_MAX])
{
    for (size_t idx = 0; idx < units->count; idx++) {
        /* In order of preference: what was opened last is the faster one. */
        const struct uc_fabric_unit *unit = &units->items[units->count - 1 - idx];
        const struct uc_fabric_unit_context *context = &units->contexts[units->count - 1 - idx];
        const char *address = unit->address == NULL ? context->place->told : unit->address;

        fabrics_out[idx] = (struct uc_attach_fabric){
                .name = {.bytes = unit->ops->name, .length = strlen(unit->ops->name)},
                .address = {.bytes = address, .length = strlen(address)},
                .port = unit->port,
                .keys = unit->keys,
        };
    }
    return units->count;
}
