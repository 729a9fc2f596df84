/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/block_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static int
hex_digit(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = digit == '\0' ? NULL : strchr(digits, digit | 0x20);

    return found == NULL ? -1 : (int)(found - digits);
}

static bool
parse_hex(const char *text, struct uc_block_id *id_out)
{
    if (strlen(text) != (size_t)(2 * UC_BLOCK_ID_BYTES)) {
        return false;
    }
    for (size_t idx = 0; idx < UC_BLOCK_ID_BYTES; idx++) {
        int high = hex_digit(text[2 * idx]);
        int low = hex_digit(text[2 * idx + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        id_out->bytes[idx] = (uint8_t)(high << 4 | low);
    }
    return true;
}

struct uc_block_id
uc_block_name_parse(const char *text)
{
    struct uc_block_id id;
    XXH128_canonical_t canonical;

    if (!parse_hex(text, &id)) {
        XXH128_canonicalFromHash(&canonical, XXH3_128bits(text, strlen(text)));
        memcpy(id.bytes, canonical.digest, sizeof(id.bytes));
    }
    return id;
}

void
uc_block_name_format(const struct uc_block_id *id, char text[UC_BLOCK_NAME_BYTES])
{
    for (size_t idx = 0; idx < UC_BLOCK_ID_BYTES; idx++) {
        (void)snprintf(text + 2 * idx, 3, "%02x", id->bytes[idx]);
    }
}
