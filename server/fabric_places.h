/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_places.h
 * Where transfers arrive: the addresses of the configuration and the devices that belong to them. Pure.
 */

#ifndef UC_SERVER_FABRIC_PLACES_H
#define UC_SERVER_FABRIC_PLACES_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/config/fields.h"

enum {
    UC_FABRIC_PLACES_MAX = 4,
};

/** One address to serve on. A plain value. */
struct uc_fabric_place {
    char address[UC_FIELD_STRING_BYTES];
    char told[UC_FIELD_STRING_BYTES];   /* to peers; "" = where they reached us */
    char device[UC_FIELD_STRING_BYTES]; /* verbs; "" = the one of the address */
};

/**
 * Read the keys `fabric_address` and `fabric_device`: lists separated by commas, the second as long as
 * the first or shorter.
 *
 * @param[in] host  to serve on where @p addresses is empty
 * @param[out] places_out, count_out  in order of preference; set on success only
 * @retval UC_ERR_INVALID_PARAM  more than UC_FABRIC_PLACES_MAX, an empty member, more devices than addresses
 */
UC_MUST_CHECK enum uc_status uc_fabric_places_read(const char *addresses, const char *devices,
        const char *host, struct uc_fabric_place places_out[UC_FABRIC_PLACES_MAX],
        size_t *count_out);

#endif /* UC_SERVER_FABRIC_PLACES_H */
