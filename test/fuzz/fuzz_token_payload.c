/* SPDX-License-Identifier: Apache-2.0 */

/* The payload of a remote token. The first byte is the number of keys that its token has. */

#include <stdlib.h>

#include "net/token_payload.h"
#include "test/fuzz/fuzz.h"

static volatile uint64_t sink;

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct uc_token_view view;

    if (length == 0 || uc_token_payload_parse(bytes + 1, length - 1, bytes[0], &view) != UC_OK) {
        return 0;
    }

    for (size_t idx = 0; idx < view.node_count; idx++) {
        struct uc_token_node node;

        uc_token_payload_node(&view, idx, &node);
        for (size_t at = 0; at < node.name_bytes; at++) {
            sink += (uint8_t)node.name[at];
        }
    }
    for (size_t idx = 0; idx < view.key_count * view.copies; idx++) {
        struct uc_token_entry entry;

        uc_token_payload_entry(&view, idx / view.copies, idx % view.copies, &entry);
        if (entry.node_idx >= view.node_count) {
            abort();
        }
        sink += entry.offset_bytes;
    }
    return 0;
}
