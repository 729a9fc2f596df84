/* SPDX-License-Identifier: Apache-2.0 */

/* A slot's footer, whose writer part comes from any client of the namespace. */

#include <stdlib.h>
#include <string.h>

#include "net/slot_footer.h"
#include "test/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct uc_slot_footer footer;
    uint8_t again[UC_FOOTER_BYTES] = {0};

    if (length < UC_FOOTER_BYTES || uc_slot_footer_get(bytes, &footer) != UC_OK) {
        return 0;
    }

    /* What was read is what would be written, spare fields aside. */
    uc_slot_footer_put_server(
            again, (enum uc_footer_state)footer.state, footer.generation, &footer.key, true);
    uc_slot_footer_put_writer(again + UC_FOOTER_WRITER_OFFSET, footer.length_bytes,
            (enum uc_checksum_kind)footer.checksum_kind, footer.checksum);
    if (memcmp(again, bytes, 44) != 0 || memcmp(again + 48, bytes + 48, 8) != 0) {
        abort();
    }
    return 0;
}
