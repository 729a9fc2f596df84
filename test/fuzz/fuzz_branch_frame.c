/* SPDX-License-Identifier: Apache-2.0 */

/* The frame of a peer, as a worker takes it off a token from another process. */

#include <stdlib.h>
#include <string.h>

#include "client/proxy/branch_frame.h"
#include "test/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t branch_counts[] = {0, 1, 3, SIZE_MAX};

    for (size_t idx = 0; idx < sizeof(branch_counts) / sizeof(branch_counts[0]); idx++) {
        struct uc_token framed = {.payload = size == 0 ? NULL : data, .payload_bytes = size};
        struct uc_token *again = NULL;
        struct uc_token inner;
        size_t branch = 0;

        if (uc_branch_frame_parse(&framed, branch_counts[idx], &branch, &inner) != UC_OK) {
            continue;
        }
        if (branch >= branch_counts[idx] || uc_branch_frame_wrap(branch, &inner, &again) != UC_OK) {
            abort();
        }
        /* One frame, one form: what was taken off can be put on again. */
        if (again->payload_bytes != size || memcmp(again->payload, data, size) != 0) {
            abort();
        }
        uc_token_destroy(again);
    }
    return 0;
}
