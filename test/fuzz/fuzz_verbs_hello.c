/* SPDX-License-Identifier: Apache-2.0 */

/* The private data of verbs connections: requests that a server decodes, answers that a client does. */

#include <stdlib.h>
#include <string.h>

#include "net/verbs/hello.h"
#include "test/fuzz/fuzz.h"

static void
require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void
request(const uint8_t *bytes, size_t length)
{
    struct uc_verbs_hello hello;
    struct uc_verbs_hello again;
    uint8_t copy[UC_VERBS_HELLO_BYTES];

    if (uc_verbs_hello_decode(bytes, length, &hello) != UC_OK) {
        return;
    }

    require(hello.count >= 1 && hello.count <= UC_VERBS_PAIRS_MAX && hello.idx < hello.count);
    uc_verbs_hello_encode(&hello, copy);
    require(uc_verbs_hello_decode(copy, sizeof(copy), &again) == UC_OK);
    require(memcmp(&hello, &again, sizeof(hello)) == 0);
    require(memcmp(copy, bytes, UC_VERBS_HELLO_NONCE_END) == 0);
}

static void
answer(const uint8_t *bytes, size_t length)
{
    struct uc_verbs_answer value = uc_verbs_answer_decode(bytes, length);

    require(value.count >= 1 && value.count <= UC_VERBS_PAIRS_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    request(data, size);
    answer(data, size);
    require(uc_verbs_reject_decode(data, size) != UC_OK);
    return 0;
}
