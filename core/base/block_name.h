/* SPDX-License-Identifier: Apache-2.0 */

/** @file block_name.h Block ids as people write them. Pure functions. */

#ifndef UC_BASE_BLOCK_NAME_H
#define UC_BASE_BLOCK_NAME_H

#include <ucm/block.h>
#include <ucm/compiler.h>

enum {
    UC_BLOCK_NAME_BYTES = 2 * UC_BLOCK_ID_BYTES + 1
};

/** 32 hexadecimal digits are the id itself; any other text is named by its 128-bit XXH3 hash. */
UC_PRIVATE_API struct uc_block_id uc_block_name_parse(const char *text);

/** Write the 32 digits and a terminator. */
UC_PRIVATE_API void uc_block_name_format(
        const struct uc_block_id *id, char text[UC_BLOCK_NAME_BYTES]);

#endif /* UC_BASE_BLOCK_NAME_H */
