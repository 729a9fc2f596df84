/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_units.h
 * The fabrics that the configuration asks for, each on its places, and what they ask their target: nonces
 * of the peers, slots of the namespace. Opened and closed on the thread that starts the server, used by the
 * fabric thread in between.
 */

#ifndef UC_SERVER_FABRIC_UNITS_H
#define UC_SERVER_FABRIC_UNITS_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/rpc/messages.h"
#include "server/config.h"
#include "server/fabric_peers.h"
#include "server/fabric_places.h"
#include "server/fabric_unit.h"
#include "server/namespace.h"

enum {
    UC_FABRIC_UNITS_MAX = 2 + UC_FABRIC_PLACES_MAX, /* tcp, shm, and verbs once per place */
    UC_FABRIC_NAMES_BYTES = 32,
};

/** What a callback needs: whose listener it was. */
struct uc_fabric_unit_context {
    struct uc_namespace *ns;
    struct uc_fabric_peers *peers;
    struct uc_fabric_unit *unit;
    const struct uc_fabric_place *place;
};

/** Does not move while it is open: units and callbacks point into it. */
struct uc_fabric_units {
    struct uc_namespace *ns;
    struct uc_fabric_peers *peers;
    struct uc_fabric_unit items[UC_FABRIC_UNITS_MAX]; /* in reverse order of preference */
    struct uc_fabric_unit_context contexts[UC_FABRIC_UNITS_MAX];
    size_t count;
    struct uc_fabric_place places[UC_FABRIC_PLACES_MAX];
    size_t place_count;
    char names[UC_FABRIC_NAMES_BYTES]; /* separated by "+" */
};

/**
 * Open what the configuration asks for. Blocks. What was opened before a failure is closed by
 * uc_fabric_units_close().
 *
 * @param[in,out] units  zeroed
 * @param[in] host       address to listen on where the configuration names none
 */
UC_MUST_CHECK enum uc_status uc_fabric_units_open(struct uc_fabric_units *units,
        const struct uc_server_config *config, const char *host, struct uc_namespace *ns,
        struct uc_fabric_peers *peers);

/** Endpoints are gone. */
void uc_fabric_units_close(struct uc_fabric_units *units);

/** Describe the fabrics for an attach reply; the texts live as long as the units. @return their count */
size_t uc_fabric_units_describe(
        const struct uc_fabric_units *units, struct uc_attach_fabric fabrics_out[UC_FABRICS_MAX]);

#endif /* UC_SERVER_FABRIC_UNITS_H */
