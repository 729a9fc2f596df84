/* SPDX-License-Identifier: Apache-2.0 */

/** @file validate.h What a transfer is checked for before a store sees it. Any thread. */

#ifndef UC_PROXY_VALIDATE_H
#define UC_PROXY_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include <ucm/block.h>
#include <ucm/status.h>
#include <ucm/token.h>

#include "client/proxy/region_set.h"

/** What a submit asks for; borrows everything. */
struct uc_transfer {
    const struct uc_token *token;
    const struct uc_block_payload *payloads;
    size_t payload_count;
    const struct uc_io_context *io;
};

/**
 * Check all but the job id. Data path: no allocation.
 *
 * @param[in]  regions        what payloads may name by index
 * @param[in]  is_plain       of the store: its tokens have no payload
 * @param[out] first_key_out  first key of the token that the transfer covers; payload_count keys follow
 * @retval UC_ERR_INVALID_PARAM  the text says which payload and what is wrong with it
 */
UC_MUST_CHECK enum uc_status uc_transfer_validate(const struct uc_transfer *transfer,
        const struct uc_region_set *regions, bool is_plain, size_t *first_key_out);

#endif /* UC_PROXY_VALIDATE_H */
