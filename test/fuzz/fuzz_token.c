/* SPDX-License-Identifier: Apache-2.0 */

/* Serialised tokens, R-2.18 and. */

#include <stdlib.h>
#include <string.h>

#include <ucm/token.h>

#include "test/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct uc_token *token;
    uint8_t *again;

    if (uc_token_deserialize(bytes, length, &token) != UC_OK) {
        return 0;
    }

    if (uc_token_serialized_bytes(token) != length) {
        abort();
    }
    again = malloc(length);
    if (again != NULL) {
        uc_token_serialize(token, again);
        if (memcmp(again, bytes, length) != 0) {
            abort();
        }
        free(again);
    }
    uc_token_destroy(token);
    return 0;
}
