/* SPDX-License-Identifier: Apache-2.0 */

/** @file units.h Units of sizes and times, for printing; parsing is in fields.h. Pure; any thread. */

#ifndef UC_CONFIG_UNITS_H
#define UC_CONFIG_UNITS_H

#include <stdint.h>

/** A plain value: copy it freely. */
struct uc_unit {
    const char *name; /* static storage */
    uint64_t factor;
};

/** @return the largest unit of which the value is a whole multiple. */
struct uc_unit uc_unit_for_bytes(uint64_t bytes);
struct uc_unit uc_unit_for_ms(uint64_t ms);

#endif /* UC_CONFIG_UNITS_H */
