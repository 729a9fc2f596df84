/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/connection.h"
#include "net/rpc/item.h"

enum uc_status
uc_rpc_scan(const uint8_t *bytes, size_t length)
{
    struct uc_reader reader = uc_reader_init(bytes, length);

    if (!uc_rpc_item_skip(&reader)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "rpc: message of %zu bytes is not valid at byte %zu: cut short, a count above the "
                "bytes left, nested deeper than %d, or an extension type",
                length, length - reader.left, UC_RPC_DEPTH_MAX);
    }
    if (reader.left != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "rpc: %zu bytes follow the message in its frame",
                reader.left);
    }

    return UC_OK;
}
