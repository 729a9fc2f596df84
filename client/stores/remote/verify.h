/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file verify.h
 * Decide whether what a READ brought is the block that was asked for. Every byte is foreign. Pure
 * functions; any thread; data path.
 */

#ifndef UC_REMOTE_VERIFY_H
#define UC_REMOTE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/slot_footer.h"

/** What the reader asked for and where it arrived. */
struct uc_verify_want {
    const struct uc_block_id *key;
    uint64_t generation;
    uint64_t length_bytes; /* of the stored block, from the token */
    uint64_t offset_bytes; /* range that was read */
    uint64_t size_bytes;
    const struct uc_checksum_piece *pieces; /* the bytes of that range */
    size_t piece_count;
    bool check_checksum;
    const uint64_t *checksum; /* of those pieces where it is known already, else NULL */
};

/**
 * @param[out] complaint_out  set always: NULL, or static text about a block that its server should check
 * @retval UC_OK                 the bytes are the block's
 * @retval UC_ERR_NOT_FOUND      another key or generation, not committed, damaged
 * @retval UC_ERR_INVALID_PARAM  the range goes beyond the stored length
 */
UC_MUST_CHECK enum uc_status uc_verify_block(
        const struct uc_verify_want *want, const uint8_t *footer, const char **complaint_out);

#endif /* UC_REMOTE_VERIFY_H */
