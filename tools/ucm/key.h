/* SPDX-License-Identifier: Apache-2.0 */

/** @file key.h Block ids as people write them. Pure functions. */

#ifndef UC_TOOLS_UCM_KEY_H
#define UC_TOOLS_UCM_KEY_H

#include <ucm/block.h>

enum {
    UC_KEY_TEXT_BYTES = 2 * UC_BLOCK_ID_BYTES + 1
};

/** 32 hexadecimal digits are the id itself; any other text is named by its 128-bit XXH3 hash. */
struct uc_block_id uc_key_parse(const char *text);

/** Write the 32 digits and a terminator. */
void uc_key_format(const struct uc_block_id *id, char text[UC_KEY_TEXT_BYTES]);

#endif /* UC_TOOLS_UCM_KEY_H */
