/* SPDX-License-Identifier: Apache-2.0 */

#include "core/config/units.h"

#include <ctype.h>
#include <string.h>

#include "core/config/fields.h"

static const struct uc_unit byte_units[] = {
        {"TiB", UINT64_C(1) << 40},
        {"GiB", UINT64_C(1) << 30},
        {"MiB", UINT64_C(1) << 20},
        {"KiB", UINT64_C(1) << 10},
        {"TB", UINT64_C(1000000000000)},
        {"GB", UINT64_C(1000000000)},
        {"MB", UINT64_C(1000000)},
        {"kB", UINT64_C(1000)},
        {"B", 1},
};

static const struct uc_unit time_units[] = {
        {"h", UINT64_C(3600000)},
        {"m", UINT64_C(60000)},
        {"s", UINT64_C(1000)},
        {"ms", 1},
};

/* Digits, optional blanks, a unit. No sign, no fraction: both would hide a mistake sooner than help. */
static enum uc_status
parse(const char *text, const struct uc_unit *units, size_t unit_count, const char *example,
        uint64_t *value_out)
{
    const char *unit = text == NULL ? "" : text;
    uint64_t factor = 0;
    uint64_t number = 0;
    bool overflows = false;

    if (!isdigit((unsigned char)*unit)) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%.64s' is not %s", unit, example);
    }
    for (; isdigit((unsigned char)*unit); unit++) {
        uint64_t digit = (uint64_t)(*unit - '0');

        overflows = overflows || number > (UINT64_MAX - digit) / 10;
        number = number * 10 + digit;
    }
    while (*unit == ' ') {
        unit++;
    }

    factor = *unit == '\0' ? 1 : 0; /* a bare number is bytes or milliseconds */
    for (size_t idx = 0; idx < unit_count && factor == 0; idx++) {
        if (strcmp(unit, units[idx].name) == 0) {
            factor = units[idx].factor;
        }
    }
    if (factor == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%.64s': unit '%.16s' is not known; write %s", text,
                unit, example);
    }
    if (overflows || number > UINT64_MAX / factor) {
        return uc_error(UC_ERR_INVALID_PARAM, "'%.64s' is more than 64 bits hold", text);
    }

    *value_out = number * factor;
    return UC_OK;
}

enum uc_status
uc_bytes_parse(const char *text, uint64_t *bytes_out)
{
    return parse(text, byte_units, sizeof(byte_units) / sizeof(byte_units[0]),
            "a size such as 64MiB (B KiB MiB GiB TiB kB MB GB TB)", bytes_out);
}

enum uc_status
uc_config_parse_ms(const char *text, uint64_t *ms_out)
{
    return parse(text, time_units, sizeof(time_units) / sizeof(time_units[0]),
            "a time such as 10s (ms s m h)", ms_out);
}

/* The largest unit that divides the value; the last of the list is the unit of 1. */
static struct uc_unit
largest_unit(const struct uc_unit *units, size_t unit_count, uint64_t value)
{
    for (size_t idx = 0; idx < unit_count; idx++) {
        if (value != 0 && value % units[idx].factor == 0) {
            return units[idx];
        }
    }

    return units[unit_count - 1];
}

struct uc_unit
uc_unit_for_bytes(uint64_t bytes)
{
    /* Decimal units are read, but not written. */
    const struct uc_unit written[] = {
            byte_units[0], byte_units[1], byte_units[2], byte_units[3], byte_units[8]};

    return largest_unit(written, sizeof(written) / sizeof(written[0]), bytes);
}

struct uc_unit
uc_unit_for_ms(uint64_t ms)
{
    return largest_unit(time_units, sizeof(time_units) / sizeof(time_units[0]), ms);
}
