/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_unit.h
 * One opened fabric with the namespace's memory registered and a listener. Made and unmade on the thread
 * that starts the server, used by the fabric thread in between.
 */

#ifndef UC_SERVER_FABRIC_UNIT_H
#define UC_SERVER_FABRIC_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"
#include "server/namespace.h"

struct uc_fabric_unit {
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_listener *listener;
    struct uc_fabric_region **regions; /* region_count, owned */
    uint8_t *keys;                     /* 16 bytes per region as in the attach reply, owned */
    size_t region_count;
    uint16_t port;
    const char *address; /* that peers are told; NULL = where they reached us. The listener's */
};

/** Where a unit listens. Borrowed for the call. */
struct uc_fabric_unit_config {
    const char *name;
    const char *address;
    const char *device; /* NULL = any */
    uint16_t port;
};

/**
 * Open the fabric, register every region, listen. Blocks.
 *
 * @retval UC_ERR_UNSUPPORTED  this machine has no such fabric; the text says what is missing
 */
UC_MUST_CHECK enum uc_status uc_fabric_unit_open(const struct uc_fabric_unit_config *config,
        const struct uc_namespace *ns, const struct uc_fabric_target_ops *target, void *context,
        struct uc_fabric_unit *unit_out);

/** No more endpoints from now on; those that exist stay. Polling thread. */
void uc_fabric_unit_stop(struct uc_fabric_unit *unit);
/** Endpoints are gone. */
void uc_fabric_unit_close(struct uc_fabric_unit *unit);

#endif /* UC_SERVER_FABRIC_UNIT_H */
