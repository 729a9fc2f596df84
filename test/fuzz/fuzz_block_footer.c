/* SPDX-License-Identifier: Apache-2.0 */

/* The footer of a block file, and the size of the file: the first 8 bytes are the size, 64 follow. */

#include <stdlib.h>
#include <string.h>

#include "client/stores/posix/block_footer.h"
#include "core/base/bytes.h"
#include "test/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct uc_block_footer footer;
    uint8_t again[UC_BLOCK_FOOTER_BYTES];
    uint64_t offset = 0;

    if (length < 8 + UC_BLOCK_FOOTER_BYTES) {
        return 0;
    }
    if (uc_block_footer_offset(uc_get_le64(bytes), &offset) == UC_OK &&
            (offset >= uc_get_le64(bytes) || offset % UC_BLOCK_PAGE_BYTES != 0)) {
        abort();
    }
    if (uc_block_footer_get(bytes + 8, &footer) != UC_OK) {
        return 0;
    }

    /* What was read is what would be written. */
    uc_block_footer_put(again, &footer);
    if (memcmp(again, bytes + 8, sizeof(again)) != 0) {
        abort();
    }
    return 0;
}
