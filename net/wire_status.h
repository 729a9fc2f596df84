/* SPDX-License-Identifier: Apache-2.0 */

/** @file wire_status.h A status as peers send it: a number that may be anything. Pure. */

#ifndef UC_NET_WIRE_STATUS_H
#define UC_NET_WIRE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/status.h>

/** @return whether the number is a status of this build; @p status_out is set only then. */
static inline bool
uc_wire_status(int32_t number, enum uc_status *status_out)
{
    switch (number) {
#define UC_WIRE_STATUS_CASE_(name, value, text) case (value):
        UC_STATUS_MAP(UC_WIRE_STATUS_CASE_)
#undef UC_WIRE_STATUS_CASE_
        *status_out = (enum uc_status)number;
        return true;
    default:
        return false;
    }
}

#endif /* UC_NET_WIRE_STATUS_H */
